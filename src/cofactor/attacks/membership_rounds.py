"""Was this user in? What single rounds tell: what her ratings would add to answers, found in them or not.

Answers are sums over users, or nearly so, plus noise. Whoever knows somebody's ratings, and the questions
that were asked, can work out what she adds, for a participant's code is public. What was seen is then
explained by all candidates at once, each there or not, by whoever else was there, and by noise.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.replay import Replay, Setting, added, rounds_of
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, DataError
from cofactor.federation.party import Party
from cofactor.federation.view import Seen, View

Floats = NDArray[np.float64]

_COIN = 4.0
"""One over the variance of a fair coin."""
_OTHERS = 1e-6
"""One over the variance of what may have been added by others: nothing is known of it."""
_LEAST = 1e-12
_MOST = 10**8
"""Numbers that what all candidates add to one answer may have."""


def membership_in_rounds(view: View, candidates: Ratings, setting: Setting) -> Floats:
    """Return a score for each user of `candidates`, larger if she seems to have been in, from what was seen.

    Whoever scores saw questions and answers, or their sums, and knows the candidates' ratings and what is
    public of the training, the `setting`. Of who else was in, nothing is known.
    """
    if setting.facts.split == "vertical":
        raise ConfigError("all parties of a vertical federation know the same users: who is in is no secret.")
    rounds = list(rounds_of(view, setting))
    if not rounds:
        raise DataError(
            f"{' and '.join(view.roles)} saw no answers. Use the view of the coordinator; or membership, "
            "which needs the published model only."
        )
    alone = _Alone(setting, candidates)
    nobody = Replay(setting, [alone.party(None)])
    own = [Replay(setting, [alone.party(user)]) for user in range(candidates.user_count)]
    explained = _Explained(candidates.user_count)
    for round, question, answers in rounds:
        base = added(nobody.answers(round, question).values()).arrays
        _check_size(candidates.user_count, base)
        parts = [added(each.answers(round, question).values()).arrays for each in own]
        for name, seen in _totals(answers).items():
            start = np.asarray(base[name], np.float64).ravel()
            expected = np.array([np.asarray(each[name], np.float64).ravel() - start for each in parts])
            explained.take(seen - len(answers) * start, expected)
    return explained.scores()


def _check_size(candidates: int, answer: Mapping[str, NDArray[Any]]) -> None:
    largest = max(array.size for array in answer.values())
    if candidates * largest > _MOST:
        raise DataError(
            f"what {candidates:,} candidates add to answers of {largest:,} numbers does not fit into memory. "
            f"Give at most {_MOST // largest:,} candidates."
        )


class _Alone:
    """Parties that hold one candidate each, with what is public of items, and all of the weight."""

    def __init__(self, setting: Setting, candidates: Ratings) -> None:
        self._facts, self._candidates = setting.facts, candidates
        at = {str(item): row for row, item in enumerate(self._facts.catalogue.tolist())}
        self._rows = np.array([at.get(str(item), -1) for item in candidates.item_ids.tolist()], np.int64)
        public = self._facts.public_items
        self._features = (
            None if public is None else public.matching_rows(self._facts.catalogue, owner="the attacker")
        )

    def party(self, user: int | None) -> Party:
        """Return a party with one candidate, or with somebody who has no ratings.

        Where one participant plays all devices, the others are there and have no ratings: sums need so many.
        """
        facts, grouped = self._facts, self._candidates.by_user
        own = slice(0, 0) if user is None else slice(grouped.ptr[user], grouped.ptr[user + 1])
        items = self._rows[grouped.index[own]]
        known, users = items >= 0, facts.user_count if facts.cohort else 1
        ratings = Ratings.from_rows(
            np.zeros(int(known.sum()), np.int64),
            items[known],
            None if facts.implicit else grouped.values[own][known],
            user_ids=np.arange(users),
            item_ids=facts.catalogue,
            scale=None if facts.implicit else facts.scale,
        )
        weights = None if facts.weights is None else np.ones(users)
        return Party(name=facts.parties[0], ratings=ratings, features=self._features, weights=weights)


def _totals(answers: list[Seen]) -> Mapping[str, Floats]:
    """Return the arrays of all answers, added up."""
    return {
        name: np.sum([np.asarray(each.arrays[name], np.float64).ravel() for each in answers], axis=0)
        for name in answers[0].arrays
    }


class _Explained:
    """What all rounds say about who is in: a regression of what was seen on what candidates add.

    Two columns more stand for others: what candidates add on average, as often as need be, and a constant.
    """

    def __init__(self, candidates: int) -> None:
        self._candidates = candidates
        self._products = np.zeros((candidates + 2, candidates + 2))
        self._matched = np.zeros(candidates + 2)

    def take(self, seen: Floats, expected: Floats) -> None:
        """Take in what was seen, less what nobody would give, and what each candidate adds to it."""
        if not expected.any():
            return
        columns = np.concatenate([expected, expected.mean(axis=0)[None], np.ones((1, len(seen)))])
        products = columns @ columns.T
        variance = self._left_over(seen, columns, products)
        self._products += products / variance
        self._matched += columns @ seen / variance

    def scores(self) -> Floats:
        """Return by how much each candidate seems to be there, in deviations of what is not known of it."""
        if not self._products.any():
            raise DataError("candidates add nothing to any answer. Have they rated items of this run?")
        prior = np.append(np.full(self._candidates, _COIN), [_OTHERS, _OTHERS])
        spread = np.linalg.inv(self._products + np.diag(prior))
        guess = spread @ (self._matched + np.append(np.full(self._candidates, _COIN / 2), [0.0, 0.0]))
        own = slice(0, self._candidates)
        return np.asarray((guess[own] - 0.5) / np.sqrt(np.diag(spread)[own]))

    def _left_over(self, seen: Floats, columns: Floats, products: Floats) -> float:
        """Return the variance of what nobody explains; of all, where there are too few numbers for that."""
        least = max(_LEAST * float(products.max()), 1e-300)
        if len(seen) < 2 * len(columns):
            return max(float(np.mean(np.square(seen))), least)
        matched = columns @ seen
        explained = np.linalg.lstsq(products, matched, rcond=None)[0] @ matched
        return max(float((seen @ seen - explained) / (len(seen) - len(columns))), least)
