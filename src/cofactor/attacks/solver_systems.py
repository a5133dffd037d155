"""Equations that tell a server what a user sent them about: Mai and Pang, PrivMVMF, section IV.

If users' vectors are best for what they have rated (SemiALS), one upload tells ratings and attributes: they
are the unknowns, and the upload must come out, in one fixed factor n, (20) and (24). If vectors move by steps
(SGD), two uploads tell the vector of the first round, which is the unknown: the second upload of one fixed
item j must come out in all factors, (31) and (33). Ratings and attributes then follow, (32) and (35).

Misprints, and what is here instead:

- (26) and (27) multiply one number of p by q', where the whole vector is meant.
- (29), (30) and (34) add up u_d, and (49) also q_k, where their n-th numbers are meant. (33) forgets a t.
- (34) and (47) name p_j where q_j is meant: g' = 2 gamma lambda2 (q_j^t)' - (q_j^t - q_j^(t-1))', as in (28).
- (35) leaves p_n^t out of the first product of its numerator: f_n^(t-1) p_n^t (p^t q^t') is meant.
- (42) smooths c from 0, though c is alpha where nothing was rated. `floor` is the lowest c: 0 as printed, or
  alpha.

Two things differ from the paper because the recipe does: a step takes the vectors of the round that it is in,
q^t, and its size is relative to the trace of the curvature; where unrated items count, both depend on which
are rated. (20) stays as it is if ratings and attributes change their signs, and (31) if p does: all is told
up to one common sign, of which the paper says nothing. Where unrated items count, weights tell it.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.uploads import Upload
from cofactor.recipes.multiview_weights import ObsOnly

Reals = NDArray[np.float64]

_TINY = 1e-9
"""What stands for numbers that are divided by and too near 0."""


class Told(NamedTuple):
    """Real numbers that a solution stands for, before they are brought to what is possible."""

    ratings: Reals
    """One for each item for which something was sent."""
    attributes: Reals
    """One for each attribute for which something was sent."""


class System(Protocol):
    """As many equations as unknowns."""

    @property
    def unknowns(self) -> int:
        """How many there are."""
        ...

    def equations(self, guess: Reals) -> Reals:
        """Return by how much each equation fails."""
        ...

    def unexplained(self, guess: Reals) -> float:
        """Return by how much a guess fails to explain all that was sent, also what no equation uses."""
        ...

    def told(self, guess: Reals) -> Told:
        """Return ratings and attributes that a guess stands for."""
        ...

    def user(self, guess: Reals) -> Reals:
        """Return the user's vector that a guess stands for."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Sent:
    """What was really sent of one upload: a row for each item and attribute of which there is any."""

    items: Reals
    """Vectors q of the items for which something was sent."""
    item_rows: Reals
    item_places: NDArray[np.intp]
    """Which items these are."""
    attributes: Reals
    attribute_rows: Reals
    attribute_places: NDArray[np.intp]
    alpha: float | None
    """Weight of what was not rated; None if nothing is sent for it."""
    penalty: float
    side_weight: float

    @classmethod
    def of(cls, upload: Upload, *, beside: Upload | None = None) -> "Sent":
        """Return the rows that were sent, in this upload or in one beside it."""
        known = upload.known
        both = [upload] if beside is None else [upload, beside]
        items = np.flatnonzero(np.any([one.sent_items for one in both], axis=0))
        attributes = np.flatnonzero(np.any([one.sent_attributes for one in both], axis=0))
        return cls(
            items=upload.items[items],
            item_rows=upload.item_rows[items],
            item_places=items,
            attributes=upload.attributes[attributes],
            attribute_rows=upload.attribute_rows[attributes],
            attribute_places=attributes,
            alpha=None if isinstance(known.unrated, ObsOnly) else known.unrated.alpha,
            penalty=known.penalty,
            side_weight=known.side_weight,
        )

    @property
    def width(self) -> int:
        """Length of vectors: K."""
        return int(self.items.shape[1])


def smoothed(ratings: Reals, floor: float) -> Reals:
    """Return weights c that go from `floor` at a rating of 0 to 1 at a rating of 1: equation 42."""
    return np.asarray(np.clip(floor + (1 - floor) * ratings, floor, 1.0))


