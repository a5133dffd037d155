"""`cofactor cluster` and `cofactor segments`: what they tell, what they promise, and what stays at home."""

import io
import json
import re
import shutil
import signal
from contextlib import redirect_stdout, suppress
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.cli import cluster_methods, cluster_wish, main
from cofactor.cli.cluster_methods import LOCALS, METHODS, chosen_local, chosen_method
from cofactor.cluster.lloyd import PrivateLloyd
from cofactor.cluster.local import LSHForest
from cofactor.cluster.local_tree import Hyperplanes
from cofactor.cluster.result import Clustering
from cofactor.cluster.tables import SecureTable
from cofactor.federation.folder import seal
from cofactor.privacy.ledger import Ledger

Command = Any
USERS, OTHERS = 400, 20
KIND = np.random.default_rng(1).integers(0, 3, USERS + OTHERS)
SECRET = "471.125"
"""An age that nobody has, of somebody: it must show nowhere but in her own file."""
RANGES = """age = [0, 120]
income = [0, 100]
[shop]
visits = [0, 60]
basket = [0, 200]
"""
QUICK = ("--method", "independent", "--align", "ids")
BEGUN = ("cluster", "bank.csv", "shop.csv", "--k", 3, "--epsilon", 9, *QUICK)
CLUSTER = (*BEGUN, "--ranges", "ranges.toml")


def table(columns: str, ids: list[str], means: list[list[float]], seed: int) -> str:
    numbers = np.array(means)[:, KIND].T + np.random.default_rng(seed).normal(0, 3, (len(KIND), len(means)))
    rows = [f"{one},{row[0]:.2f},{row[1]:.2f},word\n" for one, row in zip(ids, numbers, strict=False)]
    return f"user,{columns},town\n" + "".join(rows)


