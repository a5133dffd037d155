"""A recipe's public code, played again at home: what parties would have answered, bounded and without noise.

Whoever knows somebody's ratings, and the questions that were asked, can work out what these ratings add to
the answers: the participants' half of a recipe is public. Bounds are the run's own, so that what is worked
out is what the run would have released, but for its noise and for what chance decided in secret.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cofactor.factors.model import Factors
from cofactor.federation.door import COORDINATOR, SUM, Door
from cofactor.federation.halves import AsksRoles, Facts, Home, Recipe, Role
from cofactor.federation.messages import Message
from cofactor.federation.party import Party
from cofactor.federation.view import Seen, View
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Unit
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.layers import Layers
from cofactor.privacy.mechanisms import Gaussian, PoissonBinomial, Skellam
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import InsecureRandom
from cofactor.recipes.hdpmf_published import PublishedHDPMF

_HARDLY = 1e-3
"""Noise where code has it inside, divided by the bound: the least that there can be."""


class OpenDoor(Door):
    """A door at which nothing happens: what is bounded leaves as it is, and nobody is charged."""

    def __init__(self, party: str) -> None:
        """Open it; what is left to chance is the same every time."""
        super().__init__(party=party, ledger=None, random=InsecureRandom(0), run="at home")

    def release(self, mechanism: Any, bounded: Bounded, *, what: str) -> NDArray[np.float64]:  # noqa: ARG002
        """Return the bounded value."""
        return bounded.value.astype(np.float64)

    def share(self, mechanism: Any, bounded: Bounded, **beside: Any) -> NDArray[np.int64]:  # noqa: ARG002
        """Return the bounded value."""
        return bounded.value.astype(np.int64)

    def coins(
        self,
        mechanism: PoissonBinomial,
        parts: Iterable[Bounded],
        *,
        bound: Bound,
        shape: tuple[int, ...],
        what: str,  # noqa: ARG002
        devices: int = 1,
        layers: Layers | None = None,  # noqa: ARG002
    ) -> NDArray[np.int64]:
        """Return how many coins fall heads on average, which need not be a whole number."""
        bent = sum((part.value.sum(axis=0) for part in parts), np.zeros(shape)) / bound.size
        heads = mechanism.trials * (devices / 2 + mechanism.theta * bent)
        return cast(NDArray[np.int64], heads)

    def made(
        self,
        event: Event,  # noqa: ARG002
        make: Callable[[], NDArray[Any]],
        *,
        largest_sum: int | None = None,  # noqa: ARG002
    ) -> NDArray[Any]:
        """Return what is made: its noise is the schedule's."""
        return make()

    def derived(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return it."""
        return values


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What everybody knows of a training."""

    recipe: Recipe
    """With all choices made."""
    facts: Facts
    unit: Unit | None
    """Who is protected; None if nothing is bounded, because there is no budget."""
    seed: int = 0

    def message(self, seen: Seen) -> Message | None:
        """Return a message of the recipe as it was sent; None if it belongs to the making of a sum."""
        kinds = {kind.__name__: kind for kind in self.recipe.messages}
        return kinds[seen.kind](**seen.plain, **seen.arrays) if seen.kind in kinds else None

    @property
    def played(self) -> Recipe:
        """The recipe as it is played again, with less left to chance.

        Everybody takes part in all steps, which are so much smaller; noise that does not go through a door is
        left out.
        """
        recipe: Any = self.recipe
        if isinstance(recipe, PublishedHDPMF):
            return cast(Recipe, replace(recipe, noise="none"))
        sampling = getattr(recipe, "sampling", None) or 1.0
        if sampling == 1:
            return self.recipe
        return cast(Recipe, replace(recipe, learning_rate=sampling * recipe.learning_rate))

    def home(self, party: Party) -> Home:
        """Return all that a participant has who plays a party again."""
        return Home(
            party=party,
            facts=self.facts,
            schedule=self._schedule(party.name),
            door=OpenDoor(party.name),
            seed=self.seed,
        )

    def _schedule(self, party: str) -> Schedule | None:
        """Return a party's releases, with hardly any noise, and everybody always takes part."""
        if self.unit is None:
            return None
        planned = self.recipe.schedule(self.facts, self.unit, party)
        releases = [replace(each, mechanism=_hushed(each.mechanism)) for each in planned.releases]
        return replace(planned, releases=tuple(releases))


def _hushed(mechanism: Any) -> Any:
    if isinstance(mechanism, Gaussian):
        return Gaussian(noise_multiplier=_HARDLY)
    return replace(mechanism, noise_multiplier=_HARDLY) if isinstance(mechanism, Skellam) else mechanism


def questions(view: View, setting: Setting) -> dict[int, Message]:
    """Return what parties were asked, by round, as far as it was seen."""
    asked: dict[int, Message] = {}
    for seen in view.seen:
        message = setting.message(seen)
        if seen.sender == COORDINATOR and seen.receiver in setting.facts.parties and message is not None:
            asked.setdefault(seen.round, message)
    return asked


def rounds_of(view: View, setting: Setting) -> Iterator[tuple[int, Message, list[Seen]]]:
    """Yield rounds with their questions and answers; where a sum was opened, that is the answer."""
    for round, question in sorted(questions(view, setting).items()):
        found = [each for each in view.seen if each.round == round and setting.message(each) is not None]
        sums = [each for each in found if each.sender == SUM]
        answers = sums or [each for each in found if each.sender in setting.facts.parties]
        if answers:
            yield round, question, answers


class Replay:
    """All parties' answers to the questions of a training, with ratings that they are supposed to have."""

    def __init__(self, setting: Setting, parties: Iterable[Party]) -> None:
        """Take the ratings: those of parties of the same shape as the training's."""
        homes = [setting.home(party) for party in parties]
        self._halves = [(home, setting.played.participant(home)) for home in homes]

    def answers(self, round: int, question: Message) -> dict[str, Message]:
        """Return what every party answers; rounds must come in order."""
        found = {}
        for home, half in self._halves:
            home.door.begin(round)
            found[home.party.name] = half.handle(round, question)
        return found


def added(answers: Iterable[Message]) -> Message:
    """Return the sum of answers, as it is opened."""
    total: dict[str, Any] = {}
    for answer in answers:
        for name, array in answer.arrays.items():
            total[name] = total[name] + array if name in total else array
    return type(answer)(**total)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal:
    """What a training would have told everybody, had there been no noise."""

    asked: Mapping[int, Message]
    """The questions, by round, and the last message after them."""
    model: Factors | None


def rehearsed(setting: Setting, parties: Iterable[Party]) -> Rehearsal:
    """Train parties without noise: the coordinator's half is public, too, and believes that there is some."""
    recipe, facts = setting.recipe, setting.facts
    coordinator = recipe.coordinator(facts, setting.seed)
    replay, helpers, asked = Replay(setting, parties), _helpers(setting), {}
    for round in range(1, coordinator.rounds + 1):
        for name, half in helpers.items():
            asking = cast(AsksRoles, coordinator)
            asking.take_role(name, round, half.handle(round, asking.ask_role(name, round)))
        asked[round] = coordinator.ask(round)
        answers = replay.answers(round, asked[round])
        coordinator.take(round, {SUM: added(answers.values())} if coordinator.sums(round) else answers)
    asked[coordinator.rounds + 1] = coordinator.last()
    return Rehearsal(asked=asked, model=coordinator.published())


def _helpers(setting: Setting) -> dict[str, Role]:
    """Return the halves of those who take part and hold no ratings."""
    recipe: Any = setting.recipe
    names: tuple[str, ...] = recipe.roles(setting.facts) if hasattr(recipe, "roles") else ()
    return {name: recipe.role(name, setting.facts, OpenDoor(name), setting.seed) for name in names}
