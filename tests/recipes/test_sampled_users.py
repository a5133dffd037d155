"""Users who take part by chance, and where weights are not: in nothing that leaves or stays."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data import partition
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError
from cofactor.federation.door import Door
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts, Home
from cofactor.federation.host import read_arrays
from cofactor.federation.party import Party
from cofactor.privacy import fixed_point
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import HDPMF_USERS, Weights, taking_part
from cofactor.progress import Progress
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.item_letters import GainAsked, UsersAsked
from cofactor.recipes.item_weights import drawn_to_take_part, mean_part
from cofactor.recipes.sums import SecureSum
from tests.recipes.item_parties import (
    EMPTY,
    FACTORS,
    FEATURES,
    FEW,
    LAST,
    Row,
    arrays,
    facts_of,
    half,
    question,
    rated,
    watched,
)
from tests.recipes.parties import ITEMS, SCALE, USERS, small_ratings
from tests.recipes.test_item_halves import RELEASES, some
from tests.recipes.test_item_sums import up
from tests.recipes.test_secure_als import ALL, ROUNDS
from tests.recipes.weighed_users import (
    POLICY,
    PROMISED,
    SAMPLED,
    SAMPLED_AT,
    STRETCHED,
    Reals,
    at_work,
    both,
    known,
    personal,
    terms,
)

# Who takes part by chance.


def many(users: int, weights: Reals, random: Any, budget: PersonalBudget = SAMPLED) -> Home:
    """Return the home of many users, each with one rating."""
    each = np.arange(users)
    own = Ratings.from_rows(
        each, each % ITEMS, np.full(users, 4.0), user_ids=each, item_ids=np.arange(ITEMS), scale=SCALE
    )
    return Home(
        party=Party(name="party-0", ratings=own, weights=weights),
        facts=facts_of((users,), weights=known(budget)),
        schedule=None,
        door=Door(party="party-0", ledger=None, random=random, run="a test"),
        seed=0,
    )


def test_users_take_part_as_often_as_their_weights_allow() -> None:
    users = 40_000
    for weight in (0.01, 0.1, 0.2, 0.24):
        chance = float(taking_part(np.array([weight]), PROMISED, SAMPLED_AT)[0])
        assert 0.01 < chance < 1
        found = drawn_to_take_part(many(users, np.full(users, weight), SecureRandom())).sum()
        # Six deviations: a false alarm once in 10^8 times.
        assert abs(found - users * chance) < 6 * math.sqrt(users * chance * (1 - chance))
    assert drawn_to_take_part(many(users, np.full(users, 0.25), SecureRandom())).all()


def test_without_sampling_everybody_takes_part_and_no_chance_is_used() -> None:
    random = InsecureRandom(3)
    assert drawn_to_take_part(many(10, np.full(10, 0.1), random, STRETCHED)).all()
    np.testing.assert_array_equal(random.new_key(), InsecureRandom(3).new_key())


def test_the_public_share_of_those_who_take_part_is_about_right() -> None:
    for budget in (SAMPLED, terms(mechanism="sampling", users=Weights.drawn(HDPMF_USERS))):
        users = 40_000
        weights = budget.users.of(np.arange(users))
        found = drawn_to_take_part(many(users, weights, SecureRandom(), budget)).mean()
        # Within 6 deviations of a coin, a false alarm once in 10^8 times.
        assert abs(found - mean_part(known(budget))) < 6 * 0.5 / math.sqrt(users)
    equal = terms(mechanism="sampling", threshold=SAMPLED_AT, users=Weights.equal(0.1))
    assert mean_part(known(equal)) == pytest.approx(math.expm1(0.4) / math.expm1(1.0))


def test_who_does_not_take_part_is_as_if_she_had_rated_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    units, weights, mixed = some(3), np.full(USERS, 0.15), 0
    for seed in range(8):
        participant = at_work(units, weights, SAMPLED, random=InsecureRandom(seed))
        taking = participant.state()["taking part"]
        mixed += 0 < taking.sum() < USERS
        rest = tuple(row if taken else EMPTY for row, taken in zip(units, taking, strict=True))
        for what, round, asked in RELEASES.values():
            participant._home.door.begin(round)
            seen = watched(participant)
            participant.handle(round, asked)
            sampled = dict(seen)[what]
            alike = at_work(rest, np.ones(USERS), SAMPLED, round=round)
            seen = watched(alike)
            alike.handle(round, asked)
            np.testing.assert_array_equal(sampled.value, dict(seen)[what].value)
            assert not sampled.bound.weighed
    assert mixed > 3, "in some, a part of the users takes part"


def test_all_devices_add_noise_whether_they_take_part_or_not() -> None:
    # Nobody takes part, with a chance of 1e-12; and nothing says that too few devices are left.
    participant = at_work(some(3), [1e-4] * USERS, SAMPLED)
    devices: list[int] = []

    def share(_: Any, bounded: Bounded, **more: Any) -> NDArray[Any]:
        devices.append(more["devices"])
        return bounded.value

    participant._home.door.share = share
    participant.handle(LAST, question())
    assert set(devices) == {USERS}


def test_who_takes_part_is_drawn_once_and_survives_a_crash(tmp_path: Path) -> None:
    federation, budget = Federation.on_device(small_ratings()), replace(SAMPLED, users=Weights.equal(0.1))
    stops, kept = iter((1, 2, 4)), []

    def halt(stop: int) -> Any:
        def note(event: Progress) -> None:
            if event.step == stop:
                raise KeyboardInterrupt

        return note

    for stop in stops:
        with pytest.raises(KeyboardInterrupt):
            personal(federation, budget, folder=tmp_path, progress=halt(stop))
        kept.append(read_arrays(tmp_path / "devices.npz", "taking part")["taking part"])
    run = personal(federation, budget, folder=tmp_path)
    kept.append(read_arrays(tmp_path / "devices.npz", "taking part")["taking part"])
    assert 0 < kept[0].sum() < len(kept[0])
    for later in kept[1:]:
        # Drawn anew, all of 150 users would choose the same with a chance of 10^-20.
        np.testing.assert_array_equal(later, kept[0])
    assert 0.99 * SAMPLED_AT < (run.guarantee.epsilon or 0) <= SAMPLED_AT


# Where weights are not.


def all_arrays(folder: Path) -> Iterator[tuple[str, NDArray[Any]]]:
    for path in folder.rglob("*.npz"):
        with np.load(path, allow_pickle=False) as stored:
            yield from ((f"{path.name}: {name}", stored[name]) for name in stored.files)


@both
def test_weights_are_in_no_message_and_in_no_run_folder(mechanism: Any, tmp_path: Path) -> None:
    ratings = small_ratings()
    own = {user: 0.1 + 0.3 * k / 150 + 1e-5 for k, user in enumerate(ratings.user_ids.tolist())}
    users = Weights.by(own, groups=POLICY)
    folder = tmp_path / "session"
    run = personal(Federation.on_device(ratings), terms(users=users, mechanism=mechanism), folder=folder)
    saved = run.save(tmp_path / "run")
    names = {name for name, array in all_arrays(saved) if "taking" in name or array.dtype == np.bool_}
    assert not names
    for name, array in all_arrays(saved):
        wide = array.astype(np.float64).ravel() if array.dtype.kind == "f" else np.zeros(0)
        # A model of 150 users may hold any number once by chance, not all of theirs.
        assert not np.isin(np.array(list(own.values()), np.float32), wide.astype(np.float32)).all(), name
    texts = [path.read_text(errors="replace") for path in saved.rglob("*.json*")]
    texts += [path.read_text(errors="replace") for path in saved.rglob("*.ledger")]
    assert len(texts) >= 3
    for weight in own.values():
        assert not any(repr(weight) in text for text in texts)
    session = json.loads((folder / "session.json").read_text())["terms"]
    assert repr(next(iter(own.values()))) not in json.dumps(session)


def test_weights_that_are_missing_or_none_are_refused_without_telling_them() -> None:
    facts = facts_of(weights=known(STRETCHED))
    with pytest.raises(ConfigError, match="party-0: its users have no weights"):
        half(FEW, rated(some(1)), budget=STRETCHED.public, facts=facts)
    for bad in (np.nan, 0.0, 1.25, -0.5, 1e-9):
        for budget in (STRETCHED, SAMPLED):
            with pytest.raises(ConfigError, match=r"must lie between 0\.0001 and 1") as refused:
                at_work(some(1), [1.0, bad, 0.5, 0.5], budget)
            assert "1.25" not in str(refused.value)


# Whoever plays whom.


def test_a_cohort_a_party_and_devices_add_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    units, weights = some(2), np.array([1.0, 0.5, 0.1, 0.3])
    asked = {
        1: UsersAsked(),
        2: question(2),
        LAST: question(),
        LAST + 1: GainAsked(**arrays(ITEMS, FEATURES, FACTORS, 5)),
    }
    public = known(STRETCHED)

    def answer(facts: Facts, round: int, own: tuple[Row, ...], parts: Reals) -> Any:
        return half(FEW, rated(own), budget=None, facts=facts, round=round, weights=parts).handle(
            round, asked[round]
        )

    for round in asked:
        cohort = answer(facts_of(weights=public), round, units, weights)
        party = answer(facts_of((USERS, USERS), split="horizontal", weights=public), round, units, weights)
        alone = [
            answer(
                facts_of((USERS, USERS), split="horizontal", weights=public),
                round,
                tuple(row if k == user else EMPTY for k, row in enumerate(units)),
                weights,
            )
            for user in range(USERS)
        ]
        for name, array in cohort.arrays.items():
            np.testing.assert_array_equal(array, party.arrays[name])
            np.testing.assert_array_equal(array, sum(each.arrays[name] for each in alone))


@pytest.mark.slow
@both
def test_parties_may_bring_weights_of_their_own(mechanism: Any) -> None:
    parties = []
    for k, part in enumerate(partition.horizontal(small_ratings(), 3, seed=1)):
        # The same ids at all parties, for different people.
        own = Ratings.from_rows(
            part.users,
            part.items,
            part.values,
            user_ids=np.arange(part.user_count),
            item_ids=part.item_ids,
            scale=Scale(1, 5),
        )
        weights = Weights.by(lambda user, k=k: 0.1 + 0.1 * k + 0.001 * user, groups=POLICY)  # type: ignore[misc]
        parties.append(Party(name=f"party-{k}", ratings=own).with_weights(weights))
    recipe = replace(ALL, item_rounds=ROUNDS[:1], gain_share=0.0, home=UsersOnly(), aggregate=SecureSum())
    run = personal(Federation.horizontal(parties, scale=Scale(1, 5)), terms(mechanism=mechanism), recipe)
    assert run.guarantee.personal is not None
    assert run.guarantee.weights is None, "parties keep what they brought"
    with pytest.raises(ConfigError, match="weights stay with the users"):
        run.guarantee.for_user(1)
    assert 0 < (run.guarantee.for_group("strict").epsilon or 0) <= 0.4 * PROMISED * (1 + 1e-9)
