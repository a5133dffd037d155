"""Differencing: where noise is drawn once, the difference of two uploads of one user has none in it.

`differenced` takes uploads of HDPMF's kind in a few rounds, gets rid of whatever is the same in all of them,
and solves for the user's vectors and ratings. It needs no start that only the user knows, and it knows itself
whether it has succeeded. `scored` compares with the truth.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.differencing_solve import EXACT, solved
from cofactor.config import whole
from cofactor.data.ratings import Ratings
from cofactor.data.scale import Scale
from cofactor.errors import ConfigError, RunError
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.view import Seen, Truth, View
from cofactor.randomness import Seeds

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

UNDERSTOOD = ("PublishedUploads", "HDPMF")
"""The recipes whose uploads it can read."""
_EPOCHS = 5
"""How many rounds are used, if more were seen: those of two suffice, if the user has moved in between."""
_CENTRE = 0.625
"""Where on the scale people's ratings lie on average: at 3.5 from 1 to 5."""
_CLOSE = 1e-3
"""Difference up to which two ratings are the same."""
_TIE = 1.05
"""Weights that fit so nearly equally well cannot be told apart by their fit."""
_NOISELESS = (
    "these uploads have no noise on them, so there is none to take off. Differencing is for noise that is "
    'the same in all rounds; try the attack "reconstruction".'
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Differenced:
    """What the uploads of one sender gave away."""

    sender: str
    """The party; or the sum of all, where nothing else was seen."""
    rounds: tuple[int, ...]
    """The rounds whose uploads were used."""
    items: Integers
    """The items of which it uploaded gradients, by their places in the catalogue."""
    stretched: Reals
    """For each of them, the rating times its weight."""
    ratings: Reals
    """For each of them, the rating: the nearest on the scale."""
    weight: float
    """The user's own weight, known or found."""
    misfit: float
    """The part of all differences that stayed unexplained."""
    seconds: float

    @property
    def exact(self) -> bool:
        """Whether everything was explained, as the attacker sees for itself."""
        return self.misfit < EXACT


@dataclass(frozen=True, kw_only=True)
class DifferencingScore:
    """How near guesses came to the truth."""

    users: int
    """Users attacked."""
    ratings: int
    """Ratings attacked: those that the users have."""
    accuracy: float
    """The part of these that was guessed exactly."""
    exact_users: float
    """The part of users all of whose ratings were."""
    trivial: float
    """What the commonest rating would have got."""
    explained: float
    """The part of senders whose uploads the attack itself says that it explains."""
    seconds_each: float

    def __str__(self) -> str:
        """Say it in a sentence."""
        return (
            f"Of {self.ratings:,} ratings of {self.users:,} users {self.accuracy:.1%} were guessed exactly "
            f"({self.trivial:.1%} by always guessing the commonest), and of {self.exact_users:.1%} of the "
            f"users all."
        )


def differenced(
    view: View,
    *,
    senders: Sequence[str] | None = None,
    rounds: Sequence[int] | None = None,
    item_weights: Reals | None = None,
    user_weights: Mapping[str, float] | None = None,
    starts: int = 10,
    seed: int = 0,
) -> tuple[Differenced, ...]:
    """Guess ratings from what single users uploaded in several rounds, or, failing that, from sums.

    The attacker knows what the coordinator does: vectors of items in every round, and the weights of items,
    which are public (1 where nothing is said). A user's own weight is found by trying, unless it is known:
    all ratings must lie on the scale. `starts` is how often it begins anew, at most, if it does not succeed.
    """
    whole(starts=starts)
    read = _reader(view)
    found = _by_sender(view, read)
    chosen = list(found) if senders is None else [_known(each, found) for each in senders]
    weights = np.ones(view.items) if item_weights is None else np.asarray(item_weights, np.float64)
    own, random = dict(user_weights or {}), Seeds(seed).generator("starts of differencing")
    return tuple(
        _attacked(
            view, sender, _chosen(found[sender], rounds, sender), weights, own.get(sender), starts, random
        )
        for sender in chosen
    )


def scored(guesses: Sequence[Differenced], truth: Truth) -> DifferencingScore:
    """Compare guesses with the ratings of those who were attacked; a sum's guesses are taken for all."""
    if not guesses:
        raise ConfigError("there are no guesses to score.")
    pairs = [pair for guess in guesses for pair in _pairs(guess, truth)]
    told, true = (np.concatenate(sides) for sides in zip(*pairs, strict=True))
    commonest = max(Counter(true.tolist()).values())
    return DifferencingScore(
        users=len(pairs),
        ratings=len(true),
        accuracy=float(np.mean(_same(told, true))),
        exact_users=float(np.mean([_same(guess, own).all() for guess, own in pairs])),
        trivial=commonest / len(true),
        explained=float(np.mean([guess.exact for guess in guesses])),
        seconds_each=float(np.mean([guess.seconds for guess in guesses])),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Upload:
    """One upload, with the question that it answers."""

    round: int
    items: Integers
    gradients: Reals
    vectors: Reals


def _reader(view: View) -> "Callable[[View, Seen], _Upload]":
    kind = str(view.recipe.get("kind"))
    if not view.seen:
        raise ConfigError(
            "no messages were captured, so there is nothing to take differences of. Train a simulation with "
            'capture="coordinator".'
        )
    if kind not in UNDERSTOOD:
        raise ConfigError(
            f"differencing is for uploads of {' and '.join(UNDERSTOOD)}, and this is {kind}. What repeats in "
            "its messages, if anything, repeating(view) tells."
        )
    return _of_published if kind == "PublishedUploads" else _of_mended


def _by_sender(view: View, read: "Callable[[View, Seen], _Upload]") -> dict[str, list[_Upload]]:
    """Return all uploads that were seen, by sender: those of single users, or sums if there are no others."""
    kind = "Uploads" if view.recipe.get("kind") == "PublishedUploads" else "Gradients"
    users = dict(zip(view.parties, view.users, strict=True))
    answers = [each for each in view.messages(kind, receiver=COORDINATOR) if users.get(each.sender, 1) == 1]
    single = [each for each in answers if each.sender != SUM]
    if kind == "Gradients" and any(each.protection == "nothing" for each in single):
        raise ConfigError(_NOISELESS)
    found: dict[str, list[_Upload]] = {}
    for each in single or answers:
        found.setdefault(each.sender, []).append(read(view, each))
    found = {sender: uploads for sender, uploads in found.items() if len(uploads) > 1}
    if not found:
        raise ConfigError(
            f"{' and '.join(view.roles)} saw no uploads of one user in two rounds, nor two sums. Attack as "
            "the coordinator, and capture more than one round."
        )
    return found


def _of_published(view: View, answer: Seen) -> _Upload:
    asked = _question(view, "UploadsAsked", answer.round)
    items = np.asarray(answer.arrays["items"], np.int64)
    vectors = np.asarray(asked.arrays["vectors"], np.float64)[items]
    gradients = np.asarray(answer.arrays["gradients"], np.float64)
    return _Upload(round=answer.round, items=items, gradients=gradients, vectors=vectors)


def _of_mended(view: View, answer: Seen) -> _Upload:
    """Read gradients of all items; of a sum they are taken for those of one user who has rated all."""
    asked = _question(view, "Shared", answer.round)
    gradients = 2 * np.asarray(answer.arrays["gradients"], np.float64) / view.recipe.get("grains", 1)
    vectors = np.asarray(asked.arrays["vectors"], np.float64)
    return _Upload(round=answer.round, items=np.arange(len(vectors)), gradients=gradients, vectors=vectors)


def _question(view: View, kind: str, round: int) -> Seen:
    asked = next(view.messages(kind, round=round), None)
    if asked is None:
        raise RunError(f"round {round} was captured without its question, {kind}. Capture all of the round.")
    return asked


def _known(sender: str, found: Mapping[str, object]) -> str:
    if sender not in found:
        raise ConfigError(f"no uploads of {sender!r} were seen in two rounds. There are {', '.join(found)}.")
    return sender


def _chosen(uploads: list[_Upload], rounds: Sequence[int] | None, sender: str) -> list[_Upload]:
    """Return uploads of the rounds that are wanted; by default some, from the first to the last."""
    if rounds is None:
        places = np.unique(np.geomspace(1, len(uploads), _EPOCHS).astype(np.int64)) - 1
        return [uploads[place] for place in places]
    by_round = {each.round: each for each in uploads}
    missing = [round for round in rounds if round not in by_round]
    if missing or len(set(rounds)) < 2:
        raise ConfigError(
            f"differences need two rounds or more in which {sender} was seen: "
            f"{', '.join(map(str, sorted(by_round)))}. Got {', '.join(map(str, rounds))}."
        )
    return [by_round[round] for round in rounds]


def _attacked(
    view: View,
    sender: str,
    uploads: list[_Upload],
    weights: Reals,
    own: float | None,
    starts: int,
    random: np.random.Generator,
) -> Differenced:
    begin = time.perf_counter()
    items = uploads[0].items
    found = solved(
        np.stack([each.gradients for each in uploads]),
        np.stack([each.vectors for each in uploads]),
        random,
        starts=starts,
    )
    scale = view.scale or Scale(0, 1)
    told = found.stretched / weights[items]
    weight = own if own is not None else _fitting_weight(told, scale)
    return Differenced(
        sender=sender,
        rounds=tuple(each.round for each in uploads),
        items=items,
        stretched=found.stretched,
        ratings=nearest_ratings(told / weight, scale),
        weight=weight,
        misfit=found.misfit,
        seconds=time.perf_counter() - begin,
    )


def _fitting_weight(told: Reals, scale: Scale) -> float:
    """Return the weight by which numbers become ratings best; between equals, the most usual ratings."""
    largest = float(told.max(initial=0.0))
    if largest <= 0:
        return 1.0
    weights = [min(largest / rating, 1.0) for rating in _ratings(scale) if rating > 0]
    missed = np.array([_missed(told / weight, scale) for weight in weights])
    usual = scale.low + _CENTRE * (scale.high - scale.low)
    near = [at for at, each in enumerate(missed) if each <= _TIE * missed.min() + 1e-9]
    return weights[min(near, key=lambda at: abs(float(np.mean(told)) / weights[at] - usual))]


def _same(one: Reals, other: Reals) -> NDArray[np.bool_]:
    """Say which ratings are the same: they are stored with 24 bits."""
    return np.asarray(np.abs(one - other) < _CLOSE)


def _missed(values: Reals, scale: Scale) -> float:
    return float(np.sqrt(np.mean((values - nearest_ratings(values, scale)) ** 2)))


def nearest_ratings(values: Reals, scale: Scale) -> Reals:
    """Return the nearest ratings on the scale."""
    step = scale.step or 1.0
    return np.asarray(scale.clip(scale.low + step * np.rint((values - scale.low) / step)), np.float64)


def _ratings(scale: Scale) -> Iterator[float]:
    step = scale.step or 1.0
    yield from np.arange(scale.low, scale.high + step / 2, step).tolist()


def _pairs(guess: Differenced, truth: Truth) -> Iterator[tuple[Reals, Reals]]:
    """Yield what was guessed and what is true, user by user, for all ratings that the users have."""
    told = np.full(1 + max(int(guess.items.max(initial=0)), 0), np.nan)
    told[guess.items] = guess.ratings
    attacked = truth.ratings.values() if guess.sender == SUM else [truth.ratings[guess.sender]]
    for ratings in attacked:
        yield from _users(ratings, told)


def _users(ratings: Ratings, told: Reals) -> Iterator[tuple[Reals, Reals]]:
    own = ratings.by_user
    for begin, end in zip(own.ptr[:-1], own.ptr[1:], strict=True):
        places = own.index[begin:end]
        if len(places):
            guessed = np.where(places < len(told), told[np.minimum(places, len(told) - 1)], np.nan)
            yield guessed, own.values[begin:end].astype(np.float64)
