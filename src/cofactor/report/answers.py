"""The three questions at the top of a report, each answered in a line."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cofactor.figures import lasting, number_of, percent, readable, rounded_up
from cofactor.report import names
from cofactor.report.beside import Beside, Policy
from cofactor.report.folder import Facts, Folder

WEAK = 0.9
"""Whoever guesses right more often than this, at worst, has learned much: a promise is called weak."""
_CLOSE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One question, answered."""

    question: str
    tone: str
    """"good", "doubt", "bad", or "plain" where there is nothing to judge."""
    verdict: str
    sentences: tuple[str, ...] = ()


def answers(folder: Folder, beside: Beside) -> tuple[Answer, Answer, Answer]:
    """Answer all three."""
    return is_it_private(folder, beside), is_it_useful(folder), what_did_it_cost(folder)


def alarms(folder: Folder, beside: Beside) -> list[str]:
    """Say, each in a sentence, why nobody may rely on what is promised."""
    found = [str(each) for each in folder.guarantee.get("why_not", ())]
    if not found and not folder.guarantee.get("holds"):
        found = [str(folder.guarantee.get("statement") or "Nothing is promised, and nothing says why.")]
    if beside.checks is None:  # whoever asks verify learns which alarms chance explains
        told = (f"{name}: {facts['headline']}" for name, facts in folder.audits.items() if is_alarm(facts))
        found += [f"An audit says that the promise was not kept. {each}" for each in told]
    broken = (f"The folder does not bear it out ({each.name}): {each.detail}" for each in beside.broken)
    return [*found, *broken]


def breaks_promise(folder: Folder, beside: Beside) -> bool:
    """Say whether nothing is promised, or an audit found that it was not kept."""
    if beside.checks is None:
        found = any(is_alarm(facts) for facts in folder.audits.values())
    else:
        found = any(each.name == "audits" for each in beside.broken)
    return found or not folder.guarantee.get("holds")


def is_alarm(audit: Facts) -> bool:
    """Say whether an audit found that a promise was not kept."""
    return bool(audit.get("verdict") == "alarm")


def is_it_private(folder: Folder, beside: Beside) -> Answer:
    """Compare what is promised with what was allowed, and with what was found."""
    question, reasons = "Is it private?", alarms(folder, beside)
    if reasons:
        return Answer(
            question=question,
            tone="bad",
            verdict="No" if breaks_promise(folder, beside) else "It cannot be relied on",
            sentences=(*reasons[:3], *_otherwise(folder.guarantee)),
        )
    odds, breaches = float(folder.guarantee["odds"]), list(breached(folder, beside.policy))
    promise = f"E{_epsilon(folder.guarantee)[1:]}."
    guessed = (
        f"Somebody who guesses between two equally likely possibilities is right at most {percent(odds)} of "
        "the time; 50% is pure chance."
    )
    if breaches:
        verdict, tone = "Not as the policy wants it", "bad"
    elif odds > WEAK:
        verdict, tone = "As promised, but the promise is weak", "doubt"
    elif beside.checks is None:
        verdict, tone = "So the folder says", "doubt"
    else:
        verdict, tone = "Yes, as promised", "good"
    return Answer(
        question=question,
        tone=tone,
        verdict=verdict,
        sentences=(
            *breaches,
            promise,
            *_if_ended(folder),
            guessed,
            *(("Nobody has checked whether the folder bears it out.",) if beside.checks is None else ()),
            *_judged_by(folder, beside.policy, kept=not breaches),
        ),
    )


def _epsilon(given: Facts) -> str:
    return f"epsilon {rounded_up(given['epsilon'])} at delta {given['delta']:g}, for each {given['unit']}"


def _otherwise(given: Facts) -> Iterator[str]:
    """Say what a promise that does not hold would be, as its statement does."""
    if not given.get("holds") and given.get("epsilon") is not None:
        yield f"Otherwise it would be {_epsilon(given)}."


def _if_ended(folder: Folder) -> Iterator[str]:
    """Say what the smaller promise of a run that was ended early rests on."""
    allowed = folder.guarantee.get("budget_epsilon")
    if folder.ended_early and allowed is not None:
        yield (
            "That is so if nobody ended it because of what had been released; whatever the reason, epsilon "
            f"{allowed:g} holds."
        )


def breached(folder: Folder, policy: Policy | None) -> Iterator[str]:
    """Say in what a run is not as a stated policy wants it."""
    if policy is None:
        return
    given, terms, together = folder.guarantee, policy.terms, folder.together or {}
    for name in ("max_epsilon_per_run", "max_epsilon"):
        if terms.get(name) is not None and given["epsilon"] > terms[name] * (1 + _CLOSE):
            yield f"Epsilon is {rounded_up(given['epsilon'])}, and {name} is {terms[name]:g}."
    if given["delta"] > terms.get("max_delta", 1.0) * (1 + _CLOSE):
        yield f"Delta is {given['delta']:g}, and max_delta is {terms['max_delta']:g}."
    for name, value in (("units", given["unit"]), ("adjacencies", given["adjacency"])):
        if value not in terms.get(name, (value,)):
            yield f'It is "{value}", and {name} allows {_quoted(terms[name])}.'
    if folder.kind not in terms.get("kinds", (folder.kind,)):
        yield f"It is a {folder.kind}, and kinds allows {_quoted(terms['kinds'])}."
    recipe, recipes = folder.facts["recipe"], terms.get("recipes")
    kind = recipe["method"].get("kind") if folder.kind == "clustering" else recipe.get("kind")
    if recipes is not None and kind not in recipes:
        yield f"The recipe is {kind}, and recipes allows {_quoted(recipes)}."
    if (together.get("alignment") or {}).get("how") == "psi" and "psi" not in terms.get("telling", ("psi",)):
        yield f'Common users were found by "psi", and telling allows {_quoted(terms["telling"])}.'
    sums = folder.facts["recipe"].get("aggregate", {}).get("kind")
    if sums is not None and sums not in terms.get("aggregates", (sums,)):
        yield f"Answers are added up by {sums}, and aggregates allows {_quoted(terms['aggregates'])}."
    count = len(together.get("parties", ()))
    if count and not names.played(folder) and count < terms.get("minimum_parties", 1):
        yield f"There were {count:,} parties, and minimum_parties is {terms['minimum_parties']:,}."


