"""Who is asked something else than the others has no part in their sum."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from cofactor.federation.channel import Answers, Channel, InProcess
from cofactor.federation.door import COORDINATOR
from cofactor.federation.drive import drive
from cofactor.federation.messages import Letter
from cofactor.federation.summing import SUM_MESSAGES
from cofactor.privacy.ledger import Ledger
from cofactor.recipes import hosts
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.sums import SecureSum
from tests.crypto.fixed_primes import fixed_primes
from tests.federation.making import Guess, ItemSums, horizontal
from tests.federation.summing_parties import FirstParties, Played, plain_sum, prepared

NAMES = ("north", "south", "west", "east", "middle")
FOOLED = "middle"


class TwoFaced:
    """A coordinator's channel that asks one party about other numbers than all the others."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self.parties = channel, channel.parties

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        told = dict(letters)
        if FOOLED in told and not isinstance(_body(told[FOOLED]), SUM_MESSAGES):
            other = Guess(mean=np.zeros(5))
            told[FOOLED] = Letter(session="s", round=round, sender=COORDINATOR, body=other).to_bytes()
        return self._channel.ask(round, told, step)


def _body(data: bytes) -> Any:
    return Letter.from_bytes(data, (Guess, *SUM_MESSAGES)).body


def played_with(aggregate: Any) -> Played:
    played = prepared(ItemSums(rounds=1, aggregate=aggregate), horizontal(5), private=False)
    channel = InProcess(played.hosts)
    try:
        drive(played.coordinator, TwoFaced(channel), played.session, played.rounds.append)
    finally:
        channel.close()
    return played


@pytest.fixture(autouse=True)
def unreckoned(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(Ledger, "_within", lambda *_: True)
    monkeypatch.setattr(hosts, "SystemRandom", FirstParties)  # decrypters are asked what all are asked
    with fixed_primes():
        yield


@pytest.mark.parametrize(
    "aggregate",
    [SecureSum(dropout=0.2), SharedSum(dropout=0.2), EncryptedSum(dropout=0.2)],
    ids=["masks", "shares", "paillier"],
)
def test_sum_is_that_of_those_who_were_asked_the_same(aggregate: Any) -> None:
    played = played_with(aggregate)
    assert played.total is not None
    np.testing.assert_array_equal(played.total, plain_sum(5, [name for name in NAMES if name != FOOLED]))
    assert list(played.rounds[0].missing) == [FOOLED]


@pytest.mark.parametrize("aggregate", [SecureSum(dropout=0), SharedSum()], ids=["masks", "shares"])
def test_nothing_is_opened_if_all_must_be_in_the_sum(aggregate: Any) -> None:
    assert played_with(aggregate).total is None
