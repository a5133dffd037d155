"""Users in common: who is found, in which order, what is told to whom, and what is said about it."""

import json
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.config import as_table, from_table
from cofactor.crypto import psi
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError, DataError
from cofactor.federation import finding
from cofactor.federation.federation import Federation
from cofactor.federation.finding import Alignment, Among, Common, How, find_common
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.verify import verify
from cofactor.privacy.budget import Budget
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF
from tests.federation.making import RatingSums, vertical

WAYS: list[tuple[How, Among]] = [("psi", "leader"), ("psi", "chain"), ("ids", "leader")]
THREE = {
    "bank": ["ann", "bob", "cem", "dan", "eva"],
    "shop": ["eva", "zoe", "cem", "ann"],
    "tele": ["bob", "eva", "yan", "ann", "dan"],
}


# Finding


@pytest.mark.parametrize(("how", "among"), WAYS)
def test_rows_of_all_parties_name_the_same_users_in_sorted_order(how: How, among: Among) -> None:
    found = find_common(THREE, how=how, among=among)
    assert found.ids.tolist() == ["ann", "eva"]
    for name, own in THREE.items():
        assert [own[row] for row in found.rows[name]] == ["ann", "eva"]
    assert len(found) == found.alignment.common == 2


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.integers(-5, 20), min_size=1, unique=True), min_size=2, max_size=4),
    st.sampled_from(WAYS),
)
def test_all_ways_find_the_plain_intersection(lists: list[list[int]], way: tuple[How, Among]) -> None:
    ids = {f"party {at}": own for at, own in enumerate(lists)}
    common = sorted(set.intersection(*map(set, lists)))
    if not common:
        with pytest.raises(DataError, match="no user in common"):
            find_common(ids, how=way[0], among=way[1])
        return
    found = find_common(ids, how=way[0], among=way[1])
    assert found.ids.tolist() == common
    assert found.ids.dtype == np.int64
    for name, own in ids.items():
        assert [own[row] for row in found.rows[name]] == common


def test_the_order_is_the_same_however_parties_keep_their_users() -> None:
    turned = {name: own[::-1] for name, own in reversed(THREE.items())}
    assert find_common(turned).ids.tolist() == find_common(THREE).ids.tolist()


def test_numbers_are_sorted_as_numbers() -> None:
    assert find_common({"a": [10, 9, 100], "b": [100, 10, 9]}).ids.tolist() == [9, 10, 100]


@pytest.mark.parametrize("how", get_args(How))
def test_ids_are_compared_by_the_rule(how: How) -> None:
    ids = {"a": ["Ann ", "BOB"], "b": ["bob", "ann"]}
    assert find_common(ids, how=how, rule="folded").ids.tolist() == ["ann", "bob"]
    with pytest.raises(DataError, match=r'rule "exact": upper and lower case \(rule="folded"'):
        find_common(ids, how=how)


def test_each_search_and_each_pair_in_it_has_a_salt_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    salts: list[bytes] = []
    draw, setup = psi.fresh_salt, psi.IntersectionServer.setup

    def drawing() -> bytes:
        salts.append(draw())
        return salts[-1]

    def setting_up(self: psi.IntersectionServer) -> bytes:
        salts.append(self._terms.salt)
        return setup(self)

    monkeypatch.setattr(finding, "fresh_salt", drawing)
    monkeypatch.setattr(psi.IntersectionServer, "setup", setting_up)
    find_common(THREE)
    find_common(THREE, among="chain")
    assert len(salts) == len(set(salts)) == 6


# Mistakes


def wrong(ids: Any, match: str, kind: type[Exception] = DataError, **settings: Any) -> None:
    with pytest.raises(kind, match=match):
        find_common(ids, **settings)


@pytest.mark.parametrize("how", get_args(How))
def test_common_mistakes_are_explained(how: How) -> None:
    wrong({"a": ["1"]}, "two parties or more", ConfigError, how=how)
    wrong(["a", "b"], "two parties or more", ConfigError, how=how)
    wrong({"a": ["1"], "b": []}, "^b has no users", how=how)
    wrong({"a": ["1"], "b": [1]}, "^a: user ids are text, and other parties' are numbers", how=how)
    wrong({"a": ["x"], "b": ["1", "2", " 1"]}, r"^b: 1 of 3 ids repeat .*entries 1 and 3", how=how)
    wrong({"a": ["x"], "b": ["1", " "]}, "^b: entry 2 is an empty id", how=how)
    wrong({"a": [1], "b": [1.5]}, "^b: ids must be a list of whole numbers", how=how)
    wrong({"a": [1], "b": "ann"}, "^b: ids must be a list of whole numbers", how=how)
    wrong({"a": ["1"], "b": ["2"]}, "a and b have no user in common", how=how)


