"""For the data scientist: who took part, where time and bytes went, and how it is done again."""

from collections.abc import Iterator, Mapping
from typing import Any

from cofactor.figures import lasting, number_of, readable, rounded_up
from cofactor.report import names
from cofactor.report.beside import Beside
from cofactor.report.folder import Facts, Folder
from cofactor.report.markup import NOTHING, Content, Markup, copied, element, folded, section, table, together

_MOST_PARTIES = 200
_HOLDS = {
    "training": {"users": "users", "items": "items", "ratings": "ratings"},
    "survey": {"users": "people"},
    "clustering": {"users": "users", "items": "columns"},
}
"""What a party has, by what was done: the name in run.json, and the column's."""


def parties(folder: Folder) -> Markup:
    """Show who took part, what each sent, and what each loses if all others collude."""
    if not folder.parties:
        return NOTHING
    rows = [_party(name, own, folder) for name, own in list(folder.parties.items())[:_MOST_PARTIES]]
    holds = _HOLDS[folder.kind]
    heads = ("party", *holds.values(), "sent", "last heard", "epsilon if all others collude")
    count = len(folder.parties)
    more = f"{count - _MOST_PARTIES:,} more parties are in run.json." if count > _MOST_PARTIES else None
    others = {"survey": "", "clustering": ", different columns of the same users"}
    related = others.get(folder.kind, f", {names.split((folder.together or {}).get('split'))}")
    played = names.played(folder)
    devices = f" {folder.facts['data']['users']:,} devices, played by one." if played else ""
    return section(
        "parties",
        "Who took part",
        table(heads, rows, caption="Parties, in public numbers", numeric=range(1, len(heads))),
        None if more is None else element("p", more, class_="aside"),
        lead=f"{number_of(count, 'party', 'parties')}{related}.{devices}",
    )


def _party(name: str, own: Facts, folder: Folder) -> tuple[Content, ...]:
    last = folder.last_heard.get(name)
    epsilon = own.get("epsilon")
    return (
        name,
        *(f"{own[each]:,}" for each in _HOLDS[folder.kind]),
        readable(own["bytes_sent"]),
        "-" if last is None else f"round {last:,}",
        "-" if epsilon is None else rounded_up(epsilon),
    )


def costs(folder: Folder) -> Markup:
    """Show where time and bytes went."""
    kinds = [
        (
            names.message(each.kind, each.protection),
            f"{each.sender} → {each.receiver}",
            f"{each.messages:,}",
            readable(each.bytes),
        )
        for each in sorted(folder.exchanges, key=lambda each: -each.bytes)
    ]
    phases = [(each["name"], lasting(float(each["seconds"]))) for each in folder.facts.get("phases") or ()]
    parts: list[Content] = []
    if phases:
        parts.append(table(("phase", "time"), phases, caption="Time by phase", numeric=(1,)))
    if kinds:
        heads = ("message", "way", "messages", "bytes")
        parts.append(table(heads, kinds, caption="Bytes by kind of message", numeric=(2, 3)))
    lead = "Times are those of whoever made this folder: no guarantee covers them." if phases else None
    return section("costs", "Time and bytes", *parts, lead=lead) if parts else NOTHING


def settings(folder: Folder, beside: Beside) -> Markup:
    """Show all settings as they were settled, and what makes the run again."""
    command = beside.again
    return section(
        "settings",
        "Do it again",
        None if command is None else copied(command, label="Command line", identity="remake-command"),
        copied(settings_text(folder), label="Settings, as they were chosen", identity="remake-settings"),
        lead=" ".join(_said(folder)),
    )


def _said(folder: Folder) -> Iterator[str]:
    """Say what must be known beside the command."""
    if folder.scores:
        yield "Errors were measured with ratings kept back: add --test-fraction with the same share."
    if folder.facts["recipe"].get("kind") == "MultiViewMF":
        yield "If users had attributes, add --user-attributes: a run folder keeps none."
    if (folder.together or {}).get("approvals"):
        yield "Real parties agree to a plan: give job.toml the settings below."
    if folder.ended_early:
        yield f"All {folder.ended_early[1]:,} rounds are then planned, for which a ledger must have room."
    if folder.together is not None:
        yield "Noise is never the same twice: another run's numbers differ a little."


def settings_text(folder: Folder) -> str:
    """Return all settings, a line each: what two runs are compared by."""
    facts = folder.facts
    lines = [f"recipe.{name} = {value}" for name, value in flat(facts["recipe"])]
    lines += [f"budget.{name} = {value}" for name, value in flat(folder.budget or {}) if name != "kind"]
    together_ = folder.together
    if together_ is not None:
        lines += [f"split = {together_.get('split')}", f"parties = {len(folder.parties):,}"]
    return "\n".join([*lines, f"seed = {facts.get('seed')}"])


def flat(table_: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield all settings with their whole names, however deep they lie."""
    if isinstance(table_, Mapping):
        for name, value in table_.items():
            yield from flat(value, f"{before}.{name}" if before else str(name))
    elif isinstance(table_, list) and any(isinstance(each, Mapping) for each in table_):
        for at, value in enumerate(table_, 1):
            yield from flat(value, f"{before}.{at}")
    else:
        yield before, str(table_)


def made_of(folder: Folder) -> Markup:
    """Show versions and hashes: what this page can be checked with."""
    facts, together_ = folder.facts, folder.together or {}
    rows: list[tuple[Content, Content]] = [
        (f"version of {name}", str(value)) for name, value in facts.get("versions", {}).items()
    ]
    rows += [
        ("made", f"{facts.get('created', '')} (UTC)"),
        ("layout of the folder", f"format {facts['format']}"),
        ("seal of run.json", element("code", str(facts.get("seal", "-")))),
        ("SHA-256 of run.json", element("code", folder.digest)),
    ]
    if together_:
        rows.append(("session", element("code", str(together_.get("session", "-")))))
        rows.append(
            (
                "SHA-256 of the transcript",
                element("code", str(together_.get("sha256", {}).get("transcript", "-"))),
            )
        )
    if together_.get("surveys"):
        rows.append(("surveys that were asked before", ", ".join(map(str, together_["surveys"].values()))))
    files = [(name, element("code", str(digest)[:16])) for name, digest in facts.get("files", {}).items()]
    listed = folded(
        f"All {len(files):,} files", table(("file", "SHA-256"), files[:_MOST_PARTIES], caption="Files")
    )
    return section(
        "versions",
        "What this was made of",
        together([table((), rows, caption="Versions and hashes"), listed]),
    )
