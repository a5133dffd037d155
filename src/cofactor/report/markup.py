"""Elements of a page. Whatever is not `Markup` already is text, and no letter of it can become markup."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup as Markup
from markupsafe import escape

_VOID = frozenset({"input", "meta", "br", "hr", "link"})
"""Elements that hold nothing and have no end."""
Attribute = str | float | bool | None
Content = object
"""Markup, or anything else, which is written as text."""
NOTHING = Markup()


def element(name: str, /, *content: Content, **attributes: Attribute) -> Markup:
    """Return an element; `class_` is class, an underscore in a name is a hyphen, and None is left out."""
    opened = Markup("<{}{}>").format(Markup(name), _written(attributes))
    if name in _VOID:
        return opened
    return Markup("{}{}</{}>").format(opened, together(content), Markup(name))


def together(parts: Iterable[Content]) -> Markup:
    """Return parts one after the other."""
    return NOTHING.join(escape(part) for part in parts if part is not None)


def listed(sentences: Iterable[Content], /, **attributes: Attribute) -> Markup:
    """Return a list of points; nothing if there are none."""
    points = [element("li", each) for each in sentences]
    return element("ul", *points, **attributes) if points else NOTHING


def section(identity: str, title: str, *content: Content, lead: Content = None) -> Markup:
    """Return a part of a page that can be linked to, with its heading."""
    told = NOTHING if lead is None else element("p", lead, class_="lead")
    heading = element("h2", title, id=f"{identity}-title")
    return element(
        "section", heading, told, *content, id=identity, aria_labelledby=f"{identity}-title", class_="part"
    )


def folded(summary: Content, *content: Content) -> Markup:
    """Return what is shown on request."""
    return element("details", element("summary", summary), *content)


def table(
    columns: Sequence[Content],
    rows: Iterable[Sequence[Content]],
    *,
    caption: str,
    numeric: Sequence[int] = (),
) -> Markup:
    """Return a table that scrolls sideways by itself; columns at the `numeric` places stand to the right.

    Without `columns` there is no head: the first cell of each row says what the others are.
    """
    heads = [element("th", name, scope="col", class_=_side(at, numeric)) for at, name in enumerate(columns)]
    body = [element("tr", *(_cell(at, cell, numeric) for at, cell in enumerate(row))) for row in rows]
    whole = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads)) if heads else None,
        element("tbody", *body),
    )
    return element("div", whole, class_="scrolls", tabindex=0, role="region", aria_label=caption)


def badge(word: str, tone: str = "plain") -> Markup:
    """Return a word that says of what kind something is: "good", "doubt", "bad" or "plain"."""
    return element("span", word, class_=f"badge {tone}")


def copied(text: str, *, label: str, identity: str) -> Markup:
    """Return text to copy, with a button that does it."""
    button = element("button", "Copy", type="button", class_="copy", data_copies=identity)
    return element(
        "div",
        element("div", element("span", label), button, class_="copied-head"),
        element("pre", element("code", text), id=identity, tabindex=0),
        class_="copied",
    )


def _cell(at: int, cell: Content, numeric: Sequence[int]) -> Markup:
    if at == 0:
        return element("th", cell, scope="row", class_=_side(at, numeric))
    return element("td", cell, class_=_side(at, numeric))


def _side(at: int, numeric: Sequence[int]) -> str | None:
    return "number" if at in numeric else None


def _written(attributes: dict[str, Attribute]) -> Markup:
    return together(
        Markup(" {}").format(_name(name))
        if value is True
        else Markup(' {}="{}"').format(_name(name), _plain(value))
        for name, value in attributes.items()
        if value is not None and value is not False
    )


def _name(name: str) -> Markup:
    return Markup(name.rstrip("_").replace("_", "-"))


def _plain(value: Attribute) -> str:
    """Write a number without digits that nobody sees."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


RELEASED, LOCAL, SIMULATION = badge("RELEASED"), badge("LOCAL", "doubt"), badge("SIMULATION", "doubt")
"""Who may know a number: everyone, its holder, or nobody, had not one process played all roles."""
