"""A server that lies learns nothing: parties check what they are told."""

from collections.abc import Collection
from dataclasses import replace

import pytest

from cofactor.crypto import sum_wire as wire
from cofactor.crypto.keys import KeyPair
from cofactor.crypto.sum_wire import Advert, Kind
from cofactor.errors import ProtocolError, TooFew
from tests.crypto.making import Play, advert_of, circle, identity, make_terms

ALL = frozenset(range(6))


def six(**settings: int) -> Play:
    """Six parties that all choose each other; four shares open a secret, five must be left."""
    return Play(make_terms(6, **{"threshold": 4, "fewest": 5, **settings}))  # type: ignore[arg-type]


def adverts(play: Play, place: int, there: Collection[int], entries: Collection[Advert]) -> bytes:
    parts = [wire.written(play.terms, a.place) + a.content + a.signature for a in entries]
    return wire.message(play.terms, Kind.ADVERTS, place, wire.bitmap(play.terms, there), *parts)


def held(play: Play, place: int, sharers: Collection[int], boxes: dict[int, bytes]) -> bytes:
    parts = [wire.written(play.terms, owner) + boxes[owner] for owner in sorted(boxes)]
    return wire.message(play.terms, Kind.HELD, place, wire.bitmap(play.terms, sharers), *parts)


def boxes_for(play: Play, place: int) -> dict[int, bytes]:
    return wire.read_held(play.terms, place, play.questions[place])[1]


def survivors(play: Play, place: int, there: Collection[int], proven: Collection[int]) -> bytes:
    """Say who survived, with the signatures of those that really sent something."""
    sent = {p: wire.read_masked(play.terms, p, data)[0] for p, data in play.replies["mask"].items()}
    parts = [wire.written(play.terms, p) + sent[p] for p in sorted(proven) if p != place]
    return wire.message(play.terms, Kind.SURVIVORS, place, wire.bitmap(play.terms, there), *parts)


def confirmations(play: Play, place: int, replies: dict[int, bytes]) -> bytes:
    signatures = {p: wire.read_confirmation(play.terms, p, data) for p, data in replies.items() if p != place}
    parts = [wire.written(play.terms, p) + signatures[p] for p in sorted(signatures)]
    return wire.message(play.terms, Kind.CONFIRMATIONS, place, *parts)


def test_two_sets_of_survivors_told_to_two_groups_open_nothing() -> None:
    for mixed in (False, True):
        play = six().until("confirm")
        told = dict.fromkeys((0, 1, 2), ALL) | dict.fromkeys((3, 4, 5), ALL - {0})
        replies = {p: play.clients[p].confirm(survivors(play, p, told[p], told[p])) for p in ALL}
        for place in ALL:
            shown = {p: replies[p] for p in told[place] if mixed or told[p] == told[place]}
            with pytest.raises(ProtocolError, match="did not sign" if mixed else "4 are needed"):
                play.clients[place].unmask(confirmations(play, place, shown))


def test_two_sets_of_sharers_told_to_two_groups_open_nothing() -> None:
    play = six().until("mask")
    told = dict.fromkeys((0, 1, 2), ALL) | dict.fromkeys((3, 4, 5), ALL - {0})
    play.replies["mask"] = {}
    for place in ALL:
        boxes = {p: box for p, box in boxes_for(play, place).items() if p in told[place]}
        message = held(play, place, told[place], boxes)
        play.replies["mask"][place] = play.clients[place].mask(message, play.values[place])
    for place in ALL:
        with pytest.raises(ProtocolError, match="did not mask with those"):
            play.clients[place].confirm(survivors(play, place, told[place], told[place]))


def test_a_party_told_that_its_neighbours_shared_nothing_cannot_be_opened_by_them() -> None:
    play = six(threshold=3, fewest=4).until("mask")
    victim, hidden = 0, {4, 5}
    boxes = {p: box for p, box in boxes_for(play, victim).items() if p not in hidden}
    replies = {
        victim: play.clients[victim].mask(held(play, victim, ALL - hidden, boxes), play.values[victim])
    }
    replies |= play.answers("mask", {p: play.questions[p] for p in ALL - {victim}})
    play.replies["mask"] = replies
    play.give("mask")
    assert "signed others" in play.server.refused[victim]
    for place in hidden:
        with pytest.raises(ProtocolError, match="Place 0 did not mask with those"):
            play.clients[place].confirm(survivors(play, place, ALL, ALL))