class BestObserved:
    """Equation 20: SemiALS, and only what was rated counts. Unknown are ratings and attributes."""

    def __init__(self, sent: Sent, factor: int) -> None:
        """Fix a factor."""
        squares = sent.items.T @ sent.items + _side(sent, sent.attributes)
        sides = sent.side_weight * sent.attributes
        self._told = np.linalg.solve(squares, np.vstack([sent.items, sides]).T).T
        self._vectors = np.vstack([sent.items, sent.attributes])
        self._rows = np.vstack([sent.item_rows, sent.attribute_rows])
        self._count, self._factor = len(sent.items), factor

    @property
    def unknowns(self) -> int:
        """Ratings and attributes."""
        return len(self._rows)

    def equations(self, guess: Reals) -> Reals:
        """Return what would have been sent in the fixed factor, less what was."""
        user = self.user(guess)
        return np.asarray((guess - self._vectors @ user) * user[self._factor] - self._rows[:, self._factor])

    def unexplained(self, guess: Reals) -> float:
        """Return the same over all factors, as a length."""
        user = self.user(guess)
        return _length(np.outer(guess - self._vectors @ user, user) - self._rows)

    def told(self, guess: Reals) -> Told:
        """Return the unknowns."""
        return Told(guess[: self._count], guess[self._count :])

    def user(self, guess: Reals) -> Reals:
        """Return the vector that is best for them: (19)."""
        return np.asarray(guess @ self._told)


class BestWeighed:
    """Equation 24: SemiALS, and what was not rated counts a little, so that weights follow from ratings."""

    def __init__(self, sent: Sent, factor: int, floor: float) -> None:
        """Fix a factor; no weight is below `floor`."""
        self._sent, self._factor, self._floor = sent, factor, floor
        self._squares = _side(sent, sent.attributes)
        self._products = np.einsum("ja,jb->jab", sent.items, sent.items).reshape(len(sent.items), -1)
        self._rows = np.vstack([sent.item_rows, sent.attribute_rows])

    @property
    def unknowns(self) -> int:
        """Ratings and attributes."""
        return len(self._rows)

    def equations(self, guess: Reals) -> Reals:
        """Return what would have been sent in the fixed factor, less what was."""
        errors, user = self._errors(guess)
        return np.asarray(errors * user[self._factor] - self._rows[:, self._factor])

    def unexplained(self, guess: Reals) -> float:
        """Return the same over all factors, as a length."""
        return _length(np.outer(*self._errors(guess)) - self._rows)

    def told(self, guess: Reals) -> Told:
        """Return the unknowns."""
        count = len(self._sent.items)
        return Told(guess[:count], guess[count:])

    def user(self, guess: Reals) -> Reals:
        """Return the vector that is best for them: (23)."""
        return self._errors(guess)[1]

    def _errors(self, guess: Reals) -> tuple[Reals, Reals]:
        """Return weighted errors, and the user's vector (23)."""
        sent, width = self._sent, self._sent.width
        ratings, attributes = self.told(guess)
        weights = smoothed(ratings, self._floor)
        squares = (weights @ self._products).reshape(width, width) + self._squares
        right = (weights * ratings) @ sent.items + sent.side_weight * attributes @ sent.attributes
        user = np.linalg.solve(squares, right)
        missed = weights * (ratings - sent.items @ user), attributes - sent.attributes @ user
        return np.concatenate(missed), user


