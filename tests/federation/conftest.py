"""Fixtures of trainings that crash."""

from collections import defaultdict

import pytest

from cofactor.federation import summing
from cofactor.federation.host import Host
from cofactor.federation.messages import Letter
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.ledger import Ledger
from cofactor.recipes import outcome, telling, together
from tests.federation.crashing import Left
from tests.federation.making import ItemSums


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the reckoning, which writes nothing, and the waiting for disks."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setattr(Ledger, "_within", lambda *_: True)
    monkeypatch.setattr(telling, "_by_round", lambda *_: {})
    monkeypatch.setattr(outcome, "_loss", lambda *_: None)
    monkeypatch.setattr(together, "guarantee_of", lambda *_, **__: Guarantee.nothing("Not reckoned."))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Left:
    """All answers that ever left a party."""
    left: Left = defaultdict(set)
    handle = Host.handle

    def recorded(self: Host, data: bytes) -> bytes:
        reply = handle(self, data)
        letter = Letter.from_bytes(reply, (*ItemSums.messages, *summing.SUM_MESSAGES))
        left[self.party, letter.round, type(letter.body).__name__, letter.protection].add(reply)
        return reply

    monkeypatch.setattr(Host, "handle", recorded)
    return left
