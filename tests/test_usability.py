"""Common mistakes, and the message each must give: what is wrong, where, and what to do."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cofactor as cf

Command = Any
GOOD = "user,item,rating\n" + "".join(f"u{k % 7},i{k % 11},{k % 5 + 1}\n" for k in range(77))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a good file and several bad ones."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "word.csv").write_text(GOOD.replace("u3,i3,4", "u3,i3,four"))
    (tmp_path / "nan.csv").write_text(GOOD.replace("u3,i3,4", "u3,i3,NaN"))
    (tmp_path / "twice.csv").write_text(GOOD + "u3,i3,4\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "latin.csv").write_bytes(GOOD.replace("u3", "ü3").encode("latin-1"))
    (tmp_path / "short.csv.gz").write_bytes(gzip.compress(GOOD.encode())[:-30])
    (tmp_path / "typo.toml").write_text("[recipe.model]\nkind = 'SGD'\nepoch = 3\n")
    (tmp_path / "other.csv").write_text(GOOD.replace("u", "v").replace("v", "u", 1))
    (tmp_path / "number.csv").write_text(GOOD.replace("i", "").replace(",tem,ratng", ",item,rating"))
    (tmp_path / "budgt.toml").write_text("[budgt]\nepsilon = 1\n")
    (tmp_path / "epsilom.toml").write_text("[budget]\nepsilom = 1\n")
    (tmp_path / "private.toml").write_text("[budget]\nepsilon = 1\n")
    (tmp_path / "value.csv").write_text(GOOD.replace("rating", "value"))
    (tmp_path / "comma.csv").write_text("user;item;rating\n1;10;4,5\n2;10;3,5\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").write_text("precious")
    return tmp_path


MISTAKES: list[tuple[str, int, str]] = [
    ("train nosuch.csv", 2, r"nosuch\.csv"),
    ("train goood.csv", 2, r"Did you mean .*good\.csv"),
    ("train notes", 2, r"director|folder"),
    ("train empty.csv", 2, r"empty"),
    ("train word.csv", 2, r'word\.csv, row 5, column "rating": .*four.*--rating'),
    ("train nan.csv", 2, r'nan\.csv, row 5, column "rating"'),
    ("train twice.csv", 2, r"u3.*i3.*duplicates"),
    ("train latin.csv", 2, r"latin\.csv.*UTF-8"),
    ("train short.csv.gz", 2, r"short\.csv\.gz.*(truncated|incomplete|ends)"),
    ("train good.csv --rating stars", 2, r'"stars".*rating'),
    ("train good.csv --scale 1-5", 2, r"--scale must look like 1:5"),
    ("train good.csv --scale 1:4", 2, r"good\.csv.*5.*scale"),
    ("train good.csv --recipe poled", 2, r'Did you mean "pooled"'),
    ("train good.csv --model svd", 2, r"model must be one of"),
    ("train good.csv --factors 0", 2, r"factors must be at least 1, got 0"),
    ("train good.csv --epochs -1", 2, r"epochs must be at least 1, got -1"),
    ("train good.csv --test-fraction 1.5", 2, r"between 0 and 1"),
    ("train good.csv --config nosuch.toml", 2, r"nosuch\.toml: cannot be read"),
    ("train good.csv --config good.csv", 2, r"not valid TOML"),
    ("train good.csv --config typo.toml", 2, r'"epoch".*Did you mean "epochs"'),
    ("train good.csv --config typo.toml --factors 3", 2, r"already says how to train"),
    ("train good.csv --config private.toml", 2, r"names one file.*--parties 5 --split horizontal"),
    ("train good.csv --config budgt.toml", 2, r'budgt\.toml has "budgt".*Did you mean "budget"'),
    ("train good.csv --config epsilom.toml", 2, r'\[budget\] has "epsilom".*Did you mean "epsilon"'),
    ("train good.csv --config private.toml --epsilon 2", 2, r"\[budget\] already says.*Leave out --epsilon"),
    ("train good.csv --epsilon 2", 2, r"names one file.*--parties 5 --split horizontal"),
    ("train good.csv --recipe vertical-mf", 2, r"names one file"),
    ("train good.csv other.csv", 2, r"--split horizontal.*different users.*vertical.*different items"),
    ("train good.csv --parties 3", 2, r"name --split horizontal, --split vertical or --split on-device"),
    ("train good.csv --parties 3 --split sideways --epsilon 1", 2, r"split must be one of horizontal"),
    ("train good.csv --split horizontal --epsilon 1", 2, r"a file for each, or deal this one out"),
    ("train good.csv other.csv --parties 2 --split vertical", 2, r"several files are several parties"),
    ("train good.csv other.csv --split vertical", 1, r"name a budget.*--epsilon 1 \(.*73\.2%.*--not-private"),
    (
        "train good.csv --parties 2 --split horizontal",
        1,
        r"for each user.*Nothing was released",
    ),
    ("train good.csv --split on-device", 1, r"name a budget for each user.*Nothing was released"),
    ("train good.csv --split on-device --parties 3 --epsilon 1", 2, r"every user .* Leave out --parties"),
    ("train good.csv other.csv --split on-device --epsilon 1", 2, r"good has ratings of 7 users.*of one"),
    (
        "train good.csv --split on-device --recipe secure-als --epsilon 1 --unit rating",
        1,
        r"SecureALS cannot protect single ratings",
    ),
    ("train good.csv --split on-device --recipe alone", 2, r"a device has the ratings of one user"),
    ("train good.csv --split on-device --recipe horizontal-mf", 2, r"HorizontalMF is for horizontal"),
    ("train good.csv --split on-device --epsilon 1 --drop 0.5", 2, r"if more than 0\.3 are.*--dropout"),
    ("train good.csv --split on-device --epsilon 1 --drop 2", 2, r"drop must lie between 0 and 1"),
    ("train good.csv --split on-device --epsilon 1 --ratings-each 9", 2, r"devices with a file each"),
    ("train good.csv --drop 0.1", 2, r"names one file.*--split on-device"),
    (
        "train good.csv --split vertical --parties 2 --epsilon 1 --drop 0.1",
        2,
        r"--drop simulates devices.*Leave it out",
    ),
    ("train good.csv --sum secure", 2, r"names one file"),
    ("train good.csv other.csv --split horizontal --epsilon 1 --sum sekure", 2, r'Did you mean "secure"'),
    (
        "train good.csv other.csv --split horizontal --epsilon 1 --recipe horizontal-mf --dropout 0.2",
        2,
        r"a plain sum hides nothing.*Leave out --dropout, or add --sum secure",
    ),
    (
        "train good.csv other.csv --split horizontal --epsilon 1 --sum plain --dropout .1 --colluding .1",
        2,
        r"Leave out --dropout and --colluding",
    ),
    (
        "train nosuch.csv other.csv --split horizontal --epsilon 1 --sum secure --dropout 1.5",
        2,
        r"dropout must be at least 0 and below 1, such as 0\.2, got 1\.5",
    ),
    (
        "train nosuch.csv other.csv --split horizontal --epsilon 1 --sum secure --dropout .6 --colluding .4",
        2,
        r"leave no honest party",
    ),
    (
        "train nosuch.csv other.csv --split horizontal --epsilon 1 --sum secure --dropout 0.5",
        2,
        r"of 2 parties 1 may be left, and 1 of them may collude",
    ),
    (
        "train good.csv other.csv --split vertical --epsilon 1 --recipe dp-sgld --sum secure",
        2,
        r"DPSGLD adds up nothing.*go with secure-als, shared-biases, vertical-taste.*projected-mf",
    ),
    (
        "train good.csv other.csv --split vertical --recipe pooled --sum secure",
        2,
        r"Pooled adds up nothing that could be hidden",
    ),
    ("train good.csv --parties 9 --split horizontal --epsilon 1", 2, r"7 users cannot be divided among 9"),
    ("train good.csv good.csv --split horizontal --epsilon 1", 2, r"good\.csv is named 2 times"),
    ("train good.csv nosuch.csv --split horizontal --epsilon 1", 2, r"nosuch\.csv"),
    ("train good.csv other.csv --split horizontal --epsilon 0", 2, r"epsilon must lie between 1e-6"),
    ("train good.csv other.csv --split horizontal --epsilon 1 --delta 1", 2, r"delta must be below 0\.01"),
    ("train good.csv other.csv --split horizontal --epsilon 1 --unit users", 2, r"unit must be one of user"),
    (
        "train good.csv other.csv --split horizontal --recipe secure-als --epsilon 1 --unit rating",
        1,
        r"cannot protect single",
    ),
    ("train good.csv other.csv --split vertical --epsilon 1 --not-private", 2, r"Leave out one of them"),
    (
        "train good.csv other.csv --split vertical --epsilon 1 --recipe vertical-tast",
        2,
        r'Did you mean "vertical-taste"',
    ),
    (
        "train good.csv other.csv --split vertical --epsilon 1 --recipe horizontal-mf",
        2,
        r"HorizontalMF is for horizontal federations",
    ),
    (
        "train good.csv other.csv --split vertical --epsilon 1 --rounds 9",
        2,
        r"VerticalTaste has no rounds\..*It has directions",
    ),
    (
        "train good.csv other.csv --split vertical --epsilon 1 --recipe vertical-taste --published",
        2,
        r"VerticalTaste has no published setting",
    ),
    (
        "train good.csv other.csv --split vertical --recipe objective-perturbation",
        2,
        r"ObjectivePerturbation takes no budget.*--not-private",
    ),
    (
        "train good.csv other.csv --split vertical --recipe objective-perturbation --epsilon 1 --not-private",
        2,
        r"ObjectivePerturbation takes no budget.*Train it without one",
    ),
    (
        "train good.csv --parties 2 --split vertical --recipe dp-sgld --not-private",
        2,
        r"DPSGLD needs a budget.*VerticalMF",
    ),
    ("train good.csv other.csv --split vertical --epsilon 1 --recipe alone", 2, r"Alone takes no budget"),
    (
        "train good.csv other.csv --split vertical --epsilon 1 --model als",
        2,
        r"--model is for .*pooled",
    ),
    ("train good.csv --parties 2 --split vertical --epsilon 1 --public-items auto", 2, r"none is beside"),
    ("train good.csv --parties 2 --split vertical --epsilon 1 --public-items go.csv", 2, r"no such file"),
    ("train good.csv other.csv --split vertical --epsilon 1 --resume --out r", 2, r"nothing to resume"),
    ("train good.csv --resume", 2, r"--resume is for parties"),
    ("train good.csv --rounds 3", 2, r"SGD has no rounds"),
    ("train good.csv --from nosuch", 2, r"not a run folder"),
    ("train good.csv --from run --config typo.toml", 2, r"--from run already says.*Leave out --config"),
    ("train good.csv --from run --factors 3", 2, r"--from run already says how to train.*--factors"),
    (
        "train good.csv number.csv --split horizontal --epsilon 1 ",
        2,
        r"good: item ids are text, and other parties",
    ),
    ("compare notes", 2, r"not a run folder"),
    ("compare run", 2, r"was not measured.*--test-fraction"),
    ("compare run good.csv", 2, r"training ratings here"),
    ("compare run good.csv other.csv", 2, r"trained in one place: name its one file"),
    ("verify notes", 2, r"not a run folder"),
    ("verify run --ledger good.csv", 2, r"good\.csv\.ledger does not exist"),
    ("train good.csv --capture coordinator", 2, r"a training in one place sends none.*--parties 5"),
    (
        "train good.csv other.csv --split horizontal --epsilon 1 --capture coordinator",
        1,
        r"files of their own\. Capture simulations only.*Nothing was released",
    ),
    ("train good.csv --parties 2 --split horizontal --epsilon 1 --capture server", 2, r"'server' is no role"),
    (
        "train good.csv --parties 2 --split horizontal --recipe shared-biases --epsilon 1 --capture party:me",
        2,
        r"no party:me to capture\. The parties are party-1, party-2",
    ),
    (
        "train good.csv --parties 2 --split horizontal --epsilon 1 --capture coordinator --resume",
        2,
        r"Leave out --resume, and start it again",
    ),
    ("audit nosuch", 2, r"not a run folder"),
    ("audit run", 2, r"trained in one place, and promises nothing that canaries could test"),
    ("audit run --attack reconstuction", 2, r'Did you mean "reconstruction"'),
    ("audit run --confidence 95", 2, r"confidence must lie between 0 and 1.*write 0\.95 for 95%"),
    ("audit run --canaries 0", 2, r"canaries must be at least 1, got 0"),
    ("audit run --repeats 0", 2, r"repeats must be at least 1, got 0"),
    ("audit run --attack membership", 2, r"ratings of both: cofactor audit run candidates\.csv"),
    ("audit run --attack membership --canaries 9", 2, r"plants no canaries\. Leave out --canaries"),
    ("audit run good.csv --attack membership", 2, r"7 of 7 candidates were in.*train without some"),
    ("audit run --attack reconstruction", 2, r"kept no messages.*--capture coordinator"),
    ("audit simulated", 2, r"trained on one file, dealt out.*cofactor audit simulated ratings\.csv"),
    ("audit simulated good.csv other.csv", 2, r"trained on one file, dealt out\. Name the same"),
    ("audit simulated good.csv --canaries 5", 2, r"5 canaries are too few"),
    ("audit simulated good.csv --seen-by cordinator", 2, r'Did you mean "coordinator"'),
    ("audit simulated good.csv --seen-by party-1", 2, r'Did you mean "party:party-1"'),
    ("audit simulated good.csv --seen-by coordinator+me", 2, r"nobody called 'me' took part"),
    ("audit simulated good.csv --attack collusion", 2, r"reads messages .* and no files\. Leave them out"),
    ("audit simulated --attack reconstruction", 2, r"kept no messages.*--capture coordinator"),
    ("audit asked --attack reconstruction", 2, r'this is a survey.*"canaries"'),
    ("audit asked good.csv", 2, r"made-up people\. Leave out the files"),
    ("train value.csv", 2, r'numbers in "value".*--rating.*--implicit'),
    ("train comma.csv", 2, r'comma\.csv, row 2, column "rating".*decimals with a point'),
    ("train good.csv --out good.csv/run", 2, r"no writing to .*good\.csv"),
    ("train good.csv --out .", 2, r"the folder you are in"),
    ("train good.csv --out notes", 2, r"not a run folder"),
    ("train good.csv --public-items auto", 2, r"none is beside good\.csv\. Name it: --public-items"),
    ("train good.csv --public-items value.csv", 2, r"value\.csv.*id.*occurs twice"),
    ("show notes", 2, r"not a run folder.*cofactor train"),
    ("show nosuch", 2, r"not a run folder"),
    ("recommend run", 2, r"--user ID.*--rate"),
    ("recommend run --user u99", 2, r"no user 'u99'"),
    ("recommend run --user u33", 2, r'Did you mean "u3"'),
    ("recommend run --rate i1", 2, r"ITEM=RATING"),
    ("recommend run --rate i1=good", 2, r"ITEM=RATING"),
    ("recommend run --rate i1=2 --rate i1=3", 2, r"item i1 twice"),
    ("recommend run --rate i1=9", 2, r"outside the model's scale"),
    ("recommend run --rate film=3", 2, r"no item 'film'"),
    ("data get ml-2m", 2, r"Did you mean"),
    ("data get yelp", 1, r"by hand|yourself|yelp"),
    ("data info nosuch.csv", 2, r"nosuch\.csv"),
    ("plan --rounds 10 --delta 1e-6", 2, r"--epsilon to learn the noise, or --noise-multiplier"),
    ("plan --rounds 10 --epsilon 1", 2, r"Missing option.*--delta"),
    ("plan --rounds 0 --delta 1e-6 --epsilon 1", 2, r"rounds must be at least 1, got 0"),
    ("plan --rounds 10 --delta 1e-6 --epsilon -1", 2, r"epsilon must be 0 or more, got -1"),
    ("plan --rounds 10 --delta 0.5 --epsilon 1", 2, r"delta must be below 0\.01.*number of users"),
    ("plan --rounds 10 --delta 0 --epsilon 1", 1, r"no amount of this noise.*Laplace"),
    ("plan --rounds 10 --delta 1e-6 --epsilon 1 --unit person", 2, r"unit must be one of user, rating"),
    ("plan --rounds 10 --delta 1e-6 --epsilon 1 --adjacency swap", 2, r"adjacency must be one of empty"),
    ("plan --rounds 10 --delta 1e-6 --epsilon 1 --mechanism gausian", 2, r'Did you mean "gaussian"'),
    ("plan --rounds 10 --delta 1e-6 --epsilon 1 --sampling 2", 2, r"sampling must lie between 0 and 1"),
    (
        "plan --rounds 10 --delta 1e-6 --epsilon 1 --sampling .1 --mechanism laplace",
        2,
        r"--sampling .*gaussian mechanism only",
    ),
    (
        "plan --rounds 10 --delta 1e-6 --epsilon 1 --mechanism poisson-binomial --numbers 9",
        2,
        r"poisson-binomial needs --users",
    ),
    (
        "plan --rounds 10 --delta 1e-6 --epsilon 1 --mechanism poisson-binomial --users 9",
        2,
        r"poisson-binomial needs --numbers",
    ),
    (
        "plan --rounds 10 --delta 1e-6 --epsilon 1 --mechanism skellam --bound .5",
        2,
        r"whole numbers cannot be bounded by 0\.5",
    ),
    ("plan --rounds 10 --delta 1e-6 --epsilon 1 --sum secure", 2, r"--sum: only a recipe adds up"),
    (
        "plan --recipe on-device-mf --parties 9 --delta 1e-6 --epsilon 1 --users 9 --items 9 --ratings 9",
        2,
        r"every user is a device of its own",
    ),
    (
        "plan --recipe vertical-taste --local-steps 3 --delta 1e-6 --epsilon 1",
        2,
        r"VerticalTaste has no local_steps",
    ),
    (
        "plan --recipe horizontal-mf --dropout .1 --delta 1e-6 --epsilon 1 --users 9 --items 9 --ratings 9",
        2,
        r"a plain sum hides nothing",
    ),
    ("tain good.csv", 2, r"tain"),
    ("train", 2, r"Missing argument"),
]


@pytest.mark.parametrize(("command", "code", "message"), MISTAKES, ids=[words for words, _, _ in MISTAKES])
def test_mistake_gets_one_clear_message(
    command: str, code: int, message: str, folder: Path, cofactor: Command
) -> None:
    if " run" in command:
        assert cofactor("train", "good.csv", "--out", "run", "-q", "--epochs", 1).code == 0
    if " simulated" in command:
        dealt = ("--parties", 2, "--split", "horizontal", "--recipe", "shared-biases", "--epsilon", 4)
        assert cofactor("train", "good.csv", *dealt, "--out", "simulated", "-q").code == 0
    if " asked" in command:
        activity = ("--activity", "--range", "1:11", "--epsilon", 1)
        assert cofactor("survey", "good.csv", *activity, "--out", "asked").code == 0
    before = sorted(folder.rglob("*"))
    done = cofactor(*command.split())
    said = re.sub(r"\s+", " ", done.err)
    assert done.code == code, said
    assert re.search(message, said), said
    assert "Traceback" not in said
    assert sorted(folder.rglob("*")) == before, "a mistake must leave nothing behind"


def test_errors_are_json_too_when_asked_for(folder: Path, cofactor: Command) -> None:
    done = cofactor("train", "word.csv", "--json")
    assert done.code == 2
    assert done.json["error"]["kind"] == "DataError"
    assert "row 5" in done.json["error"]["message"]


@pytest.mark.parametrize("words", ["trian x --json", "train --json", "train good.csv --factors abc --json"])
def test_wrong_command_lines_are_json_too(words: str, folder: Path, cofactor: Command) -> None:
    done = cofactor(*words.split())
    assert done.code == 2
    assert done.json["error"]["kind"] == "UsageError"


def test_second_training_into_the_same_folder_is_refused(folder: Path, cofactor: Command) -> None:
    again = ("train", "good.csv", "--out", "run", "-q", "--epochs", 1)
    assert cofactor(*again).code == 0
    refused = cofactor(*again)
    assert (refused.code, "--force" in refused.err) == (2, True)
    assert cofactor(*again, "--force").code == 0


ONE = cf.Ratings.from_arrays([1], [1])
CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: cf.Ratings.from_arrays([1, 2], [1], [3.0]), "users has 2 entries but items has 1"),
    (lambda: cf.Ratings.from_arrays([1.5], [1], [3.0]), "ids must be whole numbers or text"),
    (lambda: cf.Ratings.from_arrays([1], [1], [np.nan]), "rating number 1 is nan"),
    (lambda: cf.Ratings.from_arrays([1], [1], [7.0], scale=cf.Scale(1, 5)), "outside the scale 1 to 5"),
    (lambda: cf.Scale(5, 1), "low < high"),
    (lambda: cf.SGD(factors=0), "factors must be at least 1, got 0"),
    (lambda: cf.SGD(learning_rate=-0.1), "learning_rate must be greater than 0"),
    (lambda: cf.Bayes(factors=-1), "factors must be 0 or more, got -1"),
    (lambda: cf.SGD(epochs=2.5), "epochs must be a whole number, got 2.5"),  # type: ignore[arg-type]
    (lambda: cf.Bayes(threads=True), "threads must be a whole number, got True"),
    (lambda: cf.Scale(1, float("inf")), "finite low < high"),
    (lambda: cf.synthetic.like("ml-2m"), "Did you mean"),
    (lambda: cf.Pooled(model="sgd"), "model must be SGD()"),  # type: ignore[arg-type]
    (lambda: cf.train(cf.SGD(), ONE), "such as Pooled(model=SGD())"),
    (lambda: cf.Ratings.from_arrays([[1]], [[1]], [[3.0]]), "got shape (1, 1)"),
    (lambda: cf.Ratings.from_arrays([1], [1], scale=cf.Scale(1, 5)), "cannot lie on a scale"),
    (lambda: cf.train(cf.Pooled(), cf.Ratings.from_arrays([], [], [])), "no ratings"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_mistake_in_python_raises_an_error_that_says_what_to_do(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(cf.CofactorError, match=re.escape(message)):
        call()
