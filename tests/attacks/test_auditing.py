"""One audit for all targets: coins that are fair and secret, runs that are pooled, and a verdict."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.attacks.auditing import audited, comparable
from cofactor.attacks.target import Played
from cofactor.errors import ConfigError, DataError
from cofactor.privacy import noise
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.mechanisms import Gaussian
from cofactor.privacy.one_run import Curve
from cofactor.progress import Progress
from cofactor.randomness import InsecureRandom, Random, SecureRandom, own_random

CLAIMED = 2.0
"""The noise multiplier that is charged."""


@dataclass
class Counter:
    """A release of one number for each canary, with the noise that was promised, or less."""

    canaries: int = 400
    noise_multiplier: float = CLAIMED
    promises: bool = True
    name: str = "a counter"
    coins: list[NDArray[np.bool_]] = field(default_factory=list)
    released: list[NDArray[np.float64]] = field(default_factory=list)

    def play(self, present: NDArray[np.bool_], random: Random) -> Played:
        self.coins.append(present)
        event = Event(
            what="counts, round 1",
            by="north",
            to="coordinator",
            mechanism=Gaussian(noise_multiplier=CLAIMED),
            bound=Bound(size=1.0, norm="l2", unit="user"),
        )
        # As a training does, which gives each party a sequence of its own that begins anew every time.
        own = own_random(random, 0)
        added = noise.gaussian(present.shape, self.noise_multiplier, own).astype(np.float64)
        self.released.append(present + added)
        return Played(
            scores=self.released[-1],
            promised=Curve.of([event], unit="user") if self.promises else None,
            guarantee=Guarantee.of([event], Budget(epsilon=9.0, delta=1e-6, unit="user"), shared_units=False)
            if self.promises
            else Guarantee.nothing("Nothing was promised."),
        )


def test_honest_noise_is_consistent() -> None:
    found = audited(Counter(), seen_by="coordinator", random=InsecureRandom(1))
    assert (found.verdict, found.attack, found.confidence) == ("consistent", "canaries", 0.95)
    assert "a counter promised epsilon" in found.headline
    assert found.figures["canaries"] == 400
    assert found.figures["guesses"] == 200
    proved, promised = found.figures["epsilon proved at least"], found.figures["epsilon promised"]
    assert isinstance(proved, float)
    assert isinstance(promised, float)
    assert 0 <= proved < promised
    assert any("no proof" in note for note in found.notes)


def test_less_noise_than_promised_is_an_alarm() -> None:
    found = audited(Counter(noise_multiplier=0.3 * CLAIMED), seen_by="coordinator", random=InsecureRandom(2))
    assert found.alarm
    assert "does not keep epsilon" in found.headline
    p_value = found.figures["p-value of the promise"]
    assert isinstance(p_value, float)
    assert p_value < 0.05
    assert not any("no proof" in note for note in found.notes)


def test_several_runs_count_as_one() -> None:
    """What 40 canaries do not show in one run, they show in thirty."""
    few = Counter(canaries=40, noise_multiplier=0.5 * CLAIMED)
    once = audited(few, seen_by="coordinator", random=InsecureRandom(4))
    often = audited(few, seen_by="coordinator", repeats=30, random=InsecureRandom(4))
    assert once.verdict == "consistent"
    assert often.verdict == "alarm"
    assert (often.figures["runs"], often.figures["canaries"]) == (30, 1200)


def test_coins_are_fair_and_new_in_every_run() -> None:
    target = Counter(canaries=2000)
    steps: list[Progress] = []
    audited(target, seen_by="coordinator", repeats=3, random=SecureRandom(), progress=steps.append)
    shares = [present.mean() for present in target.coins]
    assert all(0.44 < share < 0.56 for share in shares)
    assert 800 < (target.coins[0] != target.coins[1]).sum() < 1200
    assert [(each.step, each.steps) for each in steps] == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("seed", [0, 1])
def test_coins_and_noise_that_repeat_have_nothing_in_common(seed: int) -> None:
    """Otherwise honest noise would give coins away, and a second run would bring nothing new."""
    target = Counter(canaries=300)
    audited(target, seen_by="coordinator", repeats=2, random=InsecureRandom(seed))
    first, second = target.released
    assert abs(np.corrcoef(first - target.coins[0], second - target.coins[1])[0, 1]) < 0.2
    assert 90 < (target.coins[0] != target.coins[1]).sum() < 210
    again = Counter(canaries=300)
    audited(again, seen_by="coordinator", repeats=2, random=InsecureRandom(seed))
    assert np.array_equal(again.released[1], second)


def test_where_nothing_was_promised_there_is_no_alarm() -> None:
    found = audited(
        Counter(promises=False, noise_multiplier=0.1), seen_by="coordinator", random=InsecureRandom(4)
    )
    assert found.verdict == "succeeded"
    assert found.figures["epsilon promised"] is None
    proved = found.figures["epsilon proved at least"]
    assert isinstance(proved, float)
    assert proved > 2


def test_what_nobody_can_tell_apart_resists() -> None:
    found = audited(
        Counter(promises=False, noise_multiplier=1e6), seen_by="coordinator", random=InsecureRandom(5)
    )
    assert found.verdict == "resisted"


def test_few_scores_stay_as_they_are_and_many_become_places() -> None:
    assert comparable(np.array([3.0, -1.0])).tolist() == [3.0, -1.0]
    places = comparable(np.linspace(-1, 1, 40) ** 3 * 1e6)
    assert np.allclose(places, np.arange(40) / 40)


def test_mistakes_are_told() -> None:
    with pytest.raises(ConfigError, match="confidence"):
        audited(Counter(), seen_by="coordinator", confidence=95)
    with pytest.raises(ConfigError, match="repeats"):
        audited(Counter(), seen_by="coordinator", repeats=0)
    with pytest.raises(DataError, match="too few"):
        audited(Counter(canaries=8), seen_by="coordinator")
    with pytest.raises(ConfigError, match="not finite"):
        comparable(np.array([0.0, np.inf]))
