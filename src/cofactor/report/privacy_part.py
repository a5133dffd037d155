"""For the privacy officer: what is promised, what it rests on, what was released, what attacks found."""

import math
from collections.abc import Iterator
from shlex import quote

from cofactor.figures import at_least, at_most, fingerprint, number_of, rounded_up
from cofactor.report import names
from cofactor.report.answers import is_alarm
from cofactor.report.beside import Beside
from cofactor.report.charts import Dot, Level, Line, dot_chart, line_chart
from cofactor.report.folder import Facts, Folder, Release, together_releases
from cofactor.report.markup import (
    NOTHING,
    RELEASED,
    SIMULATION,
    Content,
    Markup,
    badge,
    element,
    folded,
    listed,
    section,
    table,
)

_MOST_ROWS = 300
"""Of a table that is folded away: more are counted."""
_TONES = {"alarm": "bad", "succeeded": "doubt", "resisted": "good", "consistent": "good"}
_PROVED, _PROMISED = "epsilon proved at least", "epsilon promised"


def promise(folder: Folder, beside: Beside) -> Markup:
    """Say in words what is promised, point by point."""
    given = folder.guarantee
    told: list[Content] = []
    if given.get("why_not") and list(given["why_not"]) != [given.get("statement")]:
        told += [element("h3", "Why it does not hold"), listed(given["why_not"])]
    for title, name in (
        ("Against whom", "against"),
        ("It covers", "covers"),
        ("It does not cover", "does_not_cover"),
        ("Warnings", "warnings"),
    ):
        if given.get(name):
            told += [element("h3", title), listed(given[name])]
    if beside.promised:
        told += [element("h3", "What groups of users are promised"), listed(beside.promised)]
    short, whole = _in_short(given), str(given.get("statement", ""))
    if whole != short:
        told.append(folded("The whole statement, to sign", element("p", whole)))
    return section("promise", "What is promised", element("p", short), *told)


def _in_short(given: Facts) -> str:
    """Return the numbers, and what they mean, in two sentences of the statement."""
    statement = str(given.get("statement", ""))
    if given.get("epsilon") is None:
        return statement
    numbers, _, rest = statement.partition(" This means: ")
    meaning = rest.partition("; 50% would be pure chance.")[0]
    return (
        f"{numbers} {meaning[:1].upper()}{meaning[1:]}; 50% would be pure chance." if meaning else statement
    )


def assumptions(folder: Folder) -> Markup:
    """Show what the promise rests on, and how each point was met."""
    rows = [(each["what"], each["met"]) for each in folder.guarantee.get("assumptions", ())]
    if not rows:
        return NOTHING
    whole = table(("it is assumed that", "how that is met"), rows, caption="Assumptions of the guarantee")
    trusted = sum("trust" in str(met) for _, met in rows)
    points = number_of(len(rows), "assumption")
    rests = "1 rests" if trusted == 1 else f"{trusted} rest"
    lead = f"{points}; {rests} on trust." if trusted else f"{points}."
    return section("assumptions", "What it rests on", whole, lead=lead)


def ledger(folder: Folder) -> Markup:
    """Show what was released with noise, and how epsilon grew."""
    if not folder.releases:
        return NOTHING
    rows = [
        (
            each.what,
            names.stretches(rounds) or "-",
            parties,
            names.mechanism(each.mechanism),
            f"{each.bound.get('size', 0):.4g} ({each.bound.get('norm', '?')})",
            f"{each.dimension:,}",
            f"{count:,}",
        )
        for each, rounds, parties, count in together_releases(folder.releases)
    ]
    columns = (
        "release",
        "rounds",
        "parties",
        "noise",
        "bound of one " + str(folder.guarantee.get("unit")),
        "numbers",
        "times",
    )
    shown = table(
        columns, rows[:_MOST_ROWS], caption="Releases, those that are alike together", numeric=(2, 5, 6)
    )
    return section(
        "ledger",
        "What was released",
        spending(folder),
        shown,
        _left_out(len(rows), "kinds", "in the ledgers"),
        _by_round(folder),
        lead="Everything noisy that left a party is in its ledger; what is not there was not released.",
    )


def spending(folder: Folder) -> Markup:
    """Draw how epsilon grew, below what was allowed."""
    points = tuple((float(step), at_most(epsilon)) for step, epsilon in _spent(folder).items())
    if not points:
        return NOTHING
    budget = folder.guarantee.get("budget_epsilon")
    return line_chart(
        "Epsilon spent, round by round (at most)",
        [Line(name="spent", points=points, steps=True)],
        x="round",
        y="epsilon",
        levels=() if budget is None else (Level(name="budget", value=float(budget)),),
        from_zero=True,
        beside=RELEASED,
    )


def _spent(folder: Folder) -> dict[int, float]:
    """Return what all rounds up to each cost at most: no part of a run costs more than all of it."""
    whole = folder.guarantee.get("epsilon")
    return {
        int(event["step"]): min(event["numbers"]["epsilon"], math.inf if whole is None else whole)
        for event in folder.rounds()
        if "epsilon" in event.get("numbers", {})
    }


