"""The command that does a run again, as far as its folder knows: files are for whoever has them to name."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cofactor.cli.typed import command_lines
from cofactor.config import as_table

if TYPE_CHECKING:
    from cofactor.report.folder import Folder

FILE = "FILE"
"""In place of a file of which a run folder knows nothing."""
_MOST_FILES = 20
_PROPOSED = """cofactor host propose COORDINATOR --config job.toml --out plan.json
cofactor host run COORDINATOR --plan plan.json"""


def again(folder: "Folder") -> str:
    """Return a command that can be pasted, once its files are named."""
    if (folder.together or {}).get("approvals"):
        # Real parties agree to a plan, which is made of a file that the coordinator has.
        return _PROPOSED
    words = {"survey": _survey, "clustering": _clustering, "training": _training}[folder.kind](folder)
    return command_lines(("cofactor", *words))


def _training(folder: "Folder") -> Iterator[object]:
    facts, together = folder.facts, folder.together or {}
    several = bool(together) and not together["simulated"]
    yield from ("train", *_files(len(folder.parties) if several else 1))
    yield from ("--from", folder.name, "--seed", facts.get("seed"))
    personal = folder.guarantee.get("personal") or {}
    named = {
        "--public-items": facts["recipe"].get("public_items"),
        "--user-weights": personal.get("groups") or personal.get("expected", 1) != 1,
        "--item-weights": personal.get("weighs_items"),
    }
    for option, wanted in named.items():
        yield from (option, FILE) if wanted else ()


def _files(count: int) -> list[str]:
    return [FILE] * count if count <= _MOST_FILES else [FILE, "..."]


def _survey(folder: "Folder") -> Iterator[object]:
    from cofactor.survey.before_training import ACTIVITY, RATING

    recipe, asked = folder.facts["recipe"], folder.facts["survey"]["question"]
    activity = asked["name"] == ACTIVITY
    yield from ("survey", FILE)
    if activity:
        yield "--activity"
    elif asked["name"] == RATING:
        yield "--rating"
    else:
        yield from ("--column", asked["name"])
    yield from ("--range", _range(asked["low"], asked["high"]))
    yield from (f"--{name}" for name in ("whole", "log") if asked.get(name) and not activity)
    method = _survey_method(recipe, asked, int(folder.facts["survey"]["answered"]))
    if method is not None:
        yield from ("--method", method)
        yield from () if recipe.get("buckets") is None else ("--buckets", recipe["buckets"])
    yield from ("--epsilon", _number(recipe["epsilon"]))


def _survey_method(recipe: Mapping[str, Any], asked: Mapping[str, Any], people: int) -> str | None:
    """Return what the command line calls a method; None if it has settings that only Python can say."""
    from cofactor.cli.survey_methods import MEANS, METHODS, chosen_method
    from cofactor.config import from_table
    from cofactor.errors import CofactorError
    from cofactor.survey.question import Question

    question = from_table(Question, asked, "question")
    for name in METHODS:
        buckets = None if name in MEANS else recipe.get("buckets")
        try:
            made = chosen_method(name, question, recipe["epsilon"], buckets, people)
        except CofactorError:
            continue  # it does not go with such a question
        if as_table(made) == recipe:
            return name
    return None


def _clustering(folder: "Folder") -> Iterator[object]:
    from cofactor.cli.cluster_methods import LOCALS, METHODS, chosen_local, chosen_method

    recipe, found = folder.facts["recipe"], folder.facts["clustering"]
    together, parties = folder.facts["together"], found["parties"]
    yield from ("cluster", *_files(len(parties)), "--k", len(found["centres"]))
    for option, names, made, table in (
        ("--method", METHODS, chosen_method, recipe["method"]),
        ("--local", LOCALS, chosen_local, recipe["local"]),
    ):
        same = next((name for name in names if as_table(made(name)) == table), None)
        yield from () if same is None else (option, same)
    yield from ("--local-k", found["local_clusters"])
    yield from _alignment(together["alignment"], len(parties))
    yield from ("--columns", ",".join(dict.fromkeys(name for own in found["columns"] for name in own)))
    for party, columns, ranges in zip(parties, found["columns"], found["ranges"], strict=True):
        for column, (low, high) in zip(columns, ranges, strict=True):
            yield from ("--range", f"{party}/{column}={_range(low, high)}")
    budget = together["budget"]
    yield from ("--epsilon", _number(budget["epsilon"]), "--delta", _number(budget["delta"]))
    yield from ("--seed", folder.facts.get("seed"))


def _alignment(found: Mapping[str, Any], parties: int) -> Iterator[object]:
    yield from ("--align", found["how"])
    if found["how"] == "psi" and parties > 2:
        yield from ("--among", found["among"])
    if found["rule"] != "exact":
        yield from ("--id-rule", found["rule"])


def _range(low: float, high: float) -> str:
    return f"{_number(low)}:{_number(high)}"


def _number(value: float) -> str:
    return f"{value:.15g}"
