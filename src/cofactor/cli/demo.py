"""`cofactor demo`: two private federations on made-up ratings, and an attack, offline, within a minute."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofactor.cli import demo_attack, options
from cofactor.cli.interrupt import interrupted_between_steps
from cofactor.cli.outcome import as_object, print_comparison, print_guarantee, print_next, size_of
from cofactor.cli.parties import dealt
from cofactor.cli.text import ProgressLine, print_json, print_line
from cofactor.errors import RunError
from cofactor.figures import readable

if TYPE_CHECKING:
    from cofactor.data.synthetic import Synthetic
    from cofactor.federation.federation import Federation
    from cofactor.federation.run import Run
    from cofactor.federation.splits import Split

DEMO_FOLDER = Path("runs/demo")
"""Each demo replaces the one before; a folder that was named is never replaced."""
SEED = 7


@dataclass(frozen=True)
class _Scene:
    """One federation to show."""

    split: "Split"
    skew: float
    """How different in size the parties are."""
    story: str


SCENES = (
    _Scene("horizontal", 1.5, "Five shops, large and small, with different customers, each protected."),
    _Scene("vertical", 0.0, "Five services with the same customers, whose ratings are protected one by one."),
)
PARTIES, EPSILON = 5, 4.0


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = DEMO_FOLDER,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Make ratings up, let parties train on them in private, say whether it was worth it, and attack."""
    from cofactor.federation.folder import check_free

    if (out / "run.json").exists() and out != DEMO_FOLDER:
        raise RunError(f"{out} already holds a run. Name another folder with --out.")
    folders: dict[str, Path] = {scene.split: out / scene.split for scene in SCENES}
    phones = demo_attack.folders(out)
    for folder in (*folders.values(), *phones.values()):
        check_free(folder, overwrite=out == DEMO_FOLDER)
    invented = made()
    if not json:
        print_line(f"{invented.ratings}, made up, a tenth of each user's kept back")
    facts: dict[str, Any] = {}
    for scene in SCENES:
        with interrupted_between_steps(ProgressLine(quiet=quiet or json)) as progress:
            run = _trained(scene, invented, progress)
        run.save(folders[scene.split], overwrite=True)
        facts[scene.split] = run.facts()
        if not json:
            _tell(scene, run, folders[scene.split])
    attacked = demo_attack.attacked(phones, quiet=quiet or json)
    if json:
        told = {name: as_object(own, folders[name]) for name, own in facts.items()}
        print_json(told | {f"phones-{name}": own.as_object() for name, own in attacked.items()})
    else:
        demo_attack.tell(attacked)
        print_next("report", folders["vertical"], "--open")
        print_line(f"Or attack it yourself: cofactor audit {phones['plain']} --attack {demo_attack.ATTACK}")
        print_line("Or with files of your own: cofactor train A.csv B.csv --split horizontal --epsilon 4")


def made() -> "Synthetic":
    """Make ratings up."""
    from cofactor.data.synthetic import Shape, make

    return make(Shape(users=6_000, items=400, ratings=120_000, minimum=8), seed=SEED)


def _trained(scene: _Scene, invented: "Synthetic", progress: Any) -> "Run":
    from cofactor.evaluate.compare import compare
    from cofactor.privacy.budget import Budget
    from cofactor.recipes.recommended import USUAL_UNIT, recommended
    from cofactor.recipes.train import train

    training, test = _federations(scene, invented)
    unit = USUAL_UNIT[scene.split]
    budget = Budget(epsilon=EPSILON, delta=1e-6, unit=unit)
    run = train(recommended(scene.split, unit), training, budget=budget, seed=SEED, progress=progress)
    start = time.perf_counter()
    scores = compare(run, training, test).as_dict()
    run = run.with_scores(scores, time.perf_counter() - start)
    titles = dict(zip(invented.ratings.item_ids.tolist(), invented.item_titles.tolist(), strict=True))
    return run.with_titles(titles)


def _federations(scene: _Scene, invented: "Synthetic") -> "tuple[Federation, Federation]":
    """Deal the ratings out, those for testing as those for training."""
    from cofactor.data.split import by_fraction

    ratings = invented.ratings
    train, test = (
        dealt(part, scene.split, PARTIES, seed=SEED, scale=ratings.scale, skew=scene.skew)
        for part in by_fraction(ratings, test=0.1, seed=SEED)
    )
    return train, test


def _tell(scene: _Scene, run: "Run", folder: Path) -> None:
    facts = run.facts()
    together = facts["together"]
    print_line(f"\n{scene.story}", "bold")
    print_line(f"{size_of(facts)}; {facts['recipe']['kind']} in {run.seconds:.1f} s")
    print_line(f"{together['rounds']:,} rounds, {readable(together['bytes'])} in all messages")
    print_comparison(facts["scores"])
    print_guarantee(facts["guarantee"], together)
    print_line(f"Saved in {folder}.")