class Steps:
    """Equations 31 and 33: SGD, and two uploads. Unknown is the user's vector of the first of them."""

    def __init__(
        self, before: Sent, after: Sent, item: int, *, rate: float, floor: float, values: Reals
    ) -> None:
        """Fix an item, by its place among those sent; `rate` is the recipe's, relative to the trace.

        `values` are the ratings that there can be.
        """
        self._before, self._after, self._item = before, after, item
        self._rate, self._floor, self._values = rate, floor, values
        moved = after.attributes - before.attributes
        self._item_moves = after.items - before.items
        self._sums = before.item_rows.T @ after.items
        self._sums += before.side_weight * before.attribute_rows.T @ after.attributes
        self._side_moves = before.side_weight * after.attributes.T @ moved
        self._side_moves += before.penalty * np.eye(before.width)
        self._squares = np.square(after.items).sum(axis=1)
        self._side_trace = float(np.trace(_side(after, after.attributes)))

    @property
    def unknowns(self) -> int:
        """The numbers of the user's vector."""
        return self._before.width

    def equations(self, guess: Reals) -> Reals:
        """Return what would have been sent for the fixed item in the second round, less what was."""
        return np.asarray(self._failed(guess, slice(self._item, self._item + 1))[0])

    def unexplained(self, guess: Reals) -> float:
        """Return the same over all items, as a length."""
        return _length(self._failed(guess, slice(None)))

    def told(self, guess: Reals) -> Told:
        """Return ratings and attributes in the factor in which the vector is largest: (32) and (35)."""
        before, user = self._before, _apart(guess)
        n = int(np.argmax(np.abs(user)))
        attributes = before.attribute_rows[:, n] / user[n] + before.attributes @ user
        errors = before.item_rows / user
        if before.alpha is None:
            return Told(errors[:, n] + before.items @ user, attributes)
        ratings = self._ratings(user, self._moved(user, errors), errors, slice(None))
        return Told(ratings[:, n], attributes)

    def user(self, guess: Reals) -> Reals:
        """Return the unknowns."""
        return guess

    def _failed(self, guess: Reals, items: slice) -> Reals:
        """Return by how much the second upload of items fails, by item and factor."""
        before, after, user = self._before, self._after, _apart(guess)
        errors = before.item_rows / user
        moved = self._moved(user, errors)
        change = (before.items[items] @ user)[:, None] - after.items[items] @ moved.T
        if before.alpha is not None:
            change *= smoothed(self._ratings(user, moved, errors, items), self._floor)
        return np.asarray((errors[items] + change) * moved.diagonal() - after.item_rows[items])

    def _moved(self, user: Reals, errors: Reals) -> Reals:
        """Return the user's vector after the step, a row for each factor that errors are read off from.

        Equations (9) and (10), where an error of the new round is one of the old less what the item's own
        move explains.
        """
        explained = self._item_moves @ user
        if self._before.alpha is None:
            pushed, trace = explained @ self._after.items, self._squares.sum() + self._side_trace
        else:
            weights = self._weights(user, errors)
            pushed = (weights * explained[:, None]).T @ self._after.items
            trace = (self._squares @ weights + self._side_trace)[:, None]
        down = self._sums / user[:, None] - pushed - self._side_moves @ user
        return np.asarray(user + self._rate * down / trace)

    def _weights(self, user: Reals, errors: Reals) -> Reals:
        """Return for each error the weight that explains it better: alpha and no rating, or 1 and some."""
        assert self._before.alpha is not None
        fitted = (self._before.items @ user)[:, None]
        rated = errors + fitted
        beside = np.abs(rated - self._values[0])
        for value in self._values[1:]:
            np.minimum(beside, np.abs(rated - value), out=beside)
        alpha = self._before.alpha
        return np.where(np.abs(errors + alpha * fitted) < beside, alpha, 1.0)

    def _ratings(self, user: Reals, moved: Reals, errors: Reals, items: slice) -> Reals:
        """Return ratings by item and factor (35): two errors with one weight tell both."""
        first, then = errors[items], self._after.item_rows[items] / _apart(moved.diagonal())
        fitted = (self._before.items[items] @ user)[:, None], self._after.items[items] @ moved.T
        return np.asarray((first * fitted[1] - then * fitted[0]) / _apart(first - then))


def best_system(sent: Sent, fixed: int, floor: float) -> System:
    """Return what one upload tells under SemiALS, with a fixed factor."""
    return BestObserved(sent, fixed) if sent.alpha is None else BestWeighed(sent, fixed, floor)


def direction(sent: Sent) -> Reals:
    """Return the direction in which all rows lie, of length 1: the user's vector, but for length and sign."""
    rows = np.vstack([sent.item_rows, sent.attribute_rows])
    return np.asarray(np.linalg.eigh(rows.T @ rows)[1][:, -1])


def _side(sent: Sent, attributes: Reals) -> Reals:
    """Return the part of the curvature that does not depend on items."""
    return np.asarray(
        sent.side_weight * attributes.T @ attributes + sent.penalty * np.eye(attributes.shape[1])
    )


def _length(rows: Reals) -> float:
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(rows))


def _apart(numbers: Reals) -> Reals:
    """Keep numbers away from 0, on the side where they are."""
    return np.where(np.abs(numbers) < _TINY, np.copysign(_TINY, numbers), numbers)
