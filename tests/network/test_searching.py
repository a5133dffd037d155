"""Users in common over relayed letters: the same as in one process, and nothing for whoever carries them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.crypto.keys import Identity, KeyPair
from cofactor.errors import ConfigError, DataError, ProtocolError, RunError
from cofactor.federation.finding import Alignment, Among, find_common
from cofactor.federation.messages import Letter, Message
from cofactor.network.posts import Post
from cofactor.network.searching import Searching, SearchPost, SearchReport, relay_search

THREE: dict[str, Any] = {
    "bank": ["ann.albers", "bob.bauer", "cem.celik", "dan.duval", "eva.evers"],
    "shop": ["eva.evers", "zoe.zander", "cem.celik", "ann.albers"],
    "tele": ["bob.bauer", "eva.evers", "yan.young", "ann.albers", "dan.duval"],
}
TWO: dict[str, Any] = {"a": [100_001, 100_002, 100_003], "b": [100_003, 100_002, 100_009, 100_010]}
AMONG: tuple[Among, ...] = get_args(Among)


@dataclass
class Table:
    """Parties, and a coordinator that carries letters, keeps them, and may change what it asks."""

    ids: Mapping[str, Any]
    among: Among = "leader"
    rule: Any = "exact"
    session: str = "s"
    tamper: Callable[[str, Post], Post] | None = None
    answer: Callable[[str, Post], Message] | None = None
    carried: list[bytes] = field(default_factory=list)
    parties: dict[str, Searching] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.identities = {name: Identity.generate() for name in self.ids}
        self.roster = {name: identity.public for name, identity in self.identities.items()}
        self.parties = {name: self.party(name) for name in self.ids}

    def party(self, name: str, **settings: Any) -> Searching:
        given = {"session": self.session, "among": self.among, "rule": self.rule} | settings
        return Searching(
            self.ids[name], party=name, roster=self.roster, identity=self.identities[name], **given
        )

    def ask_all(self, questions: dict[str, Message]) -> Mapping[str, Message]:
        return {name: self.ask(name, question) for name, question in questions.items()}

    def ask(self, name: str, question: Message) -> Message:
        assert isinstance(question, Post)
        if self.tamper is not None:
            question = self.tamper(name, question)
        answer = self.parties[name].take(self.carry("coordinator", question))
        return self.carry(name, answer) if self.answer is None else self.answer(name, answer)

    def carry(self, sender: str, body: Message) -> Message:
        self.carried.append(Letter(session=self.session, round=0, sender=sender, body=body).to_bytes())
        return Letter.from_bytes(self.carried[-1], [SearchPost, SearchReport]).body

    def search(self) -> Alignment:
        return relay_search(
            roster=self.roster, session=self.session, ask_all=self.ask_all, among=self.among, rule=self.rule
        )


def check_same(table: Table) -> None:
    """Compare what a search over letters found with what one in a single process finds."""
    alignment = table.search()
    expected = find_common(table.ids, among=table.among, rule=table.rule)
    assert alignment == expected.alignment
    for name, party in table.parties.items():
        found = party.result
        assert found is not None
        assert found.alignment == alignment
        assert set(found.rows) == {name}
        assert found.ids.dtype == expected.ids.dtype
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.rows[name], expected.rows[name])


@pytest.mark.parametrize("ids", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("among", AMONG)
def test_the_same_users_are_found_as_in_one_process(ids: dict[str, Any], among: Among) -> None:
    check_same(Table(ids, among))


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(st.integers(-5, 12), min_size=1, unique=True), min_size=2, max_size=5),
    st.sampled_from(AMONG),
)
def test_any_parties_find_what_they_find_in_one_process(lists: list[list[int]], among: Among) -> None:
    table = Table({f"party {at}": own for at, own in enumerate(lists)}, among)
    if set.intersection(*map(set, lists)):
        check_same(table)
        return
    with pytest.raises(DataError, match="no user in common"):
        table.search()
    assert all(party.result is None for party in table.parties.values())


def test_ids_are_compared_by_the_rule() -> None:
    check_same(Table({"a": ["Ann ", "BOB"], "b": ["bob", "ann", "eve"]}, rule="folded"))


@pytest.mark.parametrize("among", AMONG)
def test_no_id_is_in_any_byte_that_is_carried(among: Among) -> None:
    table = Table(THREE, among)
    table.search()
    carried = b"".join(table.carried)
    assert len(carried) > 3000
    for each in {each for own in THREE.values() for each in own}:
        for name in (each, each.split(".")[0], each.split(".")[1]):
            assert name.encode() not in carried
            assert name.encode("utf-16-le") not in carried


def test_the_salt_of_two_parties_is_known_to_no_third_one() -> None:
    table = Table(THREE)
    table.search()
    of_pair = [table.parties[name]._terms("bank", "shop").salt for name in ("bank", "shop")]
    assert of_pair[0] == of_pair[1]
    other = table.parties["tele"]
    salts = {other._terms(one, two).salt for one in THREE for two in THREE if "tele" in (one, two)}
    assert len(salts) == 5
    assert of_pair[0] not in salts
    assert of_pair[0] not in b"".join(table.carried)


def test_the_salt_of_two_parties_takes_a_secret_of_one_of_them() -> None:
    table = Table(THREE)
    table.search()
    bank = table.parties["bank"]
    known = bank._terms("bank", "shop").salt
    bank._pair = KeyPair.fresh()
    assert bank._terms("bank", "shop").salt != known


def test_two_searches_of_the_same_parties_have_nothing_in_common() -> None:
    table, salts = Table(TWO), set()
    for _ in range(2):
        table.parties = {name: table.party(name) for name in TWO}
        table.search()
        salts.add(table.parties["a"]._terms("a", "b").salt)
    assert len(salts) == 2


# A coordinator that does more than carry


def changed(step: int, change: Callable[[bytes], bytes], kind: type[Post] = SearchPost) -> Any:
    def tamper(_: str, post: Post) -> Post:
        if post.step != step or not isinstance(post, kind):
            return post
        return type(post).of(step, [(name, change(data)) for name, data in post.entries()])

    return tamper


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize("among", AMONG)
@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_whatever_was_changed_on_its_way_is_refused(among: Among, step: int) -> None:
    table = Table(THREE, among, tamper=changed(step, flipped))
    with pytest.raises(ProtocolError, match=r"its note is not signed|is refused. A message was changed"):
        table.search()
    assert all(party.result is None for party in table.parties.values())


def test_reports_that_were_changed_are_refused() -> None:
    table = Table(THREE, tamper=changed(1, flipped, SearchReport))
    with pytest.raises(ProtocolError, match="bank: its note is not signed"):
        table.search()


def test_messages_of_one_party_do_not_pass_for_those_of_another() -> None:
    def tamper(_: str, post: Post) -> Post:
        if post.step < 2 or isinstance(post, SearchReport):
            return post
        swap = {"shop": "tele", "tele": "shop"}
        return type(post).of(post.step, [(swap.get(name, name), data) for name, data in post.entries()])

    with pytest.raises(ProtocolError, match=r"What (shop|tele) sent bank is refused. .*different salts"):
        Table(THREE, tamper=tamper).search()


def test_a_message_that_comes_again_is_refused() -> None:
    def tamper(_: str, post: Post) -> Post:
        if post.step < 2 or isinstance(post, SearchReport):
            return post
        return type(post).of(post.step, [entry for entry in post.entries() for _ in range(3)])

    with pytest.raises(ProtocolError):
        Table(TWO, tamper=tamper).search()


def test_a_server_answers_one_request_only() -> None:
    table = Table(TWO)
    server, client = table.parties["b"], table.parties["a"]
    hellos = [each for party in (client, server) for each in party.take(SearchPost.of(0, [])).entries()]
    ((_, request),) = client.take(SearchPost.of(1, hellos)).entries()
    server.take(SearchPost.of(1, hellos))
    first = server.take(SearchPost.of(2, [("a", request)]))
    assert server.take(SearchPost.of(2, [("a", request)])) is first
    with pytest.raises(ProtocolError, match="What a sent b is refused"):
        server.take(SearchPost.of(3, [("a", request)]))
    with pytest.raises(ProtocolError, match="Begin a new session"):
        server.take(SearchPost.of(4, [("a", request)]))


def test_mail_of_somebody_who_has_nothing_to_say_is_refused() -> None:
    table = Table(THREE)
    table.search()
    shop = table.parties["shop"]
    with pytest.raises(ProtocolError, match="bank sent shop more than belongs to this search"):
        shop.take(SearchPost.of(9, [("bank", b"x")]))
    table = Table(THREE)
    hellos = [each for party in table.parties.values() for each in party.take(SearchPost.of(0, [])).entries()]
    shop = table.parties["shop"]
    shop.take(SearchPost.of(1, hellos))
    with pytest.raises(ProtocolError, match="tele sent shop more than belongs to this search"):
        shop.take(SearchPost.of(2, [("tele", b"x")]))


def test_an_earlier_note_of_a_party_that_began_anew_is_not_passed_off_as_its_own() -> None:
    table = Table(TWO)
    old = table.parties["b"].take(SearchPost.of(0, [])).entries()
    table.parties["b"] = table.party("b")
    table.parties["b"].take(SearchPost.of(0, []))
    hellos = [*table.parties["a"].take(SearchPost.of(0, [])).entries(), *old]
    with pytest.raises(ProtocolError, match=r"^b: an earlier note of its own"):
        table.parties["b"].take(SearchPost.of(1, hellos))


def test_steps_that_were_left_out_are_refused() -> None:
    table = Table(TWO)
    with pytest.raises(ProtocolError, match="before parties have told their keys"):
        table.parties["a"].take(SearchPost.of(2, [("b", b"x")]))
    with pytest.raises(ProtocolError, match="b does not know yet who is common"):
        table.parties["b"].take(SearchReport.of(0, []))
    with pytest.raises(ProtocolError, match="Something else"):
        table.parties["b"].take(Message())


def test_parties_that_agreed_on_something_else_are_refused() -> None:
    for settings_of_one in ({"rule": "folded"}, {"among": "chain"}, {"session": "another"}):
        table = Table(THREE)
        table.parties["tele"] = table.party("tele", **settings_of_one)
        with pytest.raises(ProtocolError, match="tele: its note is not signed"):
            table.search()


# Parties that answer nonsense, or have it


def answering(party: str, step: int, body: Callable[[Post], Message]) -> Any:
    def answer(name: str, post: Post) -> Message:
        return body(post) if (name, post.step) == (party, step) and isinstance(post, SearchPost) else post

    return answer


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (lambda _: Message(), "^shop answered something that makes no sense"),
        (lambda _: SearchPost.of(9, []), "^shop answered something that makes no sense"),
        (lambda _: SearchPost.of(1, [("mars", b"x")]), "^shop writes to somebody who does not take part"),
        (lambda _: SearchPost.of(1, [("bank", b"eva.evers")] * 2), "^What shop sent bank is refused"),
        (lambda post: SearchPost.of(1, [*post.entries()] * 3), "^What shop sent bank is refused|^shop sent"),
    ],
)
def test_a_party_that_answers_nonsense_is_named_and_nothing_of_its_data(body: Any, match: str) -> None:
    table = Table(THREE, answer=answering("shop", 1, body))
    with pytest.raises((RunError, ProtocolError), match=match) as caught:
        table.search()
    words = str(caught.value)
    assert not any(each in words for own in THREE.values() for each in own)


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"common": 1}, "parties differ in how many users are common"),
        ({"shared": [3]}, "shop reports of other searches than it took part in"),
        ({"users": -4}, "shop reports of a search otherwise"),
        ({"users": "many"}, "shop reports of a search otherwise"),
        (None, "shop reports of a search otherwise"),
    ],
)
def test_a_report_that_does_not_fit_is_refused(said: Any, match: str) -> None:
    table = Table(THREE)
    shop = table.parties["shop"]
    note = shop._note

    def lying(data: bytes) -> tuple[str, bytes]:
        if not data.startswith(b"{"):
            return note(data)
        return note(b"[" if said is None else json.dumps(json.loads(data) | said).encode())

    shop._note = lying  # type: ignore[method-assign]
    with pytest.raises(ProtocolError, match=match):
        table.search()
    assert all(party.result is None for party in table.parties.values())


def test_a_client_that_tells_before_it_has_compared_is_refused() -> None:
    table = Table(THREE, "chain")
    hellos = [each for party in table.parties.values() for each in party.take(SearchPost.of(0, [])).entries()]
    shop = table.parties["shop"]
    shop.take(SearchPost.of(1, hellos))
    ((_, request),) = table.parties["tele"].take(SearchPost.of(1, hellos)).entries()
    assert shop.take(SearchPost.of(2, [("tele", request)])).entries() == []
    with pytest.raises(ProtocolError, match=r"What tele sent shop is refused. It tells who is common before"):
        shop.take(SearchPost.of(3, [("tele", b"x")]))


def test_a_note_that_is_none_names_its_party() -> None:
    table = Table(THREE, answer=answering("shop", 0, lambda _: SearchPost.of(0, [])))
    with pytest.raises(ProtocolError, match=r"^shop: its note is missing"):
        table.search()


def test_a_party_that_does_not_answer_is_named() -> None:
    table = Table(THREE)

    def without(questions: dict[str, Message]) -> dict[str, Message]:
        return {name: answer for name, answer in table.ask_all(questions).items() if name != "tele"}

    with pytest.raises(RunError, match=r"^tele did not answer"):
        relay_search(roster=table.roster, session="s", ask_all=without)


def test_numbers_are_not_compared_with_text() -> None:
    with pytest.raises(DataError, match=r"^b: user ids are text, and other parties' are numbers"):
        Table({"a": [1, 2], "b": ["1", "2"]}).search()


def test_ids_that_cannot_be_used_are_explained_at_home_and_not_shown() -> None:
    for wrong, match in (
        (["zoe", "zoe"], "b: 1 of 2 ids repeat"),
        ([], "b has no users"),
        (["zoe", ""], "b: entry 2 is an empty id"),
        ([1.5], "b: ids must be a list"),
    ):
        with pytest.raises(DataError, match=match) as caught:
            Table({"a": ["x"], "b": wrong})
        assert "zoe" not in str(caught.value)


def test_unknown_words_are_refused() -> None:
    with pytest.raises(ConfigError, match="among must be one of leader, chain"):
        Table(TWO, "ring")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="rule must be one of exact, folded"):
        Table(TWO, rule="lower")
