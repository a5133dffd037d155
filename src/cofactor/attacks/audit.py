"""`audit`: try to break a run, a survey or a clustering, as one of those who took part."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cofactor.attacks.auditing import audited
from cofactor.attacks.canary_audits import target_of
from cofactor.attacks.result import SIMULATION, Audit, Verdict
from cofactor.cluster.result import Clustering
from cofactor.config import fraction, one_of, whole
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, RunError
from cofactor.federation.door import COORDINATOR
from cofactor.federation.federation import Federation
from cofactor.federation.folder import read_facts
from cofactor.federation.run import Run
from cofactor.federation.view import Captured, View
from cofactor.privacy.guarantee import Guarantee
from cofactor.progress import Listener, nobody
from cofactor.randomness import Random, SecureRandom
from cofactor.survey.result import Survey

_SECURE = SecureRandom()
_NOTHING_CAPTURED = (
    "this run kept no messages, so nobody can attack them. They are kept only where that is asked for, in "
    'simulations: train(..., capture="{role}"), or cofactor train ... --capture {role}.'
)


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
        what=_loaded(folder) if folder is not None else what,  # type: ignore[arg-type]
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


def _loaded(folder: Path) -> Run | Survey | Clustering:
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
    from cofactor.attacks.differencing import differenced, scored

    found = scored(differenced(wish.view), wish.captured.truth)
    return Audit(
        attack="differencing",
        seen_by=wish.seen_by,
        verdict=_judged(found.accuracy, found.trivial, found.users, wish.run.guarantee),
        headline=str(found),
        figures={
            "users": found.users,
            "ratings": found.ratings,
            "ratings right": found.accuracy,
            "by guessing": found.trivial,
            "users all right": found.exact_users,
            "uploads explained": found.explained,
            "seconds each": found.seconds_each,
        },
        notes=(SIMULATION,),
    )


def _judged(right: float, trivial: float, users: int, guarantee: Guarantee) -> Verdict:
    """Say whether guesses are clearly better than trivial ones; a promise of privacy allows no such thing."""
    # Users are the trials: three standard errors of a proportion, at the least.
    if right - trivial <= 3 * (trivial * (1 - trivial) / max(users, 1)) ** 0.5:
        return "resisted"
    return "alarm" if guarantee.holds else "succeeded"


_BY_NAME: Mapping[str, Callable[[_Wish], Audit]] = {
    "canaries": _canaries,
    "differencing": _differencing,
}
ATTACKS = tuple(_BY_NAME)
"""What can be tried."""
