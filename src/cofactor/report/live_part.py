"""How far a training is, drawn: RELEASED numbers only, whoever looks."""

from collections.abc import Iterator

from cofactor.figures import at_most, lasting, readable, rounded_up
from cofactor.report import names
from cofactor.report.charts import Level, Line, line_chart, meter
from cofactor.report.document import document
from cofactor.report.folder import Facts
from cofactor.report.markup import (
    NOTHING,
    RELEASED,
    Content,
    Markup,
    badge,
    element,
    section,
    table,
    together,
)
from cofactor.report.underway import Underway

_MOST_PARTIES = 100
_REACHED = 0.99
"""Part of a budget from which on it is called reached: noise is made to spend all but half a percent."""
_ENDED = {
    "interrupted": "It was interrupted. What was done is kept: add --resume to its command.",
    "refused": "It was refused. Nothing was released by that; what was charged before stays charged.",
    "failed": "It failed: where it runs, the last lines say why. What was charged stays charged.",
    "paused": "It rests. It goes on by itself when those it waits for are back.",
}
_DOUBTFUL = ("paused", "interrupted")


def live_state(found: Underway) -> tuple[str, str]:
    """Return the word beside the name, and its tone."""
    if found.ended:
        return found.ended, "doubt" if found.ended in _DOUBTFUL else "bad"
    if not found.rounds:
        return "waiting", "plain"
    if found.done >= found.planned:
        return "finishing", "plain"
    if found.stopping:
        return "stopping", "doubt"
    if _reached(found):
        return "budget reached", "doubt"
    return ("training, after it was resumed" if found.resumed else "training"), "plain"


def underway_page(found: Underway) -> str:
    """Return a page of how far a training is just now, which does not change."""
    note = "It is not finished: this was so when the page was made. To watch it: cofactor report RUN --live"
    return document(
        f"{found.name} · cofactor", live_head(found), live_body(found), element("footer", element("p", note))
    )


def live_head(found: Underway) -> Markup:
    """Return the state and three answers: how far it is, what may be learned, and who is there."""
    word, tone = live_state(found)
    said = _said(found)
    return element(
        "header",
        element("h1", found.name, " ", badge(word, tone)),
        element("p", _under(found), class_="under"),
        element("p", said) if said else None,
        _alarm(found),
        element("div", _far(found), _spent(found), _there(found), class_="answers"),
    )


def live_body(found: Underway) -> Markup:
    """Return the rounds, drawn, and who takes part."""
    return together([_curves(found), _parties(found)])


def damaged_head(name: str, why: str) -> Markup:
    """Return the head of a page whose files cannot be read."""
    return element(
        "header",
        element("h1", name, " ", badge("damaged", "bad")),
        element("div", element("p", why), class_="alarm"),
    )


def _under(found: Underway) -> str:
    if not found.parties:
        return "Nothing has begun here."
    count = f"{len(found.parties):,} parties" if len(found.parties) > 1 else "1 party"
    return ", ".join(each for each in (found.recipe, count, names.split(found.split)) if each)


def _said(found: Underway) -> str:
    """Say in a sentence what goes on."""
    if found.ended:
        return _ENDED[found.ended] + (f" The coordinator says: {found.why}" if found.why else "")
    if not found.parties:
        return (
            f"Waiting for a training whose run will lie here: cofactor train ... --out {found.name}. A model "
            "that is fitted in one place shows when it is done."
        )
    if found.waiting:
        return f"Waiting for a yes: {found.waiting}."
    if not found.begun:
        return "Waiting: ratings are read, and noise is made to fit the budget."
    if not found.rounds:
        return f"The first round is going on.{_quiet(found)}"
    if found.done >= found.planned:
        return "All rounds are done; the run is being written."
    if found.stopping:
        return (
            "It ends as soon as it can: after the round that is going on, or one more where a recipe needs "
            f"it. The guarantee will be that of what was released by then.{_quiet(found)}"
        )
    return _quiet(found).strip()


def _quiet(found: Underway) -> str:
    return f" No sign of life for {found.silent:,} min." if found.silent else ""


def _alarm(found: Underway) -> Markup | None:
    if not found.parties or found.budget is not None:
        return None
    told = "It has no budget: what parties send has no noise, and nothing is promised."
    return element("div", element("p", "NOT PRIVATE"), element("p", told), class_="alarm")


def _card(question: str, verdict: str, *content: Content, tone: str = "plain") -> Markup:
    return element(
        "section",
        element("h2", question),
        element("p", verdict, class_="verdict"),
        *content,
        class_=f"answer {tone}",
    )


def _far(found: Underway) -> Markup:
    question = "How far is it?"
    if not found.planned:
        return _card(question, "Not begun")
    going = found.done < found.planned and not (found.ended or found.stopping)
    left = found.left if going else None
    return _card(
        question,
        f"Round {found.done:,} of {found.planned:,}",
        meter("Rounds", found.done, found.planned, told=f"{found.done / found.planned:.0%}"),
        None if left is None else element("p", f"About {lasting(left)} left."),
        element("p", f"{readable(found.bytes)} in all messages, both ways."),
    )


