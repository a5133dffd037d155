from typing import Any

import numpy as np
import pytest

from cofactor.attacks.canary_planting import Planted, planted
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.privacy.budget import Unit

CANARIES = 10
PRESENT = np.arange(CANARIES) % 3 == 0


def ratings(first: int, users: list[Any], items: list[Any]) -> Ratings:
    rows, columns = np.divmod(np.arange(len(users) * len(items)), len(items))
    some = (rows + columns + first) % 3 != 0
    values = 1 + (rows + 2 * columns + first) % 5
    return Ratings.from_rows(
        rows[some],
        columns[some],
        values[some].astype(np.float32),
        user_ids=np.array(users),
        item_ids=np.array(items),
        scale=Scale(1, 5),
    )


def federation(kind: str) -> Federation:
    names = [f"u{k}" for k in range(6)]
    if kind == "cohort":
        return Federation.on_device(ratings(0, names, [7, 8, 9]))
    if kind == "devices":
        return Federation.on_device([Party(name=name, ratings=ratings(0, [name], [7, 8])) for name in names])
    if kind == "vertical":
        parts = [ratings(k, names, [10 * k, 10 * k + 1]) for k in range(3)]
        return Federation.vertical([Party(name=f"p{k}", ratings=part) for k, part in enumerate(parts)])
    parts = [ratings(k, names[2 * k : 2 * k + 2], ["a", "b", "c"]) for k in range(3)]
    return Federation.horizontal([Party(name=f"p{k}", ratings=part) for k, part in enumerate(parts)])


KINDS = ["horizontal", "vertical", "cohort", "devices"]
UNITS: list[Unit] = ["user", "rating"]


def pairs(party: Party) -> set[tuple[Any, Any, float]]:
    own = party.ratings
    return set(zip(own.user_ids[own.users], own.item_ids[own.items], own.values.tolist(), strict=True))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_public_does_not_depend_on_who_is_present(kind: str, unit: Unit) -> None:
    ground = planted(federation(kind), CANARIES, unit=unit)
    some, none = (ground.federation(PRESENT & keep).facts for keep in (True, False))
    assert (some.users, some.items, some.ratings) == (none.users, none.items, none.ratings)
    assert some.catalogue.tolist() == none.catalogue.tolist()
    assert len(set(some.catalogue.tolist())) == some.item_count
    assert some.parties == none.parties


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
def test_canaries_have_items_of_their_own_and_everybody_else_stays(kind: str, unit: Unit) -> None:
    before = federation(kind)
    ground = planted(before, CANARIES, unit=unit, ratings=4)
    after = ground.federation(PRESENT)
    for party in before.parties:
        assert pairs(party) <= pairs(after.party(party.name))
    both = ground.federation(np.ones(CANARIES, np.bool_), alone=True)
    held = [rated for party in both.parties for rated in pairs(party)]
    assert len(held) == len(ground.ratings.canary)
    known = {item for party in before.parties for _, item, _ in pairs(party)}
    if kind != "vertical":
        assert not known & {item for _, item, _ in held}
        assert len({item for _, item, _ in held}) == len(held)
    each = np.bincount(ground.ratings.canary)
    assert set(each) == ({1} if unit == "rating" else {12 if kind == "vertical" else 4})


@pytest.mark.parametrize("kind", KINDS)
def test_places_of_ratings_are_where_the_ratings_are(kind: str) -> None:
    ground = planted(federation(kind), CANARIES, unit="user", ratings=3)
    everybody = ground.federation(np.ones(CANARIES, np.bool_), alone=True)
    own, facts = ground.ratings, everybody.facts
    for at, party in enumerate(everybody.parties):
        here = own.party == at
        expected = set(zip(own.user[here].tolist(), own.item[here].tolist(), strict=True))
        found = set(zip(party.ratings.users.tolist(), party.ratings.items.tolist(), strict=True))
        assert found == expected
        start = facts.items_of(party.name).start
        assert np.array_equal(own.column[here], start + own.item[here])


def test_who_is_absent_has_no_ratings_or_the_opposite_ones() -> None:
    absent = np.zeros(CANARIES, np.bool_)
    nothing = planted(federation("cohort"), CANARIES, unit="user").federation(absent, alone=True)
    assert len(nothing.parties[0].ratings) == 0
    turned = planted(federation("cohort"), CANARIES, unit="user", adjacency="replace", ratings=3)
    low, high = (turned.federation(each, alone=True).parties[0].ratings for each in (~absent, absent))
    assert np.array_equal(low.items, high.items)
    assert low.values.tolist() == [1.0, 5.0, 1.0] * CANARIES
    assert np.array_equal(low.values + high.values, np.full(3 * CANARIES, 6.0))


def test_whoever_looks_at_the_others_has_no_canaries() -> None:
    ground = planted(federation("horizontal"), CANARIES, unit="user", not_at=["p1"])
    assert set(ground.ratings.party) == {0, 2}
    everywhere = planted(federation("cohort"), CANARIES, unit="user", not_at=["devices"])
    assert set(everywhere.ratings.party) == {0}


def test_a_canary_can_be_looked_at_alone() -> None:
    ground = planted(federation("vertical"), CANARIES, unit="user", ratings=2)
    own = ground.only(4, present=True)
    assert [party.name for party in own] == ["p0", "p1", "p2"]
    assert all(party.ratings.user_count == 1 and len(party.ratings) == 2 for party in own)
    assert sum(len(party.ratings) for party in ground.only(4, present=False)) == 0


def test_attributes_weights_and_features_follow(tmp_path: Any) -> None:
    first, *others = federation("horizontal").parties
    known = Party(
        name="p0",
        ratings=first.ratings,
        features=np.eye(3, dtype=np.float32),
        attributes=np.ones((2, 2), np.float32),
        weights=np.array([0.5, 0.2]),
        file=tmp_path / "p0.csv",
        fingerprint="sha256:1",
    )
    ground: Planted = planted(Federation("horizontal", (known, *others), Scale(1, 5)), CANARIES, unit="user")
    grown = ground.ground.parties[0]
    assert grown.file is None
    assert grown.fingerprint == ""
    assert grown.features is not None
    assert grown.features.shape == (3 + 8 * CANARIES, 3)
    assert grown.attributes is not None
    assert np.isnan(grown.attributes[2:]).all()
    assert grown.weights is not None
    assert grown.weights.tolist() == [0.5, 0.2, 1.0, 1.0, 1.0, 1.0]


def test_mistakes_are_explained() -> None:
    ground = planted(federation("cohort"), CANARIES, unit="user")
    with pytest.raises(ConfigError, match="10 canaries: say of each whether it is present"):
        ground.federation(PRESENT[:5])
    without = Federation.on_device(ratings(0, ["u", "v"], [1, 2]).without_values())
    with pytest.raises(ConfigError, match="no values that could differ"):
        planted(without, CANARIES, unit="rating", adjacency="value")
    assert planted(without, CANARIES, unit="user").federation(PRESENT).implicit
