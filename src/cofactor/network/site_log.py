"""A party's own log: what it refused, and why. It stays there, and holds no data."""

import logging
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path

from cofactor.errors import CofactorError, DataError, UnknownId
from cofactor.federation.messages import Heading
from cofactor.network.approval import plain

LOG = "cofactor.log"
_BYTES, _FILES, _LONGEST = 1_000_000, 5, 600


class SiteLog:
    """Lines in the party's folder, a few megabytes of them at most."""

    def __init__(self, folder: Path) -> None:
        """Write to the folder's own file, for its owner's eyes."""
        path = folder / LOG
        path.touch(mode=0o600)
        self._handler = RotatingFileHandler(path, maxBytes=_BYTES, backupCount=_FILES)
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._logger = logging.Logger("a party")
        self._logger.addHandler(self._handler)

    def close(self) -> None:
        """Let go of the file."""
        self._handler.close()

    def note(self, error: BaseException, code: str, head: Heading | None) -> None:
        """Write down what was told to others, and for the people here why.

        Of errors about data, and of those that are none of ours, only kind and place: words may quote data.
        """
        where = "an unreadable letter" if head is None else f"{head.kind}, round {head.round}"
        if isinstance(error, CofactorError) and not isinstance(error, DataError | UnknownId):
            why = str(error)
        else:
            last = traceback.extract_tb(error.__traceback__)[-1:]
            place = f" at {Path(last[0].filename).name}:{last[0].lineno}" if last else ""
            why = f"{type(error).__name__}{place}"
        # Parts of it come from outside.
        self._logger.warning("%s: told %r. %s", plain(where), code, plain(why, _LONGEST))