def _spent(found: Underway) -> Markup:
    question = "What may be learned?"
    if not found.parties:
        return _card(question, "Nothing yet")
    if found.budget is None:
        return _card(question, "Everything that is sent", tone="bad")
    budget, spent = float(found.budget["epsilon"]), found.number.get("epsilon", 0.0)
    planned = found.number.get("epsilon_planned", spent)
    tone = "doubt" if _reached(found) else "plain"
    unit = f"At most, at delta {found.budget['delta']:g}, for each {found.budget['unit']}. "
    return _card(
        question,
        f"Epsilon {rounded_up(spent) if spent else 0} of {budget:g}",
        meter(
            "Of the budget",
            spent,
            budget,
            told="reached" if _reached(found) else f"{spent / budget:.0%}",
            ahead=planned,
            tone=tone,
        ),
        element("p", unit, RELEASED) if spent else None,
        _projected(found, planned),
        tone=tone,
    )


def _projected(found: Underway, planned: float) -> Markup | None:
    """Say what it will be: after all rounds, or after those that it takes to stop."""
    if not planned or found.done >= found.planned or found.ended:
        return None
    words = f"{rounded_up(planned)} after all {found.planned:,} rounds"
    return element("p", f"It would be {words}." if found.stopping else f"It will be {words}.")


def _reached(found: Underway) -> bool:
    """Say whether nothing of the budget is left."""
    spent = found.number.get("epsilon", 0.0)
    return found.budget is not None and spent >= _REACHED * float(found.budget["epsilon"])


def _there(found: Underway) -> Markup:
    question, number = "Who is there?", found.number
    if "answered" not in number:
        verdict = f"{len(found.parties):,} take part" if found.parties else "Nobody yet"
        return _card(question, verdict)
    there, asked = int(number["answered"]), _asked(found, number)
    lost = _lost(found)
    told = (
        f"In {lost:,} of {len(found.rounds):,} rounds somebody was lost."
        if lost
        else "In every round all of them answered."
    )
    tone = "doubt" if there < asked else "plain"
    return _card(question, f"{there:,} of {asked:,} answered", element("p", told), tone=tone)


def _lost(found: Underway) -> int:
    """Return in how many rounds somebody was lost."""
    return sum(each.get("answered", 0) < _asked(found, each) for each in found.rounds)


def _asked(found: Underway, number: Facts) -> int:
    return int(number.get("parties", len(found.parties)))


def _curves(found: Underway) -> Markup:
    if not found.rounds:
        return NOTHING
    return section("curves", "Round by round", *_drawn(found))


def _drawn(found: Underway) -> Iterator[Markup]:
    spent = tuple((float(e["step"]), at_most(e["epsilon"])) for e in found.rounds if "epsilon" in e)
    if spent and found.budget is not None:
        lines = [Line(name="spent", points=spent, steps=True)]
        planned = found.number.get("epsilon_planned")
        if planned is not None and found.done < found.planned:
            lines.append(
                Line(name="if it goes on", points=(spent[-1], (float(found.planned), at_most(planned))))
            )
        yield line_chart(
            "Epsilon spent (at most)",
            lines,
            x="round",
            y="epsilon",
            levels=(Level(name="budget", value=float(found.budget["epsilon"])),),
            from_zero=True,
            beside=RELEASED,
        )
    unit, small = names.unit_of(each.get("bytes", 0.0) for each in found.rounds)
    lost = [("answered", "Parties that answered", "parties", 1.0)] if _lost(found) else []
    for name, title, axis, scale in (*lost, ("bytes", "Size of all messages, both ways", unit, small)):
        points = tuple((float(each["step"]), each[name] * scale) for each in found.rounds if name in each)
        if points:
            yield line_chart(
                title, [Line(name=axis, points=points)], x="round", y=axis, from_zero=True, beside=RELEASED
            )


def _parties(found: Underway) -> Markup:
    """Show when parties were last heard of, those first who were lost most often."""
    if not found.begun:
        return NOTHING
    silent = {party: len(found.rounds) - found.answered.get(party, 0) for party in found.parties}
    rows = [
        (
            party,
            _heard(found.last_round.get(party)),
            found.last_time.get(party, "-"),
            f"{silent[party]:,}",
        )
        for party in sorted(found.parties, key=lambda party: -silent[party])[:_MOST_PARTIES]
    ]
    heads = ("party", "last heard of in", "at", "rounds it was silent in")
    more = f"{len(found.parties) - _MOST_PARTIES:,} more parties were silent no more often."
    return section(
        "parties",
        "Who takes part",
        table(heads, rows, caption="Parties; those who were silent most often come first", numeric=(3,)),
        element("p", more, class_="aside") if len(found.parties) > _MOST_PARTIES else None,
    )


def _heard(number: int | None) -> str:
    """Say in which round somebody was last heard of; on a network they agree before the first one."""
    if number is None:
        return "-"
    return f"round {number:,}" if number else "agreeing"
