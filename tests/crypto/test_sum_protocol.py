"""The secure sum is the plain sum, for all dropouts that it tolerates; beyond them nothing is opened."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from cofactor.crypto import sum_wire as wire
from cofactor.crypto.ring import Ring, Words
from cofactor.crypto.shamir import SHARE_BYTES
from cofactor.crypto.sum_client import Client
from cofactor.errors import ConfigError, TooFew
from tests.crypto.making import PHASES, Play, advert_of, identity, make_terms

HEADER = 42
Drops = Sequence[Collection[int]]
Numbers = st.integers(-(2**63), 2**63 - 1)


def chosen(play: Play, place: int) -> list[int]:
    return [int(other) for other in advert_of(play, place).chosen]


def expected_survivors(play: Play, drops: Drops) -> set[int] | None:
    """Follow the dropouts by the rules alone; None where too few are left of all, or of those one chose."""
    who, answered, last = play.terms.neighbourhood, set(range(play.terms.parties)), set[int]()
    sets = []
    for phase, drop in enumerate(drops):
        last, answered = answered, answered - set(drop)
        if phase > 0:
            answered = {p for p in answered if len(last & {*chosen(play, p)}) >= who.threshold}
        if phase < 3 and len(answered) < who.fewest:
            return None
        sets.append(answered)
    sharers, survivors, opening = sets[1], sets[2], sets[4]
    lonely = {p for p in survivors if len(survivors & {*chosen(play, p)}) < who.threshold}
    enough = all(len(opening & {*chosen(play, p)}) >= who.threshold for p in sharers)
    return survivors if enough and not lonely else None


@st.composite
def plays(draw: st.DrawFn) -> tuple[Play, Drops]:
    parties = draw(st.integers(2, 9))
    k = draw(st.integers(1, parties - 1))
    terms = make_terms(
        parties,
        chosen=k,
        threshold=draw(st.integers(1, (k + 1) // 2)),
        fewest=draw(st.integers(1, (parties + 1) // 2)),
        bits=draw(st.integers(1, 64)),
        length=2,
    )
    numbers = draw(st.lists(Numbers, min_size=2 * parties, max_size=2 * parties))
    drops = draw(st.lists(st.sets(st.integers(0, parties - 1), max_size=2), min_size=5, max_size=5))
    return Play(terms, np.array(numbers, np.int64).reshape(parties, 2)), drops


@settings(max_examples=80)
@given(plays())
def test_a_secure_sum_equals_the_plain_sum_for_all_dropouts_that_it_tolerates(
    case: tuple[Play, Drops],
) -> None:
    play, drops = case
    try:
        opened = play.run(drops)
    except TooFew:
        assert "advertise" not in play.replies or expected_survivors(play, drops) is None
    else:
        assert {*opened.survivors} == expected_survivors(play, drops)
        np.testing.assert_array_equal(opened.total, play.plain_sum(opened.survivors))
    assert play.server.refused == {}
    assert all(isinstance(error, TooFew) for error in play.stopped.values())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("phase", range(5))
def test_any_one_party_may_drop_out_in_any_phase(phase: int, sparse: bool) -> None:
    terms = make_terms(6, chosen=3, threshold=2, fewest=4) if sparse else make_terms(5, threshold=3)
    for place in range(terms.parties):
        play = Play(terms)
        opened = play.run([{place} if phase == p else () for p in range(5)])
        gone = {place} if phase < 3 else set()
        assert {*opened.survivors} == {*range(terms.parties)} - gone
        np.testing.assert_array_equal(opened.total, play.plain_sum(opened.survivors))


@pytest.mark.parametrize("phase", range(5))
def test_as_many_as_planned_may_drop_out_in_any_phase_and_one_more_ends_the_sum(phase: int) -> None:
    terms = make_terms(6, threshold=3, fewest=4)
    play = Play(terms)
    opened = play.run([{1, 4} if p == phase else () for p in range(5)])
    np.testing.assert_array_equal(opened.total, play.plain_sum({0, 2, 3, 5} if phase < 3 else range(6)))
    play = Play(terms)
    with pytest.raises(TooFew, match="Nothing was opened"):
        play.run([{0, 1, 4} if p == phase else () for p in range(5)])
    assert [*play.replies] == ([*PHASES[: phase + 1]] if phase < 3 else [*PHASES])


def test_parties_who_see_that_too_few_are_left_send_no_numbers() -> None:
    play = Play(make_terms(6, threshold=3, fewest=5)).until("mask")
    lie = wire.message(play.terms, wire.Kind.HELD, 0, wire.bitmap(play.terms, {0, 1, 2, 3}))
    with pytest.raises(TooFew, match="4 of 6 parties are left"):
        play.clients[0].mask(lie, play.values[0])


def test_several_drop_out_in_every_phase_of_a_larger_sparse_sum() -> None:
    play = Play(make_terms(24, chosen=11, threshold=3, fewest=14, length=50, bits=33))
    opened = play.run([{0}, {5, 6}, {7, 23}, {8}, {9, 10}])
    assert {*opened.survivors} == {*range(24)} - {0, 5, 6, 7, 23}
    np.testing.assert_array_equal(opened.total, play.plain_sum(opened.survivors))


def test_masked_numbers_look_uniform_and_differ_each_time() -> None:
    terms = make_terms(3, length=20_000, bits=8)
    sent = []
    for _ in range(2):
        play = Play(terms, np.zeros((3, 20_000), np.int64))
        play.run()
        sent += [wire.read_masked(terms, p, data)[1] for p, data in play.replies["mask"].items()]
    for i, words in enumerate(sent):
        counts = np.bincount(words, minlength=256)
        expected = len(words) / 256
        # 21 checks in all, each with a false-alarm rate of 1e-8.
        assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-8, 255)
        for other in sent[:i]:
            differences = np.bincount((words - other) & 255, minlength=256)
            assert ((differences - expected) ** 2 / expected).sum() < chi2.isf(1e-8, 255)


def test_masks_come_from_secrets_of_256_bits_and_none_is_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[tuple[bytes, int]] = []
    mask: Callable[[Ring, Words, bytes, int], None] = Ring.mask

    def spy(ring: Ring, words: Words, seed: bytes, sign: int) -> None:
        seeds.append((seed, sign))
        mask(ring, words, seed, sign)

    monkeypatch.setattr(Ring, "mask", spy)
    Play(make_terms(12)).run()
    added = [seed for seed, sign in seeds if sign == 1]
    taken_off = [seed for seed, sign in seeds if sign == -1]
    assert len({*added}) == len(added) == 12 + 12 * 11 // 2
    assert sorted(taken_off) == sorted(added)
    bits = np.unpackbits(np.array([[*seed] for seed in added], np.uint8), axis=1)
    assert bits.shape == (78, 256)
    # That some bit is the same in all 78 secrets by chance: 256 * 2^-77.
    assert ((bits.sum(axis=0) > 0) & (bits.sum(axis=0) < 78)).all()


def test_neighbours_are_drawn_from_all_others_each_as_often_as_any_other() -> None:
    terms, counts = make_terms(6, chosen=2, threshold=1), np.zeros(6, np.int64)
    for _ in range(600):
        advert = wire.read_advert(terms, 2, Client(terms, 2, identity(2)).advertise())
        counts[advert.chosen] += 1
    assert counts[2] == 0
    # Each of the five is drawn 240 times in the mean, with a variance of 144; false alarms below 1e-7.
    assert ((np.delete(counts, 2) - 240) ** 2 / 144).max() < chi2.isf(1e-8, 1)


@pytest.mark.parametrize(("dropped", "number"), [((), 0), ((5,), 1), ((4, 5), 1), ((3, 4, 5), None)])
def test_the_extra_secret_for_so_many_survivors_is_opened_and_no_other(
    dropped: tuple[int, ...], number: int | None
) -> None:
    play = Play(make_terms(7, threshold=3, fewest=4, grid=(7, 5, 4)))
    for phase in PHASES[:4]:
        play.step(phase, dropped if phase == "mask" else ())
    held = {p: dict(play.clients[p]._held) for p in play.questions}
    opened = play.step("unmask")
    assert opened is not None
    expected = {} if number is None else {p: play.secrets[p][number] for p in opened.survivors}
    assert opened.revealed == expected
    np.testing.assert_array_equal(opened.total, play.plain_sum(opened.survivors))
    for place, data in play.replies["unmask"].items():
        wanted = b""
        for owner in sorted({*range(7)} - {place}):
            own_mask, masking_key, *extra = held[place][owner]
            if owner in dropped:
                wanted += masking_key
            else:
                wanted += own_mask + (b"" if number is None else extra[number])
        assert data[HEADER:] == wanted
        assert len(wanted) == SHARE_BYTES * (6 + (0 if number is None else len(opened.survivors) - 1))


def test_which_extra_secret_belongs_to_how_many_survivors() -> None:
    terms = make_terms(10, threshold=3, fewest=4, grid=(10, 8, 5, 4))
    assert terms.secrets == 3
    told = {s: terms.revealed(s) for s in range(4, 11)}
    assert told == {10: 0, 9: 1, 8: 1, 7: 2, 6: 2, 5: 2, 4: None}
    with pytest.raises(TooFew):
        terms.revealed(3)
    assert make_terms(10).revealed(10) is None


def test_every_part_of_the_terms_changes_their_digest() -> None:
    variants = [
        make_terms(),
        make_terms(session="autumn"),
        make_terms(round=1),
        make_terms(7, chosen=5, threshold=3, fewest=4),
        make_terms(chosen=4, threshold=3, fewest=4),
        make_terms(threshold=2, fewest=4),
        make_terms(fewest=5),
        make_terms(length=4),
        make_terms(bits=21),
        make_terms(grid=(6, 4)),
        make_terms(grid=(6, 5, 4)),
        replace(make_terms(), roster=make_terms().roster[::-1]),
        replace(make_terms(), neighbourhood=replace(make_terms().neighbourhood, colluding=1)),
        replace(make_terms(), neighbourhood=replace(make_terms().neighbourhood, active=False)),
    ]
    assert len({terms.digest() for terms in variants}) == len(variants)
    assert make_terms().digest() == variants[0].digest()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 6}, "do not fit together"),
        ({"chosen": 6}, "do not fit together"),
        ({"fewest": 7}, "do not fit together"),
        ({"grid": (6, 3)}, "grid must fall"),
        ({"grid": (6, 6, 4)}, "grid must fall"),
        ({"grid": (5, 4)}, "grid must fall"),
        ({"length": 0}, "length"),
        ({"round": -1}, "round"),
        ({"session": ""}, "name"),
    ],
)
def test_terms_that_make_no_sense_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_terms(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("roster", "message"),
    [([0, 1, 2], "3 keys for 6 parties"), ([0, 1, 2, 3, 4, 4], "at two places")],
)
def test_a_roster_has_one_key_for_each_party(roster: list[int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(make_terms(), roster=tuple(identity(place).public for place in roster))
    with pytest.raises(ConfigError, match="32 bytes"):
        replace(make_terms(), roster=tuple(bytes([place]) for place in range(6)))


def test_python_of_the_page_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "secure-sums.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, {})
    promised = code.strip().rsplit("# ", 1)[1]
    assert capsys.readouterr().out.split() == promised.split()


def test_a_party_that_hands_over_the_wrong_things_is_told_so() -> None:
    play = Play(make_terms(grid=(6, 4)))
    with pytest.raises(ConfigError, match="another identity key"):
        Client(play.terms, 1, identity(2))
    play.step("advertise")
    for secrets in ([], [b"short"]):
        with pytest.raises(ConfigError, match="1 secrets of 32 bytes"):
            play.clients[0].share(play.questions[0], secrets)
    play.step("share")
    for values in (np.zeros(3), np.zeros(4, np.int64), np.zeros((3, 1), np.int64)):
        with pytest.raises(ConfigError, match="3 whole numbers"):
            play.clients[0].mask(play.questions[0], values)  # type: ignore[arg-type]
    play.step("mask")
    assert play.stopped == {}
