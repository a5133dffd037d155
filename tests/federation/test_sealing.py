import stat
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from cofactor.errors import LedgerError
from cofactor.federation.party import fingerprint
from cofactor.federation.sealing import belongs, key_path, sealed
from cofactor.privacy.budget import Budget
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.train import train
from cofactor.survey.asking import ask
from cofactor.survey.people import People
from cofactor.survey.question import Question
from tests.survey.making import shops

AGE = Question(name="age", low=0, high=120)


def phone(folder: Path, age: int) -> People:
    file = folder / "phone.csv"
    file.write_text(f"age\n{age}\n")
    return People(name="phone", values=np.array([float(age)]), file=file, fingerprint=fingerprint(file))


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_the_hash_of_a_small_file_stands_nowhere_in_a_run_folder(tmp_path: Path) -> None:
    people = phone(tmp_path, 42)
    ask(people, AGE, epsilon=0.1).save(tmp_path / "run")
    told = contents(tmp_path / "run") + (tmp_path / "phone.csv.ledger").read_bytes()
    assert sha256(b"age\n42\n").hexdigest().encode() not in told
    assert key_path(tmp_path / "phone.csv.ledger").read_bytes().strip() not in told


def test_nor_in_that_of_a_training(tmp_path: Path) -> None:
    federation = shops(tmp_path, users=40)
    budget = Budget(epsilon=2.0, delta=1e-6, unit="user")
    train(HorizontalMF(factors=2, rounds=1), federation, budget=budget).save(tmp_path / "run")
    told = contents(tmp_path / "run")
    for party in federation.parties:
        assert party.fingerprint.removeprefix("sha256:").encode() not in told


def test_the_same_file_looks_different_in_two_places(tmp_path: Path) -> None:
    told = [sealed("sha256:1", tmp_path / name) for name in ("a.ledger", "b.ledger")]
    assert told[0] != told[1]
    assert told[0] == sealed("sha256:1", tmp_path / "a.ledger")


def test_a_ledger_knows_its_data_and_no_others(tmp_path: Path) -> None:
    ledger = tmp_path / "a.ledger"
    told = sealed("sha256:1", ledger)
    assert belongs(told, "sha256:1", ledger)
    assert not belongs(told, "sha256:2", ledger)
    key_path(ledger).unlink()
    assert not belongs(told, "sha256:1", ledger)


def test_a_ledger_from_before_there_were_keys_still_knows_its_data(tmp_path: Path) -> None:
    assert belongs("sha256:1", "sha256:1", tmp_path / "a.ledger")
    assert not belongs("sha256:1", "sha256:2", tmp_path / "a.ledger")


def test_a_key_is_for_its_owner_only(tmp_path: Path) -> None:
    sealed("sha256:1", tmp_path / "a.ledger")
    assert stat.S_IMODE(key_path(tmp_path / "a.ledger").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a.ledger.key"]


def test_processes_that_begin_together_agree_on_the_key(tmp_path: Path) -> None:
    with get_context("spawn").Pool(3) as pool:
        told = pool.starmap(sealed, [("sha256:1", tmp_path / "a.ledger")] * 12)
    assert len(set(told)) == 1


@pytest.mark.parametrize("content", ["", "no key", "ab" * 31])
def test_a_damaged_key_says_what_to_do(tmp_path: Path, content: str) -> None:
    key_path(tmp_path / "a.ledger").write_text(content)
    with pytest.raises(LedgerError, match="is no key"):
        sealed("sha256:1", tmp_path / "a.ledger")


def test_a_folder_that_cannot_be_written_to_says_so(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be written"):
        sealed("sha256:1", tmp_path / "missing" / "a.ledger")


def test_a_ledger_that_is_gone_while_its_key_is_there_is_missed(tmp_path: Path) -> None:
    people = phone(tmp_path, 42)
    ask(people, AGE, epsilon=0.1)
    (tmp_path / "phone.csv.ledger").unlink()
    with pytest.raises(LedgerError, match="is gone, and its key is still here"):
        ask(people, AGE, epsilon=0.1)


def test_a_key_that_is_gone_is_named(tmp_path: Path) -> None:
    people = phone(tmp_path, 42)
    ask(people, AGE, epsilon=0.1, budget=Budget(epsilon=1.0, delta=0.0, unit="user"))
    key_path(tmp_path / "phone.csv.ledger").unlink()
    with pytest.raises(LedgerError, match=r"phone\.csv\.ledger\.key is missing"):
        ask(people, AGE, epsilon=0.1)
    ask(people, AGE, epsilon=0.1, newer_data=True)
    ask(people, AGE, epsilon=0.1)
