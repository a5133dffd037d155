"""The command line: argv in, one call, text out."""

import gc
import io
import sys
import traceback
import warnings

from cofactor.errors import CofactorError, PrivacyWarning

REFUSED, USAGE, BUG, INTERRUPTED = 1, 2, 70, 130
_OBJECTS = 50_000
"""How many new ones Python waits for before it looks for garbage: of what a command loads, none is."""


def main() -> None:
    """Run a command; a user's mistake is one line and exit code 1 or 2, our own is 70."""
    gc.set_threshold(_OBJECTS)
    from cofactor.cli.app import app
    from cofactor.cli.text import print_error, print_json_error

    as_json = "--json" in sys.argv
    _never_choke_on_letters()
    try:
        with warnings.catch_warnings():
            # Commands print such concerns themselves.
            warnings.simplefilter("ignore", PrivacyWarning)
            app()
    except CofactorError as error:
        print_error(type(error).__name__, str(error), as_json=as_json)
        sys.exit(error.exit_code)
    except SystemExit as stop:
        if as_json and stop.code == USAGE:
            print_json_error("UsageError", "the command line is wrong; standard error says how")
        raise
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:
        print(f"cannot go on: {error}", file=sys.stderr)
        sys.exit(REFUSED)
    except Exception as error:
        # A kernel that is interrupted wraps the interrupt.
        if isinstance(error.__cause__, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        traceback.print_exc()
        print_error("Bug", "this is a bug in cofactor. Please report the lines above.", as_json=as_json)
        sys.exit(BUG)


def _never_choke_on_letters() -> None:
    """Print a question mark where a terminal does not know a letter."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
