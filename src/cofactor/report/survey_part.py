"""What a survey tells: how numbers are spread, and how sure that is."""

from collections.abc import Sequence

from cofactor.report.beside import Spread
from cofactor.report.charts import Line, line_chart
from cofactor.report.folder import Folder
from cofactor.report.markup import RELEASED, Markup, element, listed, section, table

_MOST_BARS = 96
"""More buckets than this are put together in a picture: they are narrower than a dot."""


def survey(folder: Folder, spread: Spread | None) -> Markup:
    """Draw how the numbers are spread."""
    facts = folder.facts["survey"]
    asked = facts["question"]
    lead = (
        f"Asked for: {asked['name']}, between {asked['low']:g} and {asked['high']:g}. {facts['answered']:,} "
        "people answered, each with noise."
    )
    if spread is None:
        told = element("p", f"The mean is about {facts['mean']:.4g}. This method tells no more.")
        return section("spread", "How the numbers are spread", told, lead=lead)
    rows = [(name, f"{value:.4g}", _ends(ends)) for name, (value, ends) in spread.figures.items()]
    return section(
        "spread",
        "How the numbers are spread",
        listed(spread.warnings),
        _picture(str(asked["name"]), spread) if spread.shares else None,
        table(("number", "about", "95% interval"), rows, caption="In numbers", numeric=(1, 2)),
        _silent(facts.get("unanswered", {})),
        lead=lead,
    )


def _picture(name: str, spread: Spread) -> Markup:
    """Draw density, so that buckets of different widths can be compared, with its band."""
    edges, shares = list(spread.edges), list(spread.shares)
    bands = [list(each) for each in spread.bands]
    step = -(-len(shares) // _MOST_BARS)
    starts = range(0, len(shares), step)
    widths = [edges[min(at + step, len(shares))] - edges[at] for at in starts]
    middles = [(edges[min(at + step, len(shares))] + edges[at]) / 2 for at in starts]

    def density(values: Sequence[float]) -> list[float]:
        return [sum(values[at : at + step]) / width for at, width in zip(starts, widths, strict=True)]

    ends = [density([each[side] for each in bands]) for side in (0, 1)] if bands else []
    line = Line(
        name="density",
        points=tuple(zip(middles, density(shares), strict=True)),
        band=tuple(zip(*ends, strict=True)) if ends else (),
    )
    return line_chart(
        f"Estimated spread of {name}, with a 95% band",
        [line],
        x=name,
        y="share of people for each unit",
        from_zero=True,
        beside=RELEASED,
    )


def _ends(ends: tuple[float, float] | None) -> str:
    return "not known" if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}"


def _silent(unanswered: object) -> Markup | None:
    count = len(unanswered) if isinstance(unanswered, dict) else 0
    if not count:
        return None
    return element("p", f"{count:,} more did not answer, or nothing of use.", class_="aside")
