"""What a party keeps of a session, so that nobody can say something else later, not even after a crash."""

import fcntl
import time
from pathlib import Path
from typing import IO, Final

from cofactor.federation.declining import Declining
from cofactor.federation.host import write_bytes
from cofactor.federation.transcript import Transcript
from cofactor.network.work import Sitting
from cofactor.privacy.ledger import Ledger

_TRIES = 3
"""How often a search or a dealing that was broken off is made again: each tells others who is common to all,
or gives them another lot."""
_OTHERS = 5.0
"""Seconds that a process which is about to end has for that."""
PROPOSED: Final = "proposal.json"
"""What was proposed."""
TOLD: Final = "told.json"
"""What all were said to know, and what this party told."""
AGREED: Final = "agreed.json"
"""What all parties told, and the terms."""
BEGUN: Final = "begun"
"""There from before the first charge on."""
SEARCHED: Final = "searches"
"""How often users in common were searched for."""
DEALT: Final = "dealings"
"""How often a dealing of keys was begun."""
SERVED: Final = "served"
"""There once half of all rounds were answered: keys that were dealt have served."""
SHOWN: Final = "shown"
"""The hash of the ids that were shown."""
FINISHED: Final = "finished"
"""The hash of the last letter: from then on nothing leaves."""


def keep(file: Path, content: str, otherwise: str) -> None:
    """Write something down that is said once; whoever says it again must say the same."""
    if not file.exists():
        write_bytes(file, content.encode())
    elif file.read_bytes() != content.encode():
        raise Declining("other terms", otherwise)


def note_search(folder: Path) -> None:
    """Write down that a search begins; refuse one too many."""
    if _tries(folder / SEARCHED) >= _TRIES:
        raise Declining("out of order", f"{_TRIES} searches were broken off: begin a new session.")
    _note_try(folder / SEARCHED)


def note_dealing(folder: Path) -> None:
    """Write down that keys are dealt; refuse one too many, of all sessions in which little came of it.

    Whoever sees the lot and breaks off wants another one: without an end to that, anybody may choose. Once
    half of the rounds are answered, and charged, another lot has its price.
    """
    broken_off = [
        each for each in folder.parent.iterdir() if (each / DEALT).exists() and not (each / SERVED).exists()
    ]
    if sum(_tries(each / DEALT) for each in broken_off) >= _TRIES:
        raise Declining(
            "out of order",
            f"{_TRIES} dealings of keys were broken off. Find out by whom; then move these sessions away: "
            f"{', '.join(each.name for each in broken_off)}.",
        )
    _note_try(folder / DEALT)


def _tries(file: Path) -> int:
    return len(file.read_bytes()) if file.exists() else 0


def _note_try(file: Path) -> None:
    write_bytes(file, b"." * (_tries(file) + 1))


def note_served(folder: Path, answered: int, rounds: int | None) -> None:
    """Write down that keys which were dealt have served, once half of the rounds are answered."""
    if rounds is not None and 2 * answered >= rounds and not (folder / SERVED).exists():
        write_bytes(folder / SERVED, b"")


def check_new(folder: Path, session: str, ledger: Ledger | None) -> None:
    """Refuse a session whose name has charges in the ledger, and of which nothing else is kept.

    Its folder was lost, or another piece of work had the name: what had left by then is not known any more.
    """
    if (folder / BEGUN).exists():
        return
    if ledger is not None and any(entry.run == session for entry in ledger.entries):
        ledger.give_up_reserved()
        raise Declining("unknown session", "the ledger has charges of this session, and its folder is gone.")
    write_bytes(folder / BEGUN, b"")


def locked(sitting: Sitting) -> IO[str]:
    """Keep every other process out of this session: two would answer the same round twice."""
    lock, until = (sitting.folder / "session.lock").open("w"), time.monotonic() + _OTHERS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError:
            if time.monotonic() > until:
                lock.close()
                raise Declining("waiting", "another process of this party has the session.") from None
            time.sleep(0.1)


def transcript_of(sitting: Sitting) -> Transcript:
    """Open what the party has seen and sent in this session, or begin it."""
    path, proposal = sitting.transcript_path, sitting.proposal
    if not path.exists():
        Transcript.create(path, session=proposal.session, split=proposal.split)
    return Transcript.open(path, recover=True)
