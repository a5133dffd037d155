"""Reconstruction from one round: a user's ratings and attributes, read off the gradients that she sent.

A table of gradients of one user is rank one: its rows show the direction of her vector. Its length follows
from what is public: ratings lie on a scale with steps, unrated items count as 0, attributes are 0 or 1, and
vectors that are the best ones fit the ratings that they imply. Then ratings are what the rows say, rounded.
Under noise the most likely vector is sought, and the most likely values for it.

The attacker sees one round of the role's messages and knows the recipe's settings. What is known beforehand
about users in general is `Knowledge`; by default only what is public.
"""

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.guesses import Guess as Guess
from cofactor.attacks.knowledge import Knowledge as Knowledge
from cofactor.attacks.rank_one import direction_of, noise_in
from cofactor.attacks.scale_search import found_vector
from cofactor.attacks.scoring import Reconstruction as Reconstruction
from cofactor.attacks.scoring import scored as scored
from cofactor.attacks.upload_posterior import Posterior
from cofactor.attacks.uploads import Upload as Upload
from cofactor.attacks.uploads import uploads as uploads
from cofactor.federation.view import View

Reals = NDArray[np.float64]

_ROUNDING = 0.5
"""Scale of noise that stands for rounding, in grains."""
_EXACT = 1e-6
"""How exactly lengths are found, relative to them: no rating is told more exactly than this."""


def reconstruct(
    view: View,
    *,
    knowledge: Knowledge | None = None,
    round: int | None = None,
    parties: Sequence[str] | None = None,
) -> tuple[Guess, ...]:
    """Guess ratings and attributes from the uploads that a role saw in one round, by default the last.

    Of `parties` alone, if they are named. Where nothing but sums was opened, each is taken for one upload.
    """
    known = Knowledge.of_view(view) if knowledge is None else knowledge
    seen = uploads(view, round=round)
    wanted = [each for each in seen if parties is None or each.sender in parties] or seen
    return tuple(attack_upload(each, known) for each in wanted)


def attack_upload(upload: Upload, knowledge: Knowledge) -> Guess:
    """Guess the ratings and attributes behind one upload."""
    start = time.process_time()
    noise = max(upload.noise or 0.0, _ROUNDING * upload.known.grain / upload.users, 1e-12)
    posterior = Posterior(upload=upload, knowledge=knowledge, noise=noise)
    if not upload.sent_items.any():
        return _guess(posterior, np.zeros(upload.items.shape[1]), start)
    direction = direction_of(posterior.everything)
    if upload.noise is None:
        posterior = posterior.with_noise(max(noise, _noise_seen(upload, posterior.everything, direction)))
    vector = found_vector(posterior, direction)
    exact = _EXACT * float(np.linalg.norm(vector)) * knowledge.highest
    return _guess(posterior.with_noise(max(posterior.noise, exact)), vector, start)


def _noise_seen(upload: Upload, rows: Reals, direction: Reals) -> float:
    """Estimate the noise: what lies off the direction and, in a sum, all that the others sent.

    The mean of n users' rows, whose signs differ, is shorter than one of them by a factor of sqrt(n).
    """
    if upload.users == 1:
        return noise_in(rows, direction)
    return float(np.sqrt(upload.users * np.mean(rows**2)))


def _guess(posterior: Posterior, vector: Reals, start: float) -> Guess:
    """Take the most likely value of everything."""
    upload = posterior.upload
    known, values = posterior.knowledge, len(posterior.knowledge.values)
    ratings, rated = np.zeros(len(upload.items)), np.zeros(len(upload.items), np.bool_)
    if_rated = np.full(len(upload.items), known.values[known.chances().argmax()])
    attributes = np.full(len(upload.attributes), np.nan)
    if vector.any():
        chances = posterior.chances(vector)
        best = chances.ratings.argmax(axis=1)
        ratings[upload.sent_items] = posterior.items.values[best]
        rated[upload.sent_items] = best < values
        best_rating = chances.ratings[:, :values].argmax(axis=1)
        if_rated[upload.sent_items] = posterior.items.values[best_rating]
        attributes = posterior.answered(vector, chances)
    return Guess(
        sender=upload.sender,
        round=upload.round,
        ratings=ratings,
        rated=rated,
        if_rated=if_rated,
        attributes=attributes,
        vector=vector,
        noise=posterior.noise,
        users=upload.users,
        seconds=time.process_time() - start,
    )
