"""What recipes do differently where only sums of answers are seen."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from numpy.typing import NDArray

from cofactor.config import positive
from cofactor.errors import ConfigError, Refused, TooFew
from cofactor.federation.halves import Facts, Home
from cofactor.federation.hidden_sums import HiddenSum
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.mechanisms import DiscreteLaplace, Skellam
from cofactor.recipes.local_steps import MEAN, release_of
from cofactor.recipes.steps import Steps
from cofactor.recipes.summed_steps import grain_for
from cofactor.recipes.sums import AnySum, IdealSum, own_share

T = TypeVar("T")

ONE_USER = (
    "An item that only one user has rated: what a sum tells about it is that user's contribution, and noise "
    "is all that hides it."
)
_MANY_STEPS = (
    "A round has {steps} local steps, and no step may follow from a partly noised one: the sum hides whose "
    "answers are whose, but every party adds all of its noise in every step. With local_steps=1 the parties' "
    "noise adds up to that of one."
)


def only_sums(recipe: Any, facts: Facts) -> bool:
    """Say whether nobody sees more than sums of the parties' answers."""
    aggregate: AnySum = recipe.aggregate
    return aggregate.layers(facts.summed) is not None


def adds_gradients(recipe: Any, facts: Facts) -> bool:
    """Say whether each sum is that of one step's gradients, so that parties share its noise."""
    return only_sums(recipe, facts) and (recipe.local_steps or 1) == 1


def grain_of(recipe: Any, facts: Facts) -> float | None:
    """Return what 1 stands for in sums of gradients; None where parties add something else. When settled."""
    if not adds_gradients(recipe, facts):
        return None
    assert recipe.grain is not None
    return float(recipe.grain)


def playable(aggregate: AnySum, facts: Facts) -> AnySum:
    """Return how a sum is made: who plays all devices cannot hide anything from itself."""
    if facts.cohort and isinstance(aggregate, HiddenSum):
        return IdealSum(dropout=aggregate.dropout, colluding=aggregate.colluding)
    return aggregate


def into_sum(
    home: Home, recipe: Any, what: str, bounded: Bounded, *, largest_sum: int, devices: int
) -> NDArray[Any]:
    """Let whole numbers out into a sum, with this party's part of the noise if there is a budget.

    Without one nothing is opened either if too few of a cohort's devices are left.
    """
    release = release_of(home, what)
    if release is not None:
        assert isinstance(release.mechanism, Skellam | DiscreteLaplace)
        return home.door.share(
            release.mechanism, bounded, what=what, largest_sum=largest_sum, devices=devices
        )
    layers = recipe.aggregate.layers(home.facts.summed)
    if home.facts.cohort and layers is not None and devices < layers.fewest:
        raise TooFew(f"{devices:,} devices are left, and {layers.fewest:,} must be.")
    return home.door.unprotected(bounded.value, largest_sum=largest_sum)


def noises(recipe: Any, facts: Facts) -> float:
    """Return how many times the noise of one party a sum of all parties has, as a variance."""
    parties = len(facts.parties)
    shared = adds_gradients(recipe, facts)
    return parties * own_share(recipe.aggregate, parties) if shared else float(parties)


def check_sum(recipe: Any) -> None:
    """Refuse an aggregate that is none, and a grain that is no number."""
    if not isinstance(recipe.aggregate, AnySum):
        raise ConfigError(
            "aggregate must be PlainSum(), SecureSum(), EncryptedSum(), SharedSum() or IdealSum(), got "
            f"{recipe.aggregate!r}."
        )
    positive(grain=getattr(recipe, "grain", None))


def with_grain(recipe: T, steps: Steps, facts: Facts, noise: float, *, both: bool) -> T:
    """Choose how fine gradients are counted; refuse what a sum of gradients cannot have.

    `noise` is the multiplier that one release alone would need.
    """
    own: Any = recipe
    if not adds_gradients(own, facts):
        return recipe
    if steps.sampling != 1:
        raise Refused(
            "sums of one step take all users: what sampling gives for noise in whole numbers is not proved "
            "here. Use sampling=1, or aggregate=PlainSum()."
        )
    reach = steps.reach(facts, own.units[0], both=both)
    grain = own.grain or grain_for(reach.bound.size, noise * math.sqrt(2 * steps.rounds))
    return cast(T, replace(own, grain=grain))


def sum_assumptions(recipe: Any, facts: Facts) -> tuple[Assumption, ...]:
    """Return what the guarantee rests on where parties share noise."""
    aggregate: AnySum = recipe.aggregate
    return aggregate.assumptions(len(facts.parties)) if adds_gradients(recipe, facts) else ()


def sum_doubts(recipe: Any, facts: Facts) -> tuple[str, ...]:
    """Return why the guarantee does not hold: where a sum that parties share noise for is only simulated."""
    aggregate: AnySum = recipe.aggregate
    return aggregate.why_not(len(facts.parties)) if adds_gradients(recipe, facts) else ()


def sum_hints(recipe: Any, facts: Facts) -> tuple[str, ...]:
    """Say where sums save no noise."""
    steps = recipe.local_steps or 1
    return (_MANY_STEPS.format(steps=steps),) if only_sums(recipe, facts) and steps > 1 else ()


def two_parties(facts: Facts) -> tuple[str, ...]:
    """Warn where a sum hides nothing: of two parties each can take its own part off."""
    if facts.summed != 2:
        return ()
    return (
        "Of two parties, each can take its own part off the average and see the other's: noise protects it "
        "alone.",
    )


def own_shares(recipe: Any, facts: Facts, *releases: str) -> Mapping[str, float]:
    """Return the part of each release's noise that a party adds itself."""
    share = own_share(recipe.aggregate, len(facts.parties))
    return dict.fromkeys((*releases, MEAN) if adds_gradients(recipe, facts) else (), share)