def test_unknown_words_are_refused() -> None:
    ids = {"a": [1], "b": [1]}
    wrong(ids, "how must be one of psi, ids", ConfigError, how="plain")
    wrong(ids, "among must be one of leader, chain", ConfigError, among="ring")
    wrong(ids, "rule must be one of exact, folded", ConfigError, rule="lower")


def test_no_error_shows_an_id_of_anybody() -> None:
    for how, among in WAYS:
        for second in (["zoe", "zoe"], ["zoe", ""], ["zoe"], [7], [2**63 + 5], "zoe"):
            with pytest.raises(DataError) as caught:
                find_common({"a": ["secret"], "b": second}, how=how, among=among)
            assert "zoe" not in str(caught.value)
            assert str(2**63 + 5) not in str(caught.value)
            assert "secret" not in str(caught.value)


def test_plain_ids_need_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "private_set_intersection.python", None)
    assert find_common(THREE, how="ids").ids.tolist() == ["ann", "eva"]
    wrong(THREE, r"pip install 'cofactor\[psi\]'", ConfigError)


# What is told to whom


@pytest.mark.parametrize("among", get_args(Among))
def test_servers_are_told_only_who_is_common_to_all(monkeypatch: pytest.MonkeyPatch, among: Among) -> None:
    told, real = [], psi.IntersectionServer.told

    def listening(self: psi.IntersectionServer, message: bytes) -> list[int]:
        told.append(len(real(self, message)))
        return real(self, message)

    monkeypatch.setattr(psi.IntersectionServer, "told", listening)
    found = find_common(THREE, among=among).alignment
    assert max(each.common for each in found.meetings) > 2
    assert told == [2, 2]


def test_a_leader_learns_of_each_other_party_and_they_learn_its_size() -> None:
    found = find_common(THREE).alignment
    assert [(m.client, m.server, m.client_users, m.server_users, m.common) for m in found.meetings] == [
        ("bank", "shop", 5, 4, 3),
        ("bank", "tele", 5, 5, 4),
    ]
    told = " ".join(found.sentences())
    assert "Which of its 5 users shop has, too: bank learned it (3 users" in told
    assert "Which of its 5 users tele has, too: bank learned it (4 users" in told
    assert "tele learned how many users bank has." in told
    assert "shop learned it" not in told


def test_in_a_chain_each_learns_what_is_left_so_far() -> None:
    found = find_common(THREE, among="chain").alignment
    assert [(m.client, m.server, m.client_users, m.server_users, m.common) for m in found.meetings] == [
        ("shop", "bank", 4, 5, 3),
        ("tele", "shop", 5, 3, 2),
    ]
    told = " ".join(found.sentences())
    assert "Which of its 4 users bank has, too: shop learned it (3 users" in told
    assert "Which of its 5 users bank and shop have, too: tele learned it (2 users" in told
    assert "tele, that 3 users are common to bank and shop." in told


@pytest.mark.parametrize("among", get_args(Among))
def test_sentences_have_what_a_privacy_officer_asks(among: Among) -> None:
    found = find_common(THREE, among=among).alignment
    told = " ".join(found.sentences())
    assert "told each of bank, shop and tele which 2 users these are" in told
    assert "not differentially private" in told
    assert "bank 5, shop 4, tele 5" in told
    assert f"({found.traffic:,} bytes)" in told
    assert "made-up ids" in told
    assert 'the rule "exact"' in told


def test_two_parties_have_no_leak_beside_the_common_and_the_sizes() -> None:
    told = find_common({"a": [1, 2, 3], "b": [2, 3, 4, 5]}).alignment.sentences()
    assert len(told) == 4
    assert not any("learned it" in each for each in told)


def test_shown_ids_are_called_that() -> None:
    (told,) = find_common(THREE, how="ids").alignment.sentences()
    assert "All parties showed each other all their ids; 2 users are common." in told


def test_all_bytes_are_counted() -> None:
    found = find_common({"a": [1, 2, 3], "b": [2, 3, 4, 5]}).alignment
    frame = 44 + 32
    assert found.traffic == 4 * frame + 33 * (4 + 3 + 3) + 32 * 2


@pytest.mark.parametrize(("how", "among"), WAYS)
def test_an_alignment_survives_its_way_through_json(how: How, among: Among) -> None:
    found = find_common(THREE, how=how, among=among).alignment
    assert from_table(Alignment, json.loads(json.dumps(as_table(found))), "alignment") == found


def test_what_is_found_shows_nobody_when_printed() -> None:
    found: Common = find_common(THREE)
    assert "ann" not in repr(found)
    assert found.alignment.left_out == {"bank": 3, "shop": 2, "tele": 3}


# Federations


def party(name: str, *rows: tuple[Any, int, float], **more: Any) -> Party:
    users, items, values = zip(*rows, strict=True)
    return Party(name=name, ratings=Ratings.from_arrays(users, items, values, scale=Scale(1, 5)), **more)


