from contextlib import suppress
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.crypto.opening_wire import Request, read_answer, read_request, read_upload
from cofactor.errors import ConfigError, ProtocolError, TooFew
from tests.crypto.opening_parties import Circle, in_shares, under_lattice, under_paillier


@pytest.fixture(params=[in_shares, under_paillier, under_lattice])
def circle(request: pytest.FixtureRequest) -> Circle:
    made: Circle = request.param()
    return made


@pytest.fixture
def shared() -> Circle:
    return in_shares()


def request(circle: Circle, *places: int) -> Request:
    """Return what the first decrypter is asked for the sum of some parties."""
    collector = circle.collector(circle.uploads(*places))
    return read_request(collector.asks()[circle.opening.decrypters[0]])


def test_a_sum_is_that_of_all_uploads(circle: Circle) -> None:
    assert (circle.opened(circle.collector(circle.uploads())) == circle.values.sum(axis=0)).all()


def test_whoever_sent_nothing_is_missing_from_the_sum(circle: Circle) -> None:
    collector = circle.collector(circle.uploads(0, 1, 3))
    assert collector.survivors == (0, 1, 3)
    assert (circle.opened(collector) == circle.values[[0, 1, 3]].sum(axis=0)).all()


@pytest.mark.parametrize("answering", list(combinations((4, 0, 2), 2)))
def test_any_quorum_of_decrypters_opens_a_sum(circle: Circle, answering: tuple[int, ...]) -> None:
    collector = circle.collector(circle.uploads())
    assert (circle.opened(collector, set(answering)) == circle.values.sum(axis=0)).all()


def test_fewer_decrypters_than_the_quorum_open_nothing(shared: Circle) -> None:
    collector = shared.collector(shared.uploads())
    with pytest.raises(TooFew, match="Of 3 decrypters too few answer"):
        shared.opened(collector, {4})
    assert not collector.finished


def test_a_sum_of_too_few_parties_is_neither_collected_nor_opened(circle: Circle) -> None:
    with pytest.raises(TooFew, match="2 parties have sent numbers, and it takes 3"):
        circle.collector(circle.uploads(1, 2))
    greedy = circle.with_terms(fewest=2)
    collector = greedy.collector(greedy.uploads(1, 2))
    asked = read_request(collector.asks()[4])
    with pytest.raises(TooFew, match="sum of 2 parties is not opened"):
        circle.decrypter(0).answer(replace(asked, digest=circle.opening.digest).to_bytes())


def test_a_single_partys_numbers_are_not_opened_however_often_they_are_named(circle: Circle) -> None:
    asked = request(circle)
    once = asked.uploads[:1]
    with pytest.raises(TooFew):
        circle.decrypter(0).answer(replace(asked, uploads=once).to_bytes())
    with pytest.raises(ProtocolError, match="stands twice"):
        circle.decrypter(0).answer(replace(asked, uploads=once * 3).to_bytes())


def test_two_sums_that_differ_by_a_party_are_not_both_opened(circle: Circle) -> None:
    decrypter, asked = circle.decrypter(0), request(circle)
    decrypter.answer(asked.to_bytes())
    with pytest.raises(ProtocolError, match="Two are not opened"):
        decrypter.answer(replace(asked, uploads=asked.uploads[1:]).to_bytes())
    assert decrypter.answer(asked.to_bytes()) == decrypter.answer(asked.to_bytes())


def test_a_party_that_uploads_twice_does_not_get_two_sums_opened(circle: Circle) -> None:
    decrypter, asked = circle.decrypter(0), request(circle)
    decrypter.answer(asked.to_bytes())
    other = read_upload(circle.upload(0)).for_decrypter(0)
    with pytest.raises(ProtocolError, match="Two are not opened"):
        decrypter.answer(replace(asked, uploads=(other, *asked.uploads[1:])).to_bytes())


def test_a_refused_request_leaves_the_decrypter_as_it_was(circle: Circle) -> None:
    decrypter, asked = circle.decrypter(0), request(circle)
    with pytest.raises(TooFew):
        decrypter.answer(replace(asked, uploads=asked.uploads[:1]).to_bytes())
    assert decrypter.answer(asked.to_bytes())


@pytest.mark.parametrize("terms", [{"round": 2}, {"session": "another"}, {"bits": 41}, {"fewest": 2}])
def test_an_upload_serves_in_one_sum_only(circle: Circle, terms: dict[str, object]) -> None:
    other = circle.with_terms(**terms)
    collector = circle.collector({**circle.uploads(0, 1, 2), 3: other.upload(3)})
    assert collector.survivors == (0, 1, 2)
    assert "not signed by its party for this sum" in collector.refused[3]


def test_nobody_can_speak_for_another(circle: Circle) -> None:
    stolen = replace(read_upload(circle.upload(3)), place=1).to_bytes()
    collector = circle.collector({**circle.uploads(0, 2, 3), 1: stolen})
    assert collector.survivors == (0, 2, 3)
    assert "not signed" in collector.refused[1]
    assert "speaks for another" in circle.collector({**circle.uploads(), 1: circle.upload(3)}).refused[1]


