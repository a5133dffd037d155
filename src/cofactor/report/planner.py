"""A page to choose a budget on: what was planned and tried beforehand, and nothing else."""

import json
from importlib.resources import files
from typing import Any

from cofactor.errors import DAMAGES
from cofactor.report import names
from cofactor.report.document import document
from cofactor.report.markup import (
    Content,
    Markup,
    badge,
    copied,
    element,
    folded,
    listed,
    section,
    table,
)
from cofactor.report.planner_charts import curve, curve_name, curves, trainings
from cofactor.report.planner_folder import AXES, PlanFolder, unreadable
from cofactor.report.planner_words import CARDS, LABELS, LINES, Words, valued, words

_ENDS = {
    "users": ("fewer people", "more people"),
    "ratings_each": ("fewer ratings", "more ratings"),
    "rounds": ("fewer rounds", "more rounds"),
    "epsilon": ("more private", "more accurate"),
}
_COPIED = (
    "Training reads your files, at home; this page did not. Names of files are made up, and ratings are "
    "taken to lie between 1 and 5."
)
_PLAYED = (
    " To play all devices from one file is a simulation: where they add up together, the promise holds only "
    "once each is a machine of its own."
)
_UNKNOWN = (
    "The ratings are made up, from means, tastes and chance that are spread about as on MovieLens 1M. People "
    "are not like that: on yours, errors will be others. How lines lie to each other tells most.",
    "Each training made everything anew: ratings, test ratings, noise. The intervals say how far that shifts "
    "the mean (Student's t, 95%), and nothing of how far your ratings are from made-up ones.",
    "What was not tried is left empty; nothing is guessed from what lies beside it.",
    "Odds, epsilon and noise are no estimates: they hold for all ratings, however they are, if the recipe is "
    "trained with this budget. Sizes are taken to be public, and parties to be equally large.",
    "Traffic is what messages hold. Keys, encryption and the network's own words come on top.",
)


def page(folder: PlanFolder) -> str:
    """Return the whole page in one file; it shows what was asked for, and with its script all else."""
    try:
        return document(f"{_title(folder)} · cofactor", *content(folder), script=_script())
    except DAMAGES as error:
        raise unreadable(folder.path, error) from None


def content(folder: PlanFolder) -> list[Content]:
    """Return all parts of the page."""
    found = [words(folder, cell) for cell in folder.cells]
    here = found[folder.facts["asked"]]
    return [
        _head(folder),
        _sliders(folder),
        _cards(here),
        _warnings(here),
        _accuracy(folder),
        _noise(here),
        _copying(folder, here),
        section("unknown", "What this does not know", listed(_UNKNOWN)),
        _foot(folder),
        _for_script(folder, found),
    ]


def _title(folder: PlanFolder) -> str:
    return f"A plan for {folder.facts['name']}"


def _head(folder: PlanFolder) -> Markup:
    facts = folder.facts
    budget = facts["budget"]
    about = [
        names.spaced(str(facts["recipe"]["kind"])),
        names.split(facts["split"]),
        *(() if facts["split"] == "on-device" else (f"{facts['parties']:,} parties",)),
        f"{facts['items']:,} items",
        f'delta {budget["delta"]:g} for each {budget["unit"]}, adjacency "{budget["adjacency"]}"',
        str(facts["created"])[:10],
    ]
    return element(
        "header",
        element("h1", _title(folder), " ", badge("reads no private data")),
        element("p", " · ".join(about), class_="under"),
        _chosen(folder),
    )


def _chosen(folder: PlanFolder) -> Markup | None:
    """Say what nobody asked for."""
    values = {
        "recipe": folder.facts["name"],
        "users": f"{folder.asked['users']:,} users",
        "items": f"{folder.facts['items']:,} items",
        "ratings": f"{folder.asked['ratings']:,} ratings",
        "epsilon": f"epsilon {folder.asked['epsilon']:g}",
        "delta": f"delta {folder.facts['budget']['delta']:g}",
    }
    left_out = [str(values[name]) for name in folder.facts["chosen"]]
    if not left_out:
        return None
    return element(
        "p",
        f"You did not say everything, so this was chosen: {', '.join(left_out)}. Say it with ",
        element(
            "code", " ".join(["cofactor plan --open", *(f"--{each} …" for each in folder.facts["chosen"])])
        ),
        ".",
        class_="lead",
    )


def _sliders(folder: PlanFolder) -> Markup:
    place, here = folder.asked["place"], words(folder, folder.asked)
    rounds = here.slots["rounds"]
    sliders = [_slider(name, folder.axis(name), place[at], rounds) for at, name in enumerate(AXES)]
    noscript = element("noscript", element("p", "Without a script, this page shows what was asked for."))
    return element(
        "section",
        element("h2", "What do you have, and what may be learned?", id="choose-title"),
        noscript,
        element("div", *sliders, class_="sliders"),
        element("p", here.slots["summary"], data_slot="summary", role="status"),
        id="choose",
        aria_labelledby="choose-title",
        class_="part",
    )


