"""What a guarantee rests on besides arithmetic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cofactor.privacy.budget import Unit
from cofactor.privacy.events import Event
from cofactor.privacy.mechanisms import PoissonBinomial, SampledGaussian, SummedDiscreteGaussian

_NAMED = 12
"""Of more parties than this only their number is told."""


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """Something that a guarantee needs and no arithmetic can prove."""

    what: str
    """What is assumed: a clause that follows "that"."""
    met: str
    """How it was met: a clause of its own."""


def assumptions_of(events: Iterable[Event], method: str) -> list[Assumption]:
    """Return what the arithmetic of these events takes for granted."""
    released = list(events)
    mechanisms = {event.mechanism for event in released}
    honest = [
        mechanism.participants
        for mechanism in mechanisms
        if isinstance(mechanism, PoissonBinomial | SummedDiscreteGaussian)
    ]
    found = [BOUNDS] if released else []
    if any(not mechanism.exact for mechanism in mechanisms):
        found.append(REAL_NUMBERS)
    if any(mechanism.exact for mechanism in mechanisms):
        found.append(WHOLE_NUMBERS)
    if any(isinstance(mechanism, SampledGaussian) for mechanism in mechanisms):
        found.append(SECRET_SAMPLING)
    if honest:
        found.append(only_the_sum(max(honest)))
    if any(event.slack for event in released):
        found.append(VISIBLE_FAILURES)
    if released and method == "privacy loss distribution":
        found.append(FIXED_BEFOREHAND)
    return found


BOUNDS = Assumption(
    what="no unit changes a release by more than the bound in its record",
    met="the functions of cofactor.privacy.bounding enforce it; where a recipe states a bound of its own, "
    "its sensitivity tests measure it",
)
REAL_NUMBERS = Assumption(
    what="computing with real numbers to finite precision gives nothing away (Mironov 2012)",
    met="noise is added in 64-bit arithmetic, or to sums of whole steps, and the result is rounded to a grid "
    "of 1/16 to 1/32 of the noise's size; in the fused steps of recipes, of at least 1/4,096 of it",
)
WHOLE_NUMBERS = Assumption(
    what="what has a probability below 2^-60 does not matter",
    met="noise on whole numbers follows its law to within 2^-100, and the probabilities of coins and answers "
    "are rounded towards privacy",
)
SECRET_SAMPLING = Assumption(
    what="each unit was sampled independently, with the stated probability, and nobody learns who was",
    met="that is taken on trust from the code of the parties; SampledGaussian.choose does it",
)
VISIBLE_FAILURES = Assumption(
    what="failures that were paid for in delta happen by chance that does not depend on the data",
    met="that is taken on trust from the recipe",
)
FIXED_BEFOREHAND = Assumption(
    what="how much noise there is, and how many releases, was not chosen by looking at earlier results",
    met="a run reserves its releases beforehand; between runs it is taken on trust, and without it the Renyi "
    "figure holds",
)


def only_the_sum(participants: int) -> Assumption:
    """Return what noise that is spread over participants needs."""
    return Assumption(
        what=f"only sums over at least {participants:,} honest participants are seen, and no single message",
        met="that is the promise of a secure sum, taken on trust here",
    )


def ended_blindly(rounds: int, planned: int, allowed: float) -> Assumption:
    """Return what the smaller epsilon of a training needs that was ended early, and what holds without it.

    Fewer rounds of a fixed schedule cost less if nothing that was released decided how many: an end that
    waits for a telling answer can tell more than the rounds before it do. Whatever decided it, a shorter
    transcript is made of that of all rounds, so that what those would have cost holds.
    """
    return Assumption(
        what=f"nobody ended it after round {rounds:,} of {planned:,} because of what had been released",
        met="that is taken on trust from whoever ended it; without it, what all rounds were allowed to cost "
        f"holds, which is epsilon {allowed:g}",
    )


def apart_from_each_other(parties: Sequence[str], unit: Unit) -> Assumption:
    """Return what is needed to charge units only for what their own party releases."""
    named = f" ({', '.join(parties)})" if len(parties) <= _NAMED else ""
    return Assumption(
        what=f"no {unit} is at two of the {len(parties):,} parties{named}",
        met="that is taken on trust from the parties",
    )