def test_changed_boxes_are_noticed_by_collector_and_decrypter(circle: Circle) -> None:
    changed = bytearray(circle.upload(3))
    changed[-1] ^= 1
    assert (
        "not the one that its party signed"
        in circle.collector({**circle.uploads(0, 1, 2), 3: bytes(changed)}).refused[3]
    )
    asked = request(circle)
    first = asked.uploads[0]
    box = first.boxes[0]
    bad = replace(first, boxes={0: box[:-1] + bytes([box[-1] ^ 1])})
    with pytest.raises(ProtocolError, match="not the one that its party signed"):
        circle.decrypter(0).answer(replace(asked, uploads=(bad, *asked.uploads[1:])).to_bytes())


def test_a_decrypter_opens_no_box_that_is_for_another(shared: Circle) -> None:
    collector = shared.collector(shared.uploads())
    asks = collector.asks()
    first, second = (shared.opening.decrypters.index(place) for place in list(asks)[:2])
    with pytest.raises(ProtocolError, match="without the box that is for this decrypter"):
        shared.decrypter(second).answer(asks[shared.opening.decrypters[first]])


def test_a_decrypter_takes_no_total_on_trust_unless_all_agreed_to_that(circle: Circle) -> None:
    asked = replace(request(circle), total=b"anything")
    with pytest.raises(ProtocolError, match="not agreed to add it up"):
        circle.decrypter(0).answer(asked.to_bytes())


def test_pieces_that_there_are_not_are_not_opened(shared: Circle) -> None:
    for pieces in ((), (range(2),), (range(1, 1),)):
        with pytest.raises(ProtocolError, match="pieces that there are not"):
            shared.decrypter(0).answer(replace(request(shared), pieces=pieces).to_bytes())


def test_a_wrong_part_of_a_decrypter_is_noticed_or_refused(shared: Circle) -> None:
    collector = shared.collector(shared.uploads())
    asks = collector.asks()
    collector.take(dict.fromkeys(asks, b"nonsense"))
    assert set(collector.refused) == set(asks)
    with pytest.raises(TooFew):
        collector.asks()


def test_numbers_that_do_not_fit_are_not_sent(shared: Circle) -> None:
    shared.values[2, 0] = 2**39
    with pytest.raises(ConfigError, match="more than the 40 bits"):
        shared.upload(2)


def test_a_sum_that_does_not_fit_is_not_told(shared: Circle) -> None:
    shared.values[:, 0] = 2**38
    with pytest.raises(ProtocolError, match="more than the 40 bits"):
        shared.opened(shared.collector(shared.uploads()))


def test_a_strangers_identity_uploads_nothing(circle: Circle) -> None:
    circle.identities.reverse()
    with pytest.raises(ConfigError, match="another identity key at place 0"):
        circle.upload(0)


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ({"fewest": 1}, "2 to 5 parties"),
        ({"fewest": 6}, "2 to 5 parties"),
        ({"decrypters": ()}, "one or more different places"),
        ({"decrypters": (1, 1)}, "one or more different places"),
        ({"decrypters": (5,)}, "no place of the roster"),
        ({"bits": 65}, "over 64 bits"),
        ({"roster": (b"short",)}, "identity key of 32 bytes"),
    ],
)
def test_terms_that_protect_nobody_are_refused(shared: Circle, terms: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        shared.with_terms(**terms)


def test_every_term_changes_what_is_signed(shared: Circle) -> None:
    changed: list[dict[str, object]] = [
        {},
        {"session": "t"},
        {"round": 2},
        {"roster": shared.opening.roster[::-1]},
        {"decrypters": (0, 4, 2)},
        {"fewest": 4},
        {"length": 8},
        {"bits": 41},
        {"keys": bytes(32)},
        {"recheck": False},
    ]
    digests = {shared.with_terms(**each).opening.digest for each in changed}
    assert len(digests) == len(changed)


@settings(max_examples=200)
@given(st.binary(max_size=400), st.integers(0, 2))
def test_whatever_bytes_come_reading_only_refuses(data: bytes, kind: int) -> None:
    magic = (b"CFUP\x01", b"CFRQ\x01", b"CFAN\x01")[kind]
    for message in (data, magic + data):
        for read in (read_upload, read_request, lambda each: read_answer(each, [range(2)])):
            with suppress(ProtocolError):
                read(message)


@given(st.integers(0, 4000), st.integers(1, 255))
@settings(max_examples=60, deadline=None)
def test_no_changed_byte_of_a_request_gets_another_sum_opened(at: int, flip: int) -> None:
    circle = _CIRCLE
    data = bytearray(_REQUEST)
    data[at % len(data)] ^= flip
    try:
        answer = circle.decrypter(0).answer(bytes(data))
    except ProtocolError:
        return
    assert answer == _ANSWER


_CIRCLE = in_shares()
_REQUEST = _CIRCLE.collector(_CIRCLE.uploads()).asks()[_CIRCLE.opening.decrypters[0]]
_ANSWER = _CIRCLE.decrypter(0).answer(_REQUEST)
