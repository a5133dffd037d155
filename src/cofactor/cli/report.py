"""`cofactor report`: a page for those who must read a run, made from its folder alone."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofactor.cli import options
from cofactor.cli.places import check_file, written_whole
from cofactor.cli.sweep_folder import runs_of
from cofactor.cli.text import GREEN, RED, YELLOW, print_json, print_line
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.report.beside import Beside
    from cofactor.report.folder import Folder
    from cofactor.report.underway import Underway

_COLOURS = {"good": GREEN, "doubt": YELLOW, "bad": RED}


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="A run folder; several are compared.")],
    out: Annotated[Path | None, typer.Option(help="Where to write the page; RUN.html if left out.")] = None,
    card: Annotated[
        Path | None, typer.Option(help="Write the privacy card, too: a name that ends in .md or .json.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A policy.toml to judge the promise by.")
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What 'cofactor compare --json' printed: errors by group of users."
        ),
    ] = None,
    verified: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Check that the folder bears out what it says.")
    ] = True,
    live: Annotated[
        bool, typer.Option("--live", help="Watch a training while it goes on, at an address of this machine.")
    ] = False,
    port: Annotated[
        int, typer.Option(help="With --live: where to listen; a free place if left out.", min=0, max=65535)
    ] = 0,
    open_: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that was not made here.")] = False,
    json: options.Json = False,
) -> None:
    """Make a page of a run, a survey or a clustering, or of several runs side by side. Reads folders only."""
    from cofactor.cli.report_beside import beside_of
    from cofactor.report.folder import Folder
    from cofactor.report.page import page

    runs = runs_of(runs)
    _check_options(runs, out, card, policy, groups)
    if port and not live:
        raise ConfigError("--port says where a page is served. Add --live, or leave it out.")
    if live:
        from cofactor.cli.report_live import watch

        _check_alone(runs, out, card, groups)
        watch(runs[0], port=port, policy=policy, verified=verified, opened=open_, as_json=json)
        return
    looked = [_looked(run) for run in runs]
    runs, going = [run for run, _ in looked], looked[0][1] if len(looked) == 1 else None
    if going is not None:
        if any(each is not None for each in (card, policy, groups)):
            raise ConfigError(f"{runs[0]} is not finished. Leave out --card, --policy and --groups.")
        _write_unfinished(runs[0], going, out, force=force, as_json=json, opened=open_)
        return
    folders = [Folder.read(path) for path in runs]
    target = out or _usual_place(runs)
    for option, path in (("--out", target), ("--card", card)):
        if path is not None:
            _check_free(path, force=force, option=option)
    if len(folders) > 1:
        _compare(folders, target, verified=verified, as_json=json)
    else:
        beside = beside_of(folders[0], verified=verified, policy=policy, groups=groups)
        _write(target, page(folders[0], beside))
        if card is not None:
            _write(card, _card(folders[0], beside, card))
        _tell(folders[0], beside, target, card, as_json=json)
    if open_:
        show(target)


def show(page: Path) -> None:
    """Open a page in a browser, or say where it is: on standard error, for the other may be JSON."""
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        print(f"There is no browser to open it with. Open {page} in one.", file=sys.stderr)


def _check_options(
    runs: Sequence[Path], out: Path | None, card: Path | None, policy: Path | None, groups: Path | None
) -> None:
    if len(runs) > 1 and any(each is not None for each in (card, policy, groups)):
        raise ConfigError("--card, --policy and --groups are about one run. Name a single RUN.")
    if len({path.resolve() for path in runs}) < len(runs):
        raise ConfigError("a run is named twice. Name each once.")
    if card is not None and card.suffix not in (".md", ".json"):
        raise ConfigError(f"--card: {card} must end in .md or .json.")
    if card is not None and out is not None and card.resolve() == out.resolve():
        raise ConfigError(f"--out and --card both name {out}. Give the page and the card a file each.")


def _looked(run: Path) -> tuple[Path, "Underway | None"]:
    """Return the run folder, which on a network lies in its session, or how far the training is."""
    from cofactor.report.underway import Watch

    watched = Watch(run)
    if watched.finished is not None:
        return (run if watched.finished == watched.run else watched.finished), None
    going = watched.look()
    return run, going if going.parties else None


def _write_unfinished(
    run: Path, found: "Underway", out: Path | None, *, force: bool, as_json: bool, opened: bool
) -> None:
    """Write a page of a training that is not finished."""
    from cofactor.report.live_part import live_state, underway_page

    target = out or _usual_place([run])
    _check_free(target, force=force)
    _write(target, underway_page(found))
    if as_json:
        told = {"report": str(target), "state": live_state(found)[0]}
        print_json(told | {"rounds": found.done, "planned_rounds": found.planned})
    else:
        print_line(
            f"{run} is not finished: {live_state(found)[0]}, round {found.done:,} of {found.planned:,}."
        )
        print_line(f"Written to {target}. To watch it: cofactor report {run} --live")
    if opened:
        show(target)


def _check_alone(runs: Sequence[Path], out: Path | None, card: Path | None, groups: Path | None) -> None:
    """Refuse what a page that is served cannot do."""
    if len(runs) > 1:
        raise ConfigError("--live watches one training. Name a single RUN.")
    if out is not None or card is not None:
        raise ConfigError("--live serves a page and writes none. Leave out --out and --card.")
    if groups is not None:
        raise ConfigError("--groups is about a finished run. Leave it out, or --live.")
    if not runs[0].resolve().parent.is_dir():
        raise ConfigError(
            f"there is no folder {runs[0].parent} in which {runs[0].name} could be. Name a run."
        )


def _usual_place(runs: Sequence[Path]) -> Path:
    """Return where a page goes: beside the run folder, since files in it are sealed."""
    first = runs[0].resolve()
    return first.with_name(f"{first.name}.html") if len(runs) == 1 else first.with_name("compared.html")


def _check_free(target: Path, *, force: bool, option: str = "--out") -> None:
    """Refuse to write over anything but an earlier report, or into a sealed folder."""
    check_file(target, force=force or (target.is_file() and _ours(target)), option=option)


def _ours(path: Path) -> bool:
    """Say whether a file is a page or a card that was made here."""
    start = path.read_bytes()[:2000].decode(errors="replace")
    page = 'name="generator" content="cofactor"' in start
    return page or start.startswith(("# Privacy card: ", '{\n  "card": "cofactor",'))


def _write(target: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with written_whole(target) as draft:
        draft.write_bytes(text.encode(errors="replace"))  # names of files may hold what is no letter


def _card(folder: "Folder", beside: "Beside", target: Path) -> str:
    from cofactor.report.card import card_json, card_markdown

    return (card_json if target.suffix == ".json" else card_markdown)(folder, beside)


def _tell(folder: "Folder", beside: "Beside", target: Path, card: Path | None, *, as_json: bool) -> None:
    """Print where the page is, and its three answers."""
    from cofactor.report.answers import answers
    from cofactor.report.card import card as made

    if as_json:
        print_json({"report": str(target), "card": made(folder, beside)})
        return
    for answer in answers(folder, beside):
        print_line(f"{answer.question} {answer.verdict}.", _COLOURS.get(answer.tone, ""))
        for sentence in answer.sentences:
            print_line(f"  {sentence}")
    for path in (target, *((card,) if card else ())):
        print_line(f"Written to {path}, {path.stat().st_size / 1000:,.0f} kB.")


def _compare(folders: Sequence["Folder"], target: Path, *, verified: bool, as_json: bool) -> None:
    """Write a page of several runs, and print what must be known of it."""
    from cofactor.cli.report_beside import beside_of
    from cofactor.report.comparison import compared, comparison, incomparable

    runs = compared(folders, [beside_of(each, verified=verified, policy=None) for each in folders])
    _write(target, comparison(runs))
    warnings = list(incomparable(runs))
    if as_json:
        told: dict[str, Any] = {"report": str(target), "runs": [str(each.folder.path) for each in runs]}
        print_json(told | {"warnings": warnings})
        return
    for each in warnings:
        print_line(f"Warning: {each}", YELLOW)
    print_line(f"Written to {target}.")
