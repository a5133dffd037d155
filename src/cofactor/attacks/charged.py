"""What the parties of a session were charged for, read from the ledgers that its result keeps."""

from pathlib import Path
from tempfile import TemporaryDirectory

from cofactor.federation.books import all_released
from cofactor.federation.run import Together
from cofactor.privacy.events import Event
from cofactor.privacy.ledger import Ledger


def charged(together: Together) -> list[Event]:
    """Return what stands in the ledgers for this session; seals are checked on the way."""
    with TemporaryDirectory() as folder:
        ledgers = {}
        for number, (party, content) in enumerate(together.ledgers.items()):
            path = Path(folder) / f"{number}.ledger"
            path.write_bytes(content)
            ledgers[party] = Ledger.open(path)
        return all_released(ledgers, together.session)
