"""`Upload`: what one user sent in one round, as somebody saw it, with the question that it answers.

Where only sums were opened, the sum is taken for an upload: an attacker uses what there is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cofactor.config import from_table, not_negative
from cofactor.errors import ConfigError, RunError
from cofactor.federation.door import SUM
from cofactor.federation.view import Seen, View
from cofactor.recipes.clipping import GradientClipping
from cofactor.recipes.local_steps import shortened
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_weights import ObsOnly, Unrated
from cofactor.recipes.on_device import OnDeviceMF

Reals = NDArray[np.float64]
Update = Literal["semi-als", "sgd", "at home"]

UNDERSTOOD = ("MultiViewMF", "OnDeviceMF")
"""The recipes whose uploads are gradients of items by single users, if nothing hides them."""
NOTHING_CAPTURED = (
    "this view has no messages, so there is nothing to reconstruct ratings from: payloads were not captured. "
    'They are kept only where that is asked for, in simulations: train(..., capture="coordinator").'
)


@dataclass(frozen=True, kw_only=True)
class Known:
    """How an upload was made, as far as everybody knows: the settings of the recipe."""

    unrated: Unrated
    """How what a user has not rated counts."""
    update: Update
    """How the user's vector was found: at its best, by a step, or in some other way at home."""
    penalty: float = 0.0
    """lambda2 in Mai and Pang."""
    side_weight: float = 1.0
    """lambda1."""
    grain: float = 0.0
    """To multiples of which numbers were rounded."""
    longest: float | None = None
    """The length to which longer rows of items were shortened, if they were."""
    everywhere: bool = False
    """Whether noise, or others who were added up, are in all rows: what was sent then shows no rated set."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Upload:
    """The gradients that one user, or a sum of some, sent in one round: rows are errors times a vector.

    The row of an item is c (r - p.q) p, and that of an attribute (x - p.u) p (Mai and Pang, equation 22).
    """

    sender: str
    """The party, or `SUM`."""
    round: int
    item_rows: Reals
    """A row for each item; all 0 if nothing was sent for it."""
    attribute_rows: Reals
    """A row for each number of the attributes."""
    items: Reals
    """The vectors of items that the user was told: Q."""
    attributes: Reals
    """The vectors of attributes: U."""
    known: Known
    users: int = 1
    """How many users' rows were added up; they were divided by it."""
    noise: float | None = None
    """Scale b of Laplace noise on every number that was sent, if that is known; otherwise it is estimated."""

    @property
    def sent_items(self) -> NDArray[np.bool_]:
        """Say of each item whether anything was sent for it."""
        return np.asarray(self.item_rows.any(axis=1))

    @property
    def sent_attributes(self) -> NDArray[np.bool_]:
        """Say of each attribute whether anything was sent for it: nothing is if it is missing."""
        return np.asarray(self.attribute_rows.any(axis=1))


def with_laplace(upload: Upload, scale: float, random: np.random.Generator) -> Upload:
    """Return an upload with Laplace noise on every number that was sent: the paper's check of robustness.

    Items for which nothing is sent get no noise: under ObsOnly the attacker goes on seeing what was rated.
    """
    not_negative(scale=scale)
    if scale == 0:
        return upload

    def noisy(rows: Reals) -> Reals:
        return np.asarray(rows + random.laplace(0.0, scale, rows.shape) * rows.any(axis=1, keepdims=True))

    items, attributes = noisy(upload.item_rows), noisy(upload.attribute_rows)
    return replace(upload, item_rows=items, attribute_rows=attributes, noise=scale)


