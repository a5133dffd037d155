"""`cofactor demo`: the whole path on made-up ratings, offline, within a minute."""

from pathlib import Path
from typing import Annotated

import typer

from cofactor.cli import options
from cofactor.cli.text import RED, ProgressLine, print_json, print_line, print_recommendations, print_scores

DEMO_FOLDER = Path("runs/demo")
"""Each demo replaces the one before; a folder that was named is never replaced."""


def demo(
    out: Annotated[Path, typer.Option(help="Run folder to write.")] = DEMO_FOLDER,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Make ratings up, train on them, compare with the baselines and recommend something."""
    from cofactor.data.split import by_fraction
    from cofactor.data.synthetic import like
    from cofactor.evaluate.compare import compare
    from cofactor.federation.folder import check_free
    from cofactor.recipes.pooled import Pooled
    from cofactor.recipes.train import train

    check_free(out, overwrite=out == DEMO_FOLDER)
    made = like("ml-100k", seed=7)
    training, test = by_fraction(made.ratings, test=0.1, seed=7)
    run = train(Pooled(), training, seed=7, progress=ProgressLine(quiet=quiet or json))
    run = run.with_scores(compare(run, training, test).as_dict())
    titles = dict(zip(made.ratings.item_ids.tolist(), made.item_titles.tolist(), strict=True))
    run = run.with_titles(titles)
    run.save(out, overwrite=True)
    if json:
        guarantee = run.guarantee.as_json()
        print_json({"run": str(out), "guarantee": guarantee, "scores": run.scores, "seconds": run.seconds})
        return
    print_line(f"{made.ratings}, made up, a tenth of each user's kept back")
    print_scores(run.scores)
    user = run.model.user_ids[0].item()
    print_recommendations(f"for user {user}", run.model.recommend(user, 5))
    print_line(str(run.guarantee), "" if run.guarantee.holds else RED)
    print_line(f"Saved in {out}. Next: cofactor show {out}, or cofactor train with a file of your own.")
