"""One audit for all: canaries in a target, secret coins, and what guesses about them prove."""

import math
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.result import SIMULATION, Audit, Figure, Verdict
from cofactor.attacks.target import Played, Target
from cofactor.config import fraction, whole
from cofactor.errors import ConfigError
from cofactor.privacy import noise
from cofactor.privacy.evidence import mu_of
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.one_run import Curve, OneRun, check_canaries, judged
from cofactor.progress import Listener, Progress, nobody
from cofactor.randomness import InsecureRandom, Random, SecureRandom

Floats = NDArray[np.float64]

_SECURE = SecureRandom()
_NO_PROOF = (
    "A bound below the promise is no proof that it is kept: another attacker may see what this one does not."
)
_BY_RENYI = (
    "For this noise the accountant proves less about likely events than epsilon says about rare ones, so mu "
    "promised is large, and small flaws pass."
)
_LENIENT = 0.85
"""Part of what is promised in mu that epsilon and delta alone say, below which the promise is called weak."""
_FEWEST = 20
"""Canaries of one run that can be ranked among each other."""


def audited(
    target: Target,
    *,
    seen_by: str,
    repeats: int = 1,
    confidence: float = 0.95,
    random: Random = _SECURE,
    progress: Listener = nobody,
) -> Audit:
    """Run a target, once or more, with canaries that coins put in or leave out, and judge guesses."""
    fraction(confidence=confidence)
    whole(repeats=repeats)
    check_canaries(target.canaries * repeats)
    coins, scores, plays = [], [], []
    for turn in range(repeats):
        present = np.zeros(target.canaries, np.bool_)
        present[noise.chosen(target.canaries, 0.5, apart(random, f"coins {turn}"))] = True
        played = target.play(present, apart(random, f"noise {turn}"))
        coins.append(present)
        scores.append(comparable(played.scores))
        plays.append(played)
        progress(Progress("canaries", turn + 1, repeats))
    guarantee, promised = plays[0].guarantee, worst(plays)
    found = judged(
        np.concatenate(scores),
        np.concatenate(coins),
        promised,
        confidence=confidence,
        delta=guarantee.delta or 0.0,
        runs=np.repeat(np.arange(repeats), target.canaries),
    )
    return Audit(
        attack="canaries",
        seen_by=seen_by,
        verdict=_verdict(found),
        headline=_headline(target.name, found, guarantee),
        figures=_figures(found, guarantee, repeats),
        confidence=confidence,
        notes=(SIMULATION, *_caveats(found, guarantee)),
    )


def comparable(scores: Floats) -> Floats:
    """Return scores of one run such that they compare with others': their places, if they are many."""
    if not np.isfinite(scores).all():
        raise ConfigError("a target gave scores that are not finite.")
    if len(scores) < _FEWEST:
        return scores
    places = np.empty(len(scores))
    places[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    return places / len(scores)


def apart(random: Random, purpose: str) -> Random:
    """Return chance of its own for a purpose: coins and noise that repeat must not be the same."""
    if not isinstance(random, InsecureRandom):
        return random
    return InsecureRandom(int.from_bytes(sha256(f"{random.seed} {purpose}".encode()).digest()[:12]))


def worst(plays: list[Played]) -> Curve | None:
    """Return what all runs promise, the weakest of them; None if one promised nothing."""
    curves = [played.promised for played in plays if played.promised is not None]
    return Curve.weakest(curves) if len(curves) == len(plays) else None


def _caveats(found: OneRun, guarantee: Guarantee) -> list[str]:
    """Say what the verdict does not."""
    if found.p_value is None or found.claimed_mu is None:
        return []
    notes = [] if found.refuted else [_NO_PROOF]
    told = 0.0 if guarantee.epsilon is None else mu_of(guarantee.epsilon, found.delta)
    if 0 < told < _LENIENT * found.claimed_mu < math.inf:
        notes.append(_BY_RENYI)
    return notes


def _verdict(found: OneRun) -> Verdict:
    if found.p_value is None:
        return "succeeded" if found.epsilon_at_least > 0 else "resisted"
    return "alarm" if found.refuted else "consistent"


def _headline(name: str, found: OneRun, guarantee: Guarantee) -> str:
    share = f"{found.right:,} of {found.guesses:,} guesses about {found.canaries:,} canaries are right"
    proved = f"epsilon is at least {found.epsilon_at_least:.3g}"
    if found.p_value is None:
        return f"{name} promised nothing: {share}, so {proved}."
    promised = f"epsilon {guarantee.epsilon:.3g}" if guarantee.epsilon is not None else "what was charged"
    if found.refuted:
        return (
            f"{name} does not keep {promised}: {share}, which would happen with probability "
            f"{found.p_value:.2g} at most."
        )
    return f"{name} promised {promised}, and nothing speaks against it: {share}, so {proved}."


def _figures(found: OneRun, guarantee: Guarantee, repeats: int) -> dict[str, Figure]:
    return {
        "runs": repeats,
        "canaries": found.canaries,
        "guesses": found.guesses,
        "right guesses": found.right,
        "epsilon proved at least": found.epsilon_at_least,
        "epsilon promised": guarantee.epsilon,
        "delta": found.delta,
        "mu proved at least": found.mu_at_least,
        "mu promised": found.claimed_mu,
        "epsilon at least, if noise is normal": found.as_if_gaussian if found.delta > 0 else None,
        "p-value of the promise": found.p_value,
    }
