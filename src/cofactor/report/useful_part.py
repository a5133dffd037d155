"""For the data scientist: how good it is, for whom, and beside what."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cofactor.report import names
from cofactor.report.beside import Beside
from cofactor.report.charts import Dot, Level, Line, dot_chart, line_chart
from cofactor.report.folder import Facts, Folder
from cofactor.report.markup import (
    LOCAL,
    NOTHING,
    RELEASED,
    SIMULATION,
    Content,
    Markup,
    element,
    folded,
    section,
    table,
    together,
)

_MOST_PARTIES = 200
"""In a table: of more, the first ones are shown, and the others counted."""
_DRAWN_PARTIES = 30
_WHY_SEEN = {
    LOCAL: "These numbers belong to whoever holds the ratings, all of which lay in one place: no guarantee "
    "covers them.",
    SIMULATION: "These numbers can be seen because one process plays all parties. They are not released, and "
    "the guarantee does not cover them.",
}
_CURVES = (
    ("signal_to_noise", "Signal divided by noise, by release", "signal / noise"),
    ("clipped", "Share of contributions that were shortened", "share"),
    ("trimmed", "Share of ratings that were left out", "share"),
)
"""What a simulation measures of itself by round: its name, its title, and its axis."""


def accuracy(folder: Folder, beside: Beside) -> Markup:
    """Show errors of the run beside those of whoever sends nothing, stays alone, or pools everything."""
    scores, whose = folder.scores, _whose(folder)
    careful = _by_privacy(beside, whose)
    if not scores:
        told = element("p", "No errors are in the run folder.")
        return section("accuracy", "How good it is", told, careful)
    name, said, lower = names.metric(scores)
    return section(
        "accuracy",
        "How good it is",
        dot_chart(
            "Test ratings that were kept back" if lower else "Lists of items shown",
            list(_levels(folder, name)),
            x=said,
            beside=whose,
            lower_is_better=lower,
        ),
        element("dl", *_explained(scores)),
        _by_party(folder, name),
        _rankings(folder),
        _by_activity(folder),
        careful,
        lead=f"{_WHY_SEEN[whose]} Lines are 95% intervals over users.",
    )


def _whose(folder: Folder) -> Markup:
    """Say who may know errors: where all was pooled, whoever holds the ratings."""
    return LOCAL if folder.together is None else SIMULATION


def _levels(folder: Folder, name: str) -> Iterator[Dot]:
    own = names.own_name(folder)
    for each, score in folder.scores.items():
        low, high = names.interval(score, name)
        value, tone = float(score[name]), "s1" if each == own else "s0"
        yield Dot(name=names.model(each), value=value, low=low, high=high, tone=tone, told=f"{value:.4f}")


def _explained(scores: Mapping[str, Facts]) -> Iterator[Markup]:
    for each in scores:
        if each in names.EXPLAINED:
            yield element("dt", names.model(each))
            yield element("dd", names.EXPLAINED[each])


def _by_party(folder: Folder, name: str) -> Markup:
    """Show, for each party, what it has alone, together and pooled, and what joining changed for it."""
    scores, own = folder.scores, names.own_name(folder)
    parties = scores[own].get("parties", {}) if own else {}
    if not parties or own is None:
        return NOTHING
    shown = [each for each in dict.fromkeys(("user_mean", "bias", "alone", own, "pooled")) if each in scores]
    rows = [
        (
            party,
            *(f"{scores[each]['parties'][party][name]:.4f}" for each in shown),
            str(parties[party].get("joining", {}).get("sentence", "")).partition(" (MSE")[0],
        )
        for party in list(parties)[:_MOST_PARTIES]
    ]
    heads = ("party", *(names.model(each) for each in shown), "joining, by mean squared error")
    caption = f"{names.metric(scores)[1].capitalize()}, party by party"
    whole = table(heads, rows, caption=caption, numeric=range(1, len(shown) + 1))
    more = f"{len(parties) - _MOST_PARTIES:,} more parties are in run.json."
    return together(
        [
            element("h3", "Party by party ", _whose(folder)),
            _gains(parties) if len(parties) <= _DRAWN_PARTIES else None,
            whole,
            element("p", more, class_="aside") if len(parties) > _MOST_PARTIES else None,
        ]
    )


def _gains(parties: Mapping[str, Facts]) -> Markup:
    """Draw what joining changed for each party."""
    dots = []
    for party, score in parties.items():
        joining = score.get("joining")
        if joining is not None:
            low, high = (float(end) for end in joining["interval"])
            tone = "good" if low > 0 else "doubt" if high < 0 else "plain"
            gain = float(joining["gain"])
            dots.append(Dot(name=party, value=gain, low=low, high=high, tone=tone, told=f"{gain:+.4f}"))
    if not any(dot.value or dot.low or dot.high for dot in dots):
        return NOTHING  # nothing changed: the table says so
    return dot_chart(
        "By how much joining lowers each party's mean squared error",
        dots,
        x="gain",
        levels=(Level(name="no change:", value=0.0),),
        lower_is_better=False,
        from_zero=True,
    )


def _rankings(folder: Folder) -> Markup:
    """Show how good lists are, beside popularity."""
    own = names.own_name(folder)
    rankings = folder.scores[own].get("rankings") if own else None
    if not rankings:
        return NOTHING
    rows = [
        (names.model(each), *(f"{score[measure]:.4f}" for measure in names.MEASURES))
        for each, score in rankings.items()
    ]
    heads = ("lists by", *names.MEASURES.values())
    whole = table(heads, rows, caption="The ten items shown first: higher is better", numeric=range(1, 5))
    return together([element("h3", "Lists ", _whose(folder)), whole])


def _by_activity(folder: Folder) -> Markup:
    own = names.own_name(folder)
    groups = folder.scores[own].get("by_activity") if own else None
    title = "Error by how many ratings users have"
    return _groups(groups, title, "ratings", _whose(folder)) if groups else NOTHING


def _by_privacy(beside: Beside, whose: Markup) -> Markup:
    if beside.groups is None:
        return NOTHING
    shown = _groups(beside.groups.rows, "Who pays for privacy: error by group of users", "group", whose)
    told = f"From {beside.groups.source}: no run folder holds who asked for how much privacy."
    return together([shown, element("p", told, class_="aside")])


def _groups(groups: Sequence[Facts], title: str, column: str, whose: Markup) -> Markup:
    """Show errors by group of users, beside those of users' own means."""
    dots = [
        Dot(name=str(each["name"]), value=value, low=low, high=high, told=f"{value:.4f}")
        for each in groups
        for value, low, high in [_estimate(each["mse"])]
    ]
    rows = [
        (
            each["name"],
            f"{each['users']:,}" if "users" in each else "-",
            *(_range(each.get(measure)) for measure in ("mse", "own_mean", "gain")),
        )
        for each in groups
    ]
    heads = (column, "users", "MSE", "MSE of own mean", "gained by taking part")
    caption = f"{title}, beside users' own means"
    whole = table(heads, rows, caption=caption, numeric=range(1, 5))
    return together(
        [
            dot_chart(title, dots, x="mean squared error", beside=whose, lower_is_better=True),
            folded("Beside users' own means", whole),
        ]
    )


