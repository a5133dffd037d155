"""`Factors`: a fitted recommender, whatever fitted it. Ids go in, ids and titles come out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import whole
from cofactor.data.grouping import Index, Offsets, Values
from cofactor.data.ids import Id, Ids, find_row
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import DataError, UnknownId
from cofactor.factors.choosing import Choice
from cofactor.factors.views import NO_ATTRIBUTES, Views

if TYPE_CHECKING:
    from cofactor.data.public_items import PublicItems
    from cofactor.data.tables import Table


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
    """What the items are in order of: where a model knows how items are chosen, its `Choice.scores`;
    otherwise the predicted rating, or the preference by an implicit model."""
    rating: float | None = None
    """Predicted rating; None for an implicit model."""


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
    choice: Choice | None = None
    """How items are chosen: if known, what recommendations are in order of. Predictions are as without it."""
    views: Views | None = None
    """What is known of attributes and features: for users and items without any ratings."""

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
        lists, all_scores = self.top_items(slice(row, row + 1), min(n, most), include_seen=include_seen)
        items, scores = lists[0][lists[0] >= 0], all_scores[0][lists[0] >= 0]
        if self.scale is None:
            return [self._named(*best) for best in zip(items, scores, strict=True)]
        ratings = self.predict_rows(np.full(len(items), row, np.int32), items)
        return [self._named(*best) for best in zip(items, scores, ratings, strict=True)]

    def top_items(self, users: slice, n: int = 10, *, include_seen: bool = False) -> tuple[Index, Values]:
        """Return the n best items and their scores for a range of user rows; -1 where items run out.

        Where the model has a choice, each user's taste is fitted to what she has seen.
        """
        from cofactor.factors.topk import top_items

        first, last, _ = users.indices(len(self.user_ids))
        last = max(first, last)
        if self.choice is not None:
            return self._top_chosen(self.choice, first, last, n, include_seen)
        seen = self._nothing_seen if self.seen is None or include_seen else self.seen
        items, scores = top_items(
            self.user_vectors[first:last],
            self.item_vectors,
            self.item_bias,
            seen.ptr[first : last + 1],
            seen.index,
            n,
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
        return self._knowing_only(user, bias, vector, np.sort(items))

    def for_attributes(self, attributes: Mapping[str, Any], *, user: Id = "new user") -> "Factors":
        """Fit a user the model has never met from her attributes; any may be left out.

        Returns a model that knows only her, with the same items. Nothing about her is kept but her vector.
        It ranks only: a vector made from attributes is much shorter than one from ratings.
        """
        if self.views is None:
            raise DataError(NO_ATTRIBUTES)
        vector = self.views.vector_for(attributes)
        return replace(self._knowing_only(user, 0.0, vector, np.zeros(0, np.int32)), scale=None)

    def recommend_for_attributes(self, attributes: Mapping[str, Any], n: int = 10) -> list[Recommendation]:
        """Return the n best items for somebody who has rated nothing, from her attributes."""
        return self.for_attributes(attributes).recommend("new user", n)

    def add_items(self, items: "PublicItems | Table") -> "Factors":
        """Return the same model with items that nobody has rated: their vectors follow from features.

        Items that the model has already stay as they are, whatever is said about them here. A table is coded
        as the one was that the model was trained with; of PublicItems the columns must be the same. New ones
        lie close to the mean of the others: compare them with each other first.
        """
        from cofactor.factors.new_items import with_items

        return with_items(self, items)

    def with_titles(self, titles: Mapping[Id, str]) -> "Factors":
        """Return the same model with a title for each item; items without one keep an empty title."""
        by_text = {str(item): title for item, title in titles.items()}
        return replace(self, titles=np.array([by_text.get(str(item), "") for item in self.item_ids.tolist()]))

    def save(self, path: str | Path) -> None:
        """Write the model to one .npz file: arrays and JSON, no pickle."""
        from cofactor.factors.stored import write

        write(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "Factors":
        """Read a model that `save` wrote."""
        from cofactor.factors.stored import read

        return read(path)

    def _knowing_only(self, user: Id, bias: float, vector: NDArray[Any], seen: Index) -> "Factors":
        return replace(
            self,
            user_ids=np.array([user]),
            user_bias=np.array([bias], np.float32),
            user_vectors=vector.astype(np.float32)[None],
            seen=Seen(np.array([0, len(seen)]), seen),
        )

    @cached_property
    def _user_rows(self) -> dict[Id, int]:
        return {user: row for row, user in enumerate(self.user_ids.tolist())}

    @cached_property
    def _item_rows(self) -> dict[Id, int]:
        return {item: row for row, item in enumerate(self.item_ids.tolist())}

    @cached_property
    def _nothing_seen(self) -> Seen:
        return Seen(np.zeros(len(self.user_ids) + 1, np.int64), np.zeros(0, np.int32))

    def _top_chosen(
        self, choice: Choice, first: int, last: int, n: int, include_seen: bool
    ) -> tuple[Index, Values]:
        def ratings(part: slice) -> Values:
            return self._in_quarters(slice(first + part.start, first + part.stop))

        seen = self._nothing_seen if self.seen is None else self.seen
        return choice.top_items(
            seen.ptr[first : last + 1],
            seen.index,
            n,
            ratings=None if self.scale is None else ratings,
            include_rated=include_seen,
        )

    def _in_quarters(self, users: slice) -> Values:
        """Predict some users' ratings of all items, in quarters of the scale: as they are, from 1 to 5."""
        assert self.scale is not None
        ratings = self.user_vectors[users] @ self.item_vectors.T
        ratings += self.item_bias + (self.mean + self.user_bias[users])[:, None]
        quarters: Values = self.scale.clip(ratings) * np.float32(4 / (self.scale.high - self.scale.low))
        return quarters

    def _named(self, item: Any, score: Any, rating: Any = None) -> Recommendation:
        title = str(self.titles[item]) or None if self.titles is not None else None
        predicted = None if rating is None else float(rating)
        return Recommendation(self.item_ids[item].item(), title, float(score), predicted)


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
