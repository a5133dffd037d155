"""`cofactor audit`: try to break what a run folder holds, as one of those who took part."""

from pathlib import Path
from typing import Annotated

import typer

from cofactor.attacks.result import ATTACKS
from cofactor.cli import options
from cofactor.cli.audit_data import CANARIES, Given, check_roles
from cofactor.cli.audit_text import print_audit
from cofactor.cli.interrupt import interrupted_between_steps
from cofactor.cli.parties import Reading
from cofactor.cli.text import ProgressLine, print_json, print_line
from cofactor.config import one_of, whole
from cofactor.errors import ConfigError


def audit(
    run: options.RunFolder,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="For canaries: files of ratings, as the run was trained on. For membership: ratings of "
            "users, some of whom were in, and some were not.",
            show_default=False,
        ),
    ] = None,
    attack: Annotated[str, typer.Option(help=f"What to try: {', '.join(ATTACKS)}.")] = "canaries",
    seen_by: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="Who attacks: coordinator, party:NAME or public; with a + between those who collude.",
        ),
    ] = "coordinator",
    confidence: Annotated[
        float, typer.Option(help="Probability, at least, that a proved bound is right.")
    ] = 0.95,
    canaries: Annotated[
        int | None,
        typer.Option(
            help="How many made-up users, ratings or people are planted, by coins; if left out, 500 in a "
            "training, 2,000 in a survey, 32 in a clustering."
        ),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help="How often it is done with new coins; once, if left out.")
    ] = None,
    member: options.Member = None,
    user: options.UserColumn = None,
    item: options.ItemColumn = None,
    rating: options.RatingColumn = None,
    time: options.TimeColumn = None,
    scale: options.Scale = None,
    duplicates: options.Duplicates = "error",
    implicit: options.Implicit = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Try to break a run, a survey or a clustering, with all that one role saw and nothing else.

    Canaries test a promise: coins plant made-up users or ratings, all is
    done once more, and guesses about the coins prove how much was told, at
    least. Reconstruction, differencing and collusion read messages, which
    simulations keep if asked to (train --capture coordinator). What was
    found is kept in RUN. Exit code 1 is an alarm: a promise was not kept.
    """
    from cofactor.attacks.audit import audit as attempt
    from cofactor.attacks.audit import loaded
    from cofactor.federation.folder import read_facts

    _check(attack, confidence, canaries, repeats)
    facts = read_facts(run)
    check_roles(seen_by, facts)
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
    data = Given(run=run, facts=facts, files=tuple(files or ()), reading=reading).data(attack)
    with interrupted_between_steps(ProgressLine(quiet=quiet or json)) as progress:
        found = attempt(
            loaded(run),
            attack,
            seen_by=seen_by,
            confidence=confidence,
            data=data,
            canaries=canaries,
            repeats=repeats or 1,
            progress=progress,
        )
    place = found.save(run)
    if json:
        print_json({"run": str(run), "file": str(place)} | found.as_json())
    else:
        print_audit(found)
        print_line(f"Kept in {place}.")
    raise typer.Exit(1 if found.alarm else 0)


def _check(attack: str, confidence: float, canaries: int | None, repeats: int | None) -> None:
    """Refuse what makes no sense whatever the folder holds."""
    one_of(ATTACKS, attack=attack)
    if not 0 < confidence < 1:
        meant = f": write {confidence / 100:g} for {confidence:g}%" if 1 < confidence < 100 else ""
        raise ConfigError(f"confidence must lie between 0 and 1, both excluded, got {confidence:g}{meant}.")
    if attack != CANARIES:
        given = {"--canaries": canaries, "--repeats": repeats}
        said = " and ".join(name for name, value in given.items() if value is not None)
        if said:
            raise ConfigError(f"{attack} plants no canaries. Leave out {said}, or use --attack canaries.")
    whole(canaries=canaries, repeats=repeats)
