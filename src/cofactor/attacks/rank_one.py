"""An uploaded table of gradients is rank one: every row is a number times the same vector, that of the user.

The row of an item is s p with s = c (r - p.q). So rows show the direction of p, and what lies off it is
noise. Only the length of p is left, and what a rating can be tells it. `Rows` says how likely rows are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

_ROUND = 0.05
"""Within this part of the noise the likelihood is rounded off, so that it has derivatives."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Rows that were sent, and the values that may stand behind each of them."""

    rows: Reals
    vectors: Reals
    """What the user's vector was multiplied with: q, or u."""
    values: Reals
    """What a rating or an attribute can be."""
    weights: Reals
    """The weight c that goes with each value."""
    chances: Reals
    """Logarithm of how common each value is; a line for each row, or one for all."""
    longest: float | None = None
    """The length to which longer rows were shortened, if they were."""

    def errors(self, vector: Reals) -> Reals:
        """Return what s would be, by row and value."""
        return np.asarray(self.weights * (self.values - (self.vectors @ vector)[:, None]))

    def logs(self, vector: Reals, noise: float) -> Reals:
        """Return the logarithm of each row's likelihood, by row and value, for Laplace noise."""
        missed = self.rows[:, None, :] - self._kept(self.errors(vector), vector)[:, :, None] * vector
        rounded = np.sqrt(missed**2 + (_ROUND * noise) ** 2) - _ROUND * noise
        return np.asarray(-rounded.sum(axis=2) / noise)

    def along(self, direction: Reals, lengths: Reals, spread: Reals) -> Reals:
        """Return the log likelihood of all rows for vectors of some lengths, of either sign, and a direction.

        Only what lies along the direction is looked at; errors are normal with a spread for each length.
        """
        seen, told = self.rows @ direction, self.vectors @ direction
        lengths, spread = lengths[:, None, None], spread[:, None, None]
        expected = lengths * self.weights * (self.values - lengths * told[:, None])
        if self.longest is not None:
            expected = np.clip(expected, -self.longest, self.longest)
        logs = -0.5 * ((seen[:, None] - expected) / spread) ** 2 + self.chances
        return np.asarray(log_total(logs).sum(axis=1))

    def largest(self, count: int) -> "Rows":
        """Return the longest rows, at most so many: of those that nobody rated most tell little."""
        if len(self.rows) <= count:
            return self
        kept = np.argpartition(-np.einsum("jk,jk->j", self.rows, self.rows), count)[:count]
        chances = self.chances if len(self.chances) == 1 else self.chances[kept]
        return Rows(
            rows=self.rows[kept],
            vectors=self.vectors[kept],
            values=self.values,
            weights=self.weights,
            chances=chances,
            longest=self.longest,
        )

    def _kept(self, errors: Reals, vector: Reals) -> Reals:
        """Return what is left of errors where rows were shortened."""
        if self.longest is None:
            return errors
        most = self.longest / max(float(np.linalg.norm(vector)), 1e-12)
        return np.clip(errors, -most, most)


def direction_of(rows: Reals) -> Reals:
    """Return the direction that explains most of the rows; its sign means nothing."""
    return np.asarray(np.linalg.eigh(rows.T @ rows)[1][:, -1])


def noise_in(rows: Reals, direction: Reals) -> float:
    """Estimate the scale of Laplace noise from what lies off the direction; 0 where nothing can."""
    width = len(direction)
    if width < 2 or len(rows) < 2:
        return 0.0
    off = rows - (rows @ direction)[:, None] * direction
    return float(np.median(np.abs(off)) / np.log(2) * np.sqrt(width / (width - 1)))


def log_total(logs: Reals) -> Reals:
    """Return the logarithm of the sum of exponentials over the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(logs - top).sum(axis=-1)))
