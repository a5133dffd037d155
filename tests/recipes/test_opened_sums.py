"""Sums that decrypters open: settings, who must come together, what is promised, and on what it rests."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cofactor.config import as_table, from_table
from cofactor.crypto.hiding import InShares, UnderCipher
from cofactor.crypto.lattice import Lattice
from cofactor.crypto.shared_key import SharedKey
from cofactor.crypto.threshold import ThresholdPaillier
from cofactor.errors import ConfigError, Refused
from cofactor.federation.federation import Federation
from cofactor.randomness import SecureRandom
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum, quorum_chance
from cofactor.recipes.sums import AnySum, IdealSum, PlainSum, SecureSum, own_share, without_noise
from tests.crypto.fixed_primes import fixed_primes
from tests.federation.making import ItemSums, horizontal, on_disk, trained

SCHEMES: dict[str, Any] = {
    "paillier": ThresholdPaillier(),
    "root": ThresholdPaillier(shares="root", randomness="full", bits=3072, quorum=3),
    "bfv": Lattice(),
    "ckks": Lattice(variant="ckks"),
    "one key": SharedKey(),
    "as published": SharedKey(packed=False),
}
OPENED: dict[str, Any] = {
    "shared": SharedSum(),
    "shared, four": SharedSum(decrypters=4, needed=2, dropout=0.2),
    **{name: EncryptedSum(scheme=scheme) for name, scheme in SCHEMES.items()},
    "bfv, three": EncryptedSum(scheme=Lattice(), decrypters=3),
    "trusting": EncryptedSum(recheck=False, dropout=0.2),
}


@pytest.fixture(autouse=True)
def keys() -> Any:
    with fixed_primes():
        yield


@pytest.mark.parametrize("made", OPENED.values(), ids=OPENED)
def test_sums_survive_their_way_to_a_table_and_back(made: AnySum) -> None:
    found: Any = from_table(AnySum, as_table(made), "aggregate")
    assert found == made
    recipe = HorizontalMF(aggregate=made)
    again: Any = from_table(HorizontalMF, as_table(recipe), "recipe")
    assert again == recipe


def test_table_names_the_scheme() -> None:
    table = as_table(EncryptedSum(scheme=Lattice(variant="ckks")))
    assert table["scheme"] == {"kind": "Lattice", "variant": "ckks"}
    with pytest.raises(ConfigError, match='Did you mean "Lattice"'):
        from_table(AnySum, {"kind": "EncryptedSum", "scheme": {"kind": "Latice"}}, "aggregate")
    with pytest.raises(ConfigError, match=r"aggregate\.scheme"):
        from_table(AnySum, {"kind": "EncryptedSum", "scheme": "bfv"}, "aggregate")


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        (SharedSum(), {2: (2, 2), 3: (3, 2), 100: (3, 2)}),
        (SharedSum(decrypters=5, needed=4), {2: (2, 2), 3: (3, 3), 4: (4, 4), 5: (5, 4), 100: (5, 4)}),
        (EncryptedSum(), {2: (2, 2), 3: (3, 2), 100: (3, 2)}),
        (EncryptedSum(scheme=ThresholdPaillier(quorum=3)), {2: (2, 2), 3: (3, 3), 100: (3, 3)}),
        (EncryptedSum(decrypters=7), {2: (2, 2), 6: (6, 2), 7: (7, 2), 100: (7, 2)}),
        (EncryptedSum(scheme=Lattice()), {2: (1, 1), 3: (1, 1), 100: (1, 1)}),
        (EncryptedSum(scheme=Lattice(), decrypters=4), {2: (2, 1), 3: (3, 1), 100: (4, 1)}),
        (EncryptedSum(scheme=SharedKey()), {2: (1, 1), 100: (1, 1)}),
        (EncryptedSum(scheme=SharedKey(), decrypters=2), {2: (2, 1), 100: (2, 1)}),
    ],
    ids=str,
)
def test_how_many_decrypters_there_are_and_how_many_must_come_together(
    made: Any, counts: dict[int, tuple[int, int]]
) -> None:
    for parties, wanted in counts.items():
        assert (made.decrypter_count(parties), made.quorum(parties)) == wanted


@pytest.mark.parametrize("made", OPENED.values(), ids=OPENED)
def test_party_that_is_alone_has_nobody_to_share_with(made: Any) -> None:
    assert made.layers(1) is None
    assert made.neighbourhood(1) is made.neighbourhood(9) is None
    assert not made.assumptions(1)
    assert not made.why_not(1)
    assert own_share(made, 1) == 1.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"decrypters": 0}, "decrypters must be at least 1"),
        ({"decrypters": 2.5}, "decrypters must be a whole number"),
        ({"decrypters": True}, "decrypters must be a whole number"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1"),
        ({"dropout": 0.95}, "together leave no honest party"),
        ({"colluding": -0.1}, "colluding must be 0 or more"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [EncryptedSum, SharedSum])
def test_settings_that_make_no_sense_are_refused(kind: Any, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        kind(**wrong)


@pytest.mark.parametrize(
    "wrong", [{"needed": 1}, {"needed": 4}, {"decrypters": 1}, {"decrypters": 2, "needed": 3}], ids=str
)
def test_shares_that_one_alone_could_open_or_nobody_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="needed must lie between 2 and"):
        SharedSum(**wrong)


@pytest.mark.parametrize("wrong", [{"scheme": "bfv"}, {"scheme": None}, {"recheck": "no"}], ids=str)
def test_something_else_than_a_scheme_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        EncryptedSum(**wrong)


@pytest.mark.parametrize("scheme", [Lattice(), SharedKey()])
def test_decrypter_that_opens_sums_alone_gets_no_uploads(scheme: Any) -> None:
    # It could open each of them.
    decryption, _ = EncryptedSum(scheme=scheme).dealt(("north",))
    assert not decryption.recheck
    assert "what the coordinator gives decrypters to open is the sum" in said(EncryptedSum(scheme=scheme), 9)
    rechecking, _ = EncryptedSum().dealt(("north", "south", "west"))
    assert rechecking.recheck


def test_key_in_parts_needs_two_decrypters_and_says_so_before_anything_is_trained() -> None:
    with pytest.raises(ConfigError, match="a single one would hold the whole key"):
        EncryptedSum(decrypters=1)
    assert EncryptedSum(decrypters=1, scheme=Lattice()).quorum(5) == 1


def test_keys_are_dealt_to_decrypters_by_name() -> None:
    for made, kind in ((EncryptedSum(), UnderCipher), (SharedSum(), InShares)):
        names = ("south", "north", "west")
        decryption, keys = made.dealt(names)
        assert isinstance(decryption.hiding, kind)
        assert (decryption.decrypters, decryption.hiding.quorum) == (names, 2)
        assert {name: key.number for name, key in keys.items()} == {"south": 0, "north": 1, "west": 2}
        again, _ = made.dealt(names)
        assert again.hiding.identity != decryption.hiding.identity


parts = st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.29, 0.3, 0.5])


@given(st.integers(2, 300), parts, parts)
def test_honest_survivors_have_all_the_noise_that_was_promised_however_many_are_left(
    parties: int, dropout: float, colluding: float
) -> None:
    assume(math.ceil((1 - dropout) * parties) > colluding * parties + 1)
    made = SharedSum(dropout=dropout, colluding=colluding)
    layers = made.layers(parties)
    assert layers is not None
    assert layers.grid == (layers.fewest,)
    target = 123.456
    each = Fraction(float(layers.variances(target).sum()))
    for survivors in {layers.fewest, (layers.fewest + parties) // 2, parties}:
        assert (survivors - layers.colluding) * each >= Fraction(target)
        assert layers.remaining(survivors, target) == float(each)
    # Nothing is added that the fewest do not need.
    assert (layers.fewest - layers.colluding) * each <= Fraction(target) * Fraction(1 + 1e-12)
    assert own_share(made, parties) == pytest.approx(1 / (layers.fewest - layers.colluding))


def test_sum_of_fewer_parties_than_the_noise_was_planned_for_is_refused() -> None:
    layers = SharedSum(dropout=0.3).layers(10)
    assert layers is not None
    with pytest.raises(Refused, match="Nothing may be opened"):
        layers.kept(6)


def test_the_sum_of_all_has_more_noise_the_more_may_drop_out() -> None:
    shares = [own_share(EncryptedSum(dropout=each), 10) for each in (0.0, 0.2, 0.5)]
    assert shares == [pytest.approx(1 / 9), pytest.approx(1 / 7), pytest.approx(1 / 4)]


def said(made: AnySum, parties: int) -> str:
    return " / ".join(f"{each.what}: {each.met}" for each in made.assumptions(parties))


@pytest.mark.parametrize("made", OPENED.values(), ids=OPENED)
@pytest.mark.parametrize("parties", [3, 100])
def test_assumptions_are_clauses_that_read_after_it_assumes_that(made: Any, parties: int) -> None:
    for each in made.assumptions(parties):
        for words in (each.what, each.met):
            assert words[0].islower() or words[0].isdigit(), words
            assert not words.endswith("."), words
            assert ". " not in words, words


@pytest.mark.parametrize("made", OPENED.values(), ids=OPENED)
def test_all_such_sums_rest_on_keys_that_everybody_knows_beforehand(made: Any) -> None:
    # Who hands out public keys could hand out his own: uploads are sealed for, and signed by, whom he likes.
    assert "every party knows beforehand the public keys of the others" in said(made, 10)


@pytest.mark.parametrize(
    ("made", "needed"),
    [
        (SharedSum(), False),
        (SharedSum(dropout=0.2, decrypters=2), False),
        (SharedSum(dropout=0.2), True),
        (SharedSum(dropout=0.2, decrypters=4), True),
        (EncryptedSum(), False),
        (EncryptedSum(dropout=0.2), True),
        (EncryptedSum(dropout=0.2, scheme=ThresholdPaillier(quorum=3)), False),
        (EncryptedSum(dropout=0.2, scheme=Lattice()), False),
    ],
    ids=str,
)
def test_sums_rest_on_the_coordinator_where_two_quorums_share_no_honest_decrypter(
    made: Any, needed: bool
) -> None:
    # One of three decrypters may tell its key. With it, each of the other two completes a quorum, and if not
    # all parties must be in a sum these can be asked for sums that differ by one.
    assert ("the coordinator tells all decrypters the same about who is left" in said(made, 10)) is needed


def test_quorum_and_scheme_are_told() -> None:
    together = "2 of 3 decrypters must come together"
    assert f"answers were encrypted (ThresholdPaillier) after noise was added; {together}" in said(
        EncryptedSum(), 10
    )
    assert f"answers were cut into shares after noise was added; {together}" in said(SharedSum(), 10)
    assert "fewer than 2 of the 3 decrypters are among those who collude" in said(SharedSum(), 10)
    assert "one decrypter opens sums" in said(EncryptedSum(scheme=Lattice()), 10)
    assert "at most one of them colludes with the coordinator" in said(SharedSum(), 10)
    assert "they do not add up uploads themselves" in said(EncryptedSum(recheck=False), 10)


def test_chance_that_a_quorum_colludes_is_told() -> None:
    # Of 100 parties 10 may collude: 45 * 90 + 120 of 161,700 draws have two or three of them.
    assert quorum_chance(100, 10, 2, 3) == pytest.approx((45 * 90 + 120) / 161_700)
    assert "with a chance of 2.6%" in said(SharedSum(), 100)
    assert quorum_chance(10, 1, 2, 3) == 0
    assert "drawn by lot" not in said(SharedSum(), 10)


def test_encrypted_sums_rest_on_parties_that_do_not_build_on_others_uploads() -> None:
    for name in ("paillier", "bfv", "one key"):
        assert "keep to the protocol" in said(OPENED[name], 10) or "follow the protocol" in said(
            OPENED[name], 10
        )
    assert "the protocol" not in said(SharedSum(), 10)


def test_key_that_every_decrypter_holds_does_not_hold_a_guarantee() -> None:
    shared = EncryptedSum(scheme=SharedKey())
    (why,) = shared.why_not(4)
    assert "a single one that talks to the coordinator opens every party's upload" in why
    run = trained(ItemSums(rounds=1, aggregate=shared), horizontal(4), random=SecureRandom())
    assert not run.guarantee.holds
    assert why in run.guarantee.why_not
    assert EncryptedSum(scheme=Lattice()).why_not(4)
    for made in (SharedSum(), EncryptedSum()):
        assert made.why_not(4) == ()
        assert trained(
            ItemSums(rounds=1, aggregate=made), horizontal(4), random=SecureRandom()
        ).guarantee.holds


def test_ledgers_beside_files_are_not_charged_for_a_key_that_protects_nobody(tmp_path: Path) -> None:
    federation = Federation.horizontal(on_disk(tmp_path, 3))
    with pytest.raises(Refused, match="charged too little"):
        trained(ItemSums(rounds=1, aggregate=EncryptedSum(scheme=SharedKey())), federation)
    assert not list(tmp_path.glob("*.ledger"))


@pytest.mark.parametrize("made", OPENED.values(), ids=OPENED)
def test_hiding_without_noise_is_said_to_be_no_differential_privacy(made: Any) -> None:
    words = without_noise(made, 5)
    assert words.startswith("Not private: nobody")
    assert "is no differential privacy" in words
    assert ("was meant to see" in words) == bool(made.why_not(5))
    assert all(why in words for why in made.why_not(5))
    assert "ratings can be recovered" in without_noise(made, 1)


def test_words_for_other_sums_without_noise_differ() -> None:
    assert "nobody was meant to see" in without_noise(IdealSum(), 5)
    assert "nobody saw more than sums" in without_noise(SecureSum(), 5)
    assert "ratings can be recovered" in without_noise(PlainSum(), 5)
