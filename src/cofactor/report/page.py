"""The page of one run, one survey or one clustering, made of its folder."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence

from cofactor.errors import DAMAGES
from cofactor.report import clusters_part, cost_part, privacy_part, survey_part, useful_part
from cofactor.report.answers import Answer, alarms, answers
from cofactor.report.beside import Beside
from cofactor.report.card import card_json, card_markdown
from cofactor.report.document import document
from cofactor.report.folder import Folder, damaged
from cofactor.report.markup import Content, Markup, badge, copied, element, folded, section, together
from cofactor.report.sight import sight
from cofactor.report.states import state

_PLAIN = Beside()


def page(folder: Folder, beside: Beside = _PLAIN, *, script: str = "") -> str:
    """Return the whole page in one file; `script` is what it runs besides what all pages do."""
    try:
        return document(f"{folder.name} · cofactor", *content(folder, beside), script=script)
    except DAMAGES as error:
        raise damaged(folder.path, error) from None


def content(folder: Folder, beside: Beside) -> list[Content]:
    """Return all parts of the page, by who reads them."""
    by_reader = {
        "For the privacy officer": [part for part in _for_officer(folder, beside) if part],
        "For the data scientist": [part for part in _for_scientist(folder, beside) if part],
    }
    parts: list[Content] = []
    for who, own in by_reader.items():
        parts += [element("p", who, class_="reader"), *own]
    return [_head(folder, beside), _contents(by_reader), *parts, _foot(folder, beside)]


def _for_officer(folder: Folder, beside: Beside) -> list[Markup]:
    return [
        privacy_part.promise(folder, beside),
        privacy_part.assumptions(folder),
        privacy_part.ledger(folder),
        sight(folder),
        privacy_part.bounds(folder),
        privacy_part.approvals(folder),
        privacy_part.checks(folder, beside),
        _card(folder, beside),
    ]


def _for_scientist(folder: Folder, beside: Beside) -> list[Markup]:
    return [
        *_results(folder, beside),
        cost_part.parties(folder),
        cost_part.costs(folder),
        cost_part.settings(folder, beside),
        cost_part.made_of(folder),
    ]


def _results(folder: Folder, beside: Beside) -> list[Markup]:
    if folder.kind == "survey":
        return [survey_part.survey(folder, beside.spread)]
    if folder.kind == "clustering":
        return [clusters_part.clusters(folder)]
    return [useful_part.accuracy(folder, beside), useful_part.curves(folder)]


def _head(folder: Folder, beside: Beside) -> Markup:
    facts = folder.facts
    word, tone = state(folder, beside)
    day = element("span", str(facts.get("created", ""))[:10], class_="day")
    reasons = alarms(folder, beside)
    alarm = None
    if reasons:
        alarm = element(
            "div", element("p", word), *(element("p", each) for each in reasons[:5]), class_="alarm"
        )
    return element(
        "header",
        element("h1", folder.name, " ", badge(word, tone)),
        element("p", _made(folder), " · ", day, class_="under"),
        alarm,
        element("div", *(_answered(each) for each in answers(folder, beside)), class_="answers"),
        id="answers",
    )


def _made(folder: Folder) -> str:
    """Say in a line what was made of what."""
    facts, data = folder.facts, folder.facts["data"]
    kind = str(facts["recipe"].get("kind", ""))
    if folder.kind != "training":
        return f"{folder.kind}, {kind}"
    size = f"{data['ratings']:,} ratings by {data['users']:,} users of {data['items']:,} items"
    believed = ", make-believe parties" if (folder.together or {}).get("simulated") else ""
    return f"{kind} on {size}{believed}"


def _answered(answer: Answer) -> Markup:
    return element(
        "section",
        element("h2", answer.question),
        element("p", re.sub(r"(?<=\d) (?=[a-zA-Z])", "\N{NO-BREAK SPACE}", answer.verdict), class_="verdict"),
        *(element("p", each) for each in answer.sentences),
        class_=f"answer {answer.tone}",
    )


def _contents(by_reader: Mapping[str, Sequence[Markup]]) -> Markup:
    """Link to the parts by their titles."""
    links: list[Markup] = []
    for who, parts in by_reader.items():
        own = [
            element("li", element("a", title, href=f"#{identity}")) for identity, title in map(_title, parts)
        ]
        links += [element("span", who), element("ul", *own)]
    return element("nav", *links, aria_label="Parts of this page")


def _title(part: Markup) -> tuple[str, Markup]:
    """Return the identity and the title of a part, as they are written."""
    text = str(part)
    identity = text.split('"', 2)[1]
    return identity, Markup(text.partition(f'id="{identity}-title">')[2].partition("</h2>")[0])


def _card(folder: Folder, beside: Beside) -> Markup:
    text, plain = card_markdown(folder, beside), card_json(folder, beside)
    links = together(
        [
            element(
                "p",
                _download(text, "text/markdown", "privacy-card.md", "Markdown"),
                " · ",
                _download(plain, "application/json", "privacy-card.json", "JSON"),
            ),
        ]
    )
    return section(
        "card",
        "Privacy card",
        links,
        folded("Look at it", copied(text, label="Markdown", identity="card-markdown")),
        lead="The same in short, to keep with the model: for a data protection file, or a model card.",
    )


def _download(text: str, kind: str, name: str, label: str) -> Markup:
    data = b64encode(text.encode()).decode()
    return element("a", f"Save as {label}", href=f"data:{kind};charset=utf-8;base64,{data}", download=name)


def _foot(folder: Folder, beside: Beside) -> Markup:
    version = folder.facts.get("versions", {}).get("cofactor", "?")
    sources = [each.source for each in (beside.policy, beside.groups) if each is not None]
    others = ", ".join(sources) or "nothing else"
    told = (
        f"Made from {folder.name}/run.json and what lies beside it, and from {others}; the run was made "
        f"by cofactor {version}. This page asks nobody for anything."
    )
    return element("footer", element("p", told))