def test_the_signature_of_one_who_is_said_to_be_gone_does_not_count() -> None:
    play = six().until("confirm")
    there = ALL - {5}
    replies = {p: play.clients[p].confirm(survivors(play, p, there, there)) for p in there}
    sets = wire.bitmap(play.terms, ALL) + wire.bitmap(play.terms, there)
    colluding = identity(5).sign(wire.to_sign_survivors(play.terms, 5, sets))
    replies[5] = wire.message(play.terms, Kind.CONFIRMATION, 5, colluding)
    with pytest.raises(ProtocolError, match="no surviving neighbours"):
        play.clients[0].unmask(confirmations(play, 0, {p: replies[p] for p in (1, 2, 3, 5)}))


def test_shares_are_revealed_once() -> None:
    play = six().until("unmask")
    play.clients[0].unmask(play.questions[0])
    with pytest.raises(ProtocolError, match='asked to "unmask" and answers nothing more'):
        play.clients[0].unmask(play.questions[0])


def test_survivors_are_confirmed_once() -> None:
    play = six().until("confirm")
    play.clients[0].confirm(survivors(play, 0, ALL, ALL))
    with pytest.raises(ProtocolError, match='answers "unmask"'):
        play.clients[0].confirm(survivors(play, 0, ALL - {5}, ALL - {5}))


def test_fewer_survivors_than_promised_are_not_confirmed() -> None:
    play = six().until("confirm")
    with pytest.raises(TooFew, match="4 of 6 parties are left; 5 were promised"):
        play.clients[0].confirm(survivors(play, 0, {0, 1, 2, 3}, {0, 1, 2, 3}))


def test_survivors_without_the_party_itself_are_not_confirmed() -> None:
    play = six().until("confirm")
    with pytest.raises(ProtocolError, match="does not count place 0"):
        play.clients[0].confirm(survivors(play, 0, ALL - {0}, ALL - {0}))


def test_a_survivor_who_sent_nothing_is_not_confirmed() -> None:
    play = six().until("mask")
    play.step("mask", drop={5})
    with pytest.raises(ProtocolError, match="does not prove"):
        play.clients[0].confirm(survivors(play, 0, ALL, ALL - {5}))


def test_a_survivor_who_shared_no_secrets_is_not_confirmed() -> None:
    play = six().until("share")
    play.step("share", drop={5})
    play.step("mask")
    with pytest.raises(ProtocolError, match="were not there in the phase before"):
        play.clients[0].confirm(survivors(play, 0, ALL, ALL - {5}))


def test_a_sharer_who_did_not_advertise_is_refused() -> None:
    play = six()
    play.step("advertise", drop={5})
    play.step("share")
    with pytest.raises(ProtocolError, match="were not there in the phase before"):
        play.clients[0].mask(held(play, 0, ALL, boxes_for(play, 0)), play.values[0])


def test_the_mask_of_a_party_whose_neighbours_are_said_to_be_gone_is_not_taken_off() -> None:
    graph = [(1, 2, 3), (4, 5, 6), (0, 4, 5), (0, 4, 5), (1, 5, 6), (4, 6, 7), (4, 5, 7), (4, 5, 6)]
    play = Play(make_terms(8, chosen=3, threshold=2, fewest=5), graph=graph).until("confirm")
    there = frozenset(range(8)) - {2, 3}
    replies = {}
    for place in there - {0}:
        choosers = {p for p in there if place in graph[p]}
        replies[place] = play.clients[place].confirm(survivors(play, place, there, choosers))
    with pytest.raises(TooFew, match="Of those that place 0 chose 1 are left; 2 are needed"):
        play.clients[1].unmask(confirmations(play, 1, {p: replies[p] for p in graph[1]}))


def test_a_key_that_the_server_puts_into_an_advert_is_noticed() -> None:
    for change in ("masking", "sealing", "signature"):
        play = six().until("share")
        real, mine = advert_of(play, 1), KeyPair.fresh().public
        fakes = {
            "masking": replace(real, masking=mine),
            "sealing": replace(real, sealing=mine),
            "signature": replace(real, signature=identity(2).sign(wire.to_sign_advert(play.terms, real))),
        }
        others = [advert_of(play, p) for p in range(2, 6)]
        with pytest.raises(ProtocolError, match="advert of place 1 is not signed"):
            play.clients[0].share(adverts(play, 0, ALL, [fakes[change], *others]))


