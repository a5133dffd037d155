import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.split import by_fraction
from cofactor.errors import BudgetExceeded, ConfigError, RunError
from cofactor.factors.baselines import GlobalMean
from cofactor.federation.channel import Failures
from cofactor.federation.federation import Federation
from cofactor.federation.messages import Letter
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.neighbours import Datasets
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.recipes.clipping import EmbeddingClipping, GradientClipping
from cofactor.recipes.local_steps import released_total
from cofactor.recipes.shared_vectors import Finished, Shared, Vectors
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF
from tests.recipes.parties import (
    ITEMS,
    USERS,
    facts_of,
    mse,
    participant_of,
    small_ratings,
    table,
    transcript,
    vertical,
)

RATING = Budget(epsilon=1.0, delta=1e-6, unit="rating")
USER = Budget(epsilon=1.0, delta=1e-6, unit="user")
QUICK = VerticalMF(factors=2, rounds=3)


def drawn_user(chance: np.random.Generator) -> tuple[float | None, ...]:
    row = chance.choice([0.5, 5.0, 3.0], ITEMS)
    return tuple(float(x) if chance.random() < 0.7 else None for x in row)


def drawn_rating(chance: np.random.Generator) -> tuple[float | None, ...]:
    return (float(chance.choice([0.5, 5.0, 3.0])),)


def datasets(unit: Unit) -> Datasets:
    """Make users' rows, or single ratings, of a table whose size is fixed."""
    if unit == "user":
        return Datasets(draw=drawn_user, count=USERS, empty=(None,) * ITEMS)
    return Datasets(draw=drawn_rating, count=USERS * ITEMS, empty=(None,))


