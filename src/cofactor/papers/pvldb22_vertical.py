"""Li et al. (PVLDB 2022), section 4.3: figures about parties that share users."""

from dataclasses import replace
from itertools import product
from typing import Any

from cofactor.data.partition import by_category
from cofactor.papers.cells import PER, Cell, Dealing, Effort, categories_of
from cofactor.papers.claims import Claim, Line
from cofactor.papers.material import Material
from cofactor.privacy.budget import Unit
from cofactor.recipes.clipping import EmbeddingClipping, GradientClipping
from cofactor.recipes.langevin import DPSGLD
from cofactor.recipes.objective import ObjectivePerturbation
from cofactor.recipes.vertical import VerticalMF

EPSILONS, FEW = (0.5, 1.0, 2.0, 4.0, 10.0), (1.0, 10.0)
"""The text does not say which epsilons the figures show; these are ours."""
UNITS: tuple[Unit, ...] = ("rating", "user")

EMBEDDING, PUBLISHED, DEFAULTS = "embedding clipping", "VFL-SGDMF", "cofactor's defaults"
LANGEVIN, OBJECTIVE, ALONE = "DP-SGLD", "ObjPertb", "local-only"
WITHOUT_NOISE = "without noise"
BY_CATEGORY, AT_RANDOM = "by category", "at random"
_LIMITS = (5, 10, 50)
_SYNCHRONISED = (1000, 100, 20, 1)
"""Averages (T) out of 1000 local steps (T T')."""


