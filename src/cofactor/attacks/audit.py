"""`audit`: try to break a run, a survey or a clustering, as one of those who took part."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cofactor.attacks.auditing import audited
from cofactor.attacks.canary_audits import setting_of, target_of
from cofactor.attacks.collusion import NoiseLeft, colluded, noise_left
from cofactor.attacks.collusion_keys import with_opened
from cofactor.attacks.differencing import differenced
from cofactor.attacks.differencing import scored as scored_differences
from cofactor.attacks.knowledge import Knowledge
from cofactor.attacks.membership import membership, split_by_membership
from cofactor.attacks.membership_figures import told_apart
from cofactor.attacks.membership_rounds import membership_in_rounds
from cofactor.attacks.reconstruction import reconstruct
from cofactor.attacks.result import ATTACKS, SIMULATION, Audit, Figure, Verdict
from cofactor.attacks.scoring import TRIVIAL
from cofactor.attacks.scoring import scored as scored_guesses
from cofactor.cluster.result import Clustering
from cofactor.config import fraction, one_of, whole
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, RunError, TooFew
from cofactor.factors.model import Factors
from cofactor.federation.door import COORDINATOR
from cofactor.federation.federation import Federation
from cofactor.federation.folder import read_facts
from cofactor.federation.run import Run
from cofactor.federation.view import PUBLIC, Captured, View
from cofactor.privacy.guarantee import Guarantee
from cofactor.progress import Listener, nobody
from cofactor.randomness import Random, SecureRandom, Seeds
from cofactor.survey.result import Survey

_SECURE = SecureRandom()
_NOTHING_CAPTURED = (
    "this run kept no messages, so nobody can attack them. They are kept only where that is asked for, in "
    'simulations: train(..., capture="{role}"), or cofactor train ... --capture {role}.'
)
_CLEARLY = 0.05
"""What sums tell about everybody, such as which items are liked, makes guesses better by less than this."""
_CANDIDATES = 200
"""Candidates whose part in every round is played again, at most: some of all, by lot."""
_FROM_MODEL = "Scores are made from the published model alone; messages were not captured, or tell no more."


def audit(
    what: Run | Survey | Clustering | str | Path,
    attack: str = "canaries",
    *,
    seen_by: str = COORDINATOR,
    confidence: float = 0.95,
    data: Federation | Ratings | None = None,
    canaries: int | None = None,
    repeats: int = 1,
    random: Random = _SECURE,
    progress: Listener = nobody,
) -> Audit:
    """Attack a run, or the one in a folder, in which the result is then kept; return what was found.

    "reconstruction", "differencing" and "collusion" need captured messages. "membership" needs, as `data`,
    ratings of users who were in and of others. "canaries" trains anew, `repeats` times, and needs `data` of
    the run's kind unless messages were captured; in surveys and clusterings canaries are made-up people.
    `seen_by` is "coordinator", "party:NAME" or "public"; roles that collude are joined by "+".
    """
    one_of(ATTACKS, attack=attack)
    fraction(confidence=confidence)
    whole(canaries=canaries, repeats=repeats)
    folder = Path(what) if isinstance(what, str | Path) else None
    wish = _Wish(
        what=loaded(folder) if folder is not None else what,  # type: ignore[arg-type]
        roles=tuple(seen_by.split("+")),
        confidence=confidence,
        data=data,
        canaries=canaries,
        repeats=repeats,
        random=random,
        progress=progress,
    )
    found = _BY_NAME[attack](wish)
    if folder is not None:
        found.save(folder)
    return found


def loaded(folder: Path) -> Run | Survey | Clustering:
    """Read what a run folder holds, whatever it is."""
    facts = read_facts(folder)
    if "survey" in facts:
        return Survey.load(folder)
    return Clustering.load(folder) if "clustering" in facts else Run.load(folder)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Wish:
    """What is to be attacked, and how."""

    what: Run | Survey | Clustering
    roles: tuple[str, ...]
    confidence: float
    data: Federation | Ratings | None
    canaries: int | None
    repeats: int
    random: Random
    progress: Listener

    @property
    def seen_by(self) -> str:
        return "+".join(self.roles)

    @property
    def run(self) -> Run:
        """The run, where only trainings can be attacked that way."""
        if isinstance(self.what, Run):
            return self.what
        kind = type(self.what).__name__.lower()
        raise ConfigError(f'this is a {kind}, and no training. Audit it with the attack "canaries".')

    @property
    def captured(self) -> Captured:
        """What was captured of the run."""
        if self.run.captured is None:
            raise RunError(_NOTHING_CAPTURED.format(role=self.roles[0]))
        return self.run.captured

    @property
    def sees_rounds(self) -> bool:
        """Whether answers of users, or their sums, were captured that the roles saw."""
        kept = self.run.captured
        seen = kept is not None and kept.whole.split != "vertical" and COORDINATOR in kept.whole.roles
        return seen and COORDINATOR in self.roles

    @property
    def view(self) -> View:
        """What the roles saw together."""
        return self.captured.view(*self.roles)


def _canaries(wish: _Wish) -> Audit:
    target = target_of(wish.what, data=wish.data, canaries=wish.canaries, seen_by=wish.seen_by)
    return audited(
        target,
        seen_by=wish.seen_by,
        repeats=wish.repeats,
        confidence=wish.confidence,
        random=wish.random,
        progress=wish.progress,
    )


def _differencing(wish: _Wish) -> Audit:
    found = scored_differences(differenced(wish.view), wish.captured.truth)
    return Audit(
        attack="differencing",
        seen_by=wish.seen_by,
        verdict=_judged(found.accuracy, found.trivial, found.users, wish.run.guarantee),
        headline=str(found),
        figures={
            "users": found.users,
            "ratings": found.ratings,
            "ratings right": found.accuracy,
            "ratings right, trivial guess": found.trivial,
            "users all right": found.exact_users,
            "uploads explained": found.explained,
            "seconds each": found.seconds_each,
        },
        notes=(SIMULATION,),
    )


def _membership(wish: _Wish) -> Audit:
    candidates = wish.data.pooled() if isinstance(wish.data, Federation) else wish.data
    if candidates is None:
        raise ConfigError(
            'membership needs ratings of users who were in and of others: audit(run, "membership", '
            "data=ratings), or cofactor audit RUN everybody.csv --attack membership."
        )
    members, inside = split_by_membership(wish.run, candidates), wish.sees_rounds
    if inside and candidates.user_count > _CANDIDATES:
        some = Seeds(0).generator("candidates").permutation(candidates.user_count)[:_CANDIDATES]
        candidates = candidates.select(users=np.sort(some))
        members = split_by_membership(wish.run, candidates)
    scores = (
        membership_in_rounds(wish.view, candidates, setting_of(wish.run))
        if inside
        else membership(_published(wish.run), candidates)
    )
    found = told_apart(scores, members, confidence=wish.confidence)
    return Audit(
        attack="membership",
        seen_by=wish.seen_by if inside else PUBLIC,
        verdict="succeeded" if found.succeeded else "resisted",
        headline=str(found),
        figures=found.figures(),
        confidence=wish.confidence,
        notes=(SIMULATION, *found.notes, *(() if inside else (_FROM_MODEL,))),
    )


def _published(run: Run) -> Factors:
    if run.model is None:
        raise RunError(
            "this run published no model, so nobody outside can say who was in. Train again with capture, "
            "and attack as the coordinator."
        )
    return run.model


def _collusion(wish: _Wish) -> Audit:
    view = wish.view
    found = colluded(view)
    figures: dict[str, Figure] = {
        "colluding parties": found.colluding,
        "honest parties": found.honest,
        "answers of single parties in sight": sum(found.alone.values()),
        "of these without any noise": found.alone.get("nothing", 0),
        "sums without their own answers": found.rests,
        "uploads opened by keys": found.opened,
        "keys held": found.keys,
        "keys that open a sum": found.quorum,
        "colluding parties that noise is made for": found.promised,
    }
    open_to_them = found.opened or found.alone.get("nothing", 0)
    bare = open_to_them or (found.rests and found.honest == 1 and wish.run.guarantee.epsilon is None)
    verdict: Verdict = "succeeded" if bare else "resisted"
    headlines = [str(found)]
    left = _noise_left(wish) if found.promised is not None and found.rests else None
    if left is not None:
        figures |= {"variance left, of what is promised": left.left, "variance expected": left.expected}
        headlines.append(str(left))
        if not left.kept and left.colluding <= left.promised:
            verdict = "alarm"
    return Audit(
        attack="collusion",
        seen_by=wish.seen_by,
        verdict=verdict,
        headline=" ".join(headlines),
        figures=figures,
        notes=(SIMULATION,),
    )


def _noise_left(wish: _Wish) -> NoiseLeft | None:
    """Measure the noise of sums; None where there is none, or no sum of nothing else."""
    if wish.run.guarantee.epsilon is None:
        return None
    try:
        return noise_left(wish.view, wish.captured.truth)
    except ConfigError:
        return None


def _reconstruction(wish: _Wish) -> Audit:
    view = _with_keys(wish.view)
    knowledge = Knowledge.of_view(view)
    found = scored_guesses(reconstruct(view, knowledge=knowledge), wish.captured.truth, knowledge)
    return Audit(
        attack="reconstruction",
        seen_by=wish.seen_by,
        verdict=_judged(found.rated.right, found.rated.trivial, found.users, wish.run.guarantee),
        headline=str(found),
        figures=found.figures(),
        notes=(SIMULATION, TRIVIAL),
    )


def _with_keys(view: View) -> View:
    """Open what the keys of those who collude open, if they are enough."""
    try:
        return with_opened(view) if view.keys else view
    except TooFew:
        return view


def _judged(right: float, trivial: float, users: int, guarantee: Guarantee) -> Verdict:
    """Say whether guesses are clearly better than trivial ones, and than what a promise of privacy allows."""
    # Users are the trials: three standard errors of a proportion, at the most.
    chance = 3 * (0.25 / max(users, 1)) ** 0.5
    if right - trivial <= max(3 * (trivial * (1 - trivial) / max(users, 1)) ** 0.5, _CLEARLY):
        return "resisted"
    return "alarm" if guarantee.holds and right - chance > _allowed(trivial, guarantee) else "succeeded"


def _allowed(trivial: float, guarantee: Guarantee) -> float:
    """Return how often guesses may be right that would be so often without the user's data."""
    if guarantee.epsilon is None or guarantee.delta is None:
        return 1.0
    more, delta = math.exp(min(guarantee.epsilon, 700.0)), guarantee.delta
    return min(more * trivial + delta, 1 - (1 - delta - trivial) / more)


_BY_NAME: Mapping[str, Callable[[_Wish], Audit]] = {
    "reconstruction": _reconstruction,
    "membership": _membership,
    "canaries": _canaries,
    "differencing": _differencing,
    "collusion": _collusion,
}
