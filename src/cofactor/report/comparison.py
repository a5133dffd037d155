"""Several runs side by side: what each promises, how good it is, and in what their settings differ."""

from collections.abc import Iterator, Sequence

from cofactor.figures import lasting, percent, readable, rounded_up
from cofactor.report import cost_part, names
from cofactor.report.charts import Line, line_chart
from cofactor.report.document import document
from cofactor.report.folder import DAMAGES, Facts, Folder, damaged
from cofactor.report.markup import NOTHING, Content, Markup, badge, element, section, table
from cofactor.report.states import state

_MUST_AGREE = ("unit", "adjacency", "delta")
"""Of guarantees: where these differ, a smaller epsilon need not be a better promise."""
_LEVELS = (*names.SENDS_NOTHING, "alone", "pooled")


def comparison(folders: Sequence[Folder]) -> str:
    """Return a page that compares runs."""
    parts: list[Content] = []
    for folder in folders:
        try:
            _row(folder, folder.name)
            cost_part.settings_text(folder)
        except DAMAGES as error:
            raise damaged(folder.path, error) from None
    warnings = list(incomparable(folders))
    notice = element("div", *(element("p", each) for each in warnings), class_="notice")
    parts = [
        element(
            "header",
            element("h1", f"{len(folders):,} runs, compared"),
            element("p", ", ".join(_labels(folders)), class_="under"),
            notice if warnings else None,
        ),
        _overview(folders),
        _accuracy(folders),
        _differences(folders),
    ]
    return document("Runs, compared · cofactor", *parts)


def incomparable(folders: Sequence[Folder]) -> Iterator[str]:
    """Say in what runs differ so that their numbers must not be put side by side."""
    promised = [folder for folder in folders if folder.guarantee.get("epsilon") is not None]
    for name in _MUST_AGREE:
        values = dict.fromkeys(str(folder.guarantee.get(name)) for folder in promised)
        if len(values) > 1:
            more = "" if name == "delta" else " One epsilon then says more than another of the same size."
            yield f"The {name} of the guarantees differs: {', '.join(values)}.{more}"
    data = {str(sorted((folder.facts.get("data") or {}).items())) for folder in folders}
    if len(data) > 1:
        yield "The runs were trained on different data: their errors must not be compared."
    elif len({str(folder.facts.get("seed")) for folder in folders}) > 1:
        yield (
            "The runs have different seeds, and so different test ratings: small differences of errors may "
            "be from there."
        )
    splits = dict.fromkeys(str((folder.together or {}).get("split", "pooled")) for folder in folders)
    if len(splits) > 1:
        yield f"Parties relate differently: {', '.join(splits)}."
    labelled = zip(_labels(folders), folders, strict=True)
    several = [label for label, folder in labelled if not folder.guarantee.get("holds")]
    if several:
        yield f"Not private: {', '.join(several)}."


def _labels(folders: Sequence[Folder]) -> list[str]:
    """Return what runs are called: by where they lie, if several have the same name."""
    called = [folder.name for folder in folders]
    return called if len({*called}) == len(called) else [str(folder.path) for folder in folders]


def _overview(folders: Sequence[Folder]) -> Markup:
    heads = (
        "run",
        "state",
        "recipe",
        "epsilon",
        "guessed right at most",
        "error",
        "95% interval",
        "rounds",
        "time",
        "bytes",
    )
    rows = [_row(folder, label) for folder, label in zip(folders, _labels(folders), strict=True)]
    return section("overview", "Side by side", table(heads, rows, caption="Runs", numeric=(3, 4, 5, 7, 8, 9)))


def _row(folder: Folder, label: str) -> tuple[Content, ...]:
    given, together = folder.guarantee, folder.together or {}
    own = names.own_name(folder.scores)
    score = None if own is None else folder.scores[own]
    name = names.metric(folder.scores)[0]
    low, high = (None, None) if score is None else names.interval(score, name)
    word, tone = state(folder)
    return (
        label,
        badge(word, tone),
        str(folder.facts["recipe"].get("kind")),
        "-" if given.get("epsilon") is None else rounded_up(given["epsilon"]),
        "-" if given.get("odds") is None else percent(given["odds"]),
        "-" if score is None else f"{score[name]:.4f}",
        "" if low is None or high is None else f"{low:.4f} to {high:.4f}",
        f"{together.get('rounds', 0):,}",
        lasting(float(folder.facts.get("seconds") or 0)),
        readable(together.get("bytes", 0)),
    )