def published(parties: int, effort: Effort, *, rounds: int | None = None, **changes: Any) -> VerticalMF:
    """Return the paper's setting, with as many local steps as the effort allows."""
    averages = rounds or effort.steps // 10
    recipe = VerticalMF.as_published(parties)
    return replace(recipe, rounds=averages, local_steps=effort.steps // averages, **changes)


def figure4(material: Material, effort: Effort) -> list[Cell]:  # noqa: ARG001 (all data alike)
    """Embedding clipping beside gradient clipping, one party."""
    choices = {EMBEDDING: EmbeddingClipping()} | {
        _clipped(limit): GradientClipping(limit=limit, nonnegative=True) for limit in _LIMITS
    }
    wanted: list[tuple[Unit, float | None]] = [*product(UNITS, effort.shown(EPSILONS, FEW))]
    wanted.append(("rating", None))
    return [
        Cell(
            line=line,
            panel=WITHOUT_NOISE if epsilon is None else PER[unit],
            dealing=Dealing(split="vertical"),
            recipe=published(1, effort, clipping=clipping),
            unit=unit,
            epsilon=epsilon,
        )
        for (unit, epsilon), (line, clipping) in product(wanted, choices.items())
    ]


def claims4() -> list[Claim]:
    """Embedding clipping is said to be better than any limit, and larger limits to overfit without noise."""
    embedding = [
        Claim(
            says=f"embedding clipping has lower errors than gradient clipping with C = {limit}",
            lower=Line(line=EMBEDDING, panel=panel),
            than=Line(line=_clipped(limit), panel=panel),
        )
        for panel, limit in product((*PER.values(), WITHOUT_NOISE), (10, 50))
    ]
    return embedding + [
        Claim(
            says=f"C = 10 is a better limit than C = {limit}",
            lower=Line(line=_clipped(10), panel=panel),
            than=Line(line=_clipped(limit), panel=panel),
        )
        for panel, limit in product(PER.values(), (5, 50))
    ]


def _clipped(limit: int) -> str:
    return f"gradient clipping, C = {limit}"


def figure5(material: Material, effort: Effort) -> list[Cell]:  # noqa: ARG001 (all data alike)
    """The paper's method beside older private factorizations, one party; and our own defaults."""
    recipes = {
        PUBLISHED: published(1, effort),
        LANGEVIN: DPSGLD(rounds=effort.steps // 10),
        DEFAULTS: VerticalMF(),
    }
    epsilons = effort.shown(EPSILONS, FEW)
    found = [
        Cell(
            line=line,
            panel=PER[unit],
            dealing=Dealing(split="vertical"),
            recipe=recipe,
            unit=unit,
            epsilon=epsilon,
        )
        for unit, epsilon, (line, recipe) in product(UNITS, epsilons, recipes.items())
    ]
    return found + [_perturbed(unit, epsilon) for unit, epsilon in product(UNITS, epsilons)]


def _perturbed(unit: Unit, epsilon: float) -> Cell:
    recipe = ObjectivePerturbation(claimed_epsilon=epsilon)
    return Cell(
        line=OBJECTIVE,
        panel=PER[unit],
        dealing=Dealing(split="vertical"),
        recipe=recipe,
        claimed=epsilon,
        impossible="" if unit in recipe.units else "It claims nothing for users, only for ratings' values.",
        note="Claimed, and not proved: user vectors are fitted to the same ratings without noise, at home.",
    )


def claims5() -> list[Claim]:
    """VFL-SGDMF is said to be better than both."""
    return [
        Claim(
            says=f"{PUBLISHED} has a lower error than {other}",
            lower=Line(line=PUBLISHED, panel=panel),
            than=Line(line=other, panel=panel),
        )
        for panel, other in (*product(PER.values(), (LANGEVIN,)), (PER["rating"], OBJECTIVE))
    ]


def figure6(material: Material, effort: Effort) -> list[Cell]:
    """Items split by category or at random, and how often user vectors are averaged."""
    parties = len(by_category(material.ratings, categories_of(material)))
    dealings = {
        BY_CATEGORY: Dealing(split="vertical", parties=parties, by_category=True),
        AT_RANDOM: Dealing(split="vertical", parties=parties),
    }
    recipes = {
        _synchronised(rounds): published(parties, effort, rounds=max(1, rounds * effort.steps // 1000))
        for rounds in _SYNCHRONISED
    } | {ALONE: published(parties, effort, alone=True)}
    wanted = product(UNITS, dealings.items(), effort.shown(FEW, FEW[:1]), recipes.items())
    return [
        Cell(
            line=line,
            panel=f"{PER[unit]}, {split}",
            dealing=dealing,
            recipe=recipe,
            unit=unit,
            epsilon=epsilon,
            note=f"{parties} parties",
        )
        for unit, (split, dealing), epsilon, (line, recipe) in wanted
    ]


def claims6() -> list[Claim]:
    """The split is said to matter little, averaging now and then to be best, and joining to pay."""
    panels = [f"{unit}, {split}" for unit, split in product(PER.values(), (BY_CATEGORY, AT_RANDOM))]
    usual = _synchronised(100)
    return [
        Claim(
            says="splitting by category or at random makes no significant difference",
            lower=Line(line=usual, panel=f"{PER['rating']}, {BY_CATEGORY}"),
            than=Line(line=usual, panel=f"{PER['rating']}, {AT_RANDOM}"),
            alike=True,
        ),
        Claim(
            says="splitting at random has a slightly lower error than splitting by category",
            lower=Line(line=usual, panel=f"{PER['user']}, {AT_RANDOM}"),
            than=Line(line=usual, panel=f"{PER['user']}, {BY_CATEGORY}"),
        ),
        *(
            Claim(
                says=f"T = 100, T' = 10 is better than {_synchronised(rounds)}",
                lower=Line(line=usual, panel=panel),
                than=Line(line=_synchronised(rounds), panel=panel),
            )
            for panel, rounds in product(panels, (1000, 1))
        ),
        *(
            Claim(
                says=f"{PUBLISHED} has lower errors than local-only in all settings of T and T'",
                lower=Line(line=usual, panel=panel),
                also=tuple(
                    Line(line=_synchronised(rounds), panel=panel) for rounds in _SYNCHRONISED if rounds != 100
                ),
                than=Line(line=ALONE, panel=panel),
            )
            for panel in panels
        ),
    ]


def _synchronised(rounds: int) -> str:
    return f"T = {rounds}, T' = {1000 // rounds}"


def figure7(material: Material, effort: Effort) -> list[Cell]:  # noqa: ARG001 (all data alike)
    """Together or alone, with 2, 5 and 10 parties; and what our own defaults make of it."""
    return [cell for parties in (2, 5, 10) for cell in _by_parties(parties, effort)]


def claims7() -> list[Claim]:
    """Joining is said to pay, and the more the more parties there are."""
    return [claim for parties in (2, 5, 10) for claim in _joining(parties)] + [
        Claim(
            says=f"errors fall as parties grow in number: s = {more} has lower errors than s = {fewer}",
            lower=Line(line=_together(more), panel=panel),
            than=Line(line=_together(fewer), panel=panel),
        )
        for panel, (fewer, more) in product(PER.values(), ((2, 5), (5, 10)))
    ]


def figure11(material: Material, effort: Effort) -> list[Cell]:  # noqa: ARG001 (all data alike)
    """The same with the numbers of parties that figure 7 leaves out: 1 and 18."""
    return [cell for parties in (1, 18) for cell in _by_parties(parties, effort)]


def claims11() -> list[Claim]:
    """As for figure 7."""
    return [*_joining(18)] + [
        Claim(
            says="errors fall as parties grow in number: s = 18 has lower errors than s = 1",
            lower=Line(line=_together(18), panel=panel),
            than=Line(line=_together(1), panel=panel),
        )
        for panel in PER.values()
    ]


def _by_parties(parties: int, effort: Effort) -> list[Cell]:
    recipes = {_together(parties): published(parties, effort)}
    if parties > 1:
        recipes |= {_alone(parties): published(parties, effort, alone=True)}
    wanted = [(unit, *each) for unit, each in product(UNITS, recipes.items())]
    wanted += [("rating", f"{DEFAULTS}, s = {parties}", VerticalMF())]
    return [
        Cell(
            line=line,
            panel=PER[unit],
            dealing=Dealing(split="vertical", parties=parties),
            recipe=recipe,
            unit=unit,
            epsilon=epsilon,
        )
        for (unit, line, recipe), epsilon in product(wanted, effort.shown(EPSILONS, FEW))
    ]


def _joining(parties: int) -> list[Claim]:
    return [
        Claim(
            says=f"{PUBLISHED} has lower errors than local-only, s = {parties}",
            lower=Line(line=_together(parties), panel=panel),
            than=Line(line=_alone(parties), panel=panel),
        )
        for panel in PER.values()
    ]


def _together(parties: int) -> str:
    return f"{PUBLISHED}, s = {parties}"


def _alone(parties: int) -> str:
    return f"{ALONE}, s = {parties}"