def _estimate(found: Any) -> tuple[float, float | None, float | None]:
    """Return a number and its ends, whether or not ends are known."""
    if not isinstance(found, Mapping):
        return float(found), None, None
    return float(found["value"]), found.get("low"), found.get("high")


def _range(found: Any) -> str:
    if found is None:
        return "-"
    value, low, high = _estimate(found)
    return f"{value:.4f}" if low is None or high is None else f"{value:.4f} ({low:.4f} to {high:.4f})"


def curves(folder: Folder) -> Markup:
    """Draw what is known of each round, and say of each curve who may know it."""
    rounds = [event for event in folder.rounds() if event.get("numbers")]
    if not rounds:
        return _fitting(folder)
    drawn: list[Content] = [
        _curve(rounds, "answered", "Parties that answered", "parties", from_zero=True),
        _bytes(rounds),
        *_measured(folder),
    ]
    return section(
        "curves",
        "Round by round",
        *drawn,
        lead="RELEASED: in the ledger, or public. SIMULATION: known because one process plays all roles.",
    )


def _curve(
    rounds: Sequence[Facts], name: str, title: str, axis: str, *, scale: float = 1.0, from_zero: bool = False
) -> Markup:
    points = tuple(
        (float(each["step"]), float(each["numbers"][name]) * scale)
        for each in rounds
        if name in each["numbers"]
    )
    if not points:
        return NOTHING
    return line_chart(
        title, [Line(name=axis, points=points)], x="round", y=axis, from_zero=from_zero, beside=RELEASED
    )


def _bytes(rounds: Sequence[Facts]) -> Markup:
    unit, scale = names.unit_of(float(each["numbers"].get("bytes", 0.0)) for each in rounds)
    return _curve(rounds, "bytes", "Size of all messages, both ways", unit, scale=scale, from_zero=True)


def _measured(folder: Folder) -> Iterator[Markup]:
    """Draw what a simulation measured of itself."""
    by_release: dict[str, list[Facts]] = {}
    for event in folder.rounds("simulation"):
        release = re.sub(r" \d+$", "", str(event.get("note", "")))  # the same in every round, but numbered
        by_release.setdefault(release, []).append(event)
    for name, title, axis in _CURVES:
        lines = []
        for release, events in by_release.items():
            points = tuple(
                (float(each["step"]), float(each["numbers"][name]))
                for each in events
                if each.get("numbers", {}).get(name) is not None
            )
            if points:
                lines.append(Line(name=release, points=points, dots=len(points) < 20))
        if lines:
            loud = name == "signal_to_noise"
            yield line_chart(
                title,
                lines[:8],
                x="round",
                y=axis,
                levels=(Level(name="as loud as the noise:", value=1.0),) if loud else (),
                logarithmic_y=loud,
                from_zero=not loud,
                beside=SIMULATION,
            )


def _fitting(folder: Folder) -> Markup:
    """Say so where there were no rounds."""
    if folder.together is None and folder.events:
        steps = len(folder.events)
        told = f"Fitted in one place in {steps:,} steps; nothing was sent, so there are no rounds."
        return section("curves", "Round by round", element("p", told))
    return NOTHING