def _accuracy(folders: Sequence[Folder]) -> Markup:
    """Draw error against epsilon; promises, and errors, of different kinds have no axis in common."""
    measured = [folder for folder in folders if names.own_name(folder.scores)]
    private = [folder for folder in measured if folder.guarantee.get("epsilon") is not None]
    if not private:
        told = element("p", "No run has both a promise and a measured error.")
        return section("curve", "Error by epsilon", told)
    alike: dict[tuple[str, str, str], list[Folder]] = {}
    for each in private:
        promised = str(each.guarantee.get("unit")), str(each.guarantee.get("adjacency"))
        alike.setdefault((*promised, names.metric(each.scores)[0]), []).append(each)
    return section(
        "curve",
        "Error by epsilon",
        *(
            _curve(own, measured, f": each {unit}, {adjacency}" if len(alike) > 1 else "")
            for (unit, adjacency, _), own in alike.items()
        ),
        lead="More private to the left. Bands are 95% intervals over users; where runs have the same epsilon "
        "and other seeds, their mean is drawn.",
    )


def _curve(private: Sequence[Folder], measured: Sequence[Folder], whose: str) -> Markup:
    """Draw a line for each recipe, beside what needs no privacy."""
    metric, said, lower = names.metric(private[0].scores)
    lines = [
        _line(kind, [each for each in private if each.facts["recipe"].get("kind") == kind], metric)
        for kind in dict.fromkeys(str(each.facts["recipe"].get("kind")) for each in private)
    ]
    ends = [min(_epsilon(each) for each in private), max(_epsilon(each) for each in private)]
    lines += [
        Line(name=names.model(name), points=tuple((end, value) for end in ends))
        for name in _LEVELS
        if (value := _mean([each.scores.get(name, {}) for each in measured], metric)) is not None
    ]
    return line_chart(
        f"Recipes, beside models without noise{whose}",
        lines,
        x="epsilon",
        y=said,
        logarithmic_x=True,
        lower_is_better=lower,
        beside=badge("SIMULATION", "doubt"),
    )


def _line(kind: str, folders: Sequence[Folder], metric: str) -> Line:
    """Draw one recipe; runs with the same epsilon are averaged."""
    by_epsilon: dict[float, list[Facts]] = {}
    for folder in folders:
        own = names.own_name(folder.scores)
        assert own is not None
        by_epsilon.setdefault(_epsilon(folder), []).append(folder.scores[own])
    points, band = [], []
    for epsilon, scores in sorted(by_epsilon.items()):
        value = _mean(scores, metric)
        assert value is not None
        ends = [names.interval(score, metric) for score in scores]
        lows, highs = ([end for end in side if end is not None] for side in zip(*ends, strict=True))
        points.append((epsilon, value))
        band.append((sum(lows) / len(lows), sum(highs) / len(highs)) if lows and highs else (value, value))
    return Line(name=kind, points=tuple(points), band=tuple(band), dots=True)


def _epsilon(folder: Folder) -> float:
    """Return what a run was allowed, or else what it cost: runs of a sweep differ in the former."""
    given = folder.guarantee
    return float(given.get("budget_epsilon") or given["epsilon"])


def _mean(scores: Sequence[Facts], metric: str) -> float | None:
    values = [float(score[metric]) for score in scores if metric in score]
    return sum(values) / len(values) if values else None


def _differences(folders: Sequence[Folder]) -> Markup:
    """List the settings that are not the same everywhere."""
    tables = [
        dict(line.partition(" = ")[::2] for line in cost_part.settings_text(each).splitlines())
        for each in folders
    ]
    every = dict.fromkeys(name for settings in tables for name in settings)
    differing = [name for name in every if len({settings.get(name) for settings in tables}) > 1]
    rows = [(name, *(settings.get(name, "-") for settings in tables)) for name in differing]
    heads = ("setting", *_labels(folders))
    whole = table(heads, rows, caption="Settings that differ") if rows else NOTHING
    lead = f"{len(rows):,} of {len(every):,} settings differ." if rows else "All settings are the same."
    return section("settings", "In what their settings differ", whole, lead=lead)