def _slider(name: str, values: list[Any], at: int, rounds: str) -> Markup:
    """Return something to slide, disabled until a script serves it; or a fixed value."""
    told = [valued(name, value) for value in values]
    slot, here = ("rounds", rounds) if name == "rounds" else (None, told[at])
    identity = f"slide-{name.replace('_', '-')}"
    if len(values) == 1:
        return element(
            "div",
            element("span", LABELS[name], class_="label"),
            element("output", here, data_slot=slot),
            class_="slider",
        )
    low, high = _ENDS[name]
    return element(
        "div",
        element("label", LABELS[name], for_=identity),
        # A screen reader says the slider's own value, and then the summary: no third time.
        element("output", here, for_=identity, id=f"{identity}-value", data_slot=slot, aria_live="off"),
        element(
            "input",
            type="range",
            id=identity,
            min=0,
            max=len(values) - 1,
            step=1,
            value=at,
            disabled=True,
            autocomplete="off",
            aria_valuetext=told[at],
            aria_describedby=f"{identity}-ends",
            data_axis=AXES.index(name),
            data_values=json.dumps(told),
        ),
        element("div", element("span", low), element("span", high), id=f"{identity}-ends", class_="ends"),
        class_="slider",
    )


def _cards(here: Words) -> Markup:
    return element("div", *(_card(name, here) for name in CARDS), class_="answers")


def _card(name: str, here: Words) -> Markup:
    lines = [element("p", here.slots[f"{name}-{at}"], data_slot=f"{name}-{at}") for at in range(1, LINES + 1)]
    return element(
        "section",
        element("h2", CARDS[name]),
        element("p", here.slots[f"{name}-verdict"], data_slot=f"{name}-verdict", class_="verdict"),
        *lines,
        class_=f"answer {here.tones[name]}",
        data_card=name,
    )


def _warnings(here: Words) -> Markup:
    return element(
        "div",
        _list("warnings", here.warnings),
        class_="notice",
        hidden=not here.warnings,
        role="note",
        aria_label="Warnings",
    )


def _list(name: str, sentences: list[str]) -> Markup:
    """Return points that the script changes; what is around them is hidden if there are none."""
    return element("ul", *(element("li", each) for each in sentences), data_list=name)


def _accuracy(folder: PlanFolder) -> Markup:
    own = curve_name(folder, folder.asked)
    drawn = [
        element("div", curve(folder, name), data_chart=name, hidden=name != own) for name in curves(folder)
    ]
    nothing = element(
        "p",
        "For this population nothing was tried. --minutes leaves time for more.",
        data_chart="",
        hidden=own != "",
    )
    return section(
        "accuracy",
        "Accuracy against privacy",
        nothing,
        *drawn,
        folded("All that was tried", trainings(folder)),
        lead="Errors of models that were really trained, on ratings that were made up: lower is better.",
    )


def _noise(here: Words) -> Markup:
    columns = ("What is released", "How it is hidden", "Signal / noise, at best")
    return section(
        "noise",
        "What is released, and how noisy",
        element("div", table(columns, here.releases, caption="Releases", numeric=(2,)), id="releases"),
        element("div", folded("What the sum needs", _list("needs", here.needs)), hidden=not here.needs),
        lead="Signal / noise is over all rounds together, if all users always pulled the same way: below 1 "
        "the noise drowns whatever there is.",
    )


def _copying(folder: PlanFolder, here: Words) -> Markup:
    with_toml = folder.asked["commands"]["with_toml"]
    return section(
        "copy",
        "To copy",
        copied(here.slots["command"], label="Command line", identity="copy-command"),
        copied(here.slots["toml"], label=f"The same as train.toml, for: {with_toml}", identity="copy-toml"),
        copied(here.slots["python"], label="Python", identity="copy-python"),
        copied(here.slots["plan"], label="To plan again, around this", identity="copy-plan"),
        lead=_COPIED + (_PLAYED if folder.facts["split"] == "on-device" else ""),
    )


def _foot(folder: PlanFolder) -> Markup:
    told = (
        f"Made from {folder.path.resolve().name}/plan.json, and from nothing else, by cofactor "
        f"{folder.facts['cofactor']}. No private data were read: no file of ratings is ever part of a "
        "plan. This page asks nobody for anything."
    )
    return element("footer", element("p", told))


def _for_script(folder: PlanFolder, found: list[Words]) -> Markup:
    """Return what the script shows, as text in an attribute: nothing in it can become markup."""
    cells = [
        each.as_dict() | {"chart": curve_name(folder, cell)}
        for each, cell in zip(found, folder.cells, strict=True)
    ]
    lengths = [len(folder.axis(name)) for name in AXES]
    return element(
        "div",
        id="planner",
        hidden=True,
        data_lengths=json.dumps(lengths),
        data_place=json.dumps(folder.asked["place"]),
        data_cells=json.dumps(cells),
    )


def _script() -> str:
    return files("cofactor.report").joinpath("planner.js").read_text(encoding="utf-8")
