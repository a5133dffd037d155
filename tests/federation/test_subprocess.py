"""Recipes know no transport: parties in processes of their own publish the same numbers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Scale
from cofactor.errors import RunError
from cofactor.factors.bayes import Bayes
from cofactor.federation.channel import Answers
from cofactor.federation.door import COORDINATOR
from cofactor.federation.drive import Round, Session, drive, farewell
from cofactor.federation.federation import Federation
from cofactor.federation.halves import splits_of
from cofactor.federation.messages import Letter
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.transcript import Transcript
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.hosts import summing_of
from cofactor.recipes.item_rounds import ItemRound
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from cofactor.recipes.vertical import VerticalMF
from cofactor.recipes.vertical_taste import VerticalTaste
from tests.federation.making import BUDGET, Guess, ItemSums, RatingSums, trained
from tests.federation.subprocess_channel import SubprocessChannel, setups
from tests.federation.summing_parties import Watching

RECIPES = [
    "tests.federation.making:ItemSums",
    "tests.federation.making:RatingSums",
    "cofactor.recipes.horizontal:HorizontalMF",
    "cofactor.recipes.vertical:VerticalMF",
    "cofactor.recipes.vertical_taste:VerticalTaste",
    "cofactor.recipes.shared_biases:SharedBiases",
    "cofactor.recipes.secure_als:SecureALS",
]
NAMES = ("north", "south")
ROUNDS = (
    ItemRound(share=0.5, count_weight=1.2),
    ItemRound(share=0.3, count_weight=0.4, spread_share=0.05),
    ItemRound(share=0.4, count_weight=0.2, factors=2, spread_share=0.02),
)
BY_RATING = Budget(epsilon=4.0, delta=1e-6, unit="rating")


@pytest.fixture(scope="module")
def channel() -> Iterator[SubprocessChannel]:
    with SubprocessChannel(NAMES, recipes=RECIPES) as made:
        yield made


def federation(folder: Path, split: str, names: tuple[str, ...] = NAMES) -> Federation:
    """Files with users, or items, of which each party lacks some."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(4)
    for k, name in enumerate(names):
        cells = np.sort(random.choice(12 * 8, 60, replace=False))
        rows = [(int(cell) // 8 + 2 * k, int(cell) % 8 + k, int(random.integers(1, 6))) for cell in cells]
        lines = "".join(f"{user},{item},{value}\n" for user, item, value in rows)
        (folder / f"{name}.csv").write_text("user,item,rating\n" + lines)
    parties = [Party.from_csv(folder / f"{name}.csv", scale=Scale(1, 5)) for name in names]
    made: Federation = getattr(Federation, split)(parties)
    return made


def over_pipes(
    channel: SubprocessChannel, recipe: Any, joined: Federation, budget: Budget | None, **more: Any
) -> tuple[Any, dict[str, dict[str, Any]], Session]:
    settled = recipe.settled(joined.facts, budget)
    roster = channel.roster()
    channel.begin(setups(joined, settled, budget, session="s", roster=roster, insecure=5, **more))
    session = Session(
        name="s",
        kinds=settled.messages,
        transcript=Transcript.create(None, session="s"),
        summing=summing_of(settled, joined.facts, roster),
    )
    coordinator = settled.coordinator(joined.facts, 0)
    rounds: list[Round] = []
    drive(coordinator, channel, session, rounds.append)
    models = channel.finish(farewell(coordinator, session, channel.parties))
    return coordinator.published(), models, session


CASES: dict[str, tuple[Any, Budget | None]] = {
    "toy": (ItemSums(), BUDGET),
    "toy, ideal sum": (ItemSums(aggregate=IdealSum()), BUDGET),
    "toy, secure sum": (ItemSums(aggregate=SecureSum()), BUDGET),
    "toy, vertical": (RatingSums(), BY_RATING),
    "toy, not private": (ItemSums(), None),
    "VerticalMF": (VerticalMF(factors=2, rounds=2, local_steps=2), BY_RATING),
    "SharedBiases": (
        SharedBiases(item_rounds=ROUNDS[:2], home=UsersOnly(), aggregate=PlainSum(), reduction=2.0),
        BUDGET,
    ),
}
MORE_REAL: dict[str, tuple[Any, Budget | None]] = {
    "HorizontalMF": (
        HorizontalMF(factors=2, rounds=2, local_steps=2, home=Bayes(factors=1, epochs=2)),
        BUDGET,
    ),
    "HorizontalMF, secure sum": (
        HorizontalMF(factors=2, rounds=2, aggregate=SecureSum(), home=Bayes(factors=1, epochs=2)),
        BUDGET,
    ),
    "SecureALS": (SecureALS(item_rounds=ROUNDS, home=Bayes(factors=1, epochs=2)), BUDGET),
    "SecureALS, not private": (SecureALS(home=UsersOnly()), None),
    "VerticalTaste": (VerticalTaste(publish=True, home=Bayes(factors=1, epochs=2)), BY_RATING),
}


def check_same(recipe: Any, budget: Budget | None, channel: SubprocessChannel, folder: Path) -> None:
    split = "horizontal" if "horizontal" in splits_of(recipe) else recipe.split
    run: Run = trained(recipe, federation(folder / "one", split), budget=budget)
    published, models, session = over_pipes(channel, recipe, federation(folder / "other", split), budget)
    for name in ("item_bias", "user_vectors", "item_vectors", "item_ids"):
        if run.model is None:
            assert published is None
            continue
        assert np.array_equal(getattr(run.model, name), getattr(published, name)), name
    for party, home in run.homes.items():
        for name, array in models[party].items():
            assert np.array_equal(getattr(home, name), array), (party, name)
    assert run.together is not None
    mine = [sent.bytes for sent in session.transcript.sent]
    assert len(mine) == len(run.together.transcript.splitlines()) - 1
    for party in NAMES if budget is not None else ():
        charged = [
            len(Ledger.open(folder / place / f"{party}.csv.ledger").entries) for place in ("one", "other")
        ]
        assert charged[0] == charged[1] > 0


@pytest.mark.parametrize(("recipe", "budget"), CASES.values(), ids=CASES)
def test_parties_in_processes_of_their_own_publish_the_same_numbers(
    recipe: Any, budget: Budget | None, channel: SubprocessChannel, tmp_path: Path
) -> None:
    check_same(recipe, budget, channel, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "budget"), MORE_REAL.values(), ids=MORE_REAL)
def test_more_real_recipes_publish_the_same_numbers_over_pipes(
    recipe: Any, budget: Budget | None, channel: SubprocessChannel, tmp_path: Path
) -> None:
    check_same(recipe, budget, channel, tmp_path)


def test_error_at_a_party_comes_back_with_its_words(channel: SubprocessChannel, tmp_path: Path) -> None:
    joined = federation(tmp_path / "x", "horizontal")
    settled = ItemSums().settled(joined.facts, BUDGET)
    channel.begin(setups(joined, settled, BUDGET, session="s", roster={}))
    other = Letter(session="t", round=1, sender=COORDINATOR, body=Guess(mean=np.zeros(9)))
    with pytest.raises(RunError, match="north: north: a letter of another session"):
        channel.ask(1, dict.fromkeys(NAMES, other.to_bytes()))


@pytest.mark.slow
def test_party_that_was_killed_sends_the_same_bytes_when_it_is_back(
    channel: SubprocessChannel, tmp_path: Path
) -> None:
    joined = federation(tmp_path / "x", "horizontal")
    settled = ItemSums().settled(joined.facts, BUDGET)
    told = setups(joined, settled, BUDGET, session="s", roster={}, folder=tmp_path)
    channel.begin(told)
    body = Guess(mean=np.full(9, 3.0))
    question = dict.fromkeys(NAMES, Letter(session="s", round=1, sender=COORDINATOR, body=body).to_bytes())
    first = channel.ask(1, question)
    channel.kill("north")
    channel.begin(told)
    assert channel.ask(1, question) == first
    assert not first.missing
    # Where the stored answer is gone, too, the round is lost: it is not made again.
    (tmp_path / "north.npz").unlink()
    channel.begin(told)
    again = channel.ask(1, question)
    assert again.lost == {"north"}
    assert again.by_party == {"south": first.by_party["south"]}
    assert len(Ledger.open(tmp_path / "x" / "north.csv.ledger").entries) == 1


class Killing:
    """The channel, with one party killed for good before a step of the first round."""

    def __init__(self, channel: SubprocessChannel, party: str, step: int) -> None:
        self._channel, self._party, self._step, self.parties = channel, party, step, channel.parties

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        if step == self._step and round == 1:
            self._channel.kill(self._party, again=False)
        return self._channel.ask(round, letters, step)


FOUR = ("north", "south", "west", "east")


@pytest.mark.slow
@pytest.mark.parametrize("step", [2, 4])
def test_secure_sum_survives_a_party_that_is_killed_in_the_middle(step: int, tmp_path: Path) -> None:
    joined = federation(tmp_path / "x", "horizontal", FOUR)
    recipe = ItemSums(rounds=2, aggregate=SecureSum(dropout=0.25)).settled(joined.facts, None)
    coordinator, rounds = Watching(recipe, joined.facts), list[Round]()
    with SubprocessChannel(FOUR, recipes=RECIPES[:1]) as channel:
        roster = channel.roster()
        assert len(set(roster.values())) == 4
        channel.begin(setups(joined, recipe, None, session="s", roster=roster))
        session = Session(
            name="s",
            kinds=recipe.messages,
            transcript=Transcript.create(None, session="s"),
            summing=summing_of(recipe, joined.facts, roster),
        )
        drive(coordinator, Killing(channel, "west", step), session, rounds.append)
        models = channel.finish(farewell(coordinator, session, channel.parties))
    assert [dict(each.missing) for each in rounds] == [{"west": "is gone"}] * 2
    first, second = coordinator.totals
    assert first is not None
    assert second is not None
    # Killed before its masked numbers came, it is not in the first sum; killed later, it is.
    survivors = [name for name in FOUR if name != "west" or step > 2]
    assert first.tolist() == plain_totals(joined, survivors, np.full(11, 3.0)).tolist()
    assert set(models) == {"north", "south", "east"}


def plain_totals(joined: Federation, names: list[str], means: Any) -> Any:
    """Return the sum of how far ratings are from these means, each party's cut to hundredths."""
    total = np.zeros(11, np.int64)
    for name in names:
        own = joined.party(name).ratings
        off, limited = own.values - means[own.items], np.zeros(11)
        for user in range(own.user_count):
            row = off[own.users == user]
            length = np.sqrt(np.square(row).sum())
            np.add.at(limited, own.items[own.users == user], row * min(1.0, 2.0 / max(length, 1e-9)))
        total += np.trunc(100 * limited).astype(np.int64)
    return total