def uploads(view: View, *, round: int | None = None) -> tuple[Upload, ...]:
    """Return what was uploaded in a round, by default the last of which anything was seen.

    Where single uploads were not seen, an opened sum is returned as if it were one.
    """
    if not view.seen:
        raise ConfigError(NOTHING_CAPTURED)
    kind = str(view.recipe.get("kind"))
    if kind not in _READERS:
        raise ConfigError(
            f"reconstruction reads gradients that {' and '.join(UNDERSTOOD)} send, and this is {kind}. Try "
            'the attack "membership" or "canaries": they work for every recipe.'
        )
    answers, read = _READERS[kind]
    found = _last(list(view.messages(answers)), round)
    if not found:
        raise ConfigError(
            f"{' and '.join(view.roles)} saw no {answers} of {kind}"
            f"{'' if round is None else f' in round {round}'}, neither of single users nor a sum. Attack as "
            "the coordinator, and a round that was captured."
        )
    return tuple(read(view, each) for each in found)


def _last(found: Sequence[Seen], round: int | None) -> list[Seen]:
    """Return the messages of a round: those of single parties if there are any, or sums."""
    if not found:
        return []
    wanted = max(each.round for each in found) if round is None else round
    these = [each for each in found if each.round == wanted]
    return [each for each in these if each.sender != SUM] or these


def _of_views(view: View, answer: Seen) -> Upload:
    recipe: MultiViewMF = from_table(MultiViewMF, _settings(view), "recipe")
    asked = _question(view, "ViewsAsked", answer.round)
    items = np.asarray(asked.arrays["items"], np.float64)
    attributes = np.asarray(asked.arrays["attributes"], np.float64)
    rows, users = _decoded(answer, recipe.grain)
    known = Known(
        unrated=recipe.unrated,
        update=recipe.update,
        penalty=recipe.penalty,
        side_weight=recipe.side_weight,
        grain=recipe.grain or 0.0,
        everywhere=_hides_rated(answer, users),
    )
    return Upload(
        sender=answer.sender,
        round=answer.round,
        item_rows=rows[: len(items)],
        attribute_rows=rows[len(items) :],
        items=items,
        attributes=attributes,
        known=known,
        users=users,
    )


def _of_devices(view: View, answer: Seen) -> Upload:
    """Read gradients -2 (r - p.q) p, of which each may have been shortened."""
    recipe: OnDeviceMF = from_table(OnDeviceMF, _settings(view), "recipe")
    asked = _question(view, "Shared", answer.round)
    items = np.maximum(np.asarray(asked.arrays["vectors"], np.float64), 0.0)
    if view.scale is not None:
        items = shortened(items, float(np.sqrt(view.scale.high))).astype(np.float64)
    rows, users = _decoded(answer, recipe.grain)
    longest = recipe.clipping.limit / 2 if isinstance(recipe.clipping, GradientClipping) else None
    known = Known(
        unrated=ObsOnly(),
        update="at home",
        grain=(recipe.grain or 0.0) / 2,
        longest=longest,
        everywhere=_hides_rated(answer, users),
    )
    nothing = np.zeros((0, items.shape[1]))
    return Upload(
        sender=answer.sender,
        round=answer.round,
        item_rows=rows / -2,
        attribute_rows=nothing,
        items=items,
        attributes=nothing,
        known=known,
        users=users,
    )


_READERS: Mapping[str, tuple[str, Callable[[View, Seen], Upload]]] = {
    "MultiViewMF": ("ViewGradients", _of_views),
    "OnDeviceMF": ("DeviceGradients", _of_devices),
}


def _decoded(answer: Seen, grain: float | None) -> tuple[Reals, int]:
    """Return the rows of an answer as real numbers, per user, and of how many users they are."""
    users = max(int(np.asarray(answer.arrays["count"]).reshape(-1)[0]), 1)
    return np.asarray(answer.arrays["gradients"], np.float64) * (grain or 1.0) / users, users


def _hides_rated(answer: Seen, users: int) -> bool:
    return users > 1 or "noise" in answer.protection


def _question(view: View, kind: str, round: int) -> Seen:
    asked = next(view.messages(kind, round=round), None)
    if asked is None:
        raise RunError(f"round {round} was captured without its question, {kind}. Capture all of the round.")
    return asked


def _settings(view: View) -> dict[str, Any]:
    return dict(view.recipe)