def two() -> list[Party]:
    north = party("north", ("Bob", 1, 1.0), ("ann", 2, 2.0), ("cem", 1, 3.0), ("ann", 3, 4.0))
    south = party("south", ("bob", 7, 5.0), ("zoe", 8, 2.0), ("ANN", 7, 3.0))
    return [north, south]


def test_psi_keeps_ratings_of_common_users_and_no_others() -> None:
    made = Federation.vertical(two(), align="psi", rule="folded")
    assert made.user_ids.tolist() == ["ann", "bob"]
    rated = {
        each.name: sorted(
            zip(
                each.ratings.user_ids[each.ratings.users].tolist(),
                each.ratings.item_ids[each.ratings.items].tolist(),
                each.ratings.values.tolist(),
                strict=True,
            )
        )
        for each in made.parties
    }
    assert rated == {
        "north": [("ann", 2, 2.0), ("ann", 3, 4.0), ("bob", 1, 1.0)],
        "south": [("ann", 7, 3.0), ("bob", 7, 5.0)],
    }
    assert [each.ratings.item_ids.tolist() for each in made.parties] == [[1, 2, 3], [7, 8]]
    assert made.alignment is not None
    assert made.alignment.users == (3, 3)


def test_a_union_keeps_all_and_has_no_alignment() -> None:
    north, _ = two()
    made = Federation.vertical([north, party("south", ("Bob", 7, 5.0), ("zoe", 8, 2.0))])
    assert made.alignment is None
    assert made.user_ids.tolist() == ["Bob", "ann", "cem", "zoe"]
    assert made.facts.rating_count == 6


def test_what_belongs_to_users_follows_them() -> None:
    north, south = two()
    weights = np.array([0.2, 0.4, 0.6])
    attributes = np.array([[2.0], [4.0], [6.0]], np.float32)
    north = Party(name="north", ratings=north.ratings, weights=weights, attributes=attributes)
    made = Federation.vertical([north, south], align="psi", rule="folded").parties[0]
    assert north.ratings.user_ids.tolist() == ["Bob", "ann", "cem"]
    assert made.weights is not None
    assert made.attributes is not None
    assert made.weights.tolist() == [0.4, 0.2]
    assert made.attributes.tolist() == [[4.0], [2.0]]


def test_a_split_keeps_the_alignment() -> None:
    made = Federation.vertical(vertical(3).parties, align="psi", among="chain")
    for part in made.split(0.2, seed=1):
        assert part.alignment == made.alignment


def test_psi_finds_the_same_federation_each_time() -> None:
    first, second = (Federation.vertical(two(), align="psi", rule="folded") for _ in range(2))
    assert first.alignment == second.alignment
    for one, other in zip(first.parties, second.parties, strict=True):
        assert np.array_equal(one.ratings.users, other.ratings.users)
        assert np.array_equal(one.ratings.values, other.ratings.values)


def test_mistakes_of_federations_are_explained_with_psi_too() -> None:
    north, south = two()
    unknown: Any = "both"
    with pytest.raises(ConfigError, match="align must be one of union, psi"):
        Federation.vertical(two(), align=unknown)
    with pytest.raises(ConfigError, match="two parties are called 'north'"):
        Federation.vertical([north, north], align="psi")
    with pytest.raises(ConfigError, match="two parties or more"):
        Federation.vertical([north], align="psi")
    with pytest.raises(DataError, match=r'no user in common.*"folded"'):
        Federation.vertical([north, south], align="psi")


# Runs


def test_a_guarantee_says_what_the_search_told(tmp_path: Path) -> None:
    made = Federation.vertical(vertical(3).parties, align="psi")
    assert made.alignment is not None
    budget = Budget(epsilon=8, delta=1e-6, unit="rating")
    run = train(RatingSums(), made, budget=budget)
    assert set(made.alignment.sentences()) < set(run.guarantee.does_not_cover)
    folder = run.save(tmp_path / "run")
    assert verify(folder).holds
    loaded = Run.load(folder)
    assert loaded.together is not None
    assert loaded.together.alignment == made.alignment


def test_a_folder_from_before_there_was_any_search_is_read(tmp_path: Path) -> None:
    run = train(RatingSums(), vertical(2), budget=None)
    folder = run.save(tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text())
    assert facts["together"].pop("alignment") is None
    (folder / "run.json").write_text(json.dumps(facts))
    loaded = Run.load(folder).together
    assert loaded is not None
    assert loaded.alignment is None


def test_a_search_changes_no_charge() -> None:
    budget = Budget(epsilon=8, delta=1e-6, unit="rating")
    recipe = VerticalMF(factors=2, rounds=2)
    plain = vertical(2)
    runs = [
        train(recipe, each, budget=budget)
        for each in (plain, Federation.vertical(plain.parties, align="psi"))
    ]
    # Noise is divided a little otherwise, since it is users' means that are added up.
    assert runs[0].guarantee.epsilon == pytest.approx(runs[1].guarantee.epsilon, rel=1e-3)
    assert runs[0].guarantee.releases == runs[1].guarantee.releases