def _by_round(folder: Folder) -> Markup:
    """List the releases of every round."""
    by_round: dict[int, list[Release]] = {}
    for each in folder.releases:
        by_round.setdefault(each.round or 0, []).append(each)
    spent = _spent(folder)
    rows = [
        (
            number or "before",
            "; ".join(dict.fromkeys(each.what for each in releases)),
            len({each.by for each in releases}),
            sum(each.count for each in releases),
            "" if spent.get(number) is None else rounded_up(spent[number]),
        )
        for number, releases in sorted(by_round.items())
    ]
    columns = ("round", "releases", "parties", "times", "epsilon so far, at most")
    whole = table(columns, rows[:_MOST_ROWS], caption="The ledger, round by round", numeric=(0, 2, 3, 4))
    summary = f"The ledger, round by round ({number_of(len(rows), 'round')})"
    return folded(summary, whole, _left_out(len(rows), "rounds", "in the ledgers"))


def _left_out(count: int, what: str, where: str) -> Markup | None:
    """Say how many rows are not shown, and where they are."""
    more = count - _MOST_ROWS
    return element("p", f"{more:,} more {what} are {where}.", class_="aside") if more > 0 else None


def bounds(folder: Folder) -> Markup:
    """Draw what is proved above and what attacks have proved below, on one axis."""
    epsilon = folder.guarantee.get("epsilon")
    dots = (
        []
        if epsilon is None
        else [Dot(name="promised: at most", value=at_most(epsilon), tone="s0", told=rounded_up(epsilon))]
    )
    dots += _measured(folder)
    audits = _attempts(folder)
    if len(dots) < 2 and not audits:
        return section("attacks", "Attempts to break it", element("p", *_untried(folder)))
    allowed = folder.guarantee.get("budget_epsilon")
    drawn = NOTHING
    if dots:
        drawn = dot_chart(
            "Epsilon: promised above, proved by attacks below",
            dots,
            x="epsilon",
            levels=() if allowed is None else (Level(name="budget", value=float(allowed)),),
            from_zero=True,
            beside=SIMULATION if len(dots) > 1 else RELEASED,
        )
    return section(
        "attacks",
        "Attempts to break it",
        drawn,
        audits,
        lead="An attack proves how much is learned at least. What it does not find, another one may.",
    )


def _untried(folder: Folder) -> tuple[Content, ...]:
    """Say how it can be tried; where nothing is promised there is nothing to break."""
    if folder.together is None:
        return ("Nothing is promised, so there is nothing to break.",)
    files = " FILE ..." if folder.kind == "training" else ""
    command = f"cofactor audit {quote(folder.name)}{files}"
    return "Nobody has tried to break it yet. To try: ", element("code", command)


def _measured(folder: Folder) -> Iterator[Dot]:
    for name, audit in folder.audits.items():
        proved, promised = audit["figures"].get(_PROVED), audit["figures"].get(_PROMISED)
        if isinstance(proved, int | float) and math.isfinite(proved):
            tone = "bad" if is_alarm(audit) else "good"
            promised_at_most = "" if promised is None else f" of {rounded_up(float(promised))}"
            yield Dot(
                name=f"{name}: at least",
                value=at_least(float(proved)),
                tone=tone,
                told=f"{at_least(float(proved)):.4g}{promised_at_most}",
            )


def _attempts(folder: Folder) -> Markup:
    rows = [
        (
            name,
            " and ".join(str(audit["seen_by"]).split("+")),
            badge(str(audit["verdict"]), _TONES.get(str(audit["verdict"]), "bad")),
            audit["headline"],
            "-" if audit.get("confidence") is None else f"{100 * audit['confidence']:.12g}%",
        )
        for name, audit in folder.audits.items()
    ]
    if not rows:
        return NOTHING
    columns = ("attack", "seen by", "verdict", "what was found", "confidence")
    notes = dict.fromkeys(str(note) for audit in folder.audits.values() for note in audit.get("notes", ()))
    return element(
        "div",
        table(columns, rows, caption="Attacks and audits"),
        folded("What these do not say", listed(notes)),
    )


def approvals(folder: Folder) -> Markup:
    """Show who agreed to take part, where real parties did."""
    found = (folder.together or {}).get("approvals") or ()
    if not found:
        return NOTHING
    rows = [
        (
            each["party"],
            each["how"],
            str(each["when"]).replace("T", " ").replace("+00:00", " UTC"),
            element("code", fingerprint(bytes.fromhex(each["identity"]))),
            element("code", str(each["proposal"])[:16]),
        )
        for each in found
    ]
    columns = ("party", "how", "when", "key", "proposal")
    return section(
        "approvals", "Who agreed", table(columns, rows, caption="Approvals, signed by the parties")
    )


def checks(folder: Folder, beside: Beside) -> Markup:
    """Show what `verify` found."""
    if beside.checks is None:
        told = element("p", "Not asked. ", element("code", f"cofactor verify {quote(folder.name)}"))
        return section("checks", "Does the folder bear it out?", told)
    rows = [
        (each.name, badge("yes", "good") if each.holds else badge("NO", "bad"), each.detail)
        for each in sorted(beside.checks, key=lambda each: each.holds)[:_MOST_ROWS]
    ]
    broken = len(beside.broken)
    count = len(beside.checks)
    all_hold = "The one check holds." if count == 1 else f"All of {count:,} checks hold."
    lead = all_hold if not broken else f"{broken:,} of {count:,} checks fail."
    whole = table(("looked at", "holds", "what was found"), rows, caption="cofactor verify")
    more = _left_out(count, "checks", "told by cofactor verify")
    return section("checks", "Does the folder bear it out?", whole, more, lead=lead)
