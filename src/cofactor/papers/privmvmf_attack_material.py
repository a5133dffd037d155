"""What a server sees of single users: PrivMVMF trained by attacked users, and by all others together.

Who is attacked is a party of one user, so that the server sees what she sends; all others are one party more.
Nothing is hidden, unless that is asked for. The paper trains for 20 epochs and does not say when it attacks:
here it is in the 20th, and in the one after it where two are needed.
"""

from dataclasses import dataclass, replace

import numpy as np

from cofactor.attacks.knowledge import Knowledge
from cofactor.attacks.uploads import Upload, uploads, with_laplace
from cofactor.federation.door import COORDINATOR
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.view import Capture, Truth
from cofactor.papers.privmvmf_method import knowing, published
from cofactor.papers.privmvmf_numbers import SEMI_INCL, SEMI_OBS, SGD_OBS
from cofactor.papers.privmvmf_sides import Sided
from cofactor.privacy.budget import Budget
from cofactor.randomness import Seeds
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_weights import InclUnc, ObsOnly
from cofactor.recipes.sums import AnySum, PlainSum
from cofactor.recipes.train import train

ROUND = 20
"""The round that is attacked."""
OTHERS = "others"
"""The party of all who are not attacked."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Attacked:
    """What the server saw of some users in two rounds, and what was true."""

    scenario: str
    before: tuple[Upload, ...]
    """In round 20: of each of them, or one sum."""
    after: tuple[Upload, ...]
    """In round 21: of the same."""
    truth: Truth
    knowledge: Knowledge
    """What is public."""
    habits: Knowledge
    """The same, and how common ratings and answers are among those who are not attacked."""
    user_rate: float
    """The recipe's."""

    @property
    def parties(self) -> list[str]:
        """All attacked users, also those who are seen in a sum only."""
        return [name for name in self.truth.ratings if name != OTHERS]

    def only(self, users: slice) -> "Attacked":
        """Return some of the users."""
        return replace(self, before=self.before[users], after=self.after[users])

    def noisy(self, scale: float, seed: int) -> "Attacked":
        """Return the same with Laplace noise on all that was sent."""
        random = Seeds(seed).generator(f"Laplace noise of {self.scenario}")
        noisy = [tuple(with_laplace(one, scale, random) for one in own) for own in (self.before, self.after)]
        return replace(self, before=noisy[0], after=noisy[1])

    def knowing_habits(self) -> "Attacked":
        """Return the same where the server knows how common ratings and answers are."""
        return replace(self, knowledge=self.habits)

    def needed(self, user: int) -> list[Upload]:
        """Return what the paper's equations need of one user: a round, or two where vectors move by steps."""
        both = [self.before[user], self.after[user]]
        return both if self.before[user].known.update == "sgd" else both[:1]


def recipe_of(scenario: str) -> MultiViewMF:
    """Return the paper's setting in a scenario, two rounds seen."""
    return replace(
        published(),
        rounds=ROUND + 1,
        update="semi-als" if scenario in (SEMI_OBS, SEMI_INCL) else "sgd",
        unrated=ObsOnly() if scenario in (SEMI_OBS, SGD_OBS) else InclUnc(alpha=0.1),
    )


def attacked(
    sides: Sided,
    scenario: str,
    *,
    users: int,
    seed: int,
    aggregate: AnySum | None = None,
    budget: Budget | None = None,
) -> Attacked:
    """Train, and return what the server sees of some users, drawn by chance."""
    recipe = replace(recipe_of(scenario), aggregate=aggregate or PlainSum())
    capture = Capture(COORDINATOR, rounds=(ROUND, ROUND + 1))
    parties = federation_of(sides, users, seed)
    train(recipe, parties, budget=budget, seed=seed, capture=capture)
    view, truth = capture.view(COORDINATOR), capture.captured.truth
    seen = [uploads(view, round=round) for round in (ROUND, ROUND + 1)]
    before, after = (tuple(one for one in own if one.sender != OTHERS) for own in seen)
    return Attacked(
        scenario=scenario,
        before=before,
        after=after,
        truth=truth,
        knowledge=Knowledge.of_view(view),
        habits=Knowledge.of_population(
            truth.ratings[OTHERS].by_user,
            sides.ratings.item_count,
            view.scale,
            attributes=truth.attributes[OTHERS],
            coding=sides.attributes.coding,
        ),
        user_rate=recipe.user_rate,
    )


def federation_of(sides: Sided, users: int, seed: int) -> Federation:
    """Return a federation in which so many users by chance, or half of all, are parties of their own."""
    ratings = sides.ratings
    drawn = Seeds(seed).generator("attacked users").permutation(ratings.user_count)
    chosen = drawn[: min(users, ratings.user_count // 2)]
    rest = np.ones(ratings.user_count, np.bool_)
    rest[chosen] = False
    parties = [_alone(sides, user, number) for number, user in enumerate(chosen.tolist(), 1)]
    parties.append(Party(name=OTHERS, ratings=ratings.select(users=rest)))
    return knowing(Federation.horizontal(parties, scale=ratings.scale, simulated=True), sides)


def _alone(sides: Sided, user: int, number: int) -> Party:
    only = np.zeros(sides.ratings.user_count, np.bool_)
    only[user] = True
    return Party(name=f"user-{number}", ratings=sides.ratings.select(users=only))