@pytest.mark.parametrize("other", [{"session": "autumn"}, {"round": 1}, {"bits": 21}])
def test_an_advert_of_another_sum_is_noticed(other: dict[str, int]) -> None:
    play, foreign = six().until("share"), six(**other).until("share")
    stale = advert_of(foreign, 1)
    entries = [stale, *(advert_of(play, p) for p in range(2, 6))]
    with pytest.raises(ProtocolError, match="advert of place 1 is not signed"):
        play.clients[0].share(adverts(play, 0, ALL, entries))


def test_an_advert_under_another_place_is_noticed() -> None:
    play = Play(make_terms(6, chosen=2, threshold=1, fewest=3), graph=circle(6, 2)).until("share")
    fake = replace(advert_of(play, 3), place=1)
    with pytest.raises(ProtocolError, match="advert of place 1 is not signed"):
        play.clients[0].share(adverts(play, 0, ALL, [fake, advert_of(play, 2)]))


def test_hidden_adverts_of_chosen_ones_are_noticed() -> None:
    play = six().until("share")
    with pytest.raises(ProtocolError, match="hides adverts"):
        play.clients[0].share(adverts(play, 0, ALL, [advert_of(play, p) for p in range(2, 6)]))


def test_chosen_ones_who_are_said_to_be_missing_may_not_be_too_many() -> None:
    play = Play(make_terms(8, chosen=4, threshold=3, fewest=4), graph=circle(8, 4)).until("share")
    there = frozenset(range(8)) - {1, 2}
    with pytest.raises(TooFew, match="Of those that place 0 chose 2 are left; 3 are needed"):
        play.clients[0].share(adverts(play, 0, there, [advert_of(play, p) for p in range(3, 8)]))


def test_too_few_adverts_or_an_advert_of_one_who_is_missing_end_the_sum() -> None:
    few = {0, 1, 2, 3}
    play = six().until("share")
    with pytest.raises(TooFew, match="4 of 6"):
        play.clients[0].share(adverts(play, 0, few, [advert_of(play, p) for p in (1, 2, 3)]))
    play = six().until("share")
    with pytest.raises(ProtocolError, match="Place 5 is no neighbour"):
        play.clients[0].share(adverts(play, 0, ALL - {5}, [advert_of(play, p) for p in range(1, 6)]))
    play = six().until("share")
    with pytest.raises(ProtocolError, match="does not count place 0"):
        play.clients[0].share(adverts(play, 0, ALL - {0}, [advert_of(play, p) for p in range(1, 6)]))


def test_neighbours_that_nobody_chose_and_the_party_itself_are_refused() -> None:
    for odd in (4, 0):
        play = Play(make_terms(8, chosen=2, threshold=1, fewest=3), graph=circle(8, 2)).until("share")
        known = [advert_of(play, p) for p in sorted({1, 2, 6, 7, odd})]
        with pytest.raises(ProtocolError, match=f"Place {odd} is no neighbour"):
            play.clients[0].share(adverts(play, 0, range(8), known))


@pytest.mark.parametrize("fault", ["swapped", "misdirected", "turned round"])
def test_a_share_sealed_for_another_holder_or_by_another_owner_does_not_open(fault: str) -> None:
    play = six().until("mask")
    mine = boxes_for(play, 0)
    wrong = {
        "swapped": {2: mine[3], 3: mine[2]},
        "misdirected": {2: boxes_for(play, 1)[2]},
        "turned round": {2: boxes_for(play, 2)[0]},
    }
    with pytest.raises(ProtocolError, match="does not open"):
        play.clients[0].mask(held(play, 0, ALL, mine | wrong[fault]), play.values[0])


@pytest.mark.parametrize("fault", ["withheld", "invented"])
def test_shares_of_just_those_who_chose_the_party_are_taken(fault: str) -> None:
    play = six(fewest=4).until("share")
    play.step("share", drop={5})
    boxes = boxes_for(play, 0)
    wrong = {p: boxes[p] for p in (1, 2, 3)} if fault == "withheld" else boxes | {5: boxes[4]}
    with pytest.raises(ProtocolError, match="other shares than those"):
        play.clients[0].mask(held(play, 0, ALL - {5}, wrong), play.values[0])
