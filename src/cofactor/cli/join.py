"""`cofactor join`: what a party types."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from cofactor.cli import options
from cofactor.cli.join_run import answered, rehearsed, take_part, take_policy
from cofactor.cli.join_sources import people_of, ratings_of, records_of
from cofactor.cli.network_text import check_engine, compared
from cofactor.cli.text import ProgressLine, print_facts, print_json, print_line, print_table
from cofactor.errors import ConfigError, RunError, did_you_mean

app = typer.Typer(no_args_is_help=True, help="Take part: keys, what is allowed, and the data of one party.")

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The party's own folder.")]
As = Annotated[
    str | None,
    typer.Option("--as", metavar="NAME", help="Who says yes; the machine's user, if left out."),
]


@app.command("new")
def new(
    folder: Folder,
    name: Annotated[
        str | None,
        typer.Option(help="3 to 40 small letters, digits, hyphens; the folder's name, if left out."),
    ] = None,
    organisation: Annotated[
        str | None, typer.Option(help="Letters, digits and _; the name, if left out.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Make a party's folder and its keys, and the request that goes to the coordinator."""
    from cofactor.figures import fingerprint
    from cofactor.network.enrolling import new_party

    check_engine()
    site, made = new_party(folder, name=name, organisation=organisation)
    key, request = site.identity.public, folder / made.name
    told = {"name": site.name, "key": key.hex(), "fingerprint": fingerprint(key), "request": str(request)}
    if json:
        print_json(told)
        return
    print_facts(told)
    print_line(f"Private keys stay in {folder}. Say what is allowed: {folder / 'policy.toml'}")
    print_line(f"Send {request} to the coordinator, and tell them the fingerprint by telephone.")


@app.command("install")
def install(
    folder: Folder,
    signed: Annotated[Path, typer.Argument(metavar="SIGNED", help="What the coordinator sent back.")],
    fingerprint: Annotated[
        str, typer.Option(help="The coordinator's, as its people told you: SHA256:...; no other is taken.")
    ],
    json: options.Json = False,
) -> None:
    """Put the kit together from what the coordinator signed."""
    from cofactor.network import kits
    from cofactor.network.site import Site

    site = Site.open(folder)
    if not signed.is_file():
        raise ConfigError(f"{signed} is not there. It is what 'cofactor host admit' wrote.")
    kit = kits.install(site.folder, signed, fingerprint=fingerprint)
    until = kits.expires(kit).date().isoformat()
    if json:
        print_json({"kit": str(kit), "expires": until})
        return
    print_line(f"The kit is in {kit}; its certificate ends on {until}.")
    print_line(f"Next: cofactor join pin {folder} --roster parties.toml")


@app.command("renew")
def renew(folder: Folder, json: options.Json = False) -> None:
    """Make a new key for the connection, and the request for its certificate. The identity stays."""
    from cofactor.network.enrolling import renewed
    from cofactor.network.site import Site

    request = folder / renewed(Site.open(folder)).name
    if json:
        print_json({"request": str(request)})
        return
    print_line(f"Send {request} to the coordinator, who admits it with --again.")


