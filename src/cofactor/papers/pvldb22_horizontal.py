"""Li et al. (PVLDB 2022), section 5.3: figures about parties that share items."""

from dataclasses import replace
from itertools import product
from typing import Any

from cofactor.papers.cells import PER, Cell, Dealing, Effort
from cofactor.papers.claims import Claim, Line
from cofactor.papers.material import Material
from cofactor.papers.reference import EMBEDDING_SGD
from cofactor.papers.results import ANY_EPSILON
from cofactor.recipes.alone import Alone
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal import HorizontalMF

PRETRAIN, BOTH = "pretrain-U", "train-both"
PUBLISHED, SYNCHRONOUS = "HFL-SGDMF", "HFL-synSGD"
BEFORE, AFTER = "before fine-tuning", "after fine-tuning"
LOCAL_SGD, LOCAL_BAYES = "local SGD", "local Bayes"

_PARTIES = (2, 5, 10, 20, 40)
_EPSILON = 10.0
"""Of figure 8, whose text names none."""
_EPSILONS, _FEW = (1.0, 10.0), (10.0,)
_USER = PER["user"]


def published(effort: Effort, recipe: HorizontalMF, **changes: Any) -> HorizontalMF:
    """Return a recipe with as many local steps as the effort allows, measured before fine-tuning."""
    assert recipe.local_steps is not None
    rounds = effort.steps // recipe.local_steps
    return replace(recipe, rounds=rounds, home=UsersOnly(), **changes)


def figure8(material: Material, effort: Effort) -> list[Cell]:  # noqa: ARG001 (all data alike)
    """Users' vectors fitted beforehand, or along with the items' vectors."""
    recipes = {
        PRETRAIN: published(effort, HorizontalMF.as_published()),
        BOTH: published(effort, HorizontalMF.as_published(), users="trained along"),
    }
    parties = effort.shown(_PARTIES, (2, 10, 40))
    found = [
        _cell(line, recipe, count, column=f"s = {count}", epsilon=_EPSILON)
        for count, (line, recipe) in product(parties, recipes.items())
    ]
    return [*found, _refused(PRETRAIN, recipes[PRETRAIN], "s = 10", _EPSILON)]


def claims8() -> list[Claim]:
    """Fitting users beforehand is said to be much better."""
    return [
        Claim(
            says=f"{PRETRAIN} has significantly lower errors than {BOTH}, {when}",
            lower=Line(line=f"{PRETRAIN}, {when}", panel=_USER),
            than=Line(line=f"{BOTH}, {when}", panel=_USER),
        )
        for when in (BEFORE, AFTER)
    ]


def figure9(material: Material, effort: Effort) -> list[Cell]:  # noqa: ARG001 (all data alike)
    """The paper's method, gradients averaged after every step, and what parties have without joining."""
    recipes = {
        PUBLISHED: published(effort, HorizontalMF.as_published()),
        SYNCHRONOUS: published(effort, HorizontalMF.synchronous()),
    }
    epsilons = effort.shown(_EPSILONS, _FEW)
    private = [
        _cell(line, recipe, parties, epsilon=epsilon, suffix=f", s = {parties}")
        for parties, (line, recipe), epsilon in product((10, 40), recipes.items(), epsilons)
    ]
    local = [
        Cell(
            line=f"{line}, s = {parties}",
            panel=_USER,
            column=ANY_EPSILON,
            dealing=Dealing(split="horizontal", parties=parties),
            recipe=model,
            note="not private",
        )
        for parties, (line, model) in product(
            (10, 40), {LOCAL_SGD: EMBEDDING_SGD, LOCAL_BAYES: Alone()}.items()
        )
    ]
    return [*private, *local, _refused(f"{PUBLISHED}, s = 10", recipes[PUBLISHED], "", epsilons[-1])]


def claims9() -> list[Claim]:
    """Joining is said to pay, with 40 parties even before fine-tuning, and single steps to be worse.

    Fine-tuning is our home model, so that what it is compared with is the same model without joining.
    """
    found = [_joining(parties, AFTER, LOCAL_BAYES) for parties in (10, 40)]
    found.append(_joining(40, BEFORE, LOCAL_SGD))
    return found + [
        Claim(
            says=f"{PUBLISHED} has lower errors than {SYNCHRONOUS}, s = {parties}, {when}",
            lower=Line(line=f"{PUBLISHED}, s = {parties}, {when}", panel=_USER),
            than=Line(line=f"{SYNCHRONOUS}, s = {parties}, {when}", panel=_USER),
        )
        for parties, when in product((10, 40), (BEFORE, AFTER))
    ]


def _joining(parties: int, when: str, local: str) -> Claim:
    return Claim(
        says=f"{PUBLISHED} {when} has lower errors than {local} without joining, s = {parties}",
        lower=Line(line=f"{PUBLISHED}, s = {parties}, {when}", panel=_USER),
        than=Line(line=f"{local}, s = {parties}", panel=_USER),
    )


def _cell(
    line: str, recipe: HorizontalMF, parties: int, *, epsilon: float, column: str = "", suffix: str = ""
) -> Cell:
    return Cell(
        line=f"{line}{suffix}, {BEFORE}",
        panel=_USER,
        column=column,
        dealing=Dealing(split="horizontal", parties=parties),
        recipe=recipe,
        unit="user",
        epsilon=epsilon,
        fine_tuned=f"{line}{suffix}, {AFTER}",
    )


def _refused(line: str, recipe: HorizontalMF, column: str, epsilon: float) -> Cell:
    """Ask for the paper's other unit, which cannot be had: the row says why."""
    return Cell(
        line=line,
        panel=PER["rating"],
        column=column,
        dealing=Dealing(split="horizontal", parties=10),
        recipe=recipe,
        unit="rating",
        epsilon=epsilon,
    )
