"""The command line: argv in, one call, text out."""

import sys
import traceback

from cofactor.errors import CofactorError

BUG = 70


def main() -> None:
    """Run a command; a user's mistake is one line and exit code 1 or 2, our own is 70."""
    from cofactor.cli.app import app
    from cofactor.cli.text import print_error

    try:
        app()
    except CofactorError as error:
        print_error(error, as_json="--json" in sys.argv)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception:
        traceback.print_exc()
        print("This is a bug in cofactor. Please report it with the lines above.", file=sys.stderr)
        sys.exit(BUG)
