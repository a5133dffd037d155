"""Ratings from uploads whose noise is drawn anew each time: many of them together tell what one hides.

HDPMF's tables were made with fresh noise for the whole budget in every epoch, which is to spend it as often
as there are epochs. `averaged` shows what that means: how users move from epoch to epoch is public, so that
all of a user's uploads follow from where she began and what she rated, and the most likely ratings are found
by least squares (Levenberg and Marquardt's method).
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.differencing import Differenced, nearest_ratings
from cofactor.attacks.differencing_uploads import PublishedUploads
from cofactor.config import from_table
from cofactor.data.scale import Scale
from cofactor.errors import ConfigError
from cofactor.federation.door import COORDINATOR
from cofactor.federation.view import Seen, View

Reals = NDArray[np.float64]

_CENTRE, _SPREAD = 0.625, 0.275
"""What is known of ratings beforehand, as parts of the scale: about their mean and spread on MovieLens."""
_FIRST_UPLOAD = 2
"""The round in which users first upload: before it they say what they have rated."""
_STEPS = 30
_FEW = 3
"""Epochs that are explained first."""
_EARLY = (5, 20)
"""How many of the first uploads are looked at to find where the user began."""
_GOOD = 1.02
"""What is left of each number, relative to its noise, if the solution was found."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Story:
    """What was seen of one user: epochs, items and factors."""

    gradients: Reals
    vectors: Reals
    certainty: Reals
    """One over the deviation of each number's noise."""
    rates: Reals
    """Size of the step that the user took before each upload."""
    penalty: float
    mean: Reals
    """Of stretched ratings, beforehand."""
    spread: Reals

    def until(self, epochs: int) -> "_Story":
        """Return the first epochs of it."""
        seen = {name: getattr(self, name)[:epochs] for name in ("gradients", "vectors", "certainty", "rates")}
        return replace(self, **seen)


def averaged(
    view: View,
    *,
    senders: Sequence[str] | None = None,
    item_weights: Reals | None = None,
    user_weights: Mapping[str, float] | None = None,
) -> tuple[Differenced, ...]:
    """Guess ratings from all uploads of single users that were seen, in rounds that follow each other.

    The attacker knows what the recommender does, and weights, which a promise about ratings must allow: 1
    where nothing is said. `misfit` is what is left of each number, relative to its noise: 1 if all is
    explained but the noise.
    """
    if view.recipe.get("kind") != "PublishedUploads":
        raise ConfigError(f"averaging is for PublishedUploads, and this is {view.recipe.get('kind')}.")
    recipe: PublishedUploads = from_table(PublishedUploads, dict(view.recipe), "recipe")
    single = [name for name, users in zip(view.parties, view.users, strict=True) if users == 1]
    weights = np.ones(view.items) if item_weights is None else np.asarray(item_weights, np.float64)
    own = dict(user_weights or {})
    return tuple(
        _attacked(view, recipe, name, weights * own.get(name, 1.0), own.get(name, 1.0))
        for name in (single if senders is None else senders)
    )


def _attacked(view: View, recipe: PublishedUploads, sender: str, weights: Reals, own: float) -> Differenced:
    begin = time.perf_counter()
    answers = list(view.messages("Uploads", sender=sender, receiver=COORDINATOR))
    rounds = [each.round for each in answers]
    if len(rounds) < 2 or rounds != list(range(rounds[0], rounds[0] + len(rounds))):
        raise ConfigError(f"uploads of {sender} are needed in rounds that follow each other. Capture more.")
    items, scale = answers[0].arrays["items"].astype(np.int64), view.scale or Scale(0, 1)
    story = _told(view, recipe, answers, items, weights[items], scale)
    found, misfit = _best(story)
    stretched = found[recipe.factors :]
    return Differenced(
        sender=sender,
        rounds=tuple(rounds),
        items=items,
        stretched=stretched,
        ratings=nearest_ratings(stretched / weights[items], scale),
        weight=own,
        misfit=misfit,
        seconds=time.perf_counter() - begin,
    )


def _told(
    view: View,
    recipe: PublishedUploads,
    answers: Sequence[Seen],
    items: NDArray[np.int64],
    weights: Reals,
    scale: Scale,
) -> _Story:
    asked = {each.round: each for each in view.messages("UploadsAsked")}
    questions = [asked[each.round] for each in answers]
    spreads = np.stack([each.arrays["spreads"][items] for each in questions])
    width = scale.high - scale.low
    return _Story(
        gradients=np.stack([each.arrays["gradients"] for each in answers]),
        vectors=np.stack([each.arrays["vectors"][items] for each in questions]),
        certainty=1 / np.maximum(spreads, 1e-12),
        rates=np.array([recipe.rate_in(max(each.round - _FIRST_UPLOAD - 1, 0)) for each in answers]),
        penalty=recipe.penalty,
        mean=(scale.low + _CENTRE * width) * weights,
        spread=_SPREAD * width * weights,
    )


