"""Sums that decrypters open, as people ask for them: --sum encrypted|shared, --decrypters, --scheme."""

import re
from pathlib import Path
from typing import Any

import pytest

from cofactor.cli import choose
from cofactor.cli.settings import RecipeWish
from cofactor.cli.sums import SCHEMES, SumNeeds
from cofactor.crypto.lattice import Lattice
from cofactor.crypto.shared_key import SharedKey
from cofactor.crypto.threshold import ThresholdPaillier
from cofactor.errors import ConfigError
from cofactor.federation.folder import read_facts
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.sums import AnySum, SecureSum
from tests.cli import worlds
from tests.crypto.fixed_primes import fixed_primes

Command = Any
SHOPS = ("north.csv", "south.csv", "west.csv", "--split", "horizontal")
SMALL = ("--recipe", "horizontal-mf", "--factors", "2", "--rounds", "1", "-q")
PLAN = ("plan", "--epsilon", 2, "--delta", "1e-6", "--users", 3000, "--items", 400, "--ratings", 90_000)


@pytest.fixture(autouse=True)
def keys() -> Any:
    with fixed_primes():
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return worlds.write(tmp_path)


def asked(recipe: str = "horizontal-mf", parties: int = 10, **said: Any) -> AnySum:
    split: Any = "on-device" if recipe == "on-device-mf" else "horizontal"
    found: AnySum = choose.chosen_recipe(RecipeWish(recipe=recipe, **said), split, None, parties).aggregate
    return found


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"sum": "shared"}, SharedSum()),
        ({"sum": "shared", "decrypters": 5, "dropout": 0.2}, SharedSum(decrypters=5, dropout=0.2)),
        ({"sum": "encrypted"}, EncryptedSum(scheme=ThresholdPaillier())),
        ({"sum": "encrypted", "decrypters": 4}, EncryptedSum(decrypters=4)),
        ({"sum": "encrypted", "colluding": 0.3}, EncryptedSum(colluding=0.3)),
        ({"sum": "encrypted", "scheme": "paillier"}, EncryptedSum()),
        (
            {"sum": "encrypted", "scheme": "paillier-root"},
            EncryptedSum(scheme=ThresholdPaillier(shares="root")),
        ),
        ({"sum": "encrypted", "scheme": "bfv"}, EncryptedSum(scheme=Lattice())),
        ({"sum": "encrypted", "scheme": "ckks"}, EncryptedSum(scheme=Lattice(variant="ckks"))),
        ({"sum": "encrypted", "scheme": "shared-key"}, EncryptedSum(scheme=SharedKey())),
    ],
    ids=str,
)
def test_options_say_who_opens_sums_and_how_they_are_encrypted(said: dict[str, Any], wanted: AnySum) -> None:
    assert asked(**said) == wanted


