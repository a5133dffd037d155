"""`cofactor compare`: a saved run measured again, or what was measured when it was trained."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from cofactor.cli import options
from cofactor.cli.attributes import codes_items
from cofactor.cli.common_users import as_before
from cofactor.cli.outcome import (
    groups_as_object,
    print_comparison,
    print_groups,
    scores_as_object,
    size_of,
)
from cofactor.cli.parties import Gathering, Reading, split_off
from cofactor.cli.parties import public_items as find_public_items
from cofactor.cli.settings import WeightsWish, number_or_word
from cofactor.cli.text import print_json, print_line
from cofactor.cli.weights import Stated, check_sources, measured_by_group
from cofactor.errors import ConfigError, DataError

if TYPE_CHECKING:
    from cofactor.data.public_items import PublicItems
    from cofactor.data.ratings import Ratings
    from cofactor.evaluate.by_group import ErrorsByGroup
    from cofactor.federation.federation import Federation
    from cofactor.federation.run import Run


def compare(
    run: options.RunFolder,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="The files that the run was trained on, in the same order."),
    ] = None,
    test_fraction: Annotated[
        float, typer.Option(help="Share of each user's ratings that was kept back when the run was trained.")
    ] = 0.1,
    public_items: options.PublicItems = None,
    user_weights: options.UserWeights = None,
    other_weights: options.OtherWeights = None,
    items: options.Items = None,
    member: options.Member = None,
    user: options.UserColumn = None,
    item: options.ItemColumn = None,
    rating: options.RatingColumn = None,
    time: options.TimeColumn = None,
    scale: options.Scale = None,
    duplicates: options.Duplicates = "error",
    implicit: options.Implicit = False,
    json: options.Json = False,
) -> None:
    """Say whether joining was worth it: each party alone, together and pooled, on ratings kept back.

    Without files, what was measured when the run was trained is printed again. With --user-weights, errors
    are also shown by group of users: who pays for privacy.
    """
    from cofactor.federation.folder import read_facts

    facts = read_facts(run)
    if "clustering" in facts:
        raise ConfigError(f"{run} holds a clustering, and there are no ratings to compare. Look at it: show.")
    scores, by_group = facts["scores"], None
    stated = _stated(facts, user_weights, other_weights, files)
    if files:
        reading = Reading(
            user=user,
            item=item,
            rating=rating,
            time=time,
            scale=scale,
            duplicates=duplicates,
            member=member,
            implicit=implicit,
        )
        coded = codes_items(facts["recipe"]["kind"])
        known = find_public_items(public_items, files[0], items, coded=coded)
        scores, by_group = _measured(run, files, reading, test_fraction, known, stated)
    elif not scores:
        raise ConfigError(
            f"{run} was not measured when it was trained. Name the files that it was trained on, and the "
            "--test-fraction that was kept back."
        )
    if json:
        parties = (facts.get("together") or {}).get("parties", {})
        session = (facts.get("together") or {}).get("session")
        about = {"run": str(run), "session": session, "data": facts["data"]}
        about["groups"] = groups_as_object(by_group)
        print_json(about | scores_as_object(scores, parties))
        return
    print_line(f"{run}: {size_of(facts)}; {facts['recipe']['kind']}")
    print_comparison(scores)
    print_groups(by_group)


def _stated(
    facts: Mapping[str, Any], users: list[str] | None, otherwise: str | None, files: list[Path] | None
) -> "Stated | None":
    """Read users' weights; their groups are those of the run, if it had any."""
    if users and not files:
        raise ConfigError("--user-weights: name the files that the run was trained on, too.")
    told = facts["guarantee"].get("personal") or {}
    wish = WeightsWish(
        users=tuple(users) if users else None,
        otherwise=None if otherwise is None else number_or_word(otherwise),
        groups=tuple(told.get("groups", ())) or None,
    )
    check_sources(wish, len(files or ()))
    return Stated.read(wish, facts["seed"])


def _measured(
    folder: Path,
    files: list[Path],
    reading: Reading,
    fraction: float,
    public: "PublicItems | None",
    stated: "Stated | None",
) -> "tuple[dict[str, Any], ErrorsByGroup | None]":
    from cofactor.evaluate.compare import compare as measure
    from cofactor.federation.run import Run

    run = Run.load(folder)
    train, test = _parts(run, files, reading, fraction)
    _check_same(run, train)
    scores = measure(run, train, test, public_items=public).as_dict()
    return scores, measured_by_group(run, train, test, stated)


def _parts(
    run: "Run", files: list[Path], reading: Reading, fraction: float
) -> "tuple[Ratings | Federation, Ratings | Federation]":
    """Divide the files as they were divided for the training."""
    together = run.together
    if together is None and len(files) == 1:
        train, test = split_off(reading.ratings(files[0]), fraction, run.seed)
        assert test is not None
        return train, test
    if together is None:
        raise ConfigError(
            "this run was trained in one place: name its one file. If several files were pooled, train again "
            "with --test-fraction."
        )
    if together.simulated != (len(files) == 1):
        count = "one file, dealt out" if together.simulated else f"{len(together.parties)} files"
        raise ConfigError(f"this run was trained on {count}. Name the same.")
    gathering = Gathering(
        files=files,
        split=together.split,
        parties=len(together.parties) if together.simulated else None,
        test_fraction=fraction,
        seed=run.seed,
        alignment=as_before(together.alignment),
    )
    parts = gathering.parts(reading)
    return cast("tuple[Federation, Federation]", parts)


def _check_same(run: "Run", train: Any) -> None:
    """Refuse other ratings than those of the training: they could be tested on what they were fitted to."""
    if run.together is None:
        trained, found = {"the file": run.data.ratings}, {"the file": len(train)}
    elif run.together.split == "on-device":
        # How many ratings a device has is nobody's business, so that only its own model tells.
        trained = {name: 0 if home.seen is None else len(home.seen.index) for name, home in run.homes.items()}
        found = {party.name: len(party.ratings) for party in train.parties}
    else:
        trained = {name: facts.ratings for name, facts in run.together.parties.items()}
        found = {party.name: len(party.ratings) for party in train.parties}
    for name in trained.keys() | found.keys():
        if trained.get(name) != found.get(name):
            raise DataError(
                f"{name} has {found.get(name, 0):,} training ratings here, and had {trained.get(name, 0):,} "
                "when the run was trained. Name the same files in the same order, and the --test-fraction "
                "that was kept back."
            )