def _best(story: _Story) -> tuple[Reals, float]:
    """Return the most likely solution, and what it leaves of each number; it ends at the first good one."""
    best: tuple[Reals, float] | None = None
    for start in _starts(story):
        found = _fitted(story, start)
        best = found if best is None or found[1] < best[1] else best
        if best[1] < _GOOD:
            break
    assert best is not None
    return best


def _starts(story: _Story) -> Iterator[Reals]:
    """Yield where the user may have begun.

    While vectors are short, uploads are -2 c u and noise, which shows u; later, what everybody's ratings
    would make of her is near.
    """
    for early in _EARLY:
        weight = story.certainty[:early] ** 2
        shown = (weight * story.gradients[:early]).sum(axis=(0, 1)) / weight.sum(axis=(0, 1))
        yield -shown / (2 * story.mean.mean())
    first, factors = story.vectors[0], story.vectors.shape[2]
    usual = np.linalg.solve(first.T @ first + 0.1 * np.eye(factors), first.T @ story.mean)
    usual /= max(float(np.linalg.norm(usual)), 1.0)
    yield usual
    yield usual / 2


def _fitted(story: _Story, start: Reals) -> tuple[Reals, float]:
    """Return where the user began and her stretched ratings, and what they leave of each number's noise.

    Of few epochs first, and then of more and more: far ahead, small errors lead to wrong places.
    """
    found, epochs, cost = np.concatenate([start, story.mean]), _FEW, 0.0
    while True:
        part = story.until(epochs)
        found, cost = _descended(part, found)
        if epochs >= len(story.rates):
            return found, float(np.sqrt(cost / story.gradients.size))
        epochs *= 2


def _descended(story: _Story, found: Reals) -> tuple[Reals, float]:
    """Return the least squares near a start, and their sum."""
    normal, slope, cost = _normal(story, found)
    damping = 1e-2
    for _ in range(_STEPS):
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -slope)
        after = _normal(story, found + step)
        if after[2] >= cost:
            damping *= 5
            continue
        done = cost - after[2] < 1e-3
        found, (normal, slope, cost), damping = found + step, after, max(damping / 5, 1e-9)
        if done:
            break
    return found, cost


def _normal(story: _Story, found: Reals) -> tuple[Reals, Reals, float]:
    """Return the normal equations of least squares: curvature, slope and cost, prior included."""
    factors, stretched = story.vectors.shape[2], found[story.vectors.shape[2] :]
    users, moved = _path(story, found)
    curvature, slope = np.zeros((len(found), len(found))), np.zeros(len(found))
    cost = 0.0
    for user, by, vectors, told, certainty in zip(
        users, moved, story.vectors, story.gradients, story.certainty, strict=True
    ):
        error, weight = vectors @ user - stretched, certainty**2
        missed = 2 * error[:, None] * user - told
        turn = 2 * (error[:, None, None] * np.eye(factors) + user[None, :, None] * vectors[:, None, :])
        weighed = weight[:, :, None] * turn
        across = 2 * np.einsum("jkl,k->lj", weighed, user)
        curvature += by.T @ np.einsum("jkl,jkm->lm", weighed, turn) @ by
        beside = by.T @ across
        curvature[:, factors:] -= beside
        curvature[factors:] -= beside.T
        slope += by.T @ np.einsum("jkl,jk->l", weighed, missed)
        slope[factors:] -= 2 * (weight * missed) @ user
        curvature[np.diag_indices(len(found))] += np.concatenate([np.zeros(factors), 4 * weight @ user**2])
        cost += float((weight * missed**2).sum())
    away = (stretched - story.mean) / story.spread
    slope[factors:] += away / story.spread
    curvature[np.diag_indices(len(found))] += np.concatenate([np.zeros(factors), story.spread**-2.0])
    return curvature, slope, cost + float((away**2).sum())


def _path(story: _Story, found: Reals) -> tuple[list[Reals], list[Reals]]:
    """Return the user in each epoch, and how that depends on where she began and on what she rated.

    She moves against her gradient (line 11 of Algorithm 1), and is scaled down to length 1.
    """
    factors = story.vectors.shape[2]
    user, stretched = found[:factors].copy(), found[factors:]
    by = np.eye(factors, len(found))
    users, moved = [user], [by]
    for vectors, rate in zip(story.vectors[1:], story.rates[1:], strict=True):
        keeps = np.eye(factors) - 2 * rate * (vectors.T @ vectors + story.penalty * np.eye(factors))
        user, by = keeps @ user + 2 * rate * vectors.T @ stretched, keeps @ by
        by[:, factors:] += 2 * rate * vectors.T
        length = float(np.linalg.norm(user))
        if length > 1:
            user = user / length
            by = (by - np.outer(user, user @ by)) / length
        users.append(user)
        moved.append(by)
    return users, moved
