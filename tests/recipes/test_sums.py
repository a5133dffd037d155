"""How answers are added up, and what that says about noise."""

from typing import Any

import pytest

from cofactor.config import as_table, from_table
from cofactor.errors import ConfigError
from cofactor.privacy.layers import Layers
from cofactor.recipes.sums import AnySum, IdealSum, PlainSum, SecureSum, own_share

HIDDEN = [IdealSum, SecureSum]


@pytest.mark.parametrize("parties", [1, 2, 3, 100])
def test_plain_sums_share_nothing_and_assume_nothing(parties: int) -> None:
    plain = PlainSum()
    assert plain.layers(parties) is None
    assert plain.neighbourhood(parties) is None
    assert not plain.assumptions(parties)
    assert not plain.why_not(parties)
    assert own_share(plain, parties) == 1.0


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize(
    ("parties", "dropout", "colluding", "fewest", "known"),
    [
        (2, 0.0, 0.0, 2, 1),
        (3, 0.0, 0.0, 3, 1),
        (3, 0.0, 0.5, 3, 1),
        (3, 0.34, 0.0, 2, 1),
        (3, 0.33, 0.0, 3, 1),
        (10, 0.1, 0.0, 9, 1),
        (10, 0.9, 0.05, 1, 0),
        (10, 0.7, 0.2, 3, 2),
        (10, 0.3, 0.29, 7, 2),
        (10, 0.3, 0.3, 7, 3),
        (100, 0.29, 0.29, 71, 29),
        (100, 0.07, 0.1, 93, 10),
        (100, 0.58, 0.1, 42, 10),
    ],
)
def test_fractions_are_those_that_a_user_writes(
    kind: Any, parties: int, dropout: float, colluding: float, fewest: int, known: int
) -> None:
    made: AnySum = kind(dropout=dropout, colluding=colluding)
    if known == 0:
        with pytest.raises(ConfigError, match="of 10 parties 1 may be left, and 1 of them may collude"):
            made.layers(parties)
        return
    assert made.layers(parties) == Layers(parties=parties, fewest=fewest, colluding=known)


@pytest.mark.parametrize("kind", HIDDEN)
def test_party_that_is_alone_has_nobody_to_share_with(kind: Any) -> None:
    made: AnySum = kind(dropout=0.2)
    assert made.layers(1) is None
    assert made.neighbourhood(1) is None
    assert not made.assumptions(1)
    assert not made.why_not(1)
    assert own_share(made, 1) == 1.0


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize(
    ("parties", "dropout", "colluding", "share"),
    [
        (2, 0.0, 0.0, 1.0),
        (3, 0.0, 0.0, 1 / 2),
        (10, 0.0, 0.0, 1 / 9),
        (10, 0.3, 0.0, 1 / 9),
        (10, 0.0, 0.3, 1 / 7),
        (100, 0.2, 0.1, 1 / 90),
    ],
)
def test_own_share_is_what_stays_when_nobody_drops_out(
    kind: Any, parties: int, dropout: float, colluding: float, share: float
) -> None:
    # What a party added for dropouts that there were not is taken off again, so it does not count.
    assert own_share(kind(dropout=dropout, colluding=colluding), parties) == pytest.approx(share)


def test_two_parties_mask_for_the_coordinator_only() -> None:
    near = SecureSum().neighbourhood(2)
    assert near is not None
    assert (near.parties, near.fewest, near.colluding, near.chosen) == (2, 2, 0, 1)


@pytest.mark.parametrize(
    ("parties", "dropout", "colluding"), [(3, 0.0, 0.1), (10, 0.3, 0.1), (10, 0.3, 0.3), (100, 0.29, 0.29)]
)
def test_neighbours_are_planned_for_the_same_parties_as_the_noise(
    parties: int, dropout: float, colluding: float
) -> None:
    made = SecureSum(dropout=dropout, colluding=colluding)
    layers, near = made.layers(parties), made.neighbourhood(parties)
    assert layers is not None
    assert near is not None
    assert (near.parties, near.fewest) == (layers.parties, layers.fewest)
    assert near.colluding == layers.colluding
    assert near.threshold > near.colluding
    assert IdealSum(dropout=dropout, colluding=colluding).neighbourhood(parties) is None


def test_secure_sum_whose_survivors_could_open_a_single_part_is_refused() -> None:
    # Noise of two survivors is enough if one colludes; but that one could open the other's numbers.
    made = SecureSum(dropout=0.34)
    assert made.layers(3) is not None
    with pytest.raises(ConfigError, match="could open a single party's numbers"):
        made.neighbourhood(3)


def said(made: AnySum, parties: int) -> str:
    return " / ".join(f"{each.what}: {each.met}" for each in made.assumptions(parties))


def test_simulated_sum_that_parties_share_noise_for_does_not_hold() -> None:
    made = IdealSum(colluding=0.3)
    (why,) = made.why_not(10)
    assert "IdealSum simulates a secure sum" in why
    assert "that is only simulated here" in said(made, 10)
    assert "of 10 parties, at most 3 of them collude" in said(made, 10)


def test_two_parties_add_all_the_noise_so_a_simulation_is_as_good() -> None:
    made = IdealSum()
    assert not made.why_not(2)
    assert not made.assumptions(2)
    assert made.why_not(3)
    # If as many collude as leave one honest party, that one adds all of it, too.
    assert IdealSum(colluding=0.9).why_not(10) == ()


def test_secure_sum_holds_and_says_what_it_rests_on() -> None:
    made = SecureSum(dropout=0.2, colluding=0.1)
    assert made.why_not(10) == ()
    words = said(made, 10)
    assert "nobody sees more of what is summed than the sum" in words
    assert "at most one of them colludes with the coordinator" in words
    assert "every party knows beforehand the public keys of the others" in words
    assert "also against a coordinator that lies" in words


def test_many_dropouts_leave_protection_against_a_curious_coordinator_only() -> None:
    near = SecureSum(dropout=0.6).neighbourhood(10)
    assert near is not None
    assert not near.active
    assert "curious but follows the protocol" in said(SecureSum(dropout=0.6), 10)


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dropout": -0.1}, "dropout must be 0 or more"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1"),
        ({"colluding": 1.5}, "colluding must be at least 0 and below 1"),
        ({"colluding": float("nan")}, "colluding must"),
        ({"dropout": "some"}, "dropout must"),
        ({"dropout": 0.5, "colluding": 0.5}, "together leave no honest party"),
        ({"dropout": 0.7, "colluding": 0.4}, "together leave no honest party"),
    ],
    ids=str,
)
def test_parts_that_make_no_sense_are_refused(kind: Any, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        kind(**wrong)


@pytest.mark.parametrize("made", [PlainSum(), IdealSum(dropout=0.3), SecureSum(colluding=0.2)])
def test_sums_survive_their_way_to_a_table_and_back(made: AnySum) -> None:
    assert from_table(AnySum, as_table(made), "aggregate") == made
