from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.config import as_table, from_table
from cofactor.crypto.shared_key import SharedKey
from cofactor.data import partition
from cofactor.data.attributes import UserAttributes
from cofactor.data.coding import Coding
from cofactor.data.public_items import PublicItems
from cofactor.errors import ConfigError, Refused, RunError
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.privacy import fixed_point
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.progress import Progress
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_letters import FeatureGradients, ItemsAsked, ViewGradients, ViewsAsked
from cofactor.recipes.multiview_weights import InclUnc, ObsOnly, SampledUnrated
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.plan import plan
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from cofactor.recipes.train import train
from tests.recipes.multiview_parties import (
    BUDGET,
    CODING,
    ITEMS,
    KINDS,
    SCALE,
    USERS,
    Reals,
    derivative,
    device,
    facts_of,
    features,
    item_server,
    ratings_of,
    some_attributes,
    some_rows,
    twin_of,
)
from tests.recipes.parties import transcript

QUICK = MultiViewMF(factors=2, rounds=3)
FEW = replace(QUICK, aggregate=IdealSum(dropout=0.2, colluding=0.2))
"""For as few devices as tests have."""
MANY, WIDE = 12, 10
"""Users and items of those federations that are trained."""
Unit = tuple[tuple[float | None, ...], tuple[float | None, ...]]
"""A user's ratings, and attributes."""
EMPTY: Unit = ((None,) * ITEMS, (None,) * CODING.width)


def attributes_of() -> UserAttributes:
    return UserAttributes(coding=CODING, ids=np.arange(MANY), matrix=some_attributes(0, MANY))


def cohort(
    *, attributes: bool = True, items: bool = True, split: str = "on-device", users: int = MANY
) -> Federation:
    """Return a federation of the same users: a cohort, devices one by one, or three parties."""
    ratings = ratings_of(some_rows(1, MANY + 1, WIDE)[:users])
    if split == "on-device":
        found = Federation.on_device(ratings, scale=SCALE)
    elif split == "devices":
        parts = [ratings.select(users=slice(k, k + 1)) for k in range(users)]
        devices = [Party(name=f"device-{k:02}", ratings=part) for k, part in enumerate(parts)]
        found = Federation.on_device(devices, scale=SCALE)
    else:
        parts = partition.horizontal(ratings, 3, seed=1)
        found = Federation.horizontal(
            [Party(name=f"party-{k}", ratings=part) for k, part in enumerate(parts)], scale=SCALE
        )
    if attributes:
        found = found.with_user_attributes(attributes_of())
    return found.with_public_items(features(items=WIDE)) if items else found


def question(seed: int = 5, size: float = 1.0) -> ViewsAsked:
    random = np.random.default_rng(seed)
    return ViewsAsked(
        items=random.normal(0, size, (ITEMS, 2)), attributes=random.normal(0, size, (CODING.width, 2))
    )


def tables_of(units: tuple[Unit, ...]) -> tuple[Reals, NDArray[np.float32]]:
    def numbers(rows: Any) -> Reals:
        return np.array([[np.nan if x is None else x for x in row] for row in rows], np.float64)

    return numbers([own[0] for own in units]), numbers([own[1] for own in units]).astype(np.float32)


def drawn(chance: np.random.Generator) -> Unit:
    rows = chance.choice([1.0, 3.0, 5.0], ITEMS)
    told = chance.choice([0.0, 1.0, 50.0], CODING.width)
    return (
        tuple(float(x) if chance.random() < 0.7 else None for x in rows),
        tuple(float(x) if chance.random() < 0.7 else None for x in told),
    )


def vectors_of(run: Run) -> tuple[Any, Any, Any]:
    assert run.model is not None
    assert run.model.views is not None
    return run.model.item_vectors, run.model.views.users, run.model.views.items


