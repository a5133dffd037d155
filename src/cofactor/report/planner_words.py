"""What a planner's page says of one choice: words and numbers, the same with a script and without."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cofactor.figures import number_of, percent, readable, rounded_up
from cofactor.report import names
from cofactor.report.answers import WEAK
from cofactor.report.folder import Facts
from cofactor.report.planner_folder import PlanFolder

LABELS = {
    "users": "Population",
    "ratings_each": "Ratings per person",
    "rounds": "Rounds",
    "epsilon": "Budget: epsilon",
}
"""What sliders are called."""
CARDS = {
    "privacy": "How private is it?",
    "accuracy": "How accurate, on made-up ratings?",
    "traffic": "What does it cost?",
}
LINES = 3
"""How many lines a card has below its verdict, at most."""
COMMANDS = ("command", "toml", "python", "plan")
_LOW_SIGNAL = 1.0
_CHOSEN = "as the recipe chooses"


@dataclass(frozen=True, kw_only=True)
class Words:
    """All that is shown of one choice."""

    slots: dict[str, str]
    """Text by the name of its place."""
    tones: dict[str, str]
    """By the name of a card: "good", "doubt", "bad" or "plain"."""
    releases: list[list[str]]
    """What is released, with which noise, and signal / noise."""
    warnings: list[str]
    needs: list[str]
    """What its sum needs."""

    def as_dict(self) -> dict[str, Any]:
        """Return it for the script."""
        lists = {"warnings": self.warnings, "needs": self.needs}
        return {"slots": self.slots, "tones": self.tones, "releases": self.releases, "lists": lists}


def words(folder: PlanFolder, cell: Facts) -> Words:
    """Say everything about one choice."""
    plan = cell["plan"]
    if plan is None:
        return _unplanned(folder, cell)
    accuracy, tone = _accuracy(folder, cell)
    private, weak = _privacy(plan), "doubt" if plan["odds"] > WEAK else "good"
    return Words(
        slots={
            "summary": f"{chosen(folder, cell)}: {_summary(folder, cell)}",
            "rounds": _rounds(cell),
            **private,
            **accuracy,
            **_traffic(folder, plan),
            **{name: str(cell["commands"][name]) for name in COMMANDS},
        },
        tones={"privacy": weak if plan["holds"] else "bad", "accuracy": tone, "traffic": "plain"},
        releases=[_release(each) for each in plan["releases"]],
        warnings=[_capital(str(each)) for each in plan["warnings"]],
        needs=[_capital(str(each)) for each in cell["sum"]],
    )


def valued(name: str, value: Any) -> str:
    """Write a value of an axis."""
    if name == "users":
        return f"{value:,} people"
    if name == "ratings_each":
        return f"{value:,.3g} ratings" if value < 1000 else f"{value:,.0f} ratings"
    if name == "rounds":
        return _CHOSEN if value is None else f"{value:,}"
    return f"{value:g}"


def chosen(folder: PlanFolder, cell: Facts) -> str:
    """Say in a line what was chosen."""
    users, each, rounds, epsilon = (
        valued(name, folder.axis(name)[at]) for name, at in zip(LABELS, cell["place"], strict=True)
    )
    told = f"{users} with {each} each"
    told += "" if rounds == _CHOSEN else f", {rounds} rounds"
    return f"{told}, epsilon {epsilon}"


def told(folder: PlanFolder) -> Iterator[tuple[str, str]]:
    """Yield what was asked for in lines, each with its tone: for a command line."""
    found = words(folder, folder.asked)
    slots, tones = found.slots, found.tones
    yield f"{folder.facts['name']}, {chosen(folder, folder.asked)}", "plain"
    for card in CARDS:
        yield f"{CARDS[card]} {slots[f'{card}-verdict']}.", tones[card]
        for at in range(1, LINES + 1):
            if slots[f"{card}-{at}"]:
                yield f"  {slots[f'{card}-{at}']}", "plain"
    for warning in found.warnings:
        yield f"warning: {warning}", "plain"


def _card(name: str, verdict: str, *lines: str) -> dict[str, str]:
    padded = [*lines, *[""] * (LINES - len(lines))]
    return {f"{name}-verdict": verdict} | {f"{name}-{at}": line for at, line in enumerate(padded, 1)}


def _unplanned(folder: PlanFolder, cell: Facts) -> Words:
    why = _capital(str(cell["why_no_plan"]))
    verdict = "Not planned"
    return Words(
        slots={
            "summary": f"{chosen(folder, cell)}: {verdict.lower()}.",
            "rounds": _rounds(cell),
            **_card("privacy", verdict, why),
            **_card("accuracy", verdict),
            **_card("traffic", verdict),
            **{name: str(cell["commands"][name]) for name in COMMANDS},
        },
        tones=dict.fromkeys(CARDS, "plain"),
        releases=[],
        warnings=[],
        needs=[],
    )


def _rounds(cell: Facts) -> str:
    """Say how many rounds there are, and who chose them."""
    if cell["rounds"] is not None:
        return f"{cell['rounds']:,}"
    return _CHOSEN if cell["plan"] is None else f"{cell['plan']['rounds']:,}, {_CHOSEN}"


def _summary(folder: PlanFolder, cell: Facts) -> str:
    plan, training = cell["plan"], folder.training(cell)
    guessed = f"a guesser is right at most {percent(plan['odds'])} of the time"
    if training is None:
        return f"{guessed}; accuracy not tried."
    own = training["rmse"][training["own"]]["mean"]
    nothing = training["rmse"]["user_mean"]["mean"]
    return f"{guessed}; error about {own:.3f}, and {nothing:.3f} for who sends nothing."


def _privacy(plan: Facts) -> dict[str, str]:
    epsilon = (
        "no epsilon can be proved" if plan["epsilon"] is None else f"epsilon {rounded_up(plan['epsilon'])}"
    )
    budget = plan["budget"]
    kept = "within" if plan["holds"] else "ABOVE"
    return _card(
        "privacy",
        f"A guesser is right at most {percent(plan['odds'])} of the time",
        "Somebody who guesses between two equally likely possibilities; 50% is pure chance.",
        f"{_capital(epsilon)} at delta {plan['delta']:g} for each {budget['unit']}, by {plan['accountant']}: "
        f"{kept} the budget of {budget['epsilon']:g}.",
    )


def _accuracy(folder: PlanFolder, cell: Facts) -> tuple[dict[str, str], str]:
    """Say how wrong models were on synthetic ratings, beside what others reach on the same ones."""
    training = folder.training(cell)
    if training is None:
        why = str(cell["why_no_training"]) or "Nothing was trained."
        return _card("accuracy", "Not tried", _capital(why)), "plain"
    errors = training["rmse"]
    own, gain = errors[training["own"]], training["gain"]
    beside = "; ".join(
        f"{names.model(name)} {errors[name]['mean']:.3f}"
        for name in ("user_mean", "alone", "pooled")
        if name in errors
    )
    smaller = training["users"] < cell["users"]
    verdict = f"Error {own['mean']:.3f}" + (f", with {training['users']:,} users only" if smaller else "")
    lines = _card("accuracy", verdict, _sure(own, training["repeats"]), f"{_capital(beside)}.", _gained(gain))
    return lines, _tone(gain)


def _sure(own: Facts, repeats: int) -> str:
    """Say how far repeats are apart, and where their mean may lie."""
    if own["low"] is None:
        return "Of one training only: how far another would be from it is not known."
    return (
        f"Root mean squared; {own['low']:.3f} to {own['high']:.3f} with 95% confidence, from {repeats} "
        f"trainings that spread by {own['spread']:.3f}."
    )


def _gained(gain: Facts) -> str:
    over = names.model(str(gain["over"]))
    who = (
        "who sends nothing"
        if gain["over"] == "user_mean"
        else "parties that stay alone"
        if over == "alone"
        else over
    )
    if gain["mean"] == 0 and not gain["spread"]:
        return f"That is the same as of {who}."
    change = f"{abs(gain['mean']):.3f} {'lower' if gain['mean'] >= 0 else 'HIGHER'} than of {who}"
    if gain["low"] is None:
        return f"That is {change}."
    sure = "" if gain["low"] > 0 or gain["high"] < 0 else ": may be chance"
    return f"That is {change} ({gain['low']:.3f} to {gain['high']:.3f}){sure}."


def _tone(gain: Facts) -> str:
    if gain["low"] is None or gain["low"] <= 0 <= gain["high"]:
        return "plain"
    return "good" if gain["low"] > 0 else "doubt"


def _traffic(folder: PlanFolder, plan: Facts) -> dict[str, str]:
    parties, total = plan["parties"], plan["total_bytes"]
    each = "device" if folder.facts["split"] == "on-device" else "party"
    rounds = number_of(plan["rounds"], "round")
    return _card(
        "traffic",
        f"{readable(total / parties)} for each {each}",
        f"Up and down together, in {rounds}; {readable(plan['bytes_per_round'])} up in the largest.",
        f"{readable(total)} for all {parties:,} together.",
    )


def _release(release: Facts) -> list[str]:
    ratio = release["signal_to_noise"]
    return [
        _capital(str(release["what"])),
        names.mechanism(release["mechanism"]),
        "not known" if ratio is None else f"{ratio:.3g}" + (" (drowned)" if ratio < _LOW_SIGNAL else ""),
    ]


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
