"""A party, its file and its name."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.errors import ConfigError
from cofactor.federation.party import Party, fingerprint, ledger_path
from tests.federation.making import ratings

CSV = "user,item,rating\na,1,5\na,2,3\nb,1,1\n"


def test_party_is_read_from_a_file_and_named_after_it(tmp_path: Path) -> None:
    path = tmp_path / "north shop.2024.csv"
    path.write_text(CSV)
    party = Party.from_csv(path)
    assert party.name == "north shop"
    assert len(party.ratings) == 3
    assert party.ledger_path == tmp_path / "north shop.2024.csv.ledger" == ledger_path(path)
    assert party.fingerprint == fingerprint(path) == f"sha256:{sha256(CSV.encode()).hexdigest()}"
    assert Party.from_csv(path, name="other").name == "other"


def test_letters_that_no_name_may_have_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "zürich(1).csv"
    path.write_text(CSV)
    assert Party.from_csv(path).name == "z-rich-1-"


def test_party_without_a_file_has_no_ledger_of_its_own() -> None:
    assert Party(name="north", ratings=ratings(1)).ledger_path is None


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "-x", " x", "a\nb", "é", "x" * 65, 5, None])
def test_name_that_could_be_no_file_is_refused(name: Any) -> None:
    with pytest.raises(ConfigError, match="a party's name must be"):
        Party(name=name, ratings=ratings(1))


@pytest.mark.parametrize("name", ["a", "north", "shop no. 5", "x" * 64, "2024-01", "_"])
def test_usual_names_are_fine(name: str) -> None:
    assert Party(name=name, ratings=ratings(1)).name == name


def test_ratings_must_be_ratings() -> None:
    with pytest.raises(ConfigError, match="Read them with read_ratings"):
        Party(name="north", ratings=[(1, 2, 3.0)])  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(4, 2), (5,), (5, 2, 1), ()])
def test_features_have_a_row_for_every_item(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="one row for each"):
        Party(name="north", ratings=ratings(1), features=np.zeros(shape, np.float32))


def test_nobody_prints_ratings_by_accident() -> None:
    party = Party(name="north", ratings=ratings(1), features=np.full((5, 1), 7.25, np.float32))
    assert "7.25" not in repr(party)
    assert "Ratings" not in repr(party)


def test_other_ratings_leave_the_rest_alone(tmp_path: Path) -> None:
    party = Party(name="north", ratings=ratings(1), file=tmp_path / "x.csv", fingerprint="f")
    other = party.with_ratings(ratings(2))
    assert (other.name, other.file, other.fingerprint) == (party.name, party.file, party.fingerprint)
    assert other.ratings is not party.ratings