@pytest.mark.parametrize("unrated", KINDS)
@pytest.mark.parametrize("update", ["semi-als", "sgd"])
def test_training_follows_the_equations(unrated: Any, update: Any) -> None:
    recipe = MultiViewMF(
        factors=2, rounds=4, unrated=unrated, update=update, side_weight=0.6, penalty=1.5, adam_rate=0.1
    )
    facts, told = facts_of(), some_attributes()
    half, server = device(recipe, some_rows(), told), item_server(recipe)
    chosen = recipe.settled(facts, None)
    coordinator, twin = chosen.coordinator(facts, 3), twin_of(half, recipe, told)
    q, u = (coordinator.ask(1).arrays[name].astype(np.float64) for name in ("items", "attributes"))
    p, v = np.zeros((USERS, 2)), np.zeros((3, 2))
    rated = (half._home.party.ratings.by_user.sizes > 0)[:, None]
    assert not rated.all()
    mean = square = np.zeros((ITEMS + CODING.width, 2))
    for round in range(1, 5):
        coordinator.take_role("item server", round, server.handle(round, coordinator.ask_role("", round)))
        coordinator.take(round, {"all": half.handle(round, coordinator.ask(round))})
        p, v = _moved(twin, update, p, q, u, v)
        told_p = p * rated  # who has rated nothing tells nothing
        gradient = np.vstack(
            [
                derivative(lambda x, p=told_p, u=u, v=v: twin.objective(p, x, u, v), q),
                derivative(lambda x, p=told_p, q=q, v=v: twin.objective(p, q, x, v), u),
            ]
        )
        mean, square = 0.5 * mean + 0.5 * gradient, 0.99 * square + 0.01 * gradient**2
        step = 0.1 * mean / (1 - 0.5**round) / (np.sqrt(square / (1 - 0.99**round)) + 1e-8)
        q, u = q - step[:ITEMS], u - step[ITEMS:]
        asked = coordinator.ask(round + 1).arrays
        np.testing.assert_allclose(asked["items"], q, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(asked["attributes"], u, rtol=1e-3, atol=1e-4)
    final = half.finish(coordinator.last())
    np.testing.assert_allclose(final.user_vectors, twin.best_users(q, u), rtol=1e-2, atol=1e-3)
    assert final.views is not None
    np.testing.assert_allclose(final.views.items, v, rtol=1e-2, atol=1e-3)


def _moved(twin: Any, update: str, p: Reals, q: Reals, u: Reals, v: Reals) -> tuple[Reals, Reals]:
    """Return users and features by equations (8) and (11), or (9) and (12) with rates by the curvature."""
    if update == "semi-als":
        return twin.best_users(q, u), twin.best_features(q)
    down = derivative(lambda x: twin.objective(x, q, u, v), p)
    known = ~np.isnan(twin.attributes)
    traces = twin.weights @ np.square(q).sum(axis=1) + 0.6 * known @ np.square(u).sum(axis=1) + 2 * 1.5
    slope = derivative(lambda x: twin.objective(p, q, u, x), v)
    trace = 0.6 * np.square(q).sum() + 2 * 1.5
    return p - down / (2 * traces[:, None]), v - slope / (2 * trace)


@pytest.mark.parametrize("unrated", KINDS)
@pytest.mark.parametrize("update", ["semi-als", "sgd"])
def test_a_user_changes_a_round_by_no_more_than_what_is_charged(
    monkeypatch: pytest.MonkeyPatch, unrated: Any, update: Any
) -> None:
    # Rounded as unluckily as chance can, alike in all runs.
    monkeypatch.setattr(fixed_point, "_words", lambda count, _: np.zeros(count, np.uint32))
    recipe = replace(FEW, unrated=unrated, update=update, limit=3.0, grain=2.0**-9)
    facts = facts_of()
    bound = recipe.settled(facts, BUDGET).schedule(facts, "user", "").releases[0].bound

    def release(asked: ViewsAsked) -> Callable[[tuple[Unit, ...]], Bounded]:
        return lambda units: _noise_free(recipe, units, asked)

    chance, loud = np.random.default_rng(1), ((5.0,) * ITEMS, (50.0,) * CODING.width)
    others = tuple(drawn(chance) for _ in range(USERS - 1))
    datasets = Datasets(draw=drawn, count=USERS, empty=EMPTY)
    assert_bounded(
        release(question(size=0.3)),
        bound,
        datasets,
        worst_case=Neighbours(units=(loud, *others), which=0, other=EMPTY),
        pairs=8,
        climbs=8,
    )
    # Somebody who has rated nothing may have attributes all the same.
    for known in ((50.0,) * CODING.width, (-3.0,) * CODING.width):
        silent: Unit = ((None,) * ITEMS, known)
        neighbours = Neighbours(units=(loud, *others), which=0, other=silent)
        quiet = replace(datasets, empty=silent)
        assert_bounded(release(question(size=0.3)), bound, quiet, worst_case=neighbours, pairs=8, climbs=8)
    hostile = ViewsAsked(items=np.full((ITEMS, 2), 1e14), attributes=np.full((CODING.width, 2), -1e14))
    assert_bounded(release(hostile), bound, datasets, pairs=8, climbs=8)


def _noise_free(recipe: MultiViewMF, units: tuple[Unit, ...], asked: ViewsAsked) -> Bounded:
    """Return what the cohort gives to the door in its second round."""
    seen: list[Bounded] = []
    half: Any = device(recipe, *tables_of(units), budget=BUDGET)

    def share(mechanism: Any, bounded: Bounded, **_: Any) -> NDArray[np.int64]:
        seen.append(bounded)
        return bounded.value

    half._home.door.share = share
    half.handle(1, question(6))
    half.handle(2, asked)
    return seen[-1]


@pytest.mark.parametrize("unrated", [ObsOnly(), SampledUnrated()])
def test_noise_covers_every_item_and_attribute_whoever_has_them(unrated: Any) -> None:
    def release(units: tuple[Unit, ...]) -> NDArray[np.int64]:
        half = device(replace(FEW, unrated=unrated), *tables_of(units), budget=BUDGET, random=SecureRandom())
        found = half.handle(1, question())
        assert isinstance(found, ViewGradients)
        return found.gradients

    assert_noise_covers(release, "empty", Datasets(draw=drawn, count=USERS, empty=EMPTY), runs=8)


@pytest.mark.parametrize("unrated", [ObsOnly(), InclUnc()])
@pytest.mark.parametrize("update", ["semi-als", "sgd"])
def test_devices_and_parties_learn_what_a_cohort_does(unrated: Any, update: Any) -> None:
    recipe = replace(QUICK, unrated=unrated, update=update, rounds=5)
    together = train(recipe, cohort())
    for split in ("devices", "horizontal"):
        apart = train(replace(recipe, aggregate=PlainSum()), cohort(split=split))
        for one, other in zip(vectors_of(together), vectors_of(apart), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
        users = {user: row for home in apart.homes.values() for user, row in _rows(home).items()}
        assert len(users) == MANY
        for user, row in _rows(together.homes["devices"]).items():
            np.testing.assert_allclose(row, users[user], rtol=1e-2, atol=1e-3)


def _rows(model: Any) -> Mapping[Any, Any]:
    return dict(zip(model.user_ids.tolist(), model.user_vectors, strict=True))


def test_all_kinds_of_sums_give_the_same_model_to_the_last_bit() -> None:
    recipe = replace(QUICK, unrated=ObsOnly(), rounds=2)
    sums = (PlainSum(), IdealSum(), SecureSum(), SharedSum(), EncryptedSum(scheme=SharedKey()))
    runs = [train(replace(recipe, aggregate=each), cohort(split="horizontal")) for each in sums]
    for run in runs[1:]:
        for one, other in zip(vectors_of(runs[0]), vectors_of(run), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("update", ["semi-als", "sgd"])
def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path, update: Any) -> None:
    def stop(event: Progress) -> None:
        if event.step == 2:
            raise KeyboardInterrupt

    recipe = replace(QUICK, update=update, rounds=4, penalty=0.1, adam_rate=0.3)
    whole = train(recipe, cohort(), random=InsecureRandom(1))
    with pytest.raises(KeyboardInterrupt):
        train(recipe, cohort(), random=InsecureRandom(1), folder=tmp_path, progress=stop)
    # Other chance from here on: decoys are not drawn again.
    again = train(recipe, cohort(), random=InsecureRandom(2), folder=tmp_path)
    for one, other in zip(vectors_of(whole), vectors_of(again), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(whole.homes["devices"].user_vectors, again.homes["devices"].user_vectors)
    other = train(recipe, cohort(), random=InsecureRandom(2))
    assert np.abs(vectors_of(whole)[0] - vectors_of(other)[0]).max() > 1e-4


@pytest.mark.parametrize("budget", [None, BUDGET])
@pytest.mark.parametrize("attributes", [True, False])
@pytest.mark.parametrize("items", [True, False])
def test_both_side_tables_are_optional(attributes: bool, items: bool, budget: Budget | None) -> None:
    federation = cohort(attributes=attributes, items=items)
    run = train(QUICK, federation, budget=budget)
    assert run.model is not None
    views, home = run.model.views, run.homes["devices"]
    assert (views is None) == (not attributes and not items)
    if views is not None:
        assert len(views.users) == (CODING.width if attributes else 0)
        assert len(views.items) == (3 if items else 0)
        assert np.abs(views.items).sum() > 0 or not items
    assert home.user_vectors.shape == (MANY, 2)
    assert ("item server" in {each.sender for each in transcript(run)}) == items
    assert run.guarantee.epsilon is None if budget is None else 3.9 < (run.guarantee.epsilon or 0) <= 4.0


def test_a_user_whose_attributes_are_all_missing_is_as_one_without() -> None:
    rows, told = some_rows(), some_attributes()
    nothing = np.full_like(told, np.nan)
    recipe = replace(QUICK, unrated=ObsOnly())
    for asked in (question(), question(6)):
        alone, silent, open_hearted = (
            device(recipe, rows, each).handle(1, asked).arrays["gradients"] for each in (None, nothing, told)
        )
        np.testing.assert_array_equal(silent, alone)
        assert not alone[ITEMS:].any()
        assert open_hearted[ITEMS:].any()


def test_users_who_drop_out_are_taken_to_be_like_the_others() -> None:
    recipe, facts = replace(QUICK, unrated=ObsOnly(), aggregate=PlainSum()), facts_of()
    half = device(recipe, some_rows(), some_attributes(), dropout=0.5)
    answer = half.handle(1, question())
    count = int(answer.arrays["count"][0])
    assert 0 < count < USERS
    full = device(recipe, some_rows(), some_attributes()).handle(1, question())
    assert np.abs(full.arrays["gradients"]).sum() > np.abs(answer.arrays["gradients"]).sum()
    chosen, seen = recipe.settled(facts, None), []

    def moved(vectors: Reals, gradient: Reals) -> Reals:
        seen.append(gradient)
        return vectors

    coordinator: Any = chosen.coordinator(facts, 0)
    start = coordinator._vectors.copy()
    coordinator._adam.moved = moved
    coordinator.take(1, {"all": answer})
    told = answer.arrays["gradients"] * chosen.grid().step * USERS / count
    np.testing.assert_allclose(seen[0], -2 * told + 2 * recipe.penalty * start)
    coordinator.take(2, {})
    assert len(seen) == 1


def test_an_item_server_that_is_silent_is_taken_at_its_last_word() -> None:
    recipe, facts = replace(QUICK, unrated=ObsOnly()), facts_of()
    first, second = (recipe.settled(facts, None).coordinator(facts, 0) for _ in range(2))
    word = item_server(recipe).handle(1, first.ask_role("item server", 1))
    answer = device(recipe, some_rows(), some_attributes()).handle(1, first.ask(1))
    for coordinator, words in ((first, 1), (second, 2)):
        for round in (1, 2):
            if round <= words:
                coordinator.take_role("item server", round, word)
            coordinator.take(round, {"all": answer})
    np.testing.assert_array_equal(first.last().arrays["items"], second.last().arrays["items"])
    np.testing.assert_array_equal(first.last().arrays["features"], word.arrays["features"])


EXTREMES = (1e300, -1e300, 3e38, 1e20, 1e14, 1e-45, 5e-324, 0.0, np.inf, np.nan)


@pytest.mark.parametrize("budget", [None, BUDGET])
@pytest.mark.parametrize("update", ["semi-als", "sgd"])
def test_no_question_fails_at_those_alone_who_rated_something(update: Any, budget: Budget | None) -> None:
    rows = np.full((USERS, ITEMS), np.nan)
    rated, other = rows.copy(), rows.copy()
    rated[:, :3], other[:, 3:] = 5.0, 1.0
    recipe = replace(FEW, update=update, unrated=ObsOnly())
    for extreme in EXTREMES:
        for where in (slice(None), slice(0, 3)):
            asked = question()
            asked.items[where] = extreme
            asked.attributes[:1] = extreme
            tries = [(rated, some_attributes()), (other, None), (rows, some_attributes(3))]
            assert len({_outcome(recipe, *each, asked, budget) for each in tries}) == 1


def _outcome(recipe: MultiViewMF, rows: Reals, told: Any, asked: ViewsAsked, budget: Budget | None) -> str:
    half = device(recipe, rows, told, budget=budget)
    try:
        found = half.handle(1, asked)
    except RunError as error:
        return str(error)
    most = half._recipe.most(half._home.facts) * USERS
    assert budget is not None or np.abs(found.arrays["gradients"]).max() <= most
    assert np.isfinite(half.state()["users"]).all()
    return "an answer"


def test_vectors_are_believed_up_to_some_length_only() -> None:
    for recipe in (QUICK, replace(QUICK, update="sgd")):
        answers = [
            device(recipe, some_rows(), some_attributes()).handle(1, question(size=size)).arrays["gradients"]
            for size in (1.0, 1e6, 1e9)
        ]
        np.testing.assert_allclose(answers[1], answers[2], atol=2)
        assert np.abs(answers[0] - answers[1]).max() > 1000


def test_questions_of_another_kind_or_shape_are_refused() -> None:
    half, server = device(QUICK, some_rows(), None), item_server(QUICK)
    short = ViewsAsked(items=question().items[:-1], attributes=question().attributes)
    for asked in (ItemsAsked(items=np.zeros((ITEMS, 2))), short):
        with pytest.raises(RunError, match=r"did not expect|not of shape"):
            half.handle(1, asked)
    with pytest.raises(RunError, match="did not expect ViewsAsked"):
        server.handle(1, question())
    with pytest.raises(RunError, match="not of shape"):
        server.handle(1, ItemsAsked(items=np.zeros((ITEMS + 1, 2))))
    with pytest.raises(RunError, match="did not expect ViewsAsked"):
        half.finish(question())
    coordinator = QUICK.settled(facts_of(), None).coordinator(facts_of(), 0)
    wrong = FeatureGradients(gradients=np.zeros((ITEMS, 2)), features=np.full((3, 2), np.nan))
    with pytest.raises(RunError, match="item server sent features"):
        coordinator.take_role("item server", 1, wrong)


def test_attributes_that_are_coded_otherwise_are_refused() -> None:
    with pytest.raises(ConfigError, match="not coded as all agreed"):
        device(QUICK, some_rows(), np.zeros((USERS, CODING.width + 1), np.float32))


def test_a_device_without_ratings_sends_as_much_as_any_other() -> None:
    federation = cohort(split="devices", users=MANY + 1)
    assert len(federation.parties[-1].ratings) == 0
    run = train(replace(QUICK, rounds=2), federation, budget=BUDGET)
    assert run.together is not None
    sizes = {facts.bytes_sent for facts in run.together.parties.values()}
    assert len(sizes) == 1
    assert run.guarantee.holds


def test_a_new_user_is_fitted_as_users_are_at_home() -> None:
    run = train(replace(QUICK, unrated=ObsOnly()), cohort(attributes=False))
    rows, home = some_rows(1, MANY + 1, WIDE), run.homes["devices"]
    assert run.model is not None
    for user in (0, 3):
        told: dict[int | str, float] = {
            item: float(x) for item, x in enumerate(rows[user]) if not np.isnan(x)
        }
        folded = run.model.fold_in(told)
        np.testing.assert_allclose(folded.user_vectors[0], home.user_vectors[user], rtol=1e-4, atol=1e-5)


def test_single_ratings_cannot_be_protected() -> None:
    with pytest.raises(Refused, match='Protect users: unit "user"'):
        train(QUICK, cohort(), budget=Budget(epsilon=1.0, delta=1e-6, unit="rating"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"factors": 0}, "factors must be at least 1"),
        ({"update": "als"}, "update must be one of semi-als, sgd"),
        ({"adam_first": 1.0}, "adam_first must lie between 0 and 1"),
        ({"penalty": 0.0}, "penalty must be greater than 0"),
        ({"penalty": 1e-9}, "penalty and side_weight must lie between"),
        ({"user_rate": 2.0}, "user_rate must be below 2"),
        ({"unrated": 0.1}, r"unrated must be ObsOnly\(\), InclUnc\(\) or SampledUnrated\(\)"),
        ({"public_items": "items.csv"}, "public_items must be PublicItems"),
        ({"aggregate": "secure"}, "aggregate must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MultiViewMF(**settings)


@pytest.mark.parametrize(
    "recipe",
    [
        MultiViewMF.as_published(),
        MultiViewMF(unrated=InclUnc(alpha=0.3), update="sgd", limit=3.0, aggregate=PlainSum()),
        MultiViewMF(unrated=ObsOnly()).settled(facts_of(public_items=None), BUDGET),
    ],
)
def test_settings_survive_a_file(recipe: MultiViewMF) -> None:
    assert from_table(MultiViewMF, as_table(recipe), "recipe") == recipe


def test_the_published_setting_is_that_of_the_table() -> None:
    recipe = MultiViewMF.as_published()
    assert recipe.unrated == SampledUnrated(alpha=0.1, rho=1.0)
    assert (recipe.factors, recipe.rounds, recipe.side_weight, recipe.penalty) == (6, 10 * 20, 1.0, 10.0)
    adam = (recipe.adam_first, recipe.adam_second, recipe.adam_tiny, recipe.adam_rate)
    assert adam == (0.5, 0.99, 1e-8, 0.05)
    assert recipe.aggregate == EncryptedSum(scheme=SharedKey(bits=1024))
    assert MultiViewMF.takes_attributes
    assert MultiViewMF.coded_items


def test_sums_of_a_million_users_fit_and_those_of_a_small_town_take_40_bits() -> None:
    for users, bits in ((6_040, 40), (1_000_000, 47)):
        facts = facts_of(users=(users,))
        chosen = MultiViewMF().settled(facts, None)
        assert users * chosen.most(facts) < 2 ** (bits - 1)
        assert chosen.grid().step == 2.0**-19


def test_the_guarantee_says_what_it_covers_and_what_it_does_not() -> None:
    run = train(QUICK, cohort(), budget=BUDGET)
    words = " ".join(run.guarantee.does_not_cover)
    assert "a test (3 columns" in words
    assert any("by ratings and by attributes together" in each for each in run.guarantee.covers)
    assert not any("coded" in each for each in run.guarantee.warnings)
    read_off = replace(CODING, read_off=True)
    attributes = replace(attributes_of(), coding=read_off)
    run = train(QUICK, cohort().with_user_attributes(attributes), budget=BUDGET)
    [told] = [each for each in run.guarantee.warnings if "read off the users' own table" in each]
    assert "Coding.stated, or [attributes] in a --config file" in told


def test_a_plan_says_what_noise_leaves() -> None:
    made = plan(MultiViewMF(), BUDGET, users=4_000, items=300, ratings=200_000)
    assert any("SecureALS does better at both" in each for each in made.warnings)
    assert made.schedule.rounds == 40


def test_attributes_tell_what_new_users_like_and_features_what_new_items_are_like() -> None:
    # Two groups of users: each likes one half of the items. Nothing is known of the newcomers but the group.
    random = np.random.default_rng(0)
    users, items = 60, 40
    group, half = random.integers(0, 2, users), np.arange(items) % 2
    rows = np.where(group[:, None] == half, 5.0, 1.0)
    rows[random.random(rows.shape) < 0.5] = np.nan
    coding = Coding.stated({"group": ("zero", "one")})
    told = UserAttributes(coding=coding, ids=np.arange(users), matrix=np.eye(2, dtype=np.float32)[group])
    seen = np.arange(items) < 30
    names = ("even", "odd")
    numbers = PublicItems.of_numbers(np.arange(items), np.eye(2)[half], names=names, source="halves")
    federation = Federation.on_device(ratings_of(rows[:, seen]), scale=SCALE)
    federation = federation.with_user_attributes(told).with_public_items(numbers)
    run = train(MultiViewMF(factors=3, rounds=60, unrated=ObsOnly(), penalty=1.0), federation)
    assert run.model is not None
    for name, wanted in (("zero", 0), ("one", 1)):
        best = run.model.recommend_for_attributes({"group": name}, n=10)
        assert {each.item % 2 for each in best} == {wanted}
    home = run.homes["devices"]
    new = PublicItems.of_numbers([38, 39], np.eye(2), names=names, source="halves")
    wider = home.add_items(new)
    even, odd = (wider.item_vectors[wider.item_row(item)] for item in (38, 39))
    likes_even = home.user_vectors @ even > home.user_vectors @ odd
    assert (likes_even == (group == 0)).mean() > 0.95
