"""Pieces of SVG pictures that need nothing else: no script, no font file, no colour that some cannot tell."""

import math
from html import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5d3a9b", "#555555")
"""Told apart by colour-blind readers, too (Okabe and Ito, two of our own)."""
GREY, PALE = "#6b6b6b", "#e4e4e4"


def opened(width: float, height: float, title: str, described: str = "") -> list[str]:
    """Begin a picture on white; it ends with "</svg>"."""
    return [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
        f"height='{height}' role='img' font-family='Helvetica, Arial, sans-serif' font-size='12'>",
        f"<title>{escape(title)}</title>",
        *([f"<desc>{escape(described)}</desc>"] if described else []),
        f"<rect width='{width}' height='{height}' fill='white'/>",
    ]


def stroke(x: float, y: float, to_x: float, to_y: float, colour: str, *, more: str = "") -> str:
    """Draw a straight line."""
    return f"<line x1='{x:.1f}' y1='{y:.1f}' x2='{to_x:.1f}' y2='{to_y:.1f}' stroke='{colour}' {more}/>"


def text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    size: int = 12,
    weight: str = "normal",
    colour: str = "black",
    more: str = "",
) -> str:
    """Write words; whatever they hold, they are no markup."""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-size='{size}' font-weight='{weight}' "
        f"fill='{colour}' {more}>{escape(words)}</text>"
    )


def nice_step(step: float) -> float:
    """Round a distance between ticks up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * (1 - 1e-9))


def decimals(step: float) -> int:
    """Return how many digits after the point tell such ticks apart."""
    return max(0, -math.floor(math.log10(step) + 1e-9))
