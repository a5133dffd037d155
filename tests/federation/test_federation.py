"""Parties that share users or items get one numbering of them, and keep all ratings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError, DataError
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from tests.federation.making import horizontal, on_disk, parties, ratings, vertical

Rows = list[tuple[Any, Any, float]]


def party(name: str, rows: Rows, **settings: Any) -> Party:
    users, items, values = zip(*rows, strict=True)
    return Party(name=name, ratings=Ratings.from_arrays(users, items, values, scale=Scale(1, 5)), **settings)


def rows(ratings: Ratings) -> set[tuple[Any, Any, float]]:
    users, items = ratings.user_ids[ratings.users].tolist(), ratings.item_ids[ratings.items].tolist()
    return set(zip(users, items, ratings.values.tolist(), strict=True))


NORTH: Rows = [("ann", "z", 5.0), ("bob", "b", 3.0)]
SOUTH: Rows = [("eve", "b", 1.0), ("eve", "a", 2.0), ("zoe", "z", 4.0)]


def test_items_get_one_numbering_whatever_their_order_and_whoever_misses_some() -> None:
    joined = Federation.horizontal([party("north", NORTH), party("south", SOUTH)])
    assert [each.ratings.item_ids.tolist() for each in joined.parties] == [["a", "b", "z"]] * 2
    assert [rows(each.ratings) for each in joined.parties] == [set(NORTH), set(SOUTH)]
    assert [each.ratings.user_ids.tolist() for each in joined.parties] == [["ann", "bob"], ["eve", "zoe"]]


def test_users_get_one_numbering_whatever_their_order_and_whoever_misses_some() -> None:
    north = party("north", [("zoe", 1, 5.0), ("ann", 2, 1.0)])
    south = party("south", [("ann", 1, 2.0), ("bob", 1, 3.0)])
    joined = Federation.vertical([north, south])
    assert [each.ratings.user_ids.tolist() for each in joined.parties] == [["ann", "bob", "zoe"]] * 2
    assert rows(joined.parties[0].ratings) == rows(north.ratings)
    assert rows(joined.parties[1].ratings) == rows(south.ratings)


@given(
    st.lists(
        st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.integers(1, 5), min_size=1),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["horizontal", "vertical"]),
    st.booleans(),
)
def test_no_rating_is_lost_or_made_by_joining(parts: list[dict[Any, int]], kind: str, as_text: bool) -> None:
    name: Any = (lambda number: f"id {number}") if as_text else int
    tables: list[Rows] = [[(name(u), name(i), float(r)) for (u, i), r in part.items()] for part in parts]
    side = 0 if kind == "vertical" else 1
    shared = [{row[side] for row in table} for table in tables]
    assume(len(tables) == 1 or len(set.union(*shared)) < sum(map(len, shared)))
    joined = getattr(Federation, kind)([party(f"p{k}", table) for k, table in enumerate(tables)])
    assert [rows(each.ratings) for each in joined.parties] == [set(table) for table in tables]
    pooled = joined.pooled()
    assert len(pooled) == sum(map(len, tables))
    assert sorted(pooled.values.tolist()) == sorted(value for table in tables for *_, value in table)
    assert joined.facts.rating_count == len(pooled)
    assert (joined.facts.user_count, joined.facts.item_count) == (pooled.user_count, pooled.item_count)


def test_pooled_ratings_are_those_of_the_parties_in_their_order() -> None:
    pooled = Federation.horizontal([party("north", NORTH), party("south", SOUTH)]).pooled()
    assert rows(pooled) == {*NORTH, *SOUTH}
    assert pooled.user_ids.tolist() == ["ann", "bob", "eve", "zoe"]


def test_equal_user_ids_at_two_parties_are_two_people() -> None:
    first = [("ann", "a", 5.0), ("bob", "a", 1.0)]
    second = [("ann", "a", 2.0)]
    joined = Federation.horizontal([party("north", first), party("south", second)])
    assert joined.user_ids.tolist() == ["north/ann", "north/bob", "south/ann"]
    assert rows(joined.pooled()) == {
        ("north/ann", "a", 5.0),
        ("north/bob", "a", 1.0),
        ("south/ann", "a", 2.0),
    }


def test_equal_item_ids_at_two_parties_are_two_items_in_a_vertical_federation() -> None:
    joined = Federation.vertical([party("north", [("ann", 1, 5.0)]), party("south", [("ann", 1, 2.0)])])
    assert joined.item_ids.tolist() == ["north/1", "south/1"]
    assert joined.facts.catalogue.tolist() == ["north/1", "south/1"]
    assert rows(joined.pooled()) == {("ann", "north/1", 5.0), ("ann", "south/1", 2.0)}


def test_numbers_and_texts_may_meet_where_ids_are_not_shared() -> None:
    joined = Federation.horizontal([party("north", [(1, "a", 5.0)]), party("south", [("1", "a", 2.0)])])
    assert joined.user_ids.tolist() == ["north/1", "south/1"]


def test_numbers_and_texts_cannot_be_aligned() -> None:
    with pytest.raises(DataError, match="south: item ids are text"):
        Federation.horizontal([party("north", [("ann", 1, 5.0)]), party("south", [("eve", "1", 2.0)])])


def test_facts_are_what_all_may_know() -> None:
    facts = vertical(3).facts
    assert facts.split == "vertical"
    assert facts.parties == ("north", "south", "west")
    assert (facts.users, facts.items, facts.ratings) == ((10, 10, 10), (5, 5, 5), (40, 40, 40))
    assert (facts.user_count, facts.item_count, facts.rating_count) == (10, 15, 120)
    assert facts.shared_ids.tolist() == list(range(10))
    assert facts.items_of("south") == slice(5, 10)
    wide = horizontal(3).facts
    assert (wide.user_count, wide.item_count) == (30, 5)
    assert wide.shared_ids.tolist() == list(range(5))
    assert wide.items_of("south") == slice(0, 5)


def test_split_keeps_the_numbering_and_every_rating() -> None:
    whole = horizontal(2)
    train, test = whole.split(0.25, seed=3)
    for before, kept, held in zip(whole.parties, train.parties, test.parties, strict=True):
        assert kept.ratings.item_ids.tolist() == held.ratings.item_ids.tolist() == [0, 1, 2, 3, 4]
        assert kept.ratings.user_ids.tolist() == before.ratings.user_ids.tolist()
        assert rows(kept.ratings) | rows(held.ratings) == rows(before.ratings)
        assert not rows(kept.ratings) & rows(held.ratings)
        assert len(held.ratings) > 0
    assert train.facts.ratings != whole.facts.ratings
    assert train.scale == whole.scale


def test_names_are_used_once() -> None:
    with pytest.raises(ConfigError, match="two parties are called 'north'"):
        Federation.horizontal([party("north", NORTH), party("north", SOUTH)])


@pytest.mark.parametrize("name", ["coordinator", "the sum of all answers"])
def test_names_with_a_meaning_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no party can be called"):
        Federation.horizontal([party(name, NORTH)])


def test_two_parties_cannot_share_a_file_and_its_ledger(tmp_path: Path) -> None:
    (first, _) = on_disk(tmp_path)
    again = Party.from_csv(tmp_path / "." / "north.csv", name="other")
    with pytest.raises(ConfigError, match="two parties have the same file"):
        Federation.horizontal([first, again])


@pytest.mark.parametrize("given", [[], ["north.csv"], [ratings(1)]], ids=["nobody", "path", "ratings"])
def test_federation_needs_parties(given: list[Any]) -> None:
    with pytest.raises(ConfigError, match="at least one Party"):
        Federation.horizontal(given)


def test_scale_is_the_widest_or_the_one_agreed_on() -> None:
    low, high = ratings(1), ratings(2)
    narrow = Party(name="a", ratings=Ratings.from_arrays([1, 1], [1, 2], [2.0, 4.0]))
    assert Federation.horizontal([narrow, Party(name="b", ratings=low)]).scale == Scale(1, 5)
    assert Federation.horizontal([narrow], scale=Scale(0, 10)).scale == Scale(0, 10)
    with pytest.raises(DataError, match="b rates from 1 to 5, beyond the agreed 2 to 4"):
        Federation.horizontal([narrow, Party(name="b", ratings=high)], scale=Scale(2, 4))


def test_features_are_given_for_each_partys_own_items() -> None:
    ids = np.arange(200)
    items = PublicItems.of_numbers(ids, np.column_stack([ids, 2 * ids]), source="a test")
    made = vertical(2).with_public_items(items)
    assert made.facts.features == 2
    assert made.facts.public_items is items
    assert all(np.array_equal(each.features[:, 0], each.ratings.item_ids) for each in made.parties)  # type: ignore[index]


def test_features_that_a_new_numbering_would_mix_up_are_refused() -> None:
    described = party("north", NORTH, features=np.zeros((2, 1), np.float32))
    with pytest.raises(DataError, match="when the catalogue is shared"):
        Federation.horizontal([described, party("south", SOUTH)])
    south = party("south", [("ann", "c", 2.0)])
    kept = Federation.vertical([described, south])
    assert kept.parties[0].features is not None


def test_features_of_different_width_are_refused() -> None:
    wide = [party("a", NORTH, features=np.zeros((2, 1), np.float32)), party("b", NORTH)]
    with pytest.raises(DataError, match="different numbers of item features"):
        _ = Federation.vertical(wide).facts


def test_every_user_is_a_party_of_her_own_on_devices() -> None:
    made = Federation.on_device(ratings(1))
    assert made.kind == "on-device"
    assert len(made.devices) == 10
    assert made.facts.users == (10,)
    assert made.simulated
    assert rows(made.pooled()) == rows(ratings(1))
    with pytest.raises(ConfigError, match=r"not simulated devices. Look at parties"):
        _ = horizontal().devices


def test_devices_of_their_own_have_one_user_each() -> None:
    phones = [
        party(name, [(name, "a", 4.0), (name, item, 2.0)]) for name, item in zip("xyz", "bdc", strict=True)
    ]
    made = Federation.on_device(phones, scale=Scale(1, 5))
    assert (made.kind, made.simulated, made.facts.cohort) == ("on-device", False, False)
    assert (made.facts.users, made.facts.summed, made.facts.user_count) == ((1, 1, 1), 3, 3)
    assert made.facts.catalogue.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ConfigError, match="not simulated devices"):
        _ = made.devices
    with pytest.raises(DataError, match="crowd has ratings of 2 users, and a device has those of one"):
        Federation.on_device([*phones, party("crowd", SOUTH)])


def test_cohort_is_summed_device_by_device() -> None:
    facts = Federation.on_device(ratings(1)).facts
    assert (facts.cohort, facts.summed, len(facts.parties)) == (True, 10, 1)
    assert (horizontal().facts.cohort, horizontal().facts.summed) == (False, 3)


def test_parties_are_found_by_name() -> None:
    assert horizontal().party("west").name == "west"
    with pytest.raises(ConfigError, match=r"no party 'east'. There are north, south, west"):
        horizontal().party("east")


def test_same_numbering_is_left_as_it_is() -> None:
    given = parties(2)
    joined = Federation.horizontal(given)
    assert all(one is other for one, other in zip(joined.parties, given, strict=True))


@pytest.mark.parametrize(
    ("kind", "words"),
    [("vertical", "no user in common.*horizontal"), ("horizontal", "no item in common.*vertical")],
)
def test_parties_with_nothing_in_common_are_refused(kind: str, words: str) -> None:
    apart = [party("north", [("ann", "a", 5.0)]), party("south", [("eve", "b", 1.0)])]
    with pytest.raises(DataError, match=words):
        getattr(Federation, kind)(apart)


def test_scales_that_can_hardly_be_the_same_are_refused() -> None:
    items = np.arange(5)
    small = Ratings.from_arrays(items, items, np.arange(1.0, 6.0))
    large = Ratings.from_arrays(items, items, np.arange(20.0, 120.0, 20.0))
    both = [Party(name="north", ratings=small), Party(name="south", ratings=large)]
    with pytest.raises(DataError, match="north 1 to 5, south 20 to 100"):
        Federation.horizontal(both)
    assert Federation.horizontal(both, scale=Scale(0, 100)).scale_stated


def test_the_same_data_at_two_parties_are_refused(tmp_path: Path) -> None:
    (first,) = on_disk(tmp_path, 1)
    assert first.file is not None
    copy = tmp_path / "copy.csv"
    copy.write_bytes(first.file.read_bytes())
    with pytest.raises(DataError, match="byte for byte"):
        Federation.horizontal([first, Party.from_csv(copy)])


def test_user_ids_at_two_parties_are_counted() -> None:
    assert Federation.horizontal([party("north", NORTH), party("south", NORTH + SOUTH)]).at_two_parties() == 2
    assert Federation.horizontal([party("north", NORTH), party("south", SOUTH)]).at_two_parties() == 0


def only_happened(name: str, rows: Rows) -> Party:
    whole = party(name, rows)
    return Party(name=name, ratings=whole.ratings.without_values())


@pytest.mark.parametrize("kind", ["horizontal", "vertical"])
def test_parties_whose_rows_only_tell_that_something_happened_need_no_scale(kind: str) -> None:
    rows = [(1, 1, 4.0), (2, 2, 5.0)], [(1, 2, 1.0), (2, 1, 2.0)]
    joined: Federation = getattr(Federation, kind)(
        [only_happened(f"p{k}", own) for k, own in enumerate(rows)]
    )
    assert joined.implicit
    assert joined.facts.implicit
    assert joined.scale == Scale(0, 1)
    assert joined.pooled().implicit
    assert len(joined.pooled()) == 4
    assert not horizontal(2).implicit
    assert not horizontal(2).facts.implicit


def test_devices_whose_rows_only_tell_that_something_happened() -> None:
    rows: Rows = [(1, 1, 4.0), (2, 2, 5.0), (2, 1, 1.0)]
    cohort = Federation.on_device(only_happened("all", rows).ratings)
    assert cohort.facts.implicit
    assert cohort.facts.cohort


def quiet(scale: Scale | None) -> Party:
    """A device whose user has rated nothing."""
    nothing = np.zeros(0, np.int64)
    ids = np.array(["a", "b", "c"])
    empty = Ratings.from_rows(
        nothing, nothing, np.zeros(0, np.float32), user_ids=np.array(["quiet"]), item_ids=ids, scale=scale
    )
    return Party(name="quiet", ratings=empty)


@pytest.mark.parametrize("scale", [None, Scale(1, 5)])
@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("stated", [None, Scale(0, 10)])
def test_device_without_ratings_changes_nothing_about_the_others(
    scale: Scale | None, at: int, stated: Scale | None
) -> None:
    rows: tuple[Rows, Rows] = ([("x", "a", 2.0), ("x", "b", 4.0)], [("y", "b", 1.0), ("y", "c", 5.0)])
    for make, implicit in ((party, False), (only_happened, True)):
        phones = [make(own[0][0], own) for own in rows]
        plain = Federation.on_device(phones, scale=stated)
        joined = Federation.on_device([*phones[:at], quiet(scale), *phones[at:]], scale=stated)
        assert joined.implicit is joined.facts.implicit is plain.implicit is implicit
        assert joined.scale == plain.scale
        assert joined.facts.catalogue.tolist() == plain.facts.catalogue.tolist()
        assert joined.facts.ratings == (50, 50, 50)


@pytest.mark.parametrize("scale", [None, Scale(1, 5)])
def test_device_without_ratings_is_not_named_where_others_do_not_fit(scale: Scale | None) -> None:
    mixed = [party("x", [("x", "a", 2.0)]), only_happened("y", [("y", "a", 1.0)])]
    with pytest.raises(DataError, match="y: its rows only tell"):
        Federation.on_device([quiet(scale), *mixed])
    stars = [("x", "a", 1.0), ("x", "b", 5.0)], [("y", "a", 20.0), ("y", "b", 100.0)]
    phones = [
        Party(name=users[0], ratings=Ratings.from_arrays(users, items, values))
        for users, items, values in (zip(*own, strict=True) for own in stars)
    ]
    with pytest.raises(DataError, match=r"different scales: x 1 to 5, y 20 to 100"):
        Federation.on_device([quiet(None), *phones])


def test_values_and_happenings_are_not_mixed() -> None:
    mixed = [party("north", [(1, 1, 4.0), (2, 2, 5.0)]), only_happened("south", [(1, 1, 4.0), (4, 2, 2.0)])]
    for kind in (Federation.horizontal, Federation.vertical):
        for both in (mixed, mixed[::-1]):
            with pytest.raises(DataError, match=r"south: its rows only tell.*ratings\.without_values\(\)"):
                kind(both)
