"""`Posterior`: how likely a user's vector is, given an upload, and what it says about ratings and attributes.

Where users' vectors are the best ones (SemiALS), a vector must also fit the ratings that it implies: the sum
of c (r - p.q) q over items and of lambda1 (x - p.u) u over attributes is lambda2 p.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.knowledge import Knowledge
from cofactor.attacks.rank_one import Rows, log_total
from cofactor.attacks.uploads import Upload
from cofactor.recipes.multiview_weights import InclUnc, SampledUnrated

Reals = NDArray[np.float64]

_NONE = 1e-3
"""How often none of a question's answers is right: a value that the coding does not know."""
_SLACK = 1e-2
"""Variance by which the equation of best vectors may be missed: it keeps it solvable where all is known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chances:
    """What an upload says if the user's vector is the right one."""

    log: float
    """Logarithm of how likely the upload is then, up to a constant."""
    ratings: Reals
    """By item that something was sent for and by value, the chance."""
    attributes: Reals
    """The chance of a 1 in each column that something was sent for."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """An upload together with what is known beforehand."""

    upload: Upload
    knowledge: Knowledge
    noise: float
    """Scale of the Laplace noise, at least that of rounding."""

    def with_noise(self, noise: float) -> "Posterior":
        """Return the same with other noise."""
        return replace(self, noise=noise)

    @cached_property
    def items(self) -> Rows:
        """The rows of items that were sent; what is not rated has the value 0 and a smaller weight."""
        values, weights, chances = _levels(self.upload, self.knowledge)
        sent = self.upload.sent_items
        return Rows(
            rows=self.upload.item_rows[sent],
            vectors=self.upload.items[sent],
            values=values,
            weights=weights,
            chances=np.log(chances)[None, :],
            longest=self.upload.known.longest,
        )

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """The columns of attributes that are 0 or 1, and for which something was sent."""
        numbers = np.isin(np.arange(len(self.upload.attribute_rows)), self.knowledge.numbers)
        return np.flatnonzero(self.upload.sent_attributes & ~numbers)

    @cached_property
    def attributes(self) -> Rows:
        """Their rows."""
        shares = self.knowledge.shares_of(len(self.upload.attribute_rows))[self.columns]
        return Rows(
            rows=self.upload.attribute_rows[self.columns],
            vectors=self.upload.attributes[self.columns],
            values=np.array([0.0, 1.0]),
            weights=np.ones(2),
            chances=np.log(np.stack([1 - shares, shares], axis=1)),
        )

    @cached_property
    def numbers(self) -> Rows:
        """The rows of attributes that can be any number."""
        columns = self._number_columns
        return replace(
            self.attributes,
            rows=self.upload.attribute_rows[columns],
            vectors=self.upload.attributes[columns],
            chances=np.zeros((1, 2)),
        )

    @cached_property
    def _number_columns(self) -> NDArray[np.int64]:
        sent = np.flatnonzero(self.upload.sent_attributes)
        return np.asarray(sent[np.isin(sent, self.knowledge.numbers)])

    @cached_property
    def everything(self) -> Reals:
        """All rows that were sent."""
        return np.concatenate([self.items.rows, self.attributes.rows, self.numbers.rows])

    def log(self, vector: Reals) -> float:
        """Return the logarithm of how likely the upload is for a user's vector, up to a constant."""
        return self.chances(vector).log

    def chances(self, vector: Reals) -> Chances:
        """Return what the upload says if this is the user's vector."""
        rated = self.items.logs(vector, self.noise) + self.items.chances
        totals = log_total(rated)
        evidence, ones = self._answers(self.attributes.logs(vector, self.noise))
        found = Chances(
            log=float(totals.sum()) + evidence, ratings=np.exp(rated - totals[:, None]), attributes=ones
        )
        if self.upload.known.update != "semi-als":
            return found
        return replace(found, log=found.log + self._best(vector, found))

    def answered(self, vector: Reals, chances: Chances) -> Reals:
        """Return the most likely attributes, one answer to a question at most; NaN where nothing was sent."""
        found = np.full(len(self.upload.attribute_rows), np.nan)
        found[self.columns] = 0.0
        for places, _, _ in self._questions:
            ones = chances.attributes[places]
            if ones.max() >= 1 - ones.sum():
                found[self.columns[places[ones.argmax()]]] = 1.0
        found[self._number_columns] = self._number_errors(vector) + self.numbers.vectors @ vector
        return found

    def _answers(self, logs: Reals) -> tuple[float, Reals]:
        """Return the evidence of all attributes, and the chance of a 1 in each: one answer a question."""
        log_zero, gain = float(logs[:, 0].sum()), logs[:, 1] - logs[:, 0]
        ones, evidence = np.zeros(len(logs)), log_zero
        for places, none, shares in self._questions:
            options = np.append(gain[places] + shares, none)
            total = float(log_total(options))
            ones[places] = np.exp(options[:-1] - total)
            evidence += total
        return evidence, ones

    @cached_property
    def _questions(self) -> list[tuple[NDArray[np.int64], float, Reals]]:
        """For each question, the places of its columns, and logs of how common none and each answer is."""
        width = len(self.upload.attribute_rows)
        place = {int(column): at for at, column in enumerate(self.columns)}
        shares, found = np.log(self.knowledge.shares_of(width)), []
        for columns in self.knowledge.questions(width):
            sent = [column for column in columns if column in place]
            if sent:
                none = np.log(_NONE) if len(columns) > 1 else np.log1p(-np.exp(shares[sent[0]]))
                places = np.array([place[column] for column in sent], np.int64)
                found.append((places, float(none), shares[sent]))
        return found

    def _best(self, vector: Reals, chances: Chances) -> float:
        """Return the log density of the equation of best vectors, errors being spread as chances say."""
        errors, known = self.items.errors(vector), self.upload.known
        mean = (chances.ratings * errors).sum(axis=1)
        variance = (chances.ratings * errors**2).sum(axis=1) - mean**2
        ones, side, told = chances.attributes, known.side_weight, self.attributes.vectors
        parts = [
            (self.items.vectors, mean, variance),
            (told, side * (ones - told @ vector), side**2 * ones * (1 - ones)),
            (self.numbers.vectors, side * self._number_errors(vector), self._number_spread(vector)),
        ]
        missed, spread = -known.penalty * vector, _SLACK * np.eye(len(vector))
        for vectors, means, variances in parts:
            missed = missed + means @ vectors
            spread = spread + (vectors.T * variances) @ vectors
        lower = np.linalg.cholesky(spread)
        scaled = np.linalg.solve(lower, missed)
        return float(-0.5 * scaled @ scaled - np.log(np.diag(lower)).sum())

    def _number_errors(self, vector: Reals) -> Reals:
        return np.asarray(self.numbers.rows @ vector / (vector @ vector))

    def _number_spread(self, vector: Reals) -> Reals:
        variance = 2 * (self.upload.known.side_weight * self.noise) ** 2 / float(vector @ vector)
        return np.full(len(self.numbers.rows), variance)


def _levels(upload: Upload, knowledge: Knowledge) -> tuple[Reals, Reals, Reals]:
    """Return what a row of an item can stand for: values, their weights, and how common each is."""
    values, chances, unrated = np.array(knowledge.values), knowledge.chances(), upload.known.unrated
    rated, decoys, alpha = knowledge.rated, 0.0, 0.0
    if isinstance(unrated, InclUnc):
        decoys, alpha = 1 - rated, unrated.alpha
    elif isinstance(unrated, SampledUnrated):
        decoys, alpha = min(rated * unrated.rho, 1 - rated), unrated.alpha
    nothing = 1 - rated - decoys if upload.known.everywhere else 0.0
    kinds = [(alpha, decoys), (0.0, nothing)]
    more = [(weight, chance) for weight, chance in kinds if chance > 0]
    weights = np.concatenate([np.ones(len(values)), [weight for weight, _ in more]])
    told = np.concatenate([rated * chances, [chance for _, chance in more]])
    return np.concatenate([values, np.zeros(len(more))]), weights, told / told.sum()
