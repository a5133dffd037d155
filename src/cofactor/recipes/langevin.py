"""`DPSGLD`: stochastic gradient Langevin dynamics whose noise is the privacy's (Liu, Wang and Smola 2015).

A Langevin step draws from the posterior of a factorization only if its noise fits its size. Here privacy says
how much noise there is, so it says how large steps are. All else is `VerticalMF` with embedding clipping, and
noise is what our accountant asks for, which is less than the original analysis does.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from cofactor.config import plain_numbers, positive
from cofactor.errors import ConfigError
from cofactor.federation.halves import Facts, Home, Promise
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.mechanisms import Gaussian
from cofactor.privacy.schedule import Schedule
from cofactor.recipes.clipping import EmbeddingClipping
from cofactor.recipes.steps import Steps
from cofactor.recipes.vertical import VerticalMF
from cofactor.recipes.vertical_halves import VerticalCoordinator, VerticalParticipant


@dataclass(frozen=True, kw_only=True)
class DPSGLD:
    """Langevin dynamics for parties who hold different items of the same users: a baseline.

    The last step is the one draw from the posterior that becomes the model.
    """

    split: ClassVar[Split] = VerticalMF.split
    units: ClassVar[tuple[Unit, ...]] = VerticalMF.units
    messages: ClassVar[tuple[type[Message], ...]] = VerticalMF.messages

    factors: int = 20
    """Length of each user's and item's vector."""
    rounds: int = 100
    """How often the parties' user vectors are averaged."""
    local_steps: int = 10
    """Steps that each party takes between two averages, each with noise of its own."""
    sampling: float = 0.01
    """Probability with which each user takes part in a step; 1 for all."""
    most_ratings: int | None = None
    """Ratings of each user that a party uses, where users are the unit. Left out: 10 if there is one party,
    else 5."""
    noise: float = 0.75
    """Variance of a rating around its prediction, as the posterior assumes it."""
    learning_rate: float | None = None
    """Size of all steps: what multiplies the sum of the gradients. Left out, it is the one at which noise for
    privacy is Langevin noise, unless steps of that size would overshoot: then the largest that does not."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        positive(noise=self.noise)
        self._descent()  # it checks the rest

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        if budget is None:
            raise ConfigError("DPSGLD needs a budget: its noise is its privacy. Without one, use VerticalMF.")
        descent = self._descent().settled(facts, budget)
        rate = self.learning_rate or self._rate(descent, facts, budget)
        return replace(self, most_ratings=descent.most_ratings, learning_rate=rate)

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:
        """Return everything that a party will release; noise is relative."""
        return self._descent().schedule(facts, unit, party)

    def participant(self, home: Home) -> VerticalParticipant:
        """Return a party's half."""
        return self._descent().participant(home)

    def coordinator(self, facts: Facts, seed: int) -> VerticalCoordinator:
        """Return the coordinator's half."""
        return self._descent().coordinator(facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:
        """Return what the guarantee says besides its numbers."""
        return self._descent().promise(facts, budget)

    def _descent(self) -> VerticalMF:
        """Return the recipe that does the work."""
        return VerticalMF(
            factors=self.factors,
            rounds=self.rounds,
            local_steps=self.local_steps,
            sampling=self.sampling,
            clipping=EmbeddingClipping(),
            learning_rate=self.learning_rate,
            decay=1.0,
            decay_until=1.0,
            most_ratings=self.most_ratings,
            mean_share=0.01,  # of no effect: nothing is taken off ratings under embedding clipping
        )

    def _rate(self, descent: VerticalMF, facts: Facts, budget: Budget) -> float:
        """Return the rate at which a step's noise is Langevin noise, or the largest that does not overshoot.

        A step is X - eta/2 (lambda/2) G/q + sqrt(eta) N(0, 1), where G is the sum of the gradients of a share
        q of the users, and lambda = 1/noise. With rate r = eta lambda / (4 q), and s for the deviation of the
        noise on G, sqrt(eta) = r s: that is r = 4 q / (lambda s^2). Where users are the unit, s is that of
        both sums together, and the noise of users is somewhat larger than Langevin's, that of items smaller.
        """
        release = calibrated(descent.schedule(facts, budget.unit, facts.parties[0]), budget).releases[0]
        assert isinstance(release.mechanism, Gaussian)
        deviation = release.mechanism.noise_size(release.bound)
        largest = Steps.of(descent).published_rate(facts, None, None)
        return min(4 * self.sampling * self.noise / deviation**2, largest)
