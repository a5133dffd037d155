"""--user-weights and --item-weights: who is promised more, and that weights stay where they are."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.federation.run import Run
from cofactor.privacy.weights import HDPMF_USERS, groups_of
from tests.cli import worlds

Command = Any
USERS = [f"u{user}" for user in worlds.RATINGS.user_ids.tolist()]
ITEMS = [f"i{item}" for item in worlds.RATINGS.item_ids.tolist()]
WEIGHTS = {user: round(0.137191357911 + 0.013701357913 * at, 12) for at, user in enumerate(USERS)}
"""Sixty, all different, of so many digits that no other number has the same by chance."""
TRAIN = ("all.csv", "--split", "on-device", "--recipe", "personal-biases", "--epsilon", 1, "--scale", "1:5")
SHOPS = ("north.csv", "south.csv", "west.csv")
TOGETHER = (*SHOPS, "--split", "horizontal", "--epsilon", 1, "--scale", "1:5")
SIZES = ("--users", 900, "--items", 400, "--ratings", 90_000)
POLICY = """[weights]
users = "weights.csv"
personal = "sampling"
threshold = 0.5
expected = 0.4
[[weights.groups]]
name = "shy"
share = 0.25
low = 0.1
high = 0.5
[[weights.groups]]
name = "bold"
share = 0.75
low = 0.5
high = 1.0
"""


def table(rows: dict[str, object], column: str = "weight", side: str = "user") -> str:
    return f"{side},{column}\n" + "".join(f"{one},{value}\n" for one, value in rows.items())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    worlds.write(tmp_path)
    (tmp_path / "weights.csv").write_text(table(dict(WEIGHTS)))
    names = [group.name for group in HDPMF_USERS]
    chosen: dict[str, object] = {user: names[at % 3] for at, user in enumerate(USERS)}
    (tmp_path / "groups.csv").write_text(table(chosen, "group"))
    items: dict[str, object] = {item: 0.5 if at % 2 else 1.0 for at, item in enumerate(ITEMS)}
    (tmp_path / "items.csv").write_text(table(items, side="item"))
    (tmp_path / "policy.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_no_weights(place: Path) -> None:
    """Look for weights as text, and as numbers in every array, in all files of a folder.

    Among some hundred numbers of single precision one is like a weight by chance, hardly ever three are.
    """
    values = np.array(list(WEIGHTS.values()))
    files = [file for file in place.rglob("*") if file.is_file()]
    assert files
    for file in files:
        content = file.read_bytes()
        for value in values:
            assert str(value).encode() not in content, file
            assert value.tobytes() not in content, file
        if file.suffix == ".npz":
            with np.load(file) as arrays:
                numbers = [arrays[name] for name in arrays.files if arrays[name].dtype.kind == "f"]
            for array in numbers:
                found = np.isin(values.astype(array.dtype), array).sum()
                assert found < (3 if array.dtype == np.float32 else 1), file


def test_training_tells_what_groups_are_promised_and_keeps_nobodys_weight(
    folder: Path, cofactor: Command
) -> None:
    words = ("--user-weights", "weights.csv", "--item-weights", "items.csv", "--test-fraction", 0.2)
    done = cofactor("train", *TRAIN, *words, "--out", "run")
    assert done.code == 0, done.err
    assert "Weights of users from weights.csv are private" in done.err
    assert "Weights of items from items.csv are public" in done.err
    promises = (
        "conservative users (weights 0.1 to 0.5): epsilon at most 0.5",
        "moderate users (weights 0.5 to 1): epsilon at most 1",
        "liberal users (weights 1): epsilon at most 1",
    )
    shown = cofactor("show", "run").out
    for line in promises:
        assert line in done.out
        assert line in shown
    guarantee = Run.load("run").guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.adjacency) == (1.0, 1e-9, "value")
    assert guarantee.unit == "rating"
    assert_no_weights(folder / "run")
    for printed in (done.out, done.err, shown):
        assert not any(str(weight) in printed for weight in WEIGHTS.values())
    verified = cofactor("verify", "run")
    assert verified.code == 0, verified.out


def test_errors_are_shown_by_group_and_measured_again(folder: Path, cofactor: Command) -> None:
    same = ("--user-weights", "weights.csv", "--test-fraction", 0.2)
    done = cofactor("train", *TRAIN, *same, "--out", "run", "--json")
    assert done.code == 0, done.err
    groups = done.json["groups"]["groups"]
    counts = np.bincount(groups_of(HDPMF_USERS, np.array(list(WEIGHTS.values()))))
    assert [(group["name"], group["users"]) for group in groups] == [
        ("conservative", counts[0]),
        ("moderate", counts[1]),
    ]
    whole = done.json["scores"]["private"]
    ratings = np.array([group["ratings"] for group in groups])
    errors = np.array([group["mse"]["value"] for group in groups])
    assert ratings @ errors / ratings.sum() == pytest.approx(whole["mse"])
    assert [(each["name"], each["epsilon"]) for each in done.json["promised"]] == [
        ("conservative", 0.5),
        ("moderate", 1.0),
        ("liberal", 1.0),
    ]
    again = cofactor("compare", "run", "all.csv", *same, "--scale", "1:5", "--json")
    assert again.code == 0, again.err
    assert again.json["groups"] == done.json["groups"]
    (folder / "compared.json").write_text(again.out)
    assert cofactor("report", "run", "--groups", "compared.json").code == 0
    page = (folder / "run.html").read_text()
    for group in groups:
        mse = group["mse"]
        cell = f"{mse['value']:.4f} ({mse['low']:.4f} to {mse['high']:.4f})"
        assert f'{group["name"]}</th><td class="number">{group["users"]}</td>' in page
        assert cell in page
    text = cofactor("compare", "run", "all.csv", *same, "--scale", "1:5").out
    assert "Who pays for privacy, by group of users:" in text
    assert "What conservative users gain less what moderate users do" in text
    without = cofactor("compare", "run", "all.csv", "--test-fraction", 0.2, "--scale", "1:5", "--json")
    assert without.json["groups"] is None
    stored = json.dumps(json.loads((folder / "run" / "run.json").read_text())["scores"])
    assert "conservative" not in stored


@pytest.mark.usefixtures("folder")
def test_weights_are_drawn_by_the_seed_for_a_simulation(cofactor: Command) -> None:
    drawn = ("--user-weights", "hdpmf", "--item-weights", "hdpmf", "--test-fraction", 0.2)
    done = cofactor("train", *TRAIN, *drawn, "--seed", 5, "--out", "run", "--json")
    assert done.code == 0, done.err
    err = cofactor("train", *TRAIN, *drawn, "--seed", 5, "--out", "other").err
    assert err.count("a simulation. Whoever knows the seed can draw them again.") == 2
    again = cofactor(
        "compare",
        "run",
        "all.csv",
        "--user-weights",
        "hdpmf",
        "--test-fraction",
        0.2,
        "--scale",
        "1:5",
        "--json",
    )
    assert again.json["groups"] == done.json["groups"]
    assert sum(group["users"] for group in again.json["groups"]["groups"]) == 60


@pytest.mark.usefixtures("folder")
def test_sampling_is_promised_to_those_whose_part_is_less_than_the_threshold(cofactor: Command) -> None:
    words = ("--user-weights", "groups.csv", "--personal", "sampling", "--threshold", 0.7)
    done = cofactor("train", *TRAIN, *words, "--out", "run", "--json")
    assert done.code == 0, done.err
    promised = [each["epsilon"] for each in done.json["promised"]]
    assert promised == pytest.approx([0.5, 0.7, 0.7], rel=1e-9)
    assert done.json["guarantee"]["epsilon"] == pytest.approx(0.7)


def test_parties_have_weights_of_their_own(folder: Path, cofactor: Command) -> None:
    files = []
    for shop in SHOPS:
        own = {line.split(",")[0] for line in (folder / shop).read_text().splitlines()[1:]}
        name = f"weights-{shop}"
        (folder / name).write_text(table({user: WEIGHTS[user] for user in own}))
        files += ["--user-weights", name]
    words = ("--recipe", "personal-biases", "--test-fraction", 0.2, "-q")
    done = cofactor("train", *TOGETHER, *words, *files, "--out", "run", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["guarantee"]["holds"]
    assert_no_weights(folder / "run")
    ledgers = b"".join((folder / f"{shop}.ledger").read_bytes() for shop in SHOPS)
    assert b'"personal":"stretching"' in ledgers.replace(b" ", b"")
    one = cofactor("compare", "run", *SHOPS, *files, "--test-fraction", 0.2, "--scale", "1:5", "--json")
    all_in_one = ("--user-weights", "weights.csv", "--test-fraction", 0.2, "--scale", "1:5", "--json")
    assert one.json["groups"] == cofactor("compare", "run", *SHOPS, *all_in_one).json["groups"]
    assert one.json["groups"] == done.json["groups"]
    wrong = cofactor("train", *TOGETHER, *words, *files[:2], *files[4:], *files[2:4], "--out", "other")
    assert wrong.code == 2
    assert "has a weight for none of these" in wrong.err


@pytest.mark.slow
def test_a_run_goes_on_with_newer_data_if_its_weights_are_named_again(
    folder: Path, cofactor: Command
) -> None:
    words = ("--recipe", "personal-biases", "--user-weights", "groups.csv", "--personal", "sampling")
    for shop in SHOPS:
        budget = ("--epsilon", 5, "--delta", "1e-9", "--unit", "rating", "--adjacency", "value")
        assert cofactor("budget", shop, *budget).code == 0
    done = cofactor("train", *TOGETHER, *words, "-q", "--out", "run")
    assert done.code == 0, done.err
    refused = cofactor("train", *SHOPS, "--from", "run", "-q", "--out", "next")
    assert refused.code == 2
    assert "in run users had weights, which no run folder holds. Name them again" in refused.err
    twice = cofactor(
        "train", *SHOPS, "--from", "run", "--user-weights", "groups.csv", "--personal", "sampling"
    )
    assert twice.code == 2
    assert "Leave out --personal" in twice.err
    again = cofactor("train", *SHOPS, "--from", "run", "--user-weights", "groups.csv", "-q", "--out", "next")
    assert again.code == 0, again.err
    first, second = Run.load(folder / "run").guarantee, Run.load(folder / "next").guarantee
    assert first.personal is not None
    assert first.personal == second.personal
    assert (first.epsilon, first.delta, first.adjacency) == (second.epsilon, second.delta, second.adjacency)
    smaller = ("--epsilon", 0.5, "--user-weights", "groups.csv", "-q", "--out", "last")
    assert cofactor("train", *SHOPS, "--from", "run", *smaller).code == 0
    last = Run.load(folder / "last").guarantee.personal
    assert last is not None
    assert last.epsilon == 0.5


@pytest.mark.usefixtures("folder")
def test_a_run_that_promised_the_same_to_all_is_not_gone_on_with_otherwise(cofactor: Command) -> None:
    assert cofactor("train", *TRAIN, "-q", "--out", "run").code == 0
    done = cofactor("train", "all.csv", "--from", "run", "--user-weights", "weights.csv", "--out", "next")
    assert done.code == 2
    assert "run promised the same to all users. Leave out --user-weights." in done.err


def test_a_training_that_was_stopped_goes_on_with_the_same_weights_only(
    folder: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (
        *("all.csv", "--split", "on-device", "--recipe", "shared-biases", "--epsilon", 1, "--scale", "1:5"),
        *("--user-weights", "weights.csv", "--other-weights", "0.9137", "--out", "run"),
    )

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    from cofactor.cli.text import ProgressLine

    monkeypatch.setattr(ProgressLine, "__call__", stop)
    stopped = cofactor("train", *words, "-q")
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert stopped.code == 130, stopped.err
    unfinished = folder / "run.unfinished"
    assert (unfinished / "session.json").exists()
    assert_no_weights(unfinished)
    less = dict(WEIGHTS) | {USERS[0]: 0.1}
    (folder / "weights.csv").write_text(table(dict(less)))
    refused = cofactor("train", *words, "-q", "--resume")
    assert refused.code == 2
    assert (unfinished / "session.json").exists()
    (folder / "weights.csv").write_text(table(dict(WEIGHTS)))
    done = cofactor("train", *words, "-q", "--resume")
    assert done.code == 0, done.err
    assert_no_weights(folder / "run")


@pytest.mark.usefixtures("folder")
def test_settings_can_say_all_of_it(cofactor: Command) -> None:
    done = cofactor("train", *TRAIN, "--config", "policy.toml", "--out", "run", "--json")
    assert done.code == 0, done.err
    told = done.json["guarantee"]["personal"]
    assert (told["mechanism"], told["threshold"], told["epsilon"]) == ("sampling", 0.5, 1.0)
    assert [group["name"] for group in done.json["promised"]] == ["shy", "bold"]
    plan = ("plan", "--recipe", "shared-biases", "--epsilon", 1, "--delta", "1e-6", *SIZES)
    shown = cofactor(*plan, "--user-weights", "policy.toml").out
    assert (
        "shy users (weights 0.1 to 0.5): epsilon 0.1 to 0.5, taking part with a chance of 16% to 100%"
        in shown
    )
    twice = cofactor("train", *TRAIN, "--config", "policy.toml", "--personal", "sampling")
    assert twice.code == 2
    assert "policy.toml [weights] already says that. Leave out --personal." in twice.err


def test_a_policy_may_be_in_the_settings_and_weights_beside_it(folder: Path, cofactor: Command) -> None:
    (folder / "policy.toml").write_text(POLICY.replace('users = "weights.csv"\n', ""))
    done = cofactor(
        "train", *TRAIN, "--config", "policy.toml", "--user-weights", "weights.csv", "--out", "run", "--json"
    )
    assert done.code == 0, done.err
    assert [group["name"] for group in done.json["promised"]] == ["shy", "bold"]
    assert done.json["guarantee"]["personal"]["mechanism"] == "sampling"
    nobody = cofactor("train", *TRAIN, "--config", "policy.toml", "--out", "other")
    assert nobody.code == 2
    assert "whose weights? Nobody has any. Name them: --user-weights FILE." in nobody.err


def test_plan_tells_what_groups_are_promised(cofactor: Command) -> None:
    plan = ("plan", "--recipe", "personal-biases", "--epsilon", 2, "--delta", "1e-9", *SIZES)
    done = cofactor(*plan, "--user-weights", "hdpmf", "--item-weights", "hdpmf")
    assert done.code == 0, done.err
    assert 'for each rating of weight 1, adjacency "value"' in done.out
    assert "conservative users (weights 0.1 to 0.5): epsilon 0.2 to 1\n" in done.out
    assert "liberal users (weights 1): epsilon 2\n" in done.out
    assert "that is for items of weight 1" in done.out
    sampled = cofactor(*plan, "--user-weights", "hdpmf", "--personal", "sampling", "--threshold", 1, "--json")
    groups = sampled.json["groups"]
    assert [group["epsilon"] for group in groups] == [[0.2, 1.0], [1.0, 1.0], [1.0, 1.0]]
    assert groups[0]["taking_part"] == pytest.approx([np.expm1(0.2) / np.expm1(1), 1.0])
    assert cofactor(*plan, "--json").json["groups"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--user-weights", "hdpmf"), "only a recipe can use weights"),
        (("--recipe", "horizontal-mf", "--user-weights", "hdpmf"), "HorizontalMF regards no weights"),
        (("--recipe", "shared-biases", "--personal", "sampling"), "name the groups that users may choose"),
        (
            ("--recipe", "shared-biases", "--user-weights", "policy.toml", "--threshold", 1),
            "already says that. Leave out --threshold",
        ),
        (("--recipe", "shared-biases", "--user-weights", "weights.csv"), "not valid TOML"),
        (("--recipe", "shared-biases", "--user-weights", "flat.toml"), "must be a table of settings"),
    ],
)
def test_plans_that_cannot_be_are_refused(
    words: tuple[object, ...], message: str, folder: Path, cofactor: Command
) -> None:
    (folder / "flat.toml").write_text("weights = 0.5\n")
    sizes = ("--rounds", 3) if "--recipe" not in words else SIZES
    done = cofactor("plan", "--epsilon", 1, "--delta", "1e-6", *sizes, *words)
    assert done.code == 2
    assert message in " ".join(done.err.split())


USER = ("all.csv", "--split", "on-device", "--recipe", "shared-biases", "--epsilon", 1, "--scale", "1:5")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*TRAIN, "--user-weights", "none.csv"), "none.csv"),
        ((*TRAIN, "--user-weights", "nought.csv"), "nought.csv: a weight lies outside 0.0001 to 1"),
        ((*TRAIN, "--user-weights", "two.csv"), "two.csv: a weight lies outside 0.0001 to 1"),
        ((*TRAIN, "--user-weights", "text.csv"), "names a group that there is not. Groups are: conservative"),
        ((*TRAIN, "--user-weights", "twice.csv"), "occurs twice. Give each id one row."),
        ((*TRAIN, "--user-weights", "strangers.csv"), "has a weight for none of these 60 users"),
        (
            (*TRAIN, "--user-weights", "strangers.csv", "--other-weights", 0.5),
            "has a weight for none of these 60 users",
        ),
        ((*TRAIN, "--user-weights", "some.csv"), "no weight for 50 of 60 users. Add them, or say"),
        ((*TRAIN, "--user-weights", "blank.csv"), "blank.csv holds no weights: all cells are empty."),
        ((*TRAIN, "--user-weights", "table.csv"), "no column"),
        ((*TRAIN, "--item-weights", "weights.csv"), "no column looks like the ids of the items"),
        ((*TRAIN, "--user-weights", "some.csv", "--other-weights", 2), "--other-weights: a weight lies"),
        ((*TRAIN, "--user-weights", "some.csv", "--other-weights", "shy"), "--other-weights: a weight names"),
        ((*TRAIN, "--user-weights", "hdpmf", "--other-weights", 0.5), "for those whom a file leaves out"),
        ((*TRAIN, "--other-weights", 0.5), "whose weights? Nobody has any."),
        ((*TRAIN, "--personal", "sampling"), "whose weights? Nobody has any."),
        ((*TRAIN, "--user-weights", "hdpmf", "--personal", "smapling"), 'Did you mean "sampling"'),
        ((*TRAIN, "--user-weights", "hdpmf", "--threshold", 0.5), "--threshold is for --personal sampling"),
        (
            (*TRAIN, "--user-weights", "hdpmf", "--personal", "sampling", "--threshold", 3),
            "at most epsilon (1)",
        ),
        (
            (*TRAIN, "--user-weights", "weights.csv", "--user-weights", "some.csv"),
            "names 2 sources for 1 files of ratings",
        ),
        ((*USER, "--item-weights", "items.csv"), "--item-weights are for single ratings: --unit rating"),
        ((*USER, "--user-weights", "hdpmf", "--unit", "rating"), "SharedBiases regards no weights"),
        (
            (*TOGETHER, "--recipe", "horizontal-mf", "--user-weights", "hdpmf"),
            "--recipe shared-biases --unit user or --recipe personal-biases --unit rating",
        ),
        (("all.csv", "--recipe", "pooled", "--user-weights", "hdpmf"), "name"),
        (
            ("all.csv", "--split", "on-device", "--recipe", "shared-biases", "--not-private",
             "--user-weights", "hdpmf"),
            "--not-private has none",
        ),
        ((*USER[:3], "--recipe", "hdpmf", "--published", "--epsilon", 1), "HDPMF as published is not"),
        (("all.csv", "--user-weights", "weights.csv"), "this asks for parties that train together"),
        ((*TRAIN, "--config", "wrong.toml"), 'has "user". Did you mean "users"'),
        ((*TRAIN, "--config", "overlap.toml"), "overlap. Keep groups apart"),
        ((*TRAIN, "--config", "share.toml"), "must add up to 1"),
        ((*TRAIN, "--config", "drawn.toml"), "hdpmf draws from the groups of its Table 2"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_line_and_name_nobody_with_a_weight(
    words: tuple[object, ...], message: str, folder: Path, cofactor: Command
) -> None:
    some = dict(list(WEIGHTS.items())[:10])
    spoilt = {"nought": 0, "two": 2, "text": "loud"}
    for name, wrong in spoilt.items():
        (folder / f"{name}.csv").write_text(table(dict(WEIGHTS) | {USERS[7]: wrong}))
    (folder / "twice.csv").write_text(table(dict(WEIGHTS)) + f"{USERS[7]},0.7777\n")
    (folder / "strangers.csv").write_text(table({f"x{user}": 0.5 for user in USERS}))
    (folder / "some.csv").write_text(table(dict(some)))
    (folder / "blank.csv").write_text(table(dict.fromkeys(USERS, "")))
    (folder / "wrong.toml").write_text('[weights]\nuser = "weights.csv"\n')
    (folder / "overlap.toml").write_text(POLICY.replace("high = 0.5", "high = 0.6"))
    (folder / "share.toml").write_text(POLICY.replace("share = 0.25", "share = 0.5"))
    (folder / "drawn.toml").write_text(POLICY.replace("weights.csv", "hdpmf"))
    done = cofactor("train", *words, "--out", "run")
    assert done.code == 2, done.err
    assert message in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert not (folder / "run").exists()
    assert not list(folder.glob("*.ledger"))
    told = [line for line in done.err.splitlines() if USERS[7] in line]
    assert not any(value in line for line in told for value in (str(WEIGHTS[USERS[7]]), "0.7777", "loud"))


def test_users_who_are_left_out_have_what_is_said_of_them(folder: Path, cofactor: Command) -> None:
    (folder / "some.csv").write_text(table({user: WEIGHTS[user] for user in USERS[:10]}))
    words = ("--user-weights", "some.csv", "--other-weights", "conservative", "--test-fraction", 0.2)
    done = cofactor("train", *TRAIN, *words, "--out", "run")
    assert done.code == 0, done.err
    assert "50 of 60 users are not in it: they have --other-weights." in done.err
    same = ("--scale", "1:5", *words, "--json")
    found = cofactor("compare", "run", "all.csv", *same).json["groups"]["groups"]
    assert [group["users"] for group in found] == [60]


@pytest.mark.usefixtures("folder")
def test_what_cannot_be_proved_is_refused(cofactor: Command) -> None:
    done = cofactor("train", *TRAIN, "--user-weights", "hdpmf", "--adjacency", "replace", "-q")
    assert done.code == 1
    assert "has no proof for adjacency" in done.err


def test_the_same_id_at_two_parties_needs_a_file_for_each(folder: Path, cofactor: Command) -> None:
    first = (folder / "north.csv").read_text().splitlines()[1]
    (folder / "south.csv").write_text((folder / "south.csv").read_text() + first + "\n")
    words = (*TOGETHER, "--recipe", "personal-biases", "-q")
    done = cofactor("train", *words, "--user-weights", "weights.csv", "--out", "run")
    assert done.code == 2
    assert "Name a file of weights for each party" in done.err
    assert cofactor("train", *words, "--user-weights", "hdpmf", "--out", "run").code == 0


def test_a_ledger_of_personal_budgets_is_not_charged_by_others(folder: Path, cofactor: Command) -> None:
    words = (*TOGETHER, "--recipe", "personal-biases", "-q")
    budget = ("--epsilon", 5, "--delta", "1e-9", "--unit", "rating", "--adjacency", "value")
    done = cofactor("train", *words, "--user-weights", "weights.csv", "--out", "run")
    assert done.code == 0, done.err
    refused = cofactor("train", *words, "--out", "other")
    assert refused.code == 2
    assert "its budget is personal (stretching)" in refused.err
    spent = cofactor("train", *words, "--user-weights", "weights.csv", "--out", "other")
    assert spent.code == 1
    assert "--unit rating --adjacency value" in spent.err
    assert cofactor("budget", "north.csv", *budget).code == 1
    assert not (folder / "other").exists()


@pytest.mark.usefixtures("folder")
def test_whole_users_have_weights_in_shared_biases(cofactor: Command) -> None:
    done = cofactor("train", *USER, "--user-weights", "groups.csv", "-q", "--out", "run", "--json")
    assert done.code == 0, done.err
    assert (done.json["guarantee"]["unit"], done.json["guarantee"]["adjacency"]) == ("user", "empty")
    epsilons = [each["epsilon"] for each in done.json["promised"]]
    assert 0 < epsilons[0] <= 0.5 < epsilons[1] <= 1.0
    assert done.json["groups"] is None


def test_a_personal_ledger_can_be_opened_beforehand(folder: Path, cofactor: Command) -> None:
    budget = ("--epsilon", 5, "--delta", "1e-9", "--unit", "rating", "--adjacency", "value")
    opened = cofactor("budget", "all.csv", *budget, "--personal")
    assert opened.code == 0, opened.err
    assert "for each rating of weight 1" in opened.out
    assert cofactor("budget", "all.csv", "--json").json["budget"]["personal"] == "stretching"
    assert cofactor("budget", "north.csv", "--personal").code == 2


def test_weights_in_none_of_the_groups_are_counted_and_nobody_is_named(
    folder: Path, cofactor: Command
) -> None:
    weights = "".join(f"{user},0.05\n" for user in WEIGHTS)
    (folder / "faint.csv").write_text(f"user,weight\n{weights}")
    done = cofactor("train", *TRAIN, "--user-weights", "faint.csv", "--out", "run")
    assert done.code == 0, done.err
    assert "60 of 60 users have weights that lie in none of these groups." in done.err
