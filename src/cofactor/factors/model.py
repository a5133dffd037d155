"""`Factors`: a fitted recommender, whatever fitted it. Ids go in, ids and titles come out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import whole
from cofactor.data.grouping import Index, Offsets, Values
from cofactor.data.ids import Id, Ids, find_row
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import DataError, RunError, UnknownId

FORMAT = 1


@dataclass(frozen=True, eq=False)
class HomeFit:
    """How one user's row follows from her own ratings once the items are known: a ridge regression."""

    precision: NDArray[np.float64]
    """Prior precision of her vector; one row and column more, in front, where users have a bias."""
    weights: NDArray[np.float64]
    """Weight of a rating of each item: the inverse of its noise variance."""
    growth: float = 0.0
    """The prior counts as (number of ratings) ** growth: once, if 0; once for every rating, if 1."""
    confidence: float | None = None
    """For implicit models: rating r asks for 1 and counts 1 + confidence * r; the prior has the first 1."""
    calibrated: bool = False
    """Whether weights and precision are probabilities' own, so that they tell how sure a prediction is."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Which items each user has rated, to leave them out of recommendations."""

    ptr: Offsets
    index: Index


@dataclass(frozen=True)
class Recommendation:
    """One item for one user."""

    item: Id
    title: str | None
    score: float
    """Predicted rating, or preference for an implicit model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Factors:
    """Predicts mean + user bias + item bias + user vector . item vector."""

    user_ids: Ids
    item_ids: Ids
    mean: float
    user_bias: Values
    item_bias: Values
    user_vectors: Values
    item_vectors: Values
    scale: Scale | None = None
    """Where predictions are clipped to; None for an implicit model, whose scores rank only."""
    seen: Seen | None = None
    home: HomeFit | None = None
    titles: Ids | None = None

    def __repr__(self) -> str:
        return (
            f"Factors({self.user_vectors.shape[1]} factors, {len(self.user_ids):,} users, "
            f"{len(self.item_ids):,} items)"
        )

    def user_row(self, user: Id) -> int:
        """Return the row number of a user's id."""
        return find_row(self._user_rows, user, "user")

    def item_row(self, item: Id) -> int:
        """Return the row number of an item's id."""
        return find_row(self._item_rows, item, "item")

    def knows(self, user: Id) -> bool:
        """Say whether the model has met a user."""
        try:
            self.user_row(user)
        except UnknownId:
            return False
        return True

    def predict(self, user: Id, items: Sequence[Id]) -> Values:
        """Predict one user's ratings of some items."""
        rows = np.array([self.item_row(item) for item in items], np.int32)
        return self.predict_rows(np.full(len(rows), self.user_row(user), np.int32), rows)

    def predict_rows(self, users: Index, items: Index) -> Values:
        """Predict aligned (user, item) row numbers, in slices so that memory stays small."""
        out = np.empty(len(users), np.float32)
        for start in range(0, len(users), 1_000_000):
            u, i = users[start : start + 1_000_000], items[start : start + 1_000_000]
            dots = np.einsum("rk,rk->r", self.user_vectors[u], self.item_vectors[i])
            out[start : start + 1_000_000] = self.mean + self.user_bias[u] + self.item_bias[i] + dots
        return out if self.scale is None else self.scale.clip(out)

    def recommend(self, user: Id, n: int = 10, *, include_seen: bool = False) -> list[Recommendation]:
        """Return the n best items for a user, those she has rated left out."""
        whole(n=n)
        row, most = self.user_row(user), len(self.item_ids)
        items, scores = self.top_items(slice(row, row + 1), min(n, most), include_seen=include_seen)
        found = items[0] >= 0
        return [self._named(*pair) for pair in zip(items[0][found], scores[0][found], strict=True)]

    def top_items(self, users: slice, n: int = 10, *, include_seen: bool = False) -> tuple[Index, Values]:
        """Return the n best items and their scores for a range of user rows; -1 where items run out."""
        from cofactor.factors.topk import top_items

        first, last, _ = users.indices(len(self.user_ids))
        last = max(first, last)
        seen = None if self.seen is None or include_seen else self.seen
        ptr = np.zeros(last - first + 1, np.int64) if seen is None else seen.ptr[first : last + 1]
        index = np.zeros(0, np.int32) if seen is None else seen.index
        items, scores = top_items(
            self.user_vectors[first:last], self.item_vectors, self.item_bias, ptr, index, n
        )
        scores = scores + self.mean + self.user_bias[first:last, None]
        if self.scale is not None:
            scores[items >= 0] = self.scale.clip(scores[items >= 0])
        return items, scores

    def similar_items(self, item: Id, n: int = 10) -> list[Recommendation]:
        """Return the n items that the same users prefer (score: cosine of the vectors, less their mean).

        The mean is taken off because what all items share changes no user's order of them.
        """
        whole(n=n)
        row = self.item_row(item)
        if self.item_vectors.shape[1] == 0:
            raise DataError("this model has no factors to compare items by. Fit one with SGD() or Bayes().")
        vectors = self.item_vectors - self.item_vectors.mean(axis=0)
        lengths = np.linalg.norm(vectors, axis=1)
        cosine = vectors @ vectors[row] / np.maximum(lengths * lengths[row], 1e-12)
        cosine[row] = -np.inf
        best = np.argsort(-cosine, kind="stable")[: min(n, len(cosine) - 1)]
        return [self._named(other, cosine[other]) for other in best]

    def fold_in(self, ratings: Mapping[Id, float], *, user: Id = "new user") -> "Factors":
        """Fit a user the model has never met from her ratings; nothing is retrained.

        Returns a model that knows only her, with the same items.
        """
        if self.home is None:
            raise DataError("this model was saved without what fold_in needs. Fit it again with cofactor.")
        if not ratings:
            raise DataError("fold_in needs at least one rating of a known item.")
        items = np.array([self.item_row(item) for item in ratings], np.int32)
        if len(np.unique(items)) != len(items):
            raise DataError("an item to fold in is named twice. Give one rating an item.")
        try:
            values = np.array(list(ratings.values()), np.float64)
        except (TypeError, ValueError):
            raise DataError("ratings to fold in must be numbers.") from None
        if self.scale is None and not np.isfinite(values).all():
            raise DataError("a rating to fold in is not a finite number.")
        if self.scale is not None and not self.scale.covers(values).all():
            raise DataError(f"a rating to fold in lies outside the model's scale, {self.scale}.")
        if self.home.confidence is not None and not (values > 0).all():
            raise DataError("a rating to fold into an implicit model must be above 0; 1 says it happened.")
        bias, vector = _home_row(self, self.home, items, values)
        return replace(
            self,
            user_ids=np.array([user]),
            user_bias=np.array([bias], np.float32),
            user_vectors=vector.astype(np.float32)[None],
            seen=Seen(np.array([0, len(items)]), np.sort(items)),
        )

    def with_titles(self, titles: Mapping[Id, str]) -> "Factors":
        """Return the same model with a title for each item; items without one keep an empty title."""
        by_text = {str(item): title for item, title in titles.items()}
        return replace(self, titles=np.array([by_text.get(str(item), "") for item in self.item_ids.tolist()]))

    def save(self, path: str | Path) -> None:
        """Write the model to one .npz file: arrays and JSON, no pickle."""
        arrays: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("user_ids", "item_ids", "user_bias", "item_bias", "user_vectors", "item_vectors")
        }
        facts: dict[str, Any] = {"format": FORMAT, "mean": self.mean}
        if self.scale is not None:
            facts["scale"] = asdict(self.scale)
        if self.titles is not None:
            arrays["titles"] = self.titles
        if self.seen is not None:
            arrays |= {"seen_ptr": self.seen.ptr, "seen_index": self.seen.index}
        if self.home is not None:
            arrays |= {"home_precision": self.home.precision, "home_weights": self.home.weights}
            facts["home"] = {
                name: getattr(self.home, name) for name in ("growth", "confidence", "calibrated")
            }
        with Path(path).open("wb") as file:
            np.savez(file, facts=np.array(json.dumps(facts)), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> "Factors":
        """Read a model that `save` wrote."""
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = dict(stored)
                facts = json.loads(str(arrays.pop("facts")))
            newer = facts["format"] > FORMAT
        except FileNotFoundError:
            raise RunError(f"{path}: there is no such file. Name a model that cofactor has saved.") from None
        except Exception as error:
            raise RunError(f"{path}: not a model that cofactor has saved ({type(error).__name__}).") from None
        if newer:
            raise RunError(f"{path}: written by a newer cofactor. Upgrade cofactor to read it.")
        try:
            return _assembled(arrays, facts)
        except (KeyError, TypeError, ValueError, IndexError, DataError) as error:
            raise RunError(f"{path}: the model is damaged ({error}). Fit it again.") from None

    @cached_property
    def _user_rows(self) -> dict[Id, int]:
        return {user: row for row, user in enumerate(self.user_ids.tolist())}

    @cached_property
    def _item_rows(self) -> dict[Id, int]:
        return {item: row for row, item in enumerate(self.item_ids.tolist())}

    def _named(self, item: Any, score: Any) -> Recommendation:
        title = str(self.titles[item]) or None if self.titles is not None else None
        return Recommendation(self.item_ids[item].item(), title, float(score))


def seen_in(ratings: Ratings) -> Seen:
    """Return what each user has rated, as `Factors.seen` wants it."""
    return Seen(ratings.by_user.ptr, ratings.by_user.index)


def _home_row(
    model: Factors, home: HomeFit, items: Index, values: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Solve (X'WX + P) row = X'W(rating - mean - item bias)."""
    vectors = model.item_vectors[items].astype(np.float64)
    has_bias = len(home.precision) == vectors.shape[1] + 1
    x = np.column_stack([np.ones(len(items)), vectors]) if has_bias else vectors
    y, weights = values - model.mean - model.item_bias[items], home.weights[items]
    if home.confidence is not None:
        weights = home.confidence * values
        y = 1 + 1 / weights
    weighted = x * weights[:, None]
    prior = home.precision * len(items) ** home.growth
    row = np.linalg.solve(weighted.T @ x + prior, weighted.T @ y).astype(np.float64, copy=False)
    return (float(row[0]), row[1:]) if has_bias else (0.0, row)


def _assembled(arrays: dict[str, Any], facts: dict[str, Any]) -> Factors:
    home = seen = None
    if "home_weights" in arrays:
        home = HomeFit(arrays.pop("home_precision"), arrays.pop("home_weights"), **facts["home"])
    if "seen_ptr" in arrays:
        seen = Seen(arrays.pop("seen_ptr"), arrays.pop("seen_index"))
    scale = Scale(**facts["scale"]) if "scale" in facts else None
    model = Factors(**arrays, mean=facts["mean"], scale=scale, seen=seen, home=home)
    _check(model)
    return model


def _check(model: Factors) -> None:
    """Refuse arrays that do not fit together; kernels would read beyond their ends."""
    users, items, width = len(model.user_ids), len(model.item_ids), model.user_vectors.shape[1]
    shapes = {
        "user_bias": (users,),
        "item_bias": (items,),
        "user_vectors": (users, width),
        "item_vectors": (items, width),
    }
    for name, shape in shapes.items():
        if getattr(model, name).shape != shape:
            raise ValueError(f"{name} has shape {getattr(model, name).shape}, not {shape}")
    if model.titles is not None and len(model.titles) != items:
        raise ValueError(f"{len(model.titles):,} titles for {items:,} items")
    home = model.home
    if home is not None and (
        home.weights.shape != (items,) or home.precision.shape not in [(w, w) for w in (width, width + 1)]
    ):
        raise ValueError("what folding in needs does not fit items and factors")
    if model.seen is not None and not _fits(model.seen, users, items):
        raise ValueError("what users have seen does not fit users and items")


def _fits(seen: Seen, users: int, items: int) -> bool:
    ptr, index = seen.ptr, seen.index
    if (
        ptr.dtype != np.int64
        or index.dtype != np.int32
        or len(ptr) != users + 1
        or ptr[0] < 0
        or ptr[-1] > len(index)
        or (np.diff(ptr) < 0).any()
    ):
        return False
    return len(index) == 0 or bool(index.min() >= 0 and index.max() < items)
