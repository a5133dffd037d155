import hmac
import secrets
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.crypto import psi
from cofactor.crypto.psi import (
    IntersectionClient,
    IntersectionServer,
    Kind,
    Rule,
    Terms,
    false_match,
    fresh_salt,
    normalised,
)
from cofactor.errors import ConfigError, DataError, ProtocolError

TERMS = Terms(salt=b"s" * 32)
Sides = tuple[IntersectionClient, IntersectionServer]


def met(client: list[str], server: list[str], terms: Terms = TERMS) -> tuple[list[int], Sides]:
    one, other = IntersectionClient(client, terms), IntersectionServer(server, terms)
    return one.common(other.setup(), other.answer(one.request())), (one, other)


def entries(message: bytes, size: int = 33) -> list[bytes]:
    body = message[44:-32]
    return [body[at : at + size] for at in range(0, len(body), size)]


# Finding


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 30), min_size=1, unique=True),
    st.lists(st.integers(0, 30), min_size=1, unique=True),
)
def test_both_sides_find_exactly_what_is_common(left: list[int], right: list[int]) -> None:
    client, server = [str(each) for each in left], [str(each) for each in right]
    rows, (one, other) = met(client, server)
    assert rows == [row for row, each in enumerate(client) if each in server]
    told = other.told(one.tell(rows))
    assert {server[row] for row in told} == {client[row] for row in rows}
    assert len(told) == len(rows)


@pytest.mark.parametrize(("clients", "servers"), [(1_000, 1), (1, 1_000), (1, 1), (500, 3)])
@pytest.mark.parametrize("shared", [False, True])
def test_sets_of_very_different_sizes_are_compared(clients: int, servers: int, shared: bool) -> None:
    client = [f"c{each}" for each in range(clients)]
    server = [f"s{each}" for each in range(servers)]
    server[-1] = client[-1] if shared else server[-1]
    assert met(client, server)[0] == ([clients - 1] if shared else [])


def test_a_server_may_be_told_of_fewer_than_were_found() -> None:
    rows, (one, other) = met(["a", "b", "c"], ["c", "b", "z"])
    assert rows == [1, 2]
    assert other.told(one.tell([2])) == [0]
    assert other.told(one.tell([])) == []


def test_a_false_match_of_millions_is_less_likely_than_anything_that_happens() -> None:
    assert false_match(100_000, 100_000) < 1e-66
    assert false_match(10**9, 10**9) < 1e-58


# What messages show


def test_no_message_holds_an_id_or_the_salt_or_what_follows_from_the_id_alone() -> None:
    ids = ["ann@example.org", "bob@example.org"]
    terms = Terms(salt=fresh_salt())
    one, other = IntersectionClient(ids, terms), IntersectionServer(ids, terms)
    request = one.request()
    messages = other.setup() + request + other.answer(request) + one.tell([0, 1])
    for each in ids:
        assert each.encode() not in messages
        assert sha256(each.encode()).digest() not in messages
        assert hmac.digest(b"", each.encode(), sha256) not in messages
    assert terms.salt not in messages
    assert terms.salt.hex() not in repr(terms)


def test_points_of_the_same_ids_differ_each_time() -> None:
    ids = ["a", "b", "c"]
    first, second = (IntersectionClient(ids, TERMS).request() for _ in range(2))
    assert not set(entries(first)) & set(entries(second))