def rated(units: tuple[Any, ...], unit: Unit) -> list[tuple[int, int, float]]:
    if unit == "user":
        return [(u, i, x) for u, row in enumerate(units) for i, x in enumerate(row) if x is not None]
    return [(k // ITEMS, k % ITEMS, x[0]) for k, x in enumerate(units) if x[0] is not None]


def message(kind: Any, recipe: VerticalMF) -> Any:
    chance = np.random.default_rng(2)
    users = np.abs(chance.normal(size=(USERS, recipe.factors or 1))).astype(np.float32)
    return kind(centre=np.array(3.0), vectors=users)


@pytest.mark.parametrize("budget", [RATING, USER], ids=["rating", "user"])
@pytest.mark.parametrize(
    "clipping",
    [EmbeddingClipping(), GradientClipping(limit=2.0), GradientClipping(limit=2.0, nonnegative=True)],
    ids=["embedding", "gradient", "gradient from 0 up"],
)
@pytest.mark.parametrize("both", [True, False], ids=["both", "items"])
@pytest.mark.parametrize("most_ratings", [2, ITEMS])
def test_a_unit_changes_a_step_by_no_more_than_the_bound(
    budget: Budget, clipping: Any, both: bool, most_ratings: int
) -> None:
    recipe = VerticalMF(factors=3, rounds=2, clipping=clipping, fine_tuning=2, most_ratings=most_ratings)
    settled = recipe.settled(facts_of("vertical"), budget)
    bound = settled.schedule(facts_of("vertical"), budget.unit, "north").releases[0 if both else 1].bound

    def step(units: tuple[Any, ...]) -> NDArray[np.float64]:
        half, _ = participant_of(recipe, table(rated(units, budget.unit)), budget)
        descent = half._with(message(Shared, settled))
        reach, sums = descent.reach(both=both), descent.sums(both=both)
        parts = [sums.items / reach.items]
        if sums.users is not None and reach.users is not None:
            parts.append(sums.users / reach.users)
        return np.concatenate(parts)

    assert_bounded(step, bound, datasets(budget.unit), pairs=40, climbs=40)


@pytest.mark.parametrize(
    ("budget", "searched"),
    [(RATING, False), (USER, False), (RATING, True)],
    ids=["rating", "user", "rating of users who were searched for"],
)
def test_a_unit_changes_the_mean_by_no_more_than_the_bound(budget: Budget, searched: bool) -> None:
    captured: list[Any] = []

    def total(units: tuple[Any, ...]) -> Any:
        half, _ = participant_of(QUICK, table(rated(units, budget.unit)), budget)

        def release(_: Any, bounded: Any, **__: Any) -> Any:
            captured.append(bounded)
            return bounded.value

        half._home.door.release = release
        half._home = replace(half._home, facts=replace(half._home.facts, searched=searched))
        released_total(half._home, half._ratings, budget.unit, summed=False)
        return captured[-1]

    total(((3.0,),) * (USERS * ITEMS) if budget.unit == "rating" else ((3.0,) * ITEMS,) * USERS)
    assert_bounded(total, captured[-1].bound, datasets(budget.unit), pairs=40, climbs=40)


def test_users_are_trimmed_to_their_most_ratings() -> None:
    everything = [(u, i, 3.0) for u in range(USERS) for i in range(ITEMS)]
    half, _ = participant_of(replace(QUICK, most_ratings=2), table(everything), USER)
    assert half._ratings.sizes.tolist() == [2] * USERS
    half, _ = participant_of(replace(QUICK, most_ratings=2), table(everything), RATING)
    assert half._ratings.sizes.tolist() == [ITEMS] * USERS


def test_without_noise_the_parties_factorize_together() -> None:
    learn, test = by_fraction(small_ratings(), 0.2, seed=1)
    run = train(VerticalMF(rounds=150), vertical(learn, 3))
    means = {p.name: GlobalMean().fit(p.ratings) for p in vertical(learn, 3).parties}
    assert mse(run.homes, vertical(test, 3)) < mse(means, vertical(test, 3)) - 0.1
    assert not run.guarantee.holds
    assert {each.protection for each in transcript(run)} == {"nothing", "released before"}


def test_the_published_model_is_what_the_parties_use() -> None:
    federation = vertical(small_ratings(), 3)
    run = train(QUICK, federation, budget=RATING)
    assert run.model is not None
    np.testing.assert_array_equal(run.model.item_ids, federation.item_ids)
    pairs = np.arange(20, dtype=np.int32), np.arange(20, dtype=np.int32)
    first = run.homes["party-0"].predict_rows(*pairs)
    np.testing.assert_allclose(run.model.predict_rows(*pairs), first, rtol=1e-6)


@pytest.mark.parametrize("budget", [RATING, USER], ids=["rating", "user"])
def test_a_private_run_costs_its_budget_and_no_more(budget: Budget) -> None:
    run = train(replace(QUICK, fine_tuning=2), vertical(small_ratings(), 3), budget=budget)
    assert run.guarantee.holds
    assert 0.97 < (run.guarantee.epsilon or 0) <= 1.0
    assert {each.protection for each in transcript(run)} == {"noise", "released before"}


def test_parties_lose_more_together_where_users_are_the_unit() -> None:
    run = train(QUICK, vertical(small_ratings(), 3), budget=USER)
    assert run.together is not None
    losses = [party.epsilon or 0 for party in run.together.parties.values()]
    assert max(losses) < 0.8  # each by itself less than the whole
    assert any("carry next to nothing" in warning for warning in run.guarantee.warnings)


def test_a_party_may_ask_for_more_privacy() -> None:
    federation = vertical(small_ratings(), 3)
    careful = replace(federation.parties[0], budget=Budget(epsilon=0.2, delta=1e-7, unit="rating"))
    run = train(QUICK, replace(federation, parties=(careful, *federation.parties[1:])), budget=RATING)
    assert run.together is not None
    losses = {name: party.epsilon or 0 for name, party in run.together.parties.items()}
    assert losses["party-0"] < 0.2
    assert losses["party-1"] > 0.9


def test_parties_that_stay_alone_publish_nothing_together() -> None:
    run = train(replace(QUICK, alone=True), vertical(small_ratings(), 3), budget=RATING)
    assert run.model is None
    users = [home.user_vectors for home in run.homes.values()]
    assert not np.allclose(users[0], users[1])


def test_a_missing_party_does_not_stop_the_others() -> None:
    absent = Failures(absent=frozenset({("party-2", 3)}), lost=frozenset({("party-1", 4)}))
    run = train(QUICK, vertical(small_ratings(), 3), budget=RATING, failures=absent)
    assert [event.numbers["answered"] for event in run.rounds] == [3, 3, 2, 2, 3]
    assert run.model is not None


def test_the_published_setting_is_that_of_the_paper() -> None:
    recipe = VerticalMF.as_published()
    assert (recipe.factors, recipe.rounds, recipe.local_steps, recipe.sampling) == (20, 100, 10, 0.01)
    assert [VerticalMF.as_published(s).most_ratings for s in (1, 2, 5, 10, 18)] == [10, 5, 5, 5, 2]
    facts = facts_of("vertical")
    settled = recipe.settled(facts, RATING)
    releases = settled.schedule(facts, "rating", "north").releases
    assert releases[0].bound.size == pytest.approx(2 * math.sqrt(2) * 5**1.5)


def test_steps_shrink_for_four_fifths_of_the_time() -> None:
    from cofactor.recipes.steps import Steps

    settled = VerticalMF.as_published().settled(facts_of("vertical"), RATING)
    rates = Steps.of(settled).rates(0, 1000) / (settled.learning_rate or 1)
    assert rates[0] == 1.0
    assert rates[400] == pytest.approx(0.55)
    np.testing.assert_allclose(rates[800:], 0.1)


def test_messages_at_the_size_of_movielens_10m_have_the_stated_bytes() -> None:
    sizes = [
        len(Letter(session="0" * 16, round=1, sender="party-1", body=Vectors(vectors=vectors)).to_bytes())
        for vectors in (np.zeros((69_878, 20), np.float32), np.zeros((10_677, 20), np.float32))
    ]
    assert sizes[0] / 1e6 == pytest.approx(5.59, abs=0.005)
    assert sizes[1] / 1e6 == pytest.approx(0.854, abs=0.0005)


def test_an_average_that_does_not_fit_is_refused() -> None:
    half, settled = participant_of(QUICK, table([(0, 0, 3.0)]), RATING)
    wrong = Finished(centre=np.array(3.0), vectors=np.zeros((2, 2), np.float32))
    with pytest.raises(Exception, match="not of shape"):
        half.handle(2, wrong)
    not_a_number = Shared(centre=np.array(3.0), vectors=np.full((USERS, 2), np.nan, np.float32))
    with pytest.raises(Exception, match="not finite"):
        half.handle(2, not_a_number)
    assert settled.factors == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"centre": 7.0}, "centre 7 does not lie on the scale"),
        ({"fine_tuning": -1}, "fine_tuning must be at least 1"),
        ({"decay": 0.0}, "decay must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        VerticalMF(**settings).settled(facts_of("vertical"), RATING)


def test_embedding_clipping_needs_ratings_from_zero_up() -> None:
    from cofactor.data.ratings import Scale

    facts = replace(facts_of("vertical"), scale=Scale(-10.0, 10.0))
    with pytest.raises(ConfigError, match="ratings from 0 up"):
        VerticalMF.as_published().settled(facts, RATING)
    assert VerticalMF().settled(facts, RATING).clipping == GradientClipping(limit=2.5)


def test_what_the_ledger_refuses_leaves_no_trace_that_could_leave_later() -> None:
    rated_all = [(u, i, 3.0) for u in range(USERS) for i in range(ITEMS)]
    half, settled = participant_of(replace(QUICK, rounds=20), table(rated_all), RATING)
    half._home.door.begin(1)
    half.handle(1, message(Shared, settled))
    before = half._descent.items
    spent_up = Ledger.create(None, party="north", fingerprint="x", budget=replace(RATING, epsilon=0.001))
    half._home.door._ledger = spent_up
    half._home.door.begin(2)
    with pytest.raises(BudgetExceeded):
        half.handle(2, message(Shared, settled))
    np.testing.assert_array_equal(half._descent.items, before)


def test_item_vectors_are_given_away_once() -> None:
    half, settled = participant_of(QUICK, table([(0, 0, 3.0)]), RATING)
    half._home.door.begin(1)
    half.handle(1, message(Finished, settled))
    half._home.door.begin(2)
    with pytest.raises(RunError, match="given away once"):
        half.handle(2, message(Finished, settled))


def test_users_at_several_parties_cannot_be_spent_twice(tmp_path: Any) -> None:
    parties = []
    for each in vertical(small_ratings(), 3).parties:
        file = tmp_path / f"{each.name}.csv"
        file.write_text(each.name)
        parties.append(replace(each, file=file, fingerprint=each.name))
    federation = Federation.vertical(parties)
    assert train(QUICK, federation, budget=USER).guarantee.holds
    with pytest.raises(BudgetExceeded):
        train(QUICK, federation, budget=USER)