def test_nobody_drops_out_of_such_a_sum_unless_it_is_said() -> None:
    # A recipe's own sum takes noise off again that is too much; these cannot.
    assert asked("on-device-mf") == SecureSum(dropout=0.3, colluding=0.1)
    assert asked("on-device-mf", sum="shared") == SharedSum(dropout=0.0, colluding=0.1)
    assert asked("on-device-mf", sum="encrypted", dropout=0.2) == EncryptedSum(dropout=0.2, colluding=0.1)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_that_is_offered_can_be_asked_for(scheme: str) -> None:
    assert isinstance(asked(sum="encrypted", scheme=scheme), EncryptedSum)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"sum": "encripted"}, 'Did you mean "encrypted"'),
        ({"sum": "encrypted", "scheme": "pailier"}, 'Did you mean "paillier"'),
        ({"sum": "shared", "scheme": "bfv"}, "--scheme goes with --sum encrypted"),
        ({"sum": "secure", "scheme": "bfv"}, "--scheme goes with --sum encrypted"),
        ({"sum": "secure", "decrypters": 3}, "--decrypters goes with --sum encrypted and --sum shared"),
        ({"sum": "ideal", "decrypters": 3}, "--decrypters goes with --sum encrypted and --sum shared"),
        ({"decrypters": 3}, "Leave out --decrypters, or add --sum"),
        ({"scheme": "bfv"}, "Leave out --scheme, or add --sum"),
        ({"sum": "plain", "decrypters": 3, "scheme": "bfv"}, "Leave out --decrypters and --scheme"),
        ({"sum": "shared", "decrypters": 1}, "needed must lie between 2 and the decrypters"),
        ({"sum": "encrypted", "decrypters": 0}, "decrypters must be at least 1"),
        ({"sum": "encrypted", "decrypters": 1}, "a single one would hold the whole key"),
        ({"sum": "encrypted", "decrypters": 65}, "2 to 64 decrypters"),
        ({"sum": "encrypted", "dropout": 0.95}, "together leave no honest party"),
    ],
    ids=str,
)
def test_mistakes_are_told(said: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        asked(parties=100, **said)


def test_recipe_that_adds_up_nothing_is_told_where_the_options_go() -> None:
    with pytest.raises(ConfigError, match=r"--decrypters and --scheme go with secure-als.*multi-view"):
        choose.chosen_recipe(RecipeWish(recipe="local-reports", sum="shared"), "on-device", None, 10)


@pytest.mark.parametrize(
    ("words", "table", "hidden"),
    [
        (
            ("--sum", "shared", "--decrypters", 2),
            {"kind": "SharedSum", "dropout": 0.0, "colluding": 0.1, "decrypters": 2, "needed": 2},
            "answers were cut into shares after noise was added; 2 of 2 decrypters",
        ),
        (
            ("--sum", "encrypted"),
            {
                "kind": "EncryptedSum",
                "dropout": 0.0,
                "colluding": 0.1,
                "scheme": {
                    "kind": "ThresholdPaillier",
                    "bits": 2048,
                    "quorum": 2,
                    "shares": "textbook",
                    "randomness": "short",
                },
                "recheck": True,
            },
            "answers were encrypted (ThresholdPaillier) after noise was added; 2 of 3 decrypters",
        ),
    ],
    ids=["shared", "encrypted"],
)
def test_such_a_sum_is_trained_from_the_command_line_and_borne_out(
    words: tuple[Any, ...], table: dict[str, Any], hidden: str, folder: Path, cofactor: Command
) -> None:
    done = cofactor("train", *SHOPS, "--epsilon", 2, *words, *SMALL, "--out", "run")
    assert done.code == 0, done.err
    facts = read_facts("run")
    assert facts["recipe"]["aggregate"] == table
    assert facts["guarantee"]["holds"] is True
    assert hidden in done.out
    assert cofactor("verify", "run", "--ledger", "north.csv").code == 0


def test_key_that_protects_nobody_makes_no_promise(folder: Path, cofactor: Command) -> None:
    deal = ("all.csv", "--split", "horizontal", "--parties", 4, "--epsilon", 2)
    done = cofactor("train", *deal, "--sum", "encrypted", "--scheme", "shared-key", *SMALL, "--out", "run")
    assert done.code == 0, done.err
    assert read_facts("run")["guarantee"]["holds"] is False
    assert "Every decrypter holds the whole key" in done.out


def test_hiding_without_a_budget_promises_nothing(folder: Path, cofactor: Command) -> None:
    done = cofactor("train", *SHOPS, "--not-private", "--sum", "shared", *SMALL, "--out", "run")
    assert done.code == 0, done.err
    assert read_facts("run")["guarantee"]["holds"] is False
    assert "is no differential privacy" in done.out


@pytest.mark.parametrize(
    "words", [("--sum", "encrypted", "--decrypters", 1), ("--sum", "shared", "--scheme", "bfv")]
)
def test_mistake_leaves_nothing_behind(words: tuple[Any, ...], folder: Path, cofactor: Command) -> None:
    before = sorted(folder.rglob("*"))
    done = cofactor("train", *SHOPS, "--epsilon", 2, *words, *SMALL, "--out", "runs/run")
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert sorted(folder.rglob("*")) == before


TOML = """
[recipe]
kind = "HorizontalMF"
factors = 2
rounds = 1

[recipe.aggregate]
kind = "EncryptedSum"
dropout = 0.2

[recipe.aggregate.scheme]
kind = "Lattice"
variant = "bfv"
"""


def test_file_of_settings_names_scheme_and_sum(folder: Path, cofactor: Command) -> None:
    (folder / "train.toml").write_text(TOML)
    deal = ("all.csv", "--split", "horizontal", "--parties", 4, "--not-private", "--config", "train.toml")
    done = cofactor("train", *deal, "-q", "--out", "run")
    assert done.code == 0, done.err
    found = read_facts("run")["recipe"]["aggregate"]
    assert (found["dropout"], found["scheme"]) == (0.2, {"kind": "Lattice", "variant": "bfv"})
    again = cofactor("train", "all.csv", "--from", "run", "-q", "--out", "second")
    assert again.code == 0, again.err
    assert read_facts("second")["recipe"] == read_facts("run")["recipe"]
    (folder / "train.toml").write_text(TOML.replace('"bfv"', '"bgv"'))
    done = cofactor("train", *deal, "-q", "--out", "run2")
    assert (done.code, "aggregate.scheme: variant must be one of bfv, ckks" in done.err) == (2, True)


def test_plan_says_what_such_a_sum_needs(cofactor: Command) -> None:
    words = ("--recipe", "horizontal-mf", "--sum", "encrypted", "--parties", 40, "--dropout", 0.2)
    done = cofactor(*PLAN, *words)
    assert (done.code, done.err) == (0, "")
    # 32 must be left, of whom 4 may collude: a party's noise is a 28th, and nothing is taken off.
    for said in (
        "EncryptedSum of 40 parties: 32 must answer in every round, or its sum is not opened",
        "4 of them may collude, so that the sum of all has 1.43 times the variance of noise that is needed",
        "2 of 3 decrypters must come together to open a sum",
    ):
        assert said in done.out
    assert "shares keys with" not in done.out
    told = cofactor(*PLAN, *words, "--json").json["sum"]
    assert (told["kind"], told["fewest"], told["neighbours"], told["simulated"]) == (
        "EncryptedSum",
        32,
        None,
        False,
    )
    assert told["noise"] == pytest.approx(40 / 28)


def test_plan_of_a_key_that_protects_nobody_says_so(cofactor: Command) -> None:
    words = ("--recipe", "horizontal-mf", "--sum", "encrypted", "--scheme", "shared-key", "--parties", 40)
    done = cofactor(*PLAN, *words)
    assert done.code == 0
    assert "the guarantee of a run would not hold" in done.out


def test_needs_of_one_party_are_none() -> None:
    assert SumNeeds.of(SharedSum(), 1, who="parties", shared=True) is None
    two = SumNeeds.of(SharedSum(), 2, who="parties", shared=True)
    assert two is not None
    assert (two.noise, two.fewest, two.colluding, two.key_bytes) == (2.0, 2, 1, None)