@app.command("pin")
def pin(
    folder: Folder,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=KEY", help="A party, and its public key.")
    ] = None,
    roster: Annotated[
        Path | None, typer.Option(help="The coordinator's parties.toml; each is asked about.")
    ] = None,
    fingerprints: Annotated[
        list[str] | None,
        typer.Option(
            "--fingerprint",
            metavar="NAME=FINGERPRINT",
            help="As the people there told you.",
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Change a key that was pinned before.")] = False,
    json: options.Json = False,
) -> None:
    """Know other parties by their keys. Compare each fingerprint with the people there first."""
    from cofactor.figures import fingerprint
    from cofactor.network.pins import Pins, public_key
    from cofactor.network.site import Site

    site = Site.open(folder)
    pins, told = site.pins, _pairs(fingerprints, "--fingerprint")
    named = {name: public_key(key, name) for name, key in _pairs(keys, "NAME=KEY").items()}
    if roster is not None:
        if not roster.is_file():
            raise ConfigError(f"{roster} is not there. Ask the coordinator for parties.toml.")
        named = {**Pins.read(roster).known, **named}
    others = {name: key for name, key in named.items() if name != site.name}
    strange = [name for name in told if name not in named]
    if strange:
        raise ConfigError(f"--fingerprint names {strange[0]!r}, and no key.{did_you_mean(strange[0], named)}")
    if not others:
        raise ConfigError("name a party and its key, south=KEY, or the coordinator's --roster parties.toml.")
    for name, key in others.items():
        if pins.known.get(name) == key:
            continue
        pins.check_free(name, key, replace=replace)
        compared(name, fingerprint(key), told.get(name), option=f"{name}=")
        pins.pin(name, key, replace=replace)
    if json:
        print_json({"pinned": {name: key.hex() for name, key in pins.known.items()}})
        return
    print_table(("party", "fingerprint"), [(name, fingerprint(key)) for name, key in pins.known.items()])


@app.command("run")
def run(
    folder: Folder,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Ratings, for trainings; as last time, if left out."),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="A policy file to use from now on, instead of the folder's.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="With --plan: show what it would cost and send. Starts nothing."),
    ] = False,
    plan: Annotated[
        Path | None, typer.Option(help="With --dry-run: the proposal that the coordinator sent.")
    ] = None,
    person: As = None,
    people: Annotated[
        Path | None, typer.Option(help="For surveys: a table with a row for each person.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="With --people: the only column ever asked for.")] = None,
    missing: Annotated[
        str | None, typer.Option(help="With --people: those without a number: skip or random.")
    ] = None,
    records: Annotated[
        Path | None, typer.Option(help="For clusterings: a table with a row for each user.")
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="COLUMN=LOW:HIGH",
            help="With --records: a column, and its public range.",
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="With --people or --records: column of ids.")
    ] = None,
    user_attributes: Annotated[
        Path | None, typer.Option(help="A table about users, for recipes that use one; it stays here.")
    ] = None,
    user: options.UserColumn = None,
    item: options.ItemColumn = None,
    rating: options.RatingColumn = None,
    time: options.TimeColumn = None,
    scale: options.Scale = None,
    duplicates: options.Duplicates = "error",
    implicit: options.Implicit = False,
    member: options.Member = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Take part with a file, until Ctrl-C: shows plans, asks for a yes, and says what is sent."""
    from cofactor.network.site import Site

    site = Site.open(folder)
    reading: dict[str, Any] = {
        "user": user,
        "item": item,
        "rating": rating,
        "time": time,
        "scale": scale,
        "duplicates": duplicates,
        "implicit": implicit,
        "member": member,
        "attributes": user_attributes,
    }
    sources = (
        ratings_of(file, reading),
        people_of(people, column, missing, id_column),
        records_of(records, ranges or [], id_column),
    )
    site = site.bringing(*(each for each in sources if each is not None))
    if site.ratings is None and site.people_source is None and site.records_source is None:
        raise ConfigError(f"name the data: cofactor join run {folder} ratings.csv")
    if dry_run or plan is not None:
        if not dry_run or plan is None:
            raise ConfigError("--dry-run and --plan FILE go together: what is proposed must be known.")
        rehearsed(site, plan, policy, as_json=json)
        return
    if json:
        raise ConfigError("--json goes with --dry-run; 'cofactor join show --json' tells the rest.")
    take_policy(site, policy)
    site.write()
    take_part(site, person, ProgressLine(quiet=quiet))


@app.command("answer")
def answer(
    folder: Folder,
    yes: Annotated[
        bool | None, typer.Option("--yes/--no", help="What to say; asked for, if left out.")
    ] = None,
    proposal: Annotated[
        str | None, typer.Option(help="The hash of the plan, or how it begins, if several wait.")
    ] = None,
    person: As = None,
    json: options.Json = False,
) -> None:
    """Say yes or no to a plan that waits, where 'cofactor join run' has no terminal."""
    from cofactor.network.approval import pending
    from cofactor.network.site import Site

    site = Site.open(folder)
    found = [each for each in pending(site) if each.proposal.digest.startswith(proposal or "")]
    if not found:
        raise RunError("no plan waits for an answer here.")
    if len(found) > 1 and yes is not None:
        words = ", ".join(each.proposal.digest[:12] for each in found)
        raise ConfigError(f"{len(found)} plans wait. Name one with --proposal: {words}.")
    said = [answered(site, each, yes, person, quiet=json) for each in found]
    if json:
        print_json({"answers": [asdict(each) for each in said]})


@app.command("show")
def show(folder: Folder, json: options.Json = False) -> None:
    """Tell what was asked, who said yes, and what was spent."""
    from cofactor.cli.join_text import overview, print_overview
    from cofactor.network.site import Site

    told = overview(Site.open(folder))
    print_json(told) if json else print_overview(told)


def _pairs(given: list[str] | None, what: str) -> dict[str, str]:
    found = {}
    for each in given or []:
        name, equals, value = each.partition("=")
        if not equals or not value:
            raise ConfigError(f"{what} must look like south=..., got {each!r}.")
        found[name] = value
    return found
