from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from cofactor.data.attributes import UserAttributes
from cofactor.data.codes import Groups
from cofactor.data.coding import Coding
from cofactor.data.features import Column
from cofactor.data.tables import Table
from cofactor.errors import ConfigError, DataError

CODING = Coding.stated({"age": Groups.between(0, 60, 2), "gender": ("F", "M")})
USERS = "user_id,age,gender\n7,31,F\n8,12,\n9,45,x\n"


def known(folder: Path) -> UserAttributes:
    (folder / "users.csv").write_text(USERS)
    return UserAttributes.from_file(folder / "users.csv", coding=CODING)


def test_rows_follow_the_users_and_strangers_have_nothing(tmp_path: Path) -> None:
    attributes = known(tmp_path)
    nothing = [np.nan, np.nan]
    np.testing.assert_array_equal(
        attributes.rows(["8", 7, 99]), [[1, 0, *nothing], [0, 1, 1, 0], [*nothing, *nothing]]
    )
    assert attributes.rows([7]).dtype == np.float32
    assert attributes.known([7, "8", 99]) == 2
    assert attributes.source == "users.csv"
    assert attributes.unseen == {"gender": 1}


def test_nothing_private_is_shown(tmp_path: Path) -> None:
    attributes = known(tmp_path)
    for text in (repr(attributes), str(attributes)):
        assert "array" not in text
        assert "ids" not in text
        assert "unseen" not in text


def test_numbers_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="read-only"):
        known(tmp_path).matrix[0, 0] = 5


def test_without_a_coding_one_is_read_off_the_table() -> None:
    cells = ["F", "M"] * 5
    table = Table(np.arange(10), (Column("gender", "category", tuple(cells)),), "users.csv")
    read = UserAttributes.of_table(table)
    assert read.coding.read_off
    assert read.coding.names == ("gender=F", "gender=M")
    assert not UserAttributes.of_table(table, Coding.stated({"gender": ("F", "M")})).coding.read_off
    with pytest.raises(DataError, match="a coding says which columns"):
        UserAttributes.of_table(table, read.coding, columns=["gender"])


@pytest.mark.parametrize("coding", [None, CODING])
def test_only_a_table_is_taken(coding: Coding | None) -> None:
    frame: Any = pl.DataFrame({"user_id": [1], "age": [31]})
    with pytest.raises(ConfigError, match=r"read_users.* not a DataFrame"):
        UserAttributes.of_table(frame, coding)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="2 ids and a coding of 4 numbers"):
        UserAttributes(coding=CODING, ids=np.array([1, 2]), matrix=np.zeros((2, 3), np.float32))
    with pytest.raises(DataError, match="occurs twice"):
        UserAttributes(coding=CODING, ids=np.array([1, 1]), matrix=np.zeros((2, 4), np.float32))
    with pytest.raises(DataError, match="infinite"):
        UserAttributes(coding=CODING, ids=np.array([1]), matrix=np.full((1, 4), np.inf, np.float32))


def test_an_id_that_occurs_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text(USERS + "7,1,F\n")
    with pytest.raises(DataError, match="occurs twice"):
        UserAttributes.from_file(tmp_path / "users.csv", coding=CODING)