def test_points_come_in_an_order_that_no_side_can_reckon(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of 30 ids the order of rows, or that of tokens, comes by chance once in 10^32 times.
    given: list[list[str]] = []

    class Recording:
        def CreateRequest(self, texts: list[str]) -> Any:
            given.append(texts)
            return psi._library().Request()

    ids = [str(each) for each in range(30)]
    for _ in range(2):
        client = IntersectionClient(ids, TERMS)
        monkeypatch.setattr(client, "_key", Recording())
        client.request()
    tokens = [token.hex() for token in TERMS.tokens(ids)]
    assert all(sorted(texts) == sorted(tokens) for texts in given)
    assert all(texts not in (tokens, sorted(tokens)) for texts in given)
    assert given[0] != given[1]


def test_points_of_a_setup_are_sorted_so_that_they_tell_no_order_of_ids() -> None:
    found = entries(IntersectionServer([str(each) for each in range(30)], TERMS).setup())
    assert found == sorted(found)
    assert len(set(found)) == 30


def test_what_is_told_is_sorted_by_tokens() -> None:
    ids = [str(each) for each in range(20)]
    told = entries(IntersectionClient(ids, TERMS).tell(range(20)), 32)
    assert told == sorted(TERMS.tokens(ids))


def test_sizes_of_messages_follow_from_numbers_of_ids() -> None:
    _, (one, other) = met(["a", "b"], ["b", "c", "d"])
    assert len(other.setup()) == 44 + 3 * 33 + 32
    assert len(one.request()) == 44 + 2 * 33 + 32
    assert len(one.tell([1])) == 44 + 32 + 32


# Two sides that differ


@pytest.mark.parametrize(
    ("other", "match"),
    [
        (Terms(salt=b"t" * 32), "different salts.*agree on one"),
        (replace(TERMS, rule="folded"), "rule folded, and here exact"),
        (replace(TERMS, form="numbers"), "ids are numbers, and here text"),
        (TERMS.between("north", "south"), "different salts"),
    ],
)
def test_sides_with_other_terms_are_told_so_and_find_not_merely_nothing(other: Terms, match: str) -> None:
    client, server = IntersectionClient(["a"], TERMS), IntersectionServer(["a"], other)
    with pytest.raises(ProtocolError, match=match):
        client.common(server.setup(), b"")
    with pytest.raises(ProtocolError):
        server.answer(client.request())


def test_each_pair_of_parties_has_a_salt_of_its_own() -> None:
    made = {TERMS.between(*pair).salt for pair in (("a", "bc"), ("ab", "c"), ("c", "ab"), ("a", "c"))}
    assert len(made | {TERMS.salt}) == 5
    assert TERMS.between("a", "c") == TERMS.between("a", "c")


def test_another_version_is_named() -> None:
    message = bytearray(IntersectionClient(["a"], TERMS).request())
    message[4] = 9
    with pytest.raises(ProtocolError, match="version 9 of the search, and this one 1"):
        IntersectionServer(["a"], TERMS).answer(bytes(message))


@pytest.mark.parametrize("salt", [b"", b"short", "s" * 32, b"s" * 33])
def test_a_salt_that_could_be_guessed_is_refused(salt: Any) -> None:
    with pytest.raises(ConfigError, match="32 secret bytes"):
        Terms(salt=salt)


def test_salts_are_drawn_afresh() -> None:
    assert len({fresh_salt() for _ in range(5)}) == 5


# Hostile and damaged messages


@settings(max_examples=60)
@given(st.binary(max_size=300))
def test_whatever_bytes_arrive_only_a_protocol_error_leaves(noise: bytes) -> None:
    client, server = IntersectionClient(["a"], TERMS), IntersectionServer(["a"], TERMS)
    calls: list[Callable[[], object]] = [
        lambda: server.answer(noise),
        lambda: server.told(noise),
        lambda: client.common(noise, noise),
        lambda: client.common(server.setup(), noise),
    ]
    for call in calls:
        with pytest.raises(ProtocolError):
            call()


@given(st.integers(0, 2000), st.integers(1, 255))
def test_whoever_carries_messages_cannot_change_a_byte(at: int, change: int) -> None:
    client, server = IntersectionClient(["a", "b"], TERMS), IntersectionServer(["a"], TERMS)
    message = bytearray(client.request())
    message[at % len(message)] ^= change
    with pytest.raises(ProtocolError):
        server.answer(bytes(message))


@pytest.mark.parametrize("cut", [1, 32, 33, 76, 109])
def test_a_message_that_was_cut_off_is_refused(cut: int) -> None:
    client, server = IntersectionClient(["a", "b"], TERMS), IntersectionServer(["a"], TERMS)
    with pytest.raises(ProtocolError):
        server.answer(client.request()[:-cut])


@pytest.mark.parametrize("point", [bytes(33), b"\x02" + b"\xff" * 32, b"\x05" + bytes(32), b"\x04" * 33])
def test_something_that_is_no_point_is_refused_by_both_sides(point: bytes) -> None:
    client, server = IntersectionClient(["a"], TERMS), IntersectionServer(["a"], TERMS)
    with pytest.raises(ProtocolError, match="no point"):
        server.answer(TERMS.packed(Kind.REQUEST, [point]))
    with pytest.raises(ProtocolError, match="no point"):
        client.common(server.setup(), TERMS.packed(Kind.ANSWER, [point]))


def test_a_message_of_another_kind_or_with_other_entries_is_refused() -> None:
    server = IntersectionServer(["a"], TERMS)
    with pytest.raises(ProtocolError, match="REQUEST was expected"):
        server.answer(server.setup())
    with pytest.raises(ProtocolError, match="REQUEST was expected"):
        server.answer(TERMS.packed(Kind.REQUEST, [b"short"]))


def test_a_second_request_is_not_answered() -> None:
    _, (one, other) = met(["a"], ["a", "b"])
    with pytest.raises(ProtocolError, match="asked twice"):
        other.answer(one.request())


@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_an_answer_about_more_or_fewer_ids_is_refused(count: int) -> None:
    client, server = IntersectionClient(["a", "b"], TERMS), IntersectionServer(["a"], TERMS)
    points = entries(server.answer(client.request()))
    with pytest.raises(ProtocolError, match="more or fewer"):
        client.common(server.setup(), TERMS.packed(Kind.ANSWER, (points * 2)[:count]))


@pytest.mark.parametrize("named", [["z"], ["a", "a"], ["a", "z"]])
def test_a_client_cannot_name_ids_that_the_server_has_not_or_twice(named: list[str]) -> None:
    server = IntersectionServer(["a", "b"], TERMS)
    with pytest.raises(ProtocolError, match="has not, or twice"):
        server.told(TERMS.packed(Kind.COMMON, TERMS.tokens(named)))


# Ids


@pytest.mark.parametrize(
    ("rule", "one", "other", "same"),
    [
        ("exact", " ann\t", "ann", True),
        ("exact", "Zoë", "Zoe\u0308", True),
        ("exact", "Ann", "ann", False),
        ("exact", "a nn", "ann", False),
        ("exact", "007", "7", False),
        ("folded", "Ann@Example.ORG ", "ann@example.org", True),
        ("folded", "STRASSE", "straße", True),
        ("folded", "ZOË", "zoe\u0308", True),
        ("folded", "\u1fb3", "\u0391\u0399", True),
        ("folded", "\u1fb3\u0323", "\u0391\u0323\u0399", True),
        ("folded", "ann", "bob", False),
    ],
)
def test_rules_say_which_ids_are_the_same(rule: Rule, one: str, other: str, same: bool) -> None:
    assert (normalised([one], rule) == normalised([other], rule)) == same


@pytest.mark.parametrize("rule", psi.RULES)
@given(text=st.text(min_size=1))
def test_what_a_rule_wrote_it_leaves_as_it_is(rule: Rule, text: str) -> None:
    try:
        once = normalised([text], rule)
    except DataError:
        return
    assert normalised(once, rule) == once


def test_numbers_are_written_as_they_are_said() -> None:
    assert normalised([7, -3, 2**70]) == ["7", "-3", str(2**70)]


@pytest.mark.parametrize("empty", ["", "  ", "\t\n", "\u2003"])
def test_an_id_that_becomes_empty_is_refused_by_its_place(empty: str) -> None:
    with pytest.raises(DataError, match=r"^north: entry 3 is an empty id by the rule 'exact'"):
        normalised(["a", "b", empty], "exact", "north")


def test_ids_that_become_the_same_are_refused_by_their_places_and_not_shown() -> None:
    with pytest.raises(DataError, match=r"^north: 2 of 5 ids repeat .* entries 2 and 4\. ") as caught:
        normalised(["zoe", "secret", "bob", "SECRET ", "BOB"], "folded", "north")
    assert "secret" not in str(caught.value).lower()
    assert normalised(["secret", "SECRET"]) == ["secret", "SECRET"]


@pytest.mark.parametrize("bad", [1.5, True, None, b"ann"])
def test_what_is_no_id_is_refused(bad: Any) -> None:
    with pytest.raises(DataError, match="entry 1 is no id"):
        normalised([bad])


def test_half_a_character_is_refused() -> None:
    with pytest.raises(DataError, match=r"entry 2.*half a character"):
        normalised(["a", "\ud800"])


def test_unknown_rules_are_refused() -> None:
    wrong: Any = "fold"
    with pytest.raises(ConfigError, match=r'rule must be one of.*Did you mean "folded"'):
        normalised(["a"], wrong)
    with pytest.raises(ConfigError, match="rule must be one of"):
        Terms(salt=b"s" * 32, rule=wrong)


@pytest.mark.parametrize("side", [IntersectionClient, IntersectionServer])
def test_no_side_takes_nothing_or_the_same_twice(side: Any) -> None:
    with pytest.raises(DataError, match="no ids"):
        side([], TERMS)
    with pytest.raises(DataError, match="twice"):
        side(["a", "b", "a"], TERMS)


@pytest.mark.parametrize("side", [IntersectionClient, IntersectionServer])
def test_without_the_package_the_line_that_installs_it_is_named(
    side: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "private_set_intersection.python", None)
    assert normalised([" a"]) == ["a"]
    with pytest.raises(ConfigError, match=r"pip install 'cofactor\[psi\]'"):
        side(["a"], TERMS)


# Why points and no filters


def test_a_filter_with_all_bits_set_would_make_every_id_look_common() -> None:
    library = psi._library()
    client, server = library.client.CreateWithNewKey(True), library.server.CreateWithNewKey(True)
    answer = server.ProcessRequest(client.CreateRequest(["a", "b", "c"]))
    setup = library.ServerSetup()
    setup.bloom_filter.num_hash_functions = 1
    setup.bloom_filter.bits = b"\xff" * 8
    assert sorted(client.GetIntersection(setup, answer)) == [0, 1, 2]


Structure = Literal["RAW", "GCS"]


@pytest.mark.parametrize(("structure", "wrong"), [("RAW", False), ("GCS", True)])
def test_a_loose_filter_matches_by_chance_and_whole_points_do_not(structure: Structure, wrong: bool) -> None:
    # Each of 40 searches among 20 x 20 ids has a false match with a chance of 0.6: none with 1e-16.
    library, found = psi._library(), 0
    kind = library.DataStructure[structure]
    for _ in range(40):
        client, server = library.client.CreateWithNewKey(True), library.server.CreateWithNewKey(True)
        held, asked = ([secrets.token_hex(8) for _ in range(20)] for _ in range(2))
        setup = server.CreateSetupMessage(0.6, 20, held, kind)
        found += len(client.GetIntersection(setup, server.ProcessRequest(client.CreateRequest(asked))))
    assert (found > 0) == wrong
