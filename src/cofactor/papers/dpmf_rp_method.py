"""DPMF-RP as its paper sets it, on one set of data: from the paper's epsilon to coins and to what is true."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from cofactor.data.prepare import libimseti_core
from cofactor.data.ratings import Ratings
from cofactor.errors import PrivacyWarning
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts
from cofactor.federation.run import Run
from cofactor.papers import dpmf_rp_measures as measures
from cofactor.papers.dpmf_rp_cases import Case, Loss, Measure, delta_for
from cofactor.papers.dpmf_rp_central import CentralMF
from cofactor.papers.dpmf_rp_numbers import CENTRAL
from cofactor.papers.material import Material
from cofactor.privacy.accountant import spent
from cofactor.privacy.budget import Budget
from cofactor.recipes.projected import ProjectedMF
from cofactor.recipes.projected_paper import coins_of_label
from cofactor.recipes.sums import PlainSum
from cofactor.recipes.train import train

Fit = Callable[[Ratings, int], Factors]


def published(material: Material) -> ProjectedMF:
    """Return the paper's setting for its own data, or for those that stand for them here."""
    if material.name == "yelp":
        return ProjectedMF.as_published("yelp")
    return ProjectedMF.as_published("ml-5m" if material.name == "ml-1m" else "ml-100k")


def fresh(material: Material) -> ProjectedMF:
    """Return the same with a new sketch in every round, which is what the paper's tables fit.

    In Algorithm 2 as it is written, items that one sketch throws together share a vector for good.
    """
    return replace(published(material), sketch="fresh")


def central(material: Material, paper: Mapping[str, float], measure: Measure) -> Case:
    """Return what the paper compares with: all ratings in one place."""
    return Case(
        line=CENTRAL,
        fit=remembered(CentralMF(factors=published(material).factors).fit),
        measure=measure,
        paper=paper,
        note="weighted least squares on all ratings in one place; not private",
    )


def core(material: Material, at_least: int) -> Material:
    """Return, of Yelp, users and businesses with so many ratings among each other; other data as they are.

    Most of its users have one or two ratings, and of these nothing is left to test.
    """
    if material.name != "yelp":
        return material
    return replace(material, ratings=libimseti_core(material.ratings, at_least=at_least))


def panel_of(material: Material) -> str:
    """Return the name of the data, and of Yelp how much of it is shown."""
    ratings = material.ratings
    size = f", {ratings.user_count:,} users and {ratings.item_count:,} items"
    return f"{material.name}{size if material.name == 'yelp' else ''}"


def labelled(recipe: ProjectedMF, facts: Facts, label: float) -> tuple[ProjectedMF, Loss]:
    """Toss the coins of the paper's epsilon (equation 18, section 4.3.1), and say what they truly cost.

    Without a secure sum they are those of one device (Table 6: beta n = 1).
    """
    settled, delta = recipe.settled(facts, None), delta_for(facts.user_count)
    coins = coins_of_label(
        label,
        rows=settled.row_count(facts),
        factors=settled.factors,
        participants=1 if isinstance(settled.aggregate, PlainSum) else settled.asked(facts),
        rounds=settled.rounds,
    )
    found = replace(settled, theta=coins.theta, trials=coins.trials)
    return found, Loss(label=label, epsilon=_epsilon(found, facts, found.rounds), delta=delta)


def _epsilon(recipe: ProjectedMF, facts: Facts, rounds: int) -> float:
    """Return what so many rounds cost a user, whoever she is replaced by."""
    events = recipe.schedule(facts, "user", facts.parties[0]).events(rounds)
    return spent(events, delta_for(facts.user_count), unit="user", adjacency="replace").epsilon


def private_case(
    line: str,
    recipe: ProjectedMF,
    material: Material,
    label: float,
    *,
    measure: Measure = measures.measured_twice,
    paper: Mapping[str, float] | None = None,
) -> Case:
    """Return a training at a label of the paper's."""
    facts = facts_of(material.ratings)
    coined, loss = labelled(recipe, facts, label)
    usual = max(1, round(coined.rounds * coined.participation))
    return Case(
        line=line,
        fit=remembered(fitted(coined, loss)),
        measure=measure,
        paper=paper or {},
        label=label,
        epsilon=loss.epsilon,
        delta=loss.delta,
        note=f"asked in {usual} of {coined.rounds} rounds, as a user is on average, she has epsilon "
        f"{_epsilon(coined, facts, usual):.3g}",
    )


def noiseless_case(
    line: str,
    recipe: ProjectedMF,
    *,
    measure: Measure = measures.measured_twice,
    paper: Mapping[str, float] | None = None,
) -> Case:
    """Return a training without coins."""
    return Case(
        line=line, fit=remembered(fitted(recipe)), measure=measure, paper=paper or {}, note="not private"
    )


def facts_of(ratings: Ratings) -> Facts:
    """Return what is public about ratings whose users are devices."""
    return Federation.on_device(ratings, scale=ratings.scale).facts


def fitted(recipe: ProjectedMF, loss: Loss | None = None) -> Fit:
    """Return a function that trains all users of some ratings as devices and gives their own models."""

    def fit(ratings: Ratings, seed: int) -> Factors:
        run = trained(recipe, Federation.on_device(ratings, scale=ratings.scale), loss, seed)
        [home] = run.homes.values()
        return home

    return fit


def trained(recipe: ProjectedMF, federation: Federation, loss: Loss | None, seed: int) -> Run:
    """Train devices with a budget of just what the coins cost; without coins there is none."""
    return train(recipe, federation, budget=None if loss is None else _budget(loss), seed=seed)


def remembered(fit: Callable[..., Factors]) -> Fit:
    """Return the same function that trains once for lines that show one training in several ways."""

    @lru_cache(maxsize=1)
    def once(ratings: Ratings, seed: int) -> Factors:
        return fit(ratings, seed=seed)

    return once


def _budget(loss: Loss) -> Budget:
    with warnings.catch_warnings():
        # What a label truly costs may promise next to nothing: the table shows it.
        warnings.simplefilter("ignore", PrivacyWarning)
        # A little more, for the last digits of the same sum.
        return Budget(epsilon=loss.epsilon * (1 + 1e-6), delta=loss.delta, unit="user", adjacency="replace")