def write(place: Path) -> None:
    ids = [f"u{at}" for at in range(USERS)]
    bank = table("age,income", [*ids, *(f"b{at}" for at in range(OTHERS))], [[25, 50, 80], [20, 90, 50]], 2)
    lines = bank.splitlines()
    lines[4] = f"u3,{SECRET},20,word"
    lines[5] = "u4,,20,word"
    (place / "bank.csv").write_text("\n".join(lines) + "\n")
    header, *rows = table("visits,basket", ids, [[5, 30, 50], [150, 40, 90]], 3).splitlines()
    shop = "\n".join([header, *reversed(rows)]) + "\n"
    (place / "shop.csv").write_text(shop)
    (place / "SHOUT.csv").write_text(shop.replace("u", "U").replace("User", "user"))
    (place / "strangers.csv").write_text(shop.replace("u", "x").replace("xser", "user"))
    (place / "few.csv").write_text("user,visits\nu1,3\nu2,4\n")
    (place / "words.csv").write_text("user,town\nu1,here\nu2,there\n")
    (place / "twice.csv").write_text(f"user,x\n{SECRET},1\nu2,4\n{SECRET},2\n")
    (place / "empty.csv").write_text("")
    (place / "ranges.toml").write_text(RANGES)
    (place / "odd.toml").write_text("age = 3\n")
    (place / "broken.toml").write_text("age = [0,")
    (place / "notes").mkdir()
    (place / "notes" / "thesis.txt").write_text("precious")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A clustering that several tests look at: where it is, and what was printed."""
    place = tmp_path_factory.mktemp("once")
    write(place)
    words = ("cofactor", *map(str, CLUSTER), "--out", "run", "--plot", "found.svg")
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(io.StringIO()) as printed:
        patched.chdir(place)
        patched.setattr("sys.argv", list(words))
        with suppress(SystemExit):
            main()
    assert (place / "run").is_dir()
    return place, printed.getvalue()


@pytest.fixture
def clustered(once: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Work in a copy of it; returns what was printed."""
    shutil.copytree(once[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return once[1]


def texts(place: Path) -> str:
    files = [file for file in place.rglob("*") if file.suffix in (".json", ".jsonl", ".ledger")]
    assert files
    return "".join(file.read_text() for file in files)


def test_clusters_are_told_saved_and_charged(folder: Path, cofactor: Command) -> None:
    done = cofactor(*CLUSTER, "--out", "run", "--json")
    assert done.code == 0, done.err
    found = done.json
    assert (found["users"], found["parties"]) == (USERS, ["bank", "shop"])
    assert found["columns"] == ["age", "income", "visits", "basket"]
    assert found["ranges"] == [[0, 120], [0, 100], [0, 60], [0, 200]]
    assert [each["name"] for each in found["clusters"]] == ["cluster 0", "cluster 1", "cluster 2"]
    for each in found["clusters"]:
        for column, (low, high) in zip(found["columns"], found["ranges"], strict=True):
            assert low <= each["centre"][column] <= high
    assert found["guarantee"]["holds"]
    assert not found["guarantee"]["warnings"]
    assert found["alignment"]["how"] == "ids"
    assert found["local"]["bank"]["missing"] == 1
    assert found["local"]["bank"]["outside"] == {"age": 1}
    assert found["local"]["bank"]["left_out"] == ["town"]
    saved = Clustering.load("run")
    assert saved.sizes.tolist() == [each["users"] for each in found["clusters"]]
    assert 0 < Ledger.open("bank.csv.ledger").spent().epsilon <= 9
    assert cofactor("verify", "run").code == 0
    assert cofactor("verify", "run", "--ledger", "bank.csv", "--ledger", "shop.csv").code == 0
    for private in (SECRET, "u17", "outside", "missing"):
        assert private not in texts(folder / "run")


def test_people_are_told_what_was_found_and_what_is_promised(clustered: str, cofactor: Command) -> None:
    assert "3 clusters of 400 users whom bank and shop have in common, by 4 columns." in clustered
    assert "Left out, since not all have them: 20 of bank." in clustered
    assert re.search(r"cluster 0 +cluster 1 +cluster 2", clustered)
    assert re.search(r"about how many users +\d+ +\d+ +\d+", clustered)
    assert re.search(r"income +\d+\.\d +\d+\.\d +\d+\.\d", clustered)
    assert "bank.csv: not used, for they hold no numbers: 'town'." in clustered
    assert "bank.csv: 1 of 420 users miss a number, and are in no cluster. LOCAL" in clustered
    assert "bank.csv: 1 numbers of age lay outside 0 to 120" in clustered
    assert "(the budget allows 9)" in clustered
    assert "Charged to bank.csv.ledger: epsilon" in clustered
    assert "State ranges" not in clustered
    assert "Drawn in found.svg." in clustered
    assert "Next: cofactor verify run" in clustered
    assert "Next: cofactor segments run bank.csv" in clustered
    assert SECRET not in clustered + Path("found.svg").read_text()
    assert Path("found.svg").read_text().startswith("<svg")
    shown = cofactor("show", "run")
    assert shown.code == 0, shown.err
    assert "3 clusters of 400 users" in shown.out
    assert re.search(r"income .*", clustered)[0] == re.search(r"income .*", shown.out)[0]  # type: ignore[index]
    assert "LOCAL" not in shown.out
    assert cofactor("show", "run", "--json").json["clustering"]["parties"] == ["bank", "shop"]


@pytest.mark.usefixtures("folder")
def test_ranges_that_nobody_stated_break_the_promise(cofactor: Command) -> None:
    done = cofactor(*BEGUN, "--range", "age=0:120", "--range", "shop/visits=0:60", "--out", "run")
    assert done.code == 0, done.err
    warned = " ".join(done.out.split())
    assert "The ranges of income were read off the data of bank, and are shown" in warned
    assert "The ranges of basket were read off the data of shop, and are shown" in warned
    assert "--range income=LOW:HIGH --range basket=LOW:HIGH." in warned


@pytest.mark.usefixtures("folder")
def test_only_the_columns_that_are_named_are_used(cofactor: Command) -> None:
    done = cofactor(*BEGUN, "--columns", "basket, age", "--out", "run", "--json")
    assert done.code == 0, done.err
    assert done.json["columns"] == ["age", "basket"]


@pytest.mark.usefixtures("folder")
def test_users_in_common_are_found_in_private_and_counted_under_encryption(
    cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(chosen_method(None), SecureTable)
    # Shorter keys than usual: two thousand bits take a third of the time.
    monkeypatch.setattr(cluster_wish, "chosen_method", lambda _: SecureTable(bits=2048))
    for file in ("bank.csv", "shop.csv"):
        lines = Path(file).read_text().splitlines()
        Path(file).write_text("\n".join(line for line in lines if re.match(r"user|u\d\d?,", line)) + "\n")
    words = ("cluster", "bank.csv", "shop.csv", "--k", 2, "--epsilon", 9, "--ranges", "ranges.toml")
    done = cofactor(*words, "--out", "run", "--json")
    assert done.code == 0, done.err
    assert (done.json["users"], done.json["alignment"]["how"]) == (100, "psi")
    assert done.json["settings"]["method"]["kind"] == "SecureTable"
    assert cofactor("verify", "run").code == 0


@pytest.mark.usefixtures("clustered")
def test_segments_are_written_for_a_partys_own_users_and_cost_nothing(cofactor: Command) -> None:
    spent = Path("bank.csv.ledger").read_bytes()
    done = cofactor("segments", "run", "bank.csv")
    assert done.code == 0, done.err
    lines = Path("bank-segments.csv").read_text().splitlines()
    assert lines[0] == "user,segment"
    assert len(lines) == 1 + USERS + OTHERS
    assert lines[5] == "u4,"
    assert {line.split(",")[1] for line in lines[6:]} <= {"cluster 0", "cluster 1", "cluster 2"}
    assert "is as private as bank.csv" in done.out
    assert "none: a number is missing" in done.out
    assert Path("bank.csv.ledger").read_bytes() == spent
    again = cofactor("segments", "run", "bank.csv")
    assert (again.code, "is there already" in again.err) == (2, True)
    forced = cofactor("segments", "run", "bank.csv", "--force", "--json")
    assert (forced.code, forced.json["party"]) == (0, "bank")
    assert sum(forced.json["local"].values()) == USERS + OTHERS
    moved = Path("bank.csv").rename("february.csv")
    other = cofactor("segments", "run", moved)
    assert "knows no party 'february'. Say which of bank, shop february.csv belongs to" in other.err
    named = cofactor("segments", "run", moved, "--party", "bank", "--out", "here.csv")
    assert named.code == 0, named.err
    assert Path("here.csv").read_text() == Path("bank-segments.csv").read_text()
    wrong = cofactor("segments", "run", "shop.csv", "--party", "bank")
    assert 'shop.csv has no column "age"' in wrong.err
    before = Path("shop.csv").read_bytes(), Path("shop.csv.ledger").read_bytes()
    for place in ("shop.csv", "shop.csv.ledger", "run/run.json", "run/mine.csv"):
        refused = cofactor("segments", "run", "shop.csv", "--out", place, "--force")
        assert refused.code == 2
        assert "segments go to a .csv file" in " ".join(refused.err.split())
    assert before == (Path("shop.csv").read_bytes(), Path("shop.csv.ledger").read_bytes())
    nowhere = cofactor("segments", "run", "shop.csv", "--out", "nosuch/here.csv")
    assert "there is no folder nosuch" in nowhere.err


def test_every_local_clustering_has_a_name() -> None:
    planes = LSHForest(splits=Hyperplanes(), steps=0)
    assert [chosen_local(name) for name in LOCALS] == [LSHForest(), planes, PrivateLloyd()]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_name(name: str) -> None:
    assert 0 < chosen_method(name).share < 1


@pytest.mark.parametrize("name", LOCALS)
def test_every_way_to_cluster_alone_has_a_name(name: str) -> None:
    assert chosen_local(name).releases(width=2, clusters=3, users=100, epsilon=1.0, by="x")


LINE = "cluster bank.csv shop.csv --k 3"
MISTAKES = [
    (LINE, 1, r"say what may be learned.*cofactor cluster bank.csv shop.csv --k 3 --epsilon 1$"),
    ("cluster bank.csv shop.csv", 1, r"--k 5 --epsilon 1$"),
    ("cluster bank.csv shop.csv --epsilon 1", 2, r"say how many clusters are wanted: --k 5"),
    (f"{LINE} --epsilon 0", 2, r"epsilon must be greater than 0"),
    (f"{LINE} --epsilon 1 --delta 0", 2, r"delta above 0"),
    ("cluster bank.csv --k 3 --epsilon 1", 2, r"two parties or more, each with a file"),
    ("cluster --k 3 --epsilon 1", 2, r"two parties or more"),
    ("cluster bank.csv ./bank.csv --k 3 --epsilon 1", 2, r"bank.csv is named 2 times"),
    ("cluster bank.csv nosuch.csv --k 3 --epsilon 1", 2, r"nosuch.csv: there is no such file"),
    ("cluster bank.csv empty.csv --k 3 --epsilon 1", 2, r"empty.csv is empty"),
    ("cluster bank.csv words.csv --k 3 --epsilon 1", 2, r'no column holds numbers: "town"'),
    ("cluster bank.csv twice.csv --k 3 --epsilon 1", 2, r"twice.csv: 1 person has several rows.*rows 2 and"),
    ("cluster bank.csv strangers.csv --k 3 --epsilon 1", 2, r"no user in common"),
    ("cluster bank.csv SHOUT.csv --k 3 --epsilon 1", 2, r"no user in common.*upper and lower case"),
    ("cluster bank.csv few.csv --k 3 --epsilon 1", 2, r"3 clusters of 2 users"),
    ("cluster bank.csv shop.csv --k 1 --epsilon 1", 2, r"--k 1 is one cluster.*at least 2"),
    ("cluster bank.csv shop.csv --k 0 --epsilon 1", 2, r"k must be at least 1"),
    (f"{LINE} --epsilon 1 --local-k 0", 2, r"local_k must be at least 1"),
    (f"{LINE} --epsilon 1 --method sketchy", 2, r'method must be one of .*Did you mean "sketch"'),
    (f"{LINE} --epsilon 1 --local kmeans", 2, r"local must be one of lsh, dplsf, lloyd"),
    (f"{LINE} --epsilon 1 --align psy", 2, r'align must be one of .*Did you mean "psi"'),
    (f"{LINE} --epsilon 1 --id-rule loose", 2, r"id-rule must be one of exact, folded"),
    (f"{LINE} --epsilon 1 --among chain", 2, r"more than two files"),
    (f"{LINE} --epsilon 1 --id person", 2, r'has no column "person"'),
    (f"{LINE} --epsilon 1 --id user --id user --id user", 2, r"--id once for all files, or once for each"),
    (f"{LINE} --epsilon 1 --columns agee", 2, r'no file has "agee".*Did you mean "age"'),
    (f"{LINE} --epsilon 1 --columns age", 2, r"shop.csv has none of the columns"),
    (f"{LINE} --epsilon 1 --columns ,", 2, r"must look like age,income"),
    (f"{LINE} --epsilon 1 --range age", 2, r"must look like age=0:120"),
    (f"{LINE} --epsilon 1 --range age=9", 2, r"must look like age=0:120"),
    (f"{LINE} --epsilon 1 --range age=9:1", 2, r"lowest number first"),
    (f"{LINE} --epsilon 1 --range agee=0:1", 2, r'stated for "agee".*Did you mean "age"'),
    (f"{LINE} --epsilon 1 --range town=0:1", 2, r'stated for "town", which no file has, or not as'),
    (f"{LINE} --epsilon 1 --ranges odd.toml", 2, r"age must be its lowest and its highest number"),
    (f"{LINE} --epsilon 1 --ranges broken.toml", 2, r"not valid TOML"),
    (f"{LINE} --epsilon 1 --ranges nosuch.toml", 2, r"cannot be read"),
    (f"{LINE} --epsilon 1 --out notes", 2, r"not a run folder"),
    (f"{LINE} --epsilon 1 --plot found.png", 2, r"--plot draws SVG. Name found.svg"),
    (f"{LINE} --epsilon 1 --plot nosuch/found.svg", 2, r"no folder nosuch"),
    (f"{LINE} --epsilon 1 --budget-delta 1e-6", 2, r"goes with --budget-epsilon"),
    (f"{LINE} --epsilon 1 --users 100", 2, r"for --plan"),
    (f"{LINE} --epsilon 1 --plan", 2, r"reads no data"),
    ("cluster --plan --k 3 --epsilon 1", 2, r"--plan needs --users 20000"),
    ("cluster --plan --k 3 --epsilon 1 --users 90 --widths 4", 2, r"--widths must look like 4,4"),
    ("cluster --plan --k 3 --epsilon 1 --users 90 --widths x,y", 2, r"--widths must look like 4,4"),
    ("cluster --plan --k 3 --epsilon 1 --users 2 --widths 4,4", 2, r"3 clusters of 2 users"),
    ("segments notes bank.csv", 2, r"not a run folder"),
]  # fmt: skip


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("line", "code", "message"), MISTAKES)
def test_mistakes_say_what_to_do_and_nothing_is_released(
    line: str, code: int, message: str, cofactor: Command
) -> None:
    done = cofactor(*line.split())
    assert done.code == code, done.err
    assert re.search(message, " ".join(done.err.split())), done.err
    assert SECRET not in done.err
    assert not list(Path().glob("*.ledger"))
    assert not Path("runs").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("missing", "words", "line"),
    [
        ("scikit-learn", (), "pip install scikit-learn (or, in a clone, pip install '.[cluster]')"),
        ("gmpy2", (), "--method secure-table needs the package gmpy2. Run: pip install gmpy2 (or"),
        (
            "openmined.psi",
            ("--align", "psi"),
            "pip install openmined.psi==2.0.6 (or, in a clone, pip install '.[psi]')",
        ),
    ],
)
def test_a_missing_package_is_told_before_anything_is_charged(
    missing: str, words: tuple[str, ...], line: str, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = cluster_methods._is_there
    monkeypatch.setattr(cluster_methods, "_is_there", lambda name: name != missing and there(name))
    done = cofactor(*LINE.split(), "--epsilon", 1, *words)
    assert done.code == 2
    assert line in done.err
    assert not list(Path().glob("*.ledger"))


@pytest.mark.parametrize(
    ("package", "use", "extra"),
    [
        ("scikit-learn", "for clustering", "cluster"),
        ("openmined.psi", "to find users in common", "psi"),
        ("gmpy2", "for encrypted sums, and clustering", "he"),
    ],
)
def test_doctor_knows_what_clustering_needs(
    package: str, use: str, extra: str, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == package:
            raise PackageNotFoundError
        return "1"

    monkeypatch.setattr("cofactor.cli.doctor.version", version)
    done = cofactor("doctor", "--json")
    [found] = [check for check in done.json["checks"] if check["what"] == package]
    assert (done.code, found["found"]) == (0, "not installed")
    assert found["remedy"] == f"{use}: pip install {package} (or, in a clone, pip install '.[{extra}]')"


@pytest.mark.usefixtures("folder")
def test_ids_in_other_letters_are_found_if_that_is_wished(cofactor: Command) -> None:
    words = ("cluster", "bank.csv", "SHOUT.csv", "--k", 3, "--epsilon", 9, *QUICK)
    done = cofactor(*words, "--id-rule", "folded", "--out", "run", "--json")
    assert done.code == 0, done.err
    assert done.json["users"] == USERS


@pytest.mark.usefixtures("folder")
def test_few_users_in_common_are_wondered_at(cofactor: Command) -> None:
    Path("some.csv").write_text(Path("SHOUT.csv").read_text().replace("U1", "u1"))
    done = cofactor("cluster", "bank.csv", "some.csv", "--k", 3, "--epsilon", 9, *QUICK, "--out", "run")
    assert done.code == 0, done.err
    assert "3 clusters of 111 users" in done.out
    assert "These are few. If ids differ in upper and lower case only, cluster with --id-rule" in done.out


@pytest.mark.usefixtures("clustered")
def test_a_budget_that_is_used_up_says_what_is_left_and_what_to_do(cofactor: Command) -> None:
    more = ("cluster", "bank.csv", "shop.csv", "--k", 3, "--epsilon", 19, *QUICK)
    again = cofactor(*more, "--out", "again")
    assert again.code == 1
    told = " ".join(again.err.split())
    assert re.search(
        r"Left of bank.csv: epsilon [\d.]+ of [\d.]+; shop.csv: epsilon [\d.]+ of [\d.]+\.", told
    )
    assert "cofactor budget bank.csv --epsilon" in told
    assert not Path("again").exists()


@pytest.mark.usefixtures("folder")
def test_a_larger_budget_leaves_room_for_more(cofactor: Command) -> None:
    first = cofactor(*CLUSTER, "--out", "run", "--budget-epsilon", 90)
    assert first.code == 0, first.err
    assert "of 90 is left." in first.out
    second = cofactor(*CLUSTER, "--out", "again", "--budget-epsilon", 99)
    assert second.code == 0, second.err
    assert "--budget-epsilon was left aside" in second.out
    third = cofactor(*CLUSTER, "--out", "again")
    assert (third.code, "--force" in third.err) == (2, True)


@pytest.mark.usefixtures("folder")
def test_ctrl_c_while_parties_cluster_loses_nothing(
    cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = Clustering.save

    def interrupted(self: Clustering, *place: Any, **settings: Any) -> Path:
        signal.raise_signal(signal.SIGINT)
        return save(self, *place, **settings)

    with monkeypatch.context() as patched:
        patched.setattr(Clustering, "save", interrupted)
        stopped = cofactor(*CLUSTER, "--out", "run")
    assert stopped.code == 130
    assert "are saved: cofactor show run" in stopped.out
    assert cofactor("verify", "run").code == 0


@pytest.mark.usefixtures("clustered")
@pytest.mark.parametrize("name", ["sizes", "centres"])
def test_clusters_whose_numbers_were_changed_are_found_out(name: str, cofactor: Command) -> None:
    facts = json.loads(Path("run/run.json").read_text())
    numbers = facts["clustering"][name]
    (numbers if name == "sizes" else numbers[0])[0] += 1
    Path("run/run.json").write_text(json.dumps(seal(facts)))
    forged = cofactor("verify", "run", "--json")
    assert forged.code == 1
    assert [check["name"] for check in forged.json["checks"] if not check["holds"]] == ["clusters"]


def test_a_plan_reads_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cofactor: Command) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("cluster", "--plan", "--users", 20_000, "--widths", "4,4", "--k", 5, "--epsilon", 1)
    done = cofactor(*words, "--method", "independent")
    assert done.code == 0, done.err
    assert "5 clusters of 20,000 users: each of 2 parties finds" in done.out
    assert "DiscreteLaplace(noise_multiplier=" in done.out
    assert re.search(r"In all: epsilon (0\.9\d*|1) at delta 1e-06", done.out)
    told = cofactor(*words, "--method", "independent", "--json").json
    assert (told["widths"], told["clusters"], told["holds"]) == ([4, 4], 5, True)
    assert told["releases"]
    assert not list(tmp_path.iterdir())


def test_two_files_of_the_same_name_are_called_after_their_folders(folder: Path, cofactor: Command) -> None:
    for place, file in (("north", "bank.csv"), ("south", "shop.csv")):
        (folder / place).mkdir()
        (folder / place / "users.csv").write_text(Path(file).read_text())
    done = cofactor("cluster", "north/users.csv", "south/users.csv", *BEGUN[3:], "--out", "run", "--json")
    assert done.code == 0, done.err
    assert done.json["parties"] == ["north-users", "south-users"]


@pytest.mark.usefixtures("clustered")
@pytest.mark.parametrize("command", [("train", "--from", "run", "bank.csv"), ("compare", "run")])
def test_a_clustering_is_no_training(cofactor: Command, command: tuple[str, ...]) -> None:
    done = cofactor(*command)
    assert done.code == 2
    assert "run holds a clustering" in " ".join(done.err.split())


@pytest.mark.usefixtures("folder")
def test_a_range_is_named_once(cofactor: Command) -> None:
    done = cofactor(*BEGUN, "--range", "age=0:120", "--range", "age=0:100", "--out", "run")
    assert done.code == 2
    assert "--range names age twice" in done.err
