"""Ways to attack what single users sent, and how right their guesses are."""

from dataclasses import dataclass, replace

import numpy as np

from cofactor.attacks.reconstruction import attack_upload
from cofactor.attacks.scoring import Reconstruction, scored
from cofactor.attacks.solvers import Solver, solve_uploads
from cofactor.papers.privmvmf_attack_material import Attacked
from cofactor.papers.privmvmf_numbers import (
    ATTRIBUTE,
    RATING,
    SEMI_INCL,
    SEMI_OBS,
    SGD_INCL,
    SGD_OBS,
)
from cofactor.randomness import Seeds

RATED, QUESTION, SECONDS = "rated only", "question", "seconds each"
"""Columns of the tables, beside the paper's: accuracies, and processor time for each user."""
ONE_ROUND = "here, from one round"
SOLVED, SIGNED = "here, the paper's way", "here, the paper's way, sign put right"
ZEROS, USUAL, RANDOM = "zeros everywhere", "the commonest everywhere", "random"
TRIVIAL = (ZEROS, USUAL, RANDOM)
"""Guesses that need no attack."""
_STEPS = Solver(tries=3, evaluations=500)
"""Where vectors move by steps, and there are few unknowns."""
CHOSEN = {
    SEMI_OBS: Solver(method="hybr", start="ones", tries=3),
    SEMI_INCL: Solver(method="df-sane", start="tenths", tries=3),
    SGD_OBS: replace(_STEPS, method="df-sane", start="tenths"),
    SGD_INCL: replace(_STEPS, method="df-sane", start="random"),
}
"""What Table III takes in each scenario: the highest rating accuracy of Table VI, as methods find signs, on
100 users of MovieLens 100K, from starts that need no idea of ours. In the last, linearmixing from tenths has
a little more (0.841, and 0.810) because it takes next to nothing to be rated; what finds most ratings is
taken."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What solvers found of some users."""

    as_found: Reconstruction
    """With the signs that methods happened to find, as in the paper."""
    signed: Reconstruction
    """With signs put right."""
    converged: float
    """The part of the systems that were solved."""


def one_round(own: Attacked) -> Reconstruction:
    """Attack one round by direction and scale."""
    guesses = [attack_upload(upload, own.knowledge) for upload in own.before]
    return scored(guesses, own.truth, own.knowledge, parties=own.parties)


def solved(own: Attacked, solver: Solver, seed: int) -> Tried:
    """Attack as the paper does."""
    random = Seeds(seed).generator(f"starts in {own.scenario}")
    found = [
        solve_uploads(own.needed(user), own.knowledge, solver, random, user_rate=own.user_rate)
        for user in range(len(own.before))
    ]
    as_found, signed = (
        scored([getattr(one, name) for one in found], own.truth, own.knowledge, parties=own.parties)
        for name in ("as_found", "guess")
    )
    return Tried(
        as_found=as_found,
        signed=signed,
        converged=float(np.mean([one.converged for one in found])),
    )


def under_noise(scenario: str, *, items: int) -> Solver:
    """Return the paper's rule: solve with every factor, or with so many items, fixed in turn, and average."""
    by_factor = scenario in (SEMI_OBS, SEMI_INCL)
    return replace(CHOSEN[scenario], fixed=None if by_factor else items, tries=1)


def accuracies(found: Reconstruction, scenario: str) -> dict[str, float]:
    """Return what the columns show: where only ratings are sent, they are all that equation 43 counts."""
    every = found.rated if observed(scenario) else found.all_items
    values = {RATING: every.right, RATED: found.rated.right}
    if found.attributes is not None:
        values[ATTRIBUTE] = found.attributes.right
    if found.questions is not None:
        values[QUESTION] = found.questions.right
    return values | {SECONDS: found.seconds_each}


def trivial(found: Reconstruction, scenario: str) -> dict[str, dict[str, float]]:
    """Return the same of guesses that need no attack."""
    zeros = {RATING: 0.0 if observed(scenario) else found.all_items.trivial, RATED: 0.0}
    usual = {RATED: found.rated.trivial} | ({RATING: found.rated.trivial} if observed(scenario) else {})
    random = {
        RATING: found.rated.random if observed(scenario) else found.all_items.random,
        RATED: found.rated.random,
    }
    if found.attributes is not None:
        zeros[ATTRIBUTE], random[ATTRIBUTE] = found.attributes.trivial, found.attributes.random
    if found.questions is not None:
        usual[QUESTION], random[QUESTION] = found.questions.trivial, found.questions.random
    return {ZEROS: zeros, USUAL: usual, RANDOM: random}


def observed(scenario: str) -> bool:
    """Say whether users send something of rated items only."""
    return scenario in (SEMI_OBS, SGD_OBS)
