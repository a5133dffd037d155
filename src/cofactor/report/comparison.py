"""Several runs side by side: what each promises, how good it is, and in what their settings differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cofactor.errors import DAMAGES
from cofactor.figures import lasting, percent, readable, rounded_up
from cofactor.report import cost_part, names
from cofactor.report.answers import alarms, breaks_promise
from cofactor.report.beside import Beside
from cofactor.report.charts import Line, line_chart
from cofactor.report.document import document
from cofactor.report.folder import Facts, Folder, damaged
from cofactor.report.markup import NOTHING, SIMULATION, Content, Markup, badge, element, section, table
from cofactor.report.states import state

_MUST_AGREE = ("unit", "adjacency", "delta")
"""Of guarantees: where these differ, a smaller epsilon need not be a better promise."""
_LEVELS = (*names.SENDS_NOTHING, "alone", "together", "pooled")


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One of the runs, and what is known beside it."""

    folder: Folder
    beside: Beside
    label: str

    @property
    def measured_on(self) -> tuple[str, ...]:
        """What errors must have in common to be put on one axis, in words."""
        facts, together = self.folder.facts.get("data") or {}, self.folder.together or {}
        size = ", ".join(
            f"{facts.get(each):,} {each}" for each in ("ratings", "users", "items") if each in facts
        )
        parties = f"{len(self.folder.parties):,} parties" if together else ""
        return names.metric(self.folder.scores)[1], size, str(together.get("split", "pooled")), parties

    @property
    def promised(self) -> tuple[str, ...]:
        """What promises must have in common, in words."""
        given = self.folder.guarantee
        return f"for each {given.get('unit')}", f'adjacency "{given.get("adjacency")}"'

    @property
    def doubtful(self) -> bool:
        """Whether nobody may rely on its promise."""
        return bool(alarms(self.folder, self.beside))


def compared(folders: Sequence[Folder], besides: Sequence[Beside] = ()) -> list[Compared]:
    """Put runs side by side: they are called by where they lie, if several have the same name."""
    called = [folder.name for folder in folders]
    labels = called if len({*called}) == len(called) else [str(folder.path) for folder in folders]
    known = besides or [Beside()] * len(folders)
    return [
        Compared(folder=folder, beside=beside, label=label)
        for folder, beside, label in zip(folders, known, labels, strict=True)
    ]


def comparison(runs: Sequence[Compared]) -> str:
    """Return a page that compares runs."""
    for each in runs:
        try:
            _ = _row(each), each.measured_on, cost_part.settings_text(each.folder)
        except DAMAGES as error:
            raise damaged(each.folder.path, error) from None
    warnings = list(incomparable(runs))
    notice = element("div", *(element("p", each) for each in warnings), class_="notice")
    parts = [
        element(
            "header",
            element("h1", f"{len(runs):,} runs, compared"),
            element("p", ", ".join(each.label for each in runs), class_="under"),
            notice if warnings else None,
        ),
        _overview(runs),
        _accuracy(runs),
        _differences(runs),
    ]
    return document("Runs, compared · cofactor", *parts)


def incomparable(runs: Sequence[Compared]) -> Iterator[str]:
    """Say in what runs differ so that their numbers must not be put side by side."""
    folders = [each.folder for each in runs]
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
    counts = dict.fromkeys(f"{len(folder.parties):,}" for folder in folders if folder.together)
    if len(counts) > 1:
        yield f"The number of parties differs: {', '.join(counts)}. What each has alone does, too."
    for title, which in (
        ("Not private", [each for each in runs if breaks_promise(each.folder, each.beside)]),
        ("Not to be relied on", [e for e in runs if e.doubtful and not breaks_promise(e.folder, e.beside)]),
        ("Ended early, and drawn at what they cost", [each for each in runs if each.folder.ended_early]),
    ):
        if which:
            yield f"{title}: {', '.join(each.label for each in which)}."


def _overview(runs: Sequence[Compared]) -> Markup:
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
    rows = [_row(each) for each in runs]
    return section("overview", "Side by side", table(heads, rows, caption="Runs", numeric=(3, 4, 5, 7, 8, 9)))


