"""`cofactor host run`: what is proposed to whom, and seeing it through."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from cofactor.cli.network_text import Tail, check_engine, say
from cofactor.cli.text import ProgressLine
from cofactor.errors import ConfigError, Refused
from cofactor.progress import Progress, nobody

if TYPE_CHECKING:
    from cofactor.network.hosting import Hosted
    from cofactor.network.proposal import Proposal
    from cofactor.network.supervising import Waiting


def proposed(folder: Path, config: Path | None) -> "Proposal":
    """Read a job, and return what it asks the admitted parties for."""
    from cofactor.network import kits
    from cofactor.network.enrolling import admitted
    from cofactor.network.hosting import check_host
    from cofactor.network.proposing import propose as make

    if config is None:
        raise ConfigError("say what to propose: --config job.toml.")
    return make(config, admitted(check_host(folder)).known, revoked=kits.revoked(folder))


def check_admitted(folder: Path, proposal: "Proposal") -> None:
    """Refuse a proposal whose parties are not those that were admitted, as they were."""
    from cofactor.network import kits
    from cofactor.network.enrolling import admitted

    known, gone = admitted(folder).known, kits.revoked(folder)
    wrong = [name for name, key in proposal.roster.items() if known.get(name) != key or name in gone]
    if wrong:
        raise Refused(f"the proposal names {', '.join(wrong)}, not admitted with that key, or revoked.")


def check_fewest(fewest: int | None, proposal: "Proposal") -> None:
    """Refuse a number of parties that can never be there."""
    if fewest is not None and not 1 <= fewest <= len(proposal.parties):
        raise ConfigError(f"--fewest must lie between 1 and {len(proposal.parties)}, the number of parties.")


def see_through(work: "Hosted", fewest: int | None, waiting: "Waiting", *, quiet: bool) -> None:
    """Run it, and show how far it is; refuse if that is how it ended."""
    from cofactor.network.processes import check_port

    check_engine()
    check_port(work.host)
    signal.signal(signal.SIGTERM, _stop)
    # A shell that starts this in the background lets it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    done = threading.Event()
    follow = threading.Thread(
        target=_follow, args=(Tail(ProgressLine(quiet=quiet)), work.folder, done), daemon=True
    )
    follow.start()
    if not quiet:
        say(f"session {work.proposal.session}; Ctrl-C stops, and --resume goes on.")
    try:
        outcome = work.run(fewest=fewest, waiting=waiting, listen=nobody if quiet else _said)
    except (KeyboardInterrupt, SystemExit) as stopped:
        say(f"stopped. Go on with: cofactor host run {work.host} --resume")
        end_now(130 if isinstance(stopped, KeyboardInterrupt) else 0)
    finally:
        done.set()
        follow.join(timeout=2)
    if outcome.get("outcome") != "finished":
        raise Refused(f"{outcome.get('words') or 'the work was refused.'}")


def _follow(tail: Tail, folder: Path, done: threading.Event) -> None:
    from cofactor.network.outcomes import read_waiting

    tail.skip(folder)
    waiting = ""
    while not done.wait(0.5):
        tail.show(folder)
        before, waiting = waiting, read_waiting(folder)
        if waiting and waiting != before:
            say(f"waiting for a yes: {waiting}")
    tail.show(folder)


def _said(event: Progress) -> None:
    say(event.note)


def _stop(*_: object) -> None:
    raise SystemExit(0)


def end_now(code: int) -> NoReturn:
    """End this process, whatever threads of the engine still wait for a server that is gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
