"""Tables counted under encryption. Statistical checks fail by chance less than once in ten million runs."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.cluster import table_halves
from cofactor.cluster.method import NOWHERE, Facts, Integers
from cofactor.cluster.table_halves import (
    TABLES,
    NoisyTables,
    OfferTables,
    TableAnswers,
    TableMember,
    TableOffers,
    bound_of,
)
from cofactor.cluster.tables import SecureTable, TableSum, pair_tables
from cofactor.crypto import products
from cofactor.errors import ConfigError, ProtocolError, Refused, RunError
from cofactor.federation.channel import Failures
from cofactor.federation.door import OVERFLOW, SUM
from cofactor.federation.messages import Message
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.events import counted_once
from cofactor.privacy.laws import PolyaLaw
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.randomness import SecureRandom
from tests.cluster.counting import Counting, counting, drawn_cells, schedule_of
from tests.cluster.making import budget, facts
from tests.crypto.paillier_keys import LARGE
from tests.privacy.making import assert_fits

METHOD = SecureTable(bits=2048)
CLUSTERS = 3


@pytest.fixture(autouse=True)
def quick_keys(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Let keys have fixed primes and hide little, but where a test wants them as they are."""
    if "real_keys" not in request.fixturenames:
        monkeypatch.setattr(products, "_prime_pair", {2048: LARGE}.__getitem__)
        monkeypatch.setattr(products, "exponent_bits", lambda *_: 16)


@pytest.fixture
def real_keys() -> None:
    """Ask for keys as they are."""


def begun(parties: int = 3, users: int = 12, **more: Any) -> Counting:
    return counting(METHOD, drawn_cells(parties, users, CLUSTERS), clusters=CLUSTERS, **more)


# What is counted.


@pytest.mark.usefixtures("real_keys")
def test_with_real_keys_the_protocol_opens_the_true_tables() -> None:
    played = counting(SecureTable(), drawn_cells(2, 30, CLUSTERS), clusters=CLUSTERS).run()
    np.testing.assert_array_equal(played.counter._tables, pair_tables(played.cells, played.facts))


@pytest.mark.parametrize("parties", [2, 3, 5])
def test_without_noise_the_protocol_opens_the_true_tables(parties: int) -> None:
    played = begun(parties, 30).run()
    np.testing.assert_array_equal(played.counter._tables, pair_tables(played.cells, played.facts))


def test_of_two_parties_the_table_is_that_of_the_pair() -> None:
    played = begun(2, 50).run()
    (true,) = pair_tables(played.cells, played.facts)
    np.testing.assert_allclose(played.counter.table(None), true)


def test_pair_tables_count_who_is_in_two_clusters_and_leave_out_who_is_nowhere() -> None:
    cells = [np.array([0, 1, 1, NOWHERE]), np.array([1, 1, NOWHERE, 0]), np.array([0, 0, 0, 0])]
    found = pair_tables(cells, facts(users=4, widths=(1, 1, 1), local_clusters=2))
    assert found.tolist() == [[[0, 1], [0, 1]], [[1, 0], [2, 0]], [[1, 0], [2, 0]]]


def test_everybody_nowhere_is_a_table_of_almost_nothing() -> None:
    cells = [np.full(20, NOWHERE)] * 2
    played = counting(METHOD, cells, clusters=CLUSTERS).run()
    assert not played.counter._tables.any()
    assert played.counter.table(None).sum() <= 1.001