def _row(each: Compared) -> tuple[Content, ...]:
    folder = each.folder
    given, together = folder.guarantee, folder.together or {}
    own = names.own_name(folder)
    score = None if own is None else folder.scores[own]
    name = names.metric(folder.scores)[0]
    low, high = (None, None) if score is None else names.interval(score, name)
    word, tone = state(folder, each.beside)
    return (
        each.label,
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


def _accuracy(runs: Sequence[Compared]) -> Markup:
    """Draw error against epsilon; promises, and errors, of different kinds have no axis in common."""
    measured = [each for each in runs if names.own_name(each.folder)]
    alike: dict[tuple[str, ...], list[Compared]] = {}
    for each in measured:
        if each.folder.guarantee.get("epsilon") is not None:
            alike.setdefault((*each.promised, *each.measured_on), []).append(each)
    if not alike:
        told = element("p", "No run has both a promise and a measured error.")
        return section("curve", "Error by epsilon", told)
    differing = [len({*words}) > 1 for words in zip(*alike, strict=True)]
    return section(
        "curve",
        "Error by epsilon",
        *(
            _curve(
                own,
                [each for each in measured if each.measured_on == own[0].measured_on],
                [word for word, differs in zip(words, differing, strict=True) if differs and word],
            )
            for words, own in alike.items()
        ),
        lead="More private to the left. Bands are 95% intervals over users; where runs have the same epsilon "
        "and other seeds, their mean is drawn.",
    )


def _curve(private: Sequence[Compared], measured: Sequence[Compared], whose: Sequence[str]) -> Markup:
    """Draw a line for each recipe, beside what needs no privacy."""
    metric, said, lower = names.metric(private[0].folder.scores)
    by_recipe: dict[str, list[Folder]] = {}
    for each in private:
        kind = str(each.folder.facts["recipe"].get("kind"))
        by_recipe.setdefault(f"{kind}, NOT TO BE RELIED ON" if each.doubtful else kind, []).append(
            each.folder
        )
    lines = [_line(kind, folders, metric) for kind, folders in by_recipe.items()]
    epsilons = [_epsilon(each.folder) for each in private]
    lines += [
        Line(name=names.model(name), points=tuple((end, value) for end in (min(epsilons), max(epsilons))))
        for name in _LEVELS
        if (value := _mean([each.folder.scores.get(name, {}) for each in measured], metric)) is not None
    ]
    return line_chart(
        ", ".join(("Trained with a budget, and what needs none", *whose)),
        lines,
        x="epsilon",
        y=said,
        logarithmic_x=True,
        lower_is_better=lower,
        beside=SIMULATION,
    )


def _line(kind: str, folders: Sequence[Folder], metric: str) -> Line:
    """Draw one recipe; runs with the same epsilon are averaged."""
    by_epsilon: dict[float, list[Facts]] = {}
    for folder in folders:
        own = names.own_name(folder)
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
    """Return what a run was allowed, by which runs of a sweep differ; what it cost, if it was ended early."""
    given = folder.guarantee
    return float(given["epsilon"] if folder.ended_early else given.get("budget_epsilon") or given["epsilon"])


def _mean(scores: Sequence[Facts], metric: str) -> float | None:
    values = [float(score[metric]) for score in scores if metric in score]
    return sum(values) / len(values) if values else None


def _differences(runs: Sequence[Compared]) -> Markup:
    """List the settings that are not the same everywhere."""
    tables = [
        dict(line.partition(" = ")[::2] for line in cost_part.settings_text(each.folder).splitlines())
        for each in runs
    ]
    every = dict.fromkeys(name for settings in tables for name in settings)
    differing = [name for name in every if len({settings.get(name) for settings in tables}) > 1]
    rows = [(name, *(settings.get(name, "-") for settings in tables)) for name in differing]
    heads = ("setting", *(each.label for each in runs))
    whole = table(heads, rows, caption="Settings that differ") if rows else NOTHING
    lead = f"{len(rows):,} of {len(every):,} settings differ." if rows else "All settings are the same."
    return section("settings", "In what their settings differ", whole, lead=lead)