def _quoted(words: Any) -> str:
    return ", ".join(f'"{word}"' for word in words) or "none"


def _judged_by(folder: Folder, policy: Policy | None, *, kept: bool) -> Iterator[str]:
    """Say what it was compared with."""
    allowed = folder.guarantee.get("budget_epsilon")
    if policy is not None:
        yield (
            f"It keeps the limits of {policy.source} that a run folder can be judged by."
            if kept
            else f"Judged by {policy.source}."
        )
    elif allowed is not None:
        yield f"It was allowed epsilon {allowed:g}, its own budget; no other policy was stated."


def is_it_useful(folder: Folder) -> Answer:
    """Say what joining changed, or that nobody looked."""
    question = "Is it useful?"
    if folder.kind != "training":
        return _useful_numbers(folder, question)
    scores = folder.scores
    own = names.own_name(folder)
    if own is None:
        return Answer(
            question=question,
            tone="plain",
            verdict="Not measured",
            sentences=(
                "No errors are in the run folder: train with --test-fraction 0.1 or, in Python, save "
                "run.with_scores(compare(run, train, test).as_dict()).",
            ),
        )
    joining, name = scores[own].get("joining"), names.metric(scores)[0]
    levels = "; ".join(
        f"{names.model(each)} {scores[each][name]:.4f}"
        for each in (*names.SENDS_NOTHING, "alone", *names.OWN, "pooled")
        if each in scores
    )
    told = (f"{name.partition('_')[0].upper()}: {levels}.",)
    if joining is None:
        return Answer(question=question, tone="plain", verdict=_against_nothing(scores, own), sentences=told)
    low, high = joining["interval"]
    tone, verdict = ("plain", "It makes no difference")
    if low > 0:
        tone, verdict = "good", "Yes, joining helped"
    elif high < 0:
        tone, verdict = "doubt", "No, joining made it worse"
    sentence = str(joining["sentence"])
    sentences = (f"{sentence[:1].upper()}{sentence[1:]}.", *told)
    return Answer(question=question, tone=tone, verdict=verdict, sentences=sentences)


def _against_nothing(scores: Any, own: str) -> str:
    """Compare a model with what somebody has who sends nothing."""
    name, _, lower = names.metric(scores)
    base = next((each for each in names.SENDS_NOTHING if each in scores), None)
    if base is None or base == own:
        return "Measured"
    better = scores[own][name] < scores[base][name] if lower else scores[own][name] > scores[base][name]
    return "Better than sending nothing" if better else "No better than sending nothing"


def _useful_numbers(folder: Folder, question: str) -> Answer:
    """Say what a survey or a clustering tells."""
    if folder.kind == "survey":
        survey = folder.facts["survey"]
        asked = survey["question"]
        return Answer(
            question=question,
            tone="plain",
            verdict=f"{survey['answered']:,} people answered",
            sentences=(
                f"The mean of {asked['name']} is about {survey['mean']:.4g}, between {asked['low']:g} and "
                f"{asked['high']:g}.",
            ),
        )
    found = folder.facts["clustering"]
    return Answer(
        question=question,
        tone="doubt" if found["concerns"] else "plain",
        verdict=f"{len(found['centres']):,} segments of {folder.facts['data']['users']:,} users",
        sentences=tuple(found["concerns"][:2]),
    )


def what_did_it_cost(folder: Folder) -> Answer:
    """Say how long it took, how much was sent, and who was lost."""
    seconds, together = float(folder.facts.get("seconds") or 0.0), folder.together
    question = "What did it cost?"
    if together is None:
        told = f"{folder.facts['data']['ratings']:,} ratings in one place."
        return Answer(question=question, tone="plain", verdict=lasting(seconds), sentences=(told,))
    early = folder.ended_early
    stopped = () if early is None else (f"It was ended early: {early[1]:,} rounds were planned.",)
    whose = " of the one who plays all devices" if names.played(folder) else ""
    rounds = number_of(int(together["rounds"]), "round")
    return Answer(
        question=question,
        tone="plain",
        verdict=f"{rounds}, {lasting(seconds)}, {readable(together['bytes'])}",
        sentences=(*stopped, f"All messages{whose}, both ways.", lost(folder)),
    )


def lost(folder: Folder) -> str:
    """Say how often parties did not answer, as far as the folder tells."""
    if folder.kind == "survey":
        silent = len(folder.facts["survey"].get("unanswered") or ())
        return "Everybody answered." if not silent else f"{number_of(silent, 'answer')} did not come."
    rounds = folder.rounds()
    counts = [_missing(event, folder) for event in rounds]
    if not rounds:
        return "Who answered in which round is not told."
    if not any(counts):
        return "No party was lost in any round."
    with_some = sum(count > 0 for count in counts)
    return (
        f"In {with_some:,} of {len(rounds):,} rounds somebody did not answer, {max(counts):,} at most; those "
        "rounds went on without them."
    )


def _missing(event: Facts, folder: Folder) -> int:
    numbers = event.get("numbers", {})
    there = numbers.get("parties", len(folder.parties))
    return max(int(there - numbers.get("answered", there)), 0)
