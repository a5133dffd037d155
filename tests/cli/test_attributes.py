"""--user-attributes: who may use them, how they are coded, and that they stay where they are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.codes import Groups
from cofactor.federation.run import Run
from tests.cli import worlds

Command = Any
TRAIN = ("--recipe", "multi-view", "--split", "on-device", "--not-private", "--factors", 2, "--rounds", 2)
TOML = """[attributes]
gender = ["F", "M"]
age = { kind = "Groups", edges = [30, 45] }
"""


def users_file(prefix: str = "u") -> str:
    """Sixty users; the last five have no row, and the first has a zip code that nobody else has."""
    known = worlds.RATINGS.user_ids.tolist()[:-5]
    rows = [f"{prefix}{user},{'F' if at % 3 else 'M'},{20 + at},{94105 if at else 96910},note {at}\n"
            for at, user in enumerate(known)]  # fmt: skip
    return "user_id,gender,age,zip,remark\n" + "".join(rows)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    worlds.write(tmp_path)
    (tmp_path / "users.csv").write_text(users_file())
    (tmp_path / "train.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_beside_the_ratings_is_used_and_nothing_of_it_is_kept(
    folder: Path, cofactor: Command
) -> None:
    done = cofactor(
        "train", "all.csv", *TRAIN, "--user-attributes", "auto", "--public-items", "table.csv", "--out", "run"
    )
    assert done.code == 0, done.err
    assert "User attributes from users.csv (14 numbers for each user) are private" in done.err
    assert "How they are coded is read off that table, and public:" in done.err
    for line in ("gender: one of 2 values", "age: 7 groups", "zip: US region", 'left out: "remark"'):
        assert line in done.err
    assert "5 of 60 users are not in it: they have none." in done.err
    model = Run.load(folder / "run").model
    assert model is not None
    assert model.views is not None
    assert model.views.attributes is not None
    assert model.views.attributes.columns == ("gender", "age", "zip")
    assert model.views.feature_coding is not None
    assert model.views.feature_coding.columns == ("genre",)
    kept = b"".join(file.read_bytes() for file in (folder / "run").rglob("*") if file.is_file())
    for private in (b"note ", b"94105", b"96910"):
        assert private not in kept
    for file in (folder / "run").rglob("*.npz"):
        with np.load(file) as arrays:
            # A row of attributes is 14 numbers long; what is kept are 2 factors for each of them.
            assert all(arrays[name].shape[1:] != (14,) for name in arrays.files)


@pytest.mark.usefixtures("folder")
def test_a_run_is_compared_with_items_that_are_coded_alike(cofactor: Command) -> None:
    same = ("--public-items", "table.csv", "--test-fraction", 0.2)
    done = cofactor("train", "all.csv", *TRAIN, "--user-attributes", "auto", *same, "-q", "--out", "run")
    assert done.code == 0, done.err
    again = cofactor("compare", "run", "all.csv", *same, "--json")
    assert again.code == 0, again.err
    assert "personal_ridge" in again.out
    assert again.json == cofactor("compare", "run", "--json").json


def test_a_coding_can_be_stated_in_the_settings(folder: Path, cofactor: Command) -> None:
    done = cofactor(
        "train", "all.csv", *TRAIN, "--user-attributes", "users.csv", "--config", "train.toml", "--out", "run"
    )
    assert done.code == 0, done.err
    assert "How they are coded is stated beforehand, and public:" in done.err
    model = Run.load(folder / "run").model
    assert model is not None
    assert model.views is not None
    coding = model.views.attributes
    assert coding is not None
    assert not coding.read_off
    assert coding.columns == ("gender", "age")
    assert coding.codes[1] == Groups((30, 45))


def test_values_that_the_coding_does_not_name_are_counted(folder: Path, cofactor: Command) -> None:
    (folder / "train.toml").write_text('[attributes]\ngender = ["F"]\n')
    done = cofactor(
        "train", "all.csv", *TRAIN, "--user-attributes", "auto", "--config", "train.toml", "--out", "run"
    )
    assert done.code == 0, done.err
    assert '"gender": 19 users have a value that no number stands for.' in done.err


def test_what_is_no_number_is_told_and_so_are_columns_that_tell_nothing(
    folder: Path, cofactor: Command
) -> None:
    (folder / "users.csv").write_text(users_file().replace(",20,", ",young,"))
    (folder / "train.toml").write_text(
        TOML + 'remark = ["x"]\nzip = { kind = "Year", centre = 1, spread = 1 }\n'
    )
    done = cofactor(
        "train", "all.csv", *TRAIN, "--user-attributes", "auto", "--config", "train.toml", "--out", "run"
    )
    assert done.code == 0, done.err
    assert '"age": 1 user has a value that is not a number; it counts as missing.' in done.err
    for name in ("remark", "zip"):
        assert f'"{name}": no user has a value that the coding knows; the column tells nothing.' in done.err
        assert f'"{name}": 55 users' not in done.err
    assert "young" not in done.err


def test_quiet_says_nothing_of_it(folder: Path, cofactor: Command) -> None:
    done = cofactor("train", "all.csv", *TRAIN, "--user-attributes", "auto", "-q", "--out", folder / "run")
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("all.csv", "--user-attributes", "auto"), r"Pooled makes no use of user attributes"),
        (
            ("north.csv", "south.csv", "--split", "horizontal", "--not-private", "--user-attributes", "auto"),
            "makes no use of user attributes. Leave out --user-attributes, or name a recipe that does: "
            "--recipe multi-view.",
        ),
        (("all.csv", *TRAIN, "--user-attributes", "usres.csv"), 'Did you mean "users.csv"'),
        (("all.csv", *TRAIN, "--user-attributes", "strangers.csv"), "describes none of these users"),
        (("all.csv", *TRAIN, "--config", "train.toml"), "[attributes] says how user attributes are coded"),
        (("all.csv", "--config", "train.toml"), "[attributes] says how user attributes are coded"),
        (
            ("all.csv", *TRAIN, "--user-attributes", "auto", "--config", "wrong.toml"),
            "attributes.age: kind must be one of",
        ),
        (("all.csv", *TRAIN, "--user-attributes", "auto", "--config", "flat.toml"), "must be a table"),
        (
            ("all.csv", *TRAIN, "--user-attributes", "auto", "--config", "empty.toml"),
            "[attributes] is empty. Name columns in it",
        ),
        (("all.csv", *TRAIN, "--config", "unknown.toml"), 'has "atributes". Did you mean "attributes"'),
    ],
)
def test_what_cannot_be_is_refused(
    words: tuple[object, ...], message: str, folder: Path, cofactor: Command
) -> None:
    (folder / "strangers.csv").write_text(users_file("x"))
    (folder / "wrong.toml").write_text('[attributes]\nage = { kind = "Grups", edges = [30] }\n')
    (folder / "flat.toml").write_text("attributes = 3\n")
    (folder / "unknown.toml").write_text("[atributes]\n")
    (folder / "empty.toml").write_text("[attributes]\n")
    done = cofactor("train", *words, "--out", "run")
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not (folder / "run").exists()


def test_auto_needs_a_table_beside_the_ratings(folder: Path, cofactor: Command) -> None:
    (folder / "users.csv").unlink()
    done = cofactor("train", "all.csv", *TRAIN, "--user-attributes", "auto", "--out", "run")
    assert done.code == 2
    assert "none is beside all.csv. Name it: --user-attributes users.csv" in " ".join(done.err.split())


def test_a_tag_genome_is_known_by_its_header(folder: Path, cofactor: Command) -> None:
    items = worlds.RATINGS.item_ids.tolist()
    rows = [
        f"{item},{tag},{(7 * item * tag + tag * tag) % 11 / 11:.3f}\n"
        for item in items
        for tag in range(1, 26)
    ]
    (folder / "genome.csv").write_text("movieId,tagId,relevance\n" + "".join(rows))
    numbers = worlds.text(worlds.RATINGS).replace("\nu", "\n").replace(",i", ",").replace(",tem", ",item")
    (folder / "numbers.csv").write_text(numbers)
    done = cofactor(
        "train",
        "numbers.csv",
        "--public-items",
        "genome.csv",
        "--model",
        "bayes",
        "--out",
        "run",
        "--factors",
        2,
    )
    assert done.code == 0, done.err
    assert "Item features from genome.csv (20 columns: tag genome (20)" in done.err