@pytest.mark.parametrize("slot", [2**63 - 1, 2**63, 2**63 + 1, 0, 2**64 - 1])
def test_shares_at_the_ends_of_their_range_wrap_around_and_do_no_harm(
    slot: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mask = sum(slot << products.SLOT_BITS * row for row in range(CLUSTERS))
    # A mask first, for each cluster, and then what hides it: any number without a factor of the key.
    drawn = iter([*[mask] * CLUSTERS, *range(11, 11 + CLUSTERS)])
    played = begun(2, epsilon=0.5)

    def answered(*given: Any) -> Any:
        monkeypatch.setattr(products, "randbelow", lambda below: next(drawn))  # noqa: ARG005
        return products.answered(*given)

    monkeypatch.setattr(table_halves, "answered", answered)
    played.run()
    off = played.counter._tables - pair_tables(played.cells, played.facts)
    assert np.abs(off).max() < 2 * 40 / 0.5  # e^-40 is what one of the parties' noise exceeds it with


# Noise.


@pytest.mark.parametrize(
    ("parties", "colluding", "shape"),
    [(2, None, Fraction(2)), (3, None, Fraction(3)), (3, 0.34, Fraction(3, 2)), (3, 0.0, Fraction(3, 2))],
)
def test_what_is_opened_has_the_noise_of_all_parties(
    parties: int, colluding: float | None, shape: Fraction
) -> None:
    method = SecureTable(bits=2048, colluding=colluding)
    cells = drawn_cells(parties, 8, 12)
    played = counting(method, cells, clusters=12, epsilon=2.0).run()
    noise = played.counter._tables - pair_tables(cells, played.facts)
    # A user is in one cell of each pair's table.
    assert_fits(noise.ravel(), PolyaLaw(scale=len(played.facts.pairs) / 2.0, shape=shape))
    assert method.alone(played.facts) == (colluding is None)


def test_a_simulation_has_the_law_of_the_protocol() -> None:
    about = facts(users=10**6, widths=(1, 1), local_clusters=20)
    cells = [np.repeat(np.arange(20), 50_000), np.tile(np.arange(20), 50_000)]
    cells[0][:20_000] = NOWHERE  # so that noise does not add up to more users than there are
    found = METHOD.simulated(about, [], cells, schedule_of(METHOD, about, 1.0), SecureRandom(), None)
    noise = np.rint(found - pair_tables(cells, about)[0]).astype(np.int64)
    assert_fits(noise.ravel(), PolyaLaw(scale=1.0, shape=Fraction(2)))


def test_a_simulation_of_more_parties_has_the_noise_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def kept(tables: Integers, about: Facts) -> NDArray[np.float64]:
        seen.append(tables)
        return np.zeros(about.grid)

    monkeypatch.setattr("cofactor.cluster.tables.fitted_tables", kept)
    about, cells = facts(users=30, widths=(1,) * 3, local_clusters=12), drawn_cells(3, 30, 12)
    for colluding, shape in ((None, Fraction(3)), (0.34, Fraction(3, 2))):
        method = SecureTable(colluding=colluding)
        method.simulated(about, [], cells, schedule_of(method, about, 3.0), SecureRandom(), None)
        assert_fits((seen.pop() - pair_tables(cells, about)).ravel(), PolyaLaw(scale=1.0, shape=shape))


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_a_user_moves_one_cell_of_each_pairs_table(parties: int) -> None:
    about = facts(users=6, widths=(1,) * parties, local_clusters=CLUSTERS)
    empty = (NOWHERE,) * parties

    def release(units: Any) -> Integers:
        return pair_tables(list(np.array(units, np.int64).T), about)

    datasets = Datasets(
        draw=lambda chance: tuple(int(each) for each in chance.integers(-1, CLUSTERS, parties)),
        count=6,
        empty=empty,
    )
    everywhere = Neighbours(units=((0,) * parties,) * 6, which=2, other=empty)
    assert_bounded(release, bound_of(about), datasets, worst_case=everywhere)


def test_everybody_charges_the_whole_release_and_it_counts_once() -> None:
    played = begun(3, epsilon=1.0).run()
    events = played.events()
    assert {event.by for event in events} == set(played.facts.parties)
    for event in events:
        assert event.joint
        assert (event.bound, event.mechanism) == (bound_of(played.facts), played.schedule.noise_of(TABLES))
        assert (event.dimension, event.slack, event.what) == (27, OVERFLOW, f"{TABLES}, round 4")
    assert len(counted_once(events)) == 1


def test_the_release_that_is_charged_is_the_one_that_was_planned() -> None:
    played = begun(3, epsilon=1.0).run()
    (planned,) = played.schedule.events()
    (charged,) = counted_once(played.events())
    assert replace(charged, what="", by="", to="") == replace(planned, what="", by="", to="", joint=True)


def test_noise_is_scaled_to_a_budget() -> None:
    (release,) = calibrated(schedule_of(METHOD, facts(), 0.3), budget(1.0)).releases
    assert (release.first, release.count(METHOD.rounds + 1)) == (4, 1)
    assert 0.9 < release.mechanism.noise_multiplier < 1.1  # type: ignore[attr-defined]


# Who sees what.


def test_the_coordinator_sees_nothing_but_what_is_sealed_or_masked() -> None:
    played = begun(3).run()
    assert played.protections(2) == played.protections(3) == {"sealed for other parties"}
    assert "noise, masked" in played.protections(4)
    assert not any("SIMULATION" in each for each in played.protections(4))


def test_a_share_of_noise_goes_nowhere_but_into_the_sum() -> None:
    played = counting(SecureTable(bits=2048, colluding=0.34), drawn_cells(3, 6, 2), clusters=2)
    played.run()
    assert "a share of noise, masked" in played.protections(4)


def forged(round: int, change: Callable[[NDArray[np.uint8]], Any]) -> Any:
    """Return a coordinator that changes what it passes on in a round."""

    def between(number: int, question: Message) -> Message:
        if number != round:
            return question
        ((name, array),) = question.arrays.items()
        changed = array.copy()
        found = change(changed)
        return type(question)(**{name: changed if found is None else found})

    return between


def flipped(rows: NDArray[np.uint8]) -> None:
    rows[0, -1] ^= 1


def swapped(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return rows[::-1].copy()


@pytest.mark.parametrize("round", [3, 4])
@pytest.mark.parametrize("change", [flipped, swapped])
def test_a_coordinator_that_changes_what_parties_have_for_each_other_is_noticed(
    round: int, change: Callable[[NDArray[np.uint8]], Any]
) -> None:
    played = begun(3)
    with pytest.raises(ProtocolError, match="was not signed by party"):
        played.run(between=forged(round, change))
    assert not played.events()


@pytest.mark.parametrize("session", ["s", "another"])
def test_a_coordinator_cannot_put_a_key_of_its_own_in_between(session: str) -> None:
    other = begun(2, session=session)
    other.homes[0].door.begin(2)
    offer = other.members[0].answer(2, OfferTables())
    played = begun(2)
    with pytest.raises(ProtocolError, match="put other numbers in between"):
        played.run(between=forged(3, lambda _: offer.offers))
    assert not played.events()


def test_what_was_signed_for_another_session_or_round_is_refused() -> None:
    played = begun(2)
    played.run()
    member: Any = played.members[1]
    signed = played.members[0]._signed(2, "all", b"data")
    assert member._checked(signed, 2, "party 0", "all") == b"data"
    for round, sender, receiver in ((3, "party 0", "all"), (2, "party 1", "all"), (2, "party 0", "party 1")):
        with pytest.raises(ProtocolError, match="was not signed"):
            member._checked(signed, round, sender, receiver)
    member._home = replace(member._home, session="another")
    with pytest.raises(ProtocolError, match="was not signed"):
        member._checked(signed, 2, "party 0", "all")


# Questions and answers that cannot be.


def asked_member(round: int) -> tuple[TableMember, Message]:
    """Return a party that has answered all rounds before, and the right question."""
    played = begun(3)
    for number in range(2, round):
        for home in played.homes:
            home.door.begin(number)
        question = played.counter.ask(number)
        replies = {
            home.door.party: member.answer(number, question)
            for home, member in zip(played.homes, played.members, strict=True)
        }
        played.counter.take(number, replies)
    played.homes[1].door.begin(round)
    return played.members[1], played.counter.ask(round)


@pytest.mark.parametrize("round", [2, 3, 4])
def test_a_question_of_another_kind_is_refused(round: int) -> None:
    wrong: list[Message] = [
        OfferTables(),
        TableOffers(offers=np.zeros((2, 5), np.uint8)),
        TableAnswers(answers=np.zeros((3, 5), np.uint8)),
        NoisyTables(counts=np.zeros(3, np.int64)),
    ]
    for message in wrong[1:] if round == 2 else wrong:
        member, right = asked_member(round)
        with pytest.raises(RunError):
            member.answer(round, message)
        with pytest.raises(RunError, match="rounds come in their order"):
            member.answer(round, right)  # after a step that failed, there is no other


@pytest.mark.parametrize(
    "change", [lambda rows: rows[1:], lambda rows: rows[:, 1:], lambda rows: rows.astype("<i8")]
)
def test_rows_of_another_number_size_or_type_are_refused(change: Any) -> None:
    member, right = asked_member(3)
    with pytest.raises(RunError, match="the coordinator sent something else than 2 offers"):
        member.answer(3, TableOffers(offers=change(right.arrays["offers"])))


@pytest.mark.parametrize("rounds", [(3,), (4,), (1,), (2, 2), (2, 4)])
def test_rounds_come_in_their_order_and_once(rounds: tuple[int, ...]) -> None:
    member = begun(2).members[0]
    member._home.door.begin(2)
    *before, last = rounds
    for each in before:
        member.answer(each, OfferTables())
    with pytest.raises(RunError, match="rounds come in their order"):
        member.answer(last, OfferTables())


def test_a_party_whose_answers_cannot_be_is_named() -> None:
    counter = begun(2).counter
    good = TableOffers(offers=np.zeros((0, 3), np.uint8))
    with pytest.raises(RunError, match="party 0 sent something else than 1 offers"):
        counter.take(2, {"party 0": good, "party 1": good})
    with pytest.raises(RunError, match="something else than tables"):
        counter.take(4, {SUM: NoisyTables(counts=np.zeros(4, np.int64))})
    with pytest.raises(RunError, match="not been counted yet"):
        counter.table(None)


@pytest.mark.parametrize("round", [2, 3])
def test_a_missing_party_ends_it_with_what_to_do_and_nothing_charged(round: int) -> None:
    played = begun(2)
    with pytest.raises(RunError, match=r"no answer of party 1.*stays charged.*when all are back"):
        played.run(failures=Failures(absent=frozenset({("party 1", round)})))
    assert not played.events()


@pytest.mark.parametrize(
    "failures",
    [Failures(lost=frozenset({("party 1", 4)})), Failures(silent=frozenset({("party 1", 4)}))],
    ids=["lost", "silent"],
)
def test_a_party_that_is_missing_from_the_sum_opens_nothing_and_what_was_charged_stays_so(
    failures: Failures,
) -> None:
    played = begun(3)
    with pytest.raises((RunError, Refused), match=r"no answer of the sum|did not answer"):
        played.run(failures=failures)
    assert played.counter._tables is None
    assert {event.by for event in played.events()} == set(played.facts.parties)


def test_a_half_with_keys_is_neither_copied_nor_pickled() -> None:
    member = begun(2).members[0]
    for way in (copy.copy, pickle.dumps):
        with pytest.raises(Refused):
            way(member)


# Settings.


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"bits": 1024}, "can be broken today"),
        ({"bits": 2049}, "multiple of 64"),
        ({"share": 0.0}, "share"),
        ({"share": 1.0}, "share"),
        ({"colluding": 1.0}, "colluding"),
        ({"colluding": -0.1}, "colluding"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        SecureTable(**wrong)


def test_more_local_clusters_than_a_key_holds_are_refused_before_anything_happens() -> None:
    with pytest.raises(ConfigError, match="room for 30 clusters, and there are 31"):
        SecureTable().releases(facts(local_clusters=31), epsilon=1.0, delta=1e-6)
    SecureTable().releases(facts(local_clusters=30), epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("parties", [2, 3, 4, 5])
def test_all_others_may_collude_and_nobody_may_drop_out(parties: int) -> None:
    layers, near = TableSum().layers(parties), TableSum().neighbourhood(parties)
    assert layers is not None
    assert near is not None
    assert (layers.fewest, layers.colluding) == (parties, parties - 1)
    assert (near.fewest, near.colluding) == (parties, parties - 2)
    assert near.active
    assert TableSum().layers(1) is None
    assert TableSum().neighbourhood(1) is None


def test_noise_that_hides_the_tables_is_a_concern() -> None:
    about = facts(users=20_000, widths=(4, 4), local_clusters=5)
    assert METHOD.concerns(about, schedule_of(METHOD, about, 0.1)) == ()
    (told,) = METHOD.concerns(about, schedule_of(METHOD, about, 0.004))
    assert "Noise of about 500 users" in told
    assert "hold 800 users on average" in told


def test_the_guarantee_says_what_it_rests_on() -> None:
    told = SecureTable().promise(facts(widths=(1,) * 3))
    words = " ".join(f"{each.what} {each.met}" for each in told.assumptions)
    assert "3,072 bits" in words
    assert "128 bits of security" in words
    assert "512 bits" in words
    assert "keep to the protocol" in words
    assert "of 3 parties, at most 2 of them collude" in words
    assert told.shared == {TABLES: 1.0}
    fewer = SecureTable(colluding=0.34).promise(facts(widths=(1,) * 3))
    assert fewer.shared == {TABLES: 0.5}
    assert "all of the noise" in " ".join(told.covers)
    assert "all of the noise" not in " ".join(fewer.covers)
