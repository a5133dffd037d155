"""A whole page in one file: it asks nobody for anything, and runs no script but its own."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from cofactor.report.markup import Content, Markup, element, together


def document(title: str, *content: Content, script: str = "") -> str:
    """Return a page that opens from disk; `script` is what it runs besides what all pages do."""
    style, scripts = _read("style.css"), _read("page.js") + script
    head = element(
        "head",
        element("meta", charset="utf-8"),
        # Nothing may be loaded, and nothing run but what is written here.
        element(
            "meta",
            http_equiv="Content-Security-Policy",
            content=f"default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; "
            f"form-action 'none'; style-src {_digest(style)}; script-src {_digest(scripts)}",
        ),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="generator", content="cofactor"),
        element("title", title),
        element("style", Markup(style)),
    )
    skip = element("a", "Skip to the content", href="#content", class_="skip")
    body = element(
        "body",
        skip,
        element("main", together(content), id="content", tabindex=-1),
        element("script", Markup(scripts)),
    )
    return str(Markup("<!DOCTYPE html>\n{}\n").format(element("html", head, body, lang="en")))


def _read(name: str) -> str:
    return files("cofactor.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
