"""`Policy`: what a party allows, whatever a coordinator asks. A limit is a limit: no yes lifts it."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

from cofactor.config import as_table, fraction, from_table, one_of, positive, whole
from cofactor.errors import ConfigError, did_you_mean
from cofactor.federation.declining import Declining
from cofactor.network.proposal import KINDS
from cofactor.network.toml import read_toml
from cofactor.network.work import Asked, Planned, Telling
from cofactor.privacy.budget import ADJACENCIES, TOLERANCE, UNITS

Accept = Literal["by hand", "within limits"]
AGGREGATES: Final = ("PlainSum", "SecureSum", "EncryptedSum", "SharedSum")
"""Sums that work between real parties. Without noise, a plain one shows everybody's answers."""

_SURVEYS = (
    "SquareWave",
    "GeneralWave",
    "Binning",
    "HierarchicalHistogram",
    "HaarHRR",
    "GRR",
    "OLH",
    "HadamardResponse",
    "StochasticRounding",
    "PiecewiseMean",
)
_CLUSTERINGS = ("SecureTable", "Sketches", "IndependentCounts", "LocalMemberships")
_LIMITS = ("max_epsilon", "max_epsilon_per_run", "recipes")
"""What must be said before work is accepted without asking anybody."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a party agrees to. What is left out of `policy.toml` is as it is here."""

    accept: Accept = "by hand"
    """"by hand": a person must say yes to every plan. "within limits": what keeps all limits is accepted,
    what does not is refused; then `max_epsilon`, `max_epsilon_per_run` and `recipes` must be there."""
    max_epsilon: float | None = None
    """What all runs on the same data may cost together; a new ledger is begun with it."""
    max_epsilon_per_run: float | None = None
    """What one run may cost."""
    max_delta: float = 1e-5
    """The largest probability with which epsilon may fail."""
    units: tuple[str, ...] = UNITS
    """Who may be what is protected: "user", or "rating", which promises far less for the same epsilon."""
    adjacencies: tuple[str, ...] = ("empty", "replace")
    """Compared with what epsilon is promised. "value" hides values alone: who rated what becomes public."""
    recipes: tuple[str, ...] | None = None
    """Recipes and methods by name, such as "HorizontalMF". Left out: a person decides. None named: none."""
    kinds: tuple[str, ...] = ("training",)
    """What may be done: "training", "survey", "clustering"."""
    minimum_parties: int = 3
    """With how many parties at least, this one included, and of how many a sum may be opened: of two, each
    sees the other in it."""
    aggregates: tuple[str, ...] = AGGREGATES
    """How answers may be added up."""
    trusting: bool = False
    """Whether a promise may rest on a coordinator that keeps to the protocol: one that does not could then
    open a sum with less noise than is charged."""
    telling: tuple[str, ...] = ("nothing", "catalogue")
    """How ids may become known. Epsilon does not cover them, so "union" (all are told), "intersection" and
    "psi" (common users are found) must be named here before they happen."""
    without_budget: bool = False
    """Whether anything may be done without a budget: then nothing is promised to anybody."""
    newer_data: bool = False
    """Whether the data file may have grown since its ledger was begun."""
    patience: float = 3600.0
    """For how many seconds a plan waits for a person."""

    def __post_init__(self) -> None:
        one_of(get_args(Accept), accept=self.accept)
        positive(
            max_epsilon=self.max_epsilon,
            max_epsilon_per_run=self.max_epsilon_per_run,
            patience=self.patience,
        )
        fraction(max_delta=self.max_delta)
        whole(minimum_parties=self.minimum_parties)
        _words("units", self.units, UNITS)
        _words("adjacencies", self.adjacencies, ADJACENCIES)
        _words("kinds", self.kinds, KINDS)
        _words("aggregates", self.aggregates, AGGREGATES)
        _words("telling", self.telling, get_args(Telling))
        if self.recipes is not None:
            _words("recipes", self.recipes, known_recipes())
        missing = [name for name in _LIMITS if getattr(self, name) is None]
        if self.accept == "within limits" and missing:
            raise ConfigError(
                f'accept = "within limits" asks nobody, so the limits must be there: name '
                f'{", ".join(missing)}, or let a person decide with accept = "by hand".'
            )

    @classmethod
    def read(cls, path: Path) -> "Policy":
        """Read `policy.toml`; without one, everything is asked, and little is allowed."""
        return from_table(cls, read_toml(path), path.name) if path.exists() else cls()

    @property
    def digest(self) -> str:
        """The hash of all of it, which approvals keep."""
        return sha256(repr(sorted(self.as_table().items())).encode()).hexdigest()

    def as_table(self) -> dict[str, Any]:
        """Return all of it, for TOML or JSON."""
        return {name: value for name, value in as_table(self).items() if name != "kind"}

    def check(self, planned: Planned) -> None:
        """Refuse what is not allowed; the code goes to the coordinator, the words stay here."""
        for refused in self.refusals(planned):
            raise refused

    def check_asked(self, asked: Asked) -> None:
        """Refuse what is not allowed whatever the data are."""
        for refused in _refusals(self._checks, asked):
            raise refused

    def refusals(self, planned: Planned) -> Iterator[Declining]:
        """Return everything for which it is refused."""
        yield from _refusals(self._checks, planned)
        yield from _refusals((self._check_all, _check_room), planned)

    @property
    def _checks(self) -> tuple[Callable[[Asked], None], ...]:
        return (
            self._check_kind,
            self._check_recipe,
            self._check_cost,
            self._check_parties,
            self._check_sum,
            self._check_ids,
            self._check_trust,
        )

    def _check_all(self, planned: Planned) -> None:
        if planned.epsilon is not None:
            in_all = math.nan if planned.in_all is None else planned.in_all
            within("policy: epsilon in all", "max_epsilon", in_all, self.max_epsilon)

    def _check_kind(self, asked: Asked) -> None:
        _among("policy: kind", "kinds", asked.kind, self.kinds)

    def _check_recipe(self, asked: Asked) -> None:
        if self.recipes is not None:
            _among("policy: recipe", "recipes", asked.what, self.recipes)

    def _check_parties(self, asked: Asked) -> None:
        fewest = min(len(set(asked.parties)), len(asked.parties) if asked.fewest is None else asked.fewest)
        if fewest < self.minimum_parties:
            raise Declining(
                "policy: parties",
                f"of {len(asked.parties)} parties, {fewest} may be enough; policy.toml asks for "
                f"minimum_parties = {self.minimum_parties}.",
            )

    def _check_sum(self, asked: Asked) -> None:
        _among("policy: aggregate", "aggregates", asked.aggregate, self.aggregates)

    def _check_ids(self, asked: Asked) -> None:
        _among("policy: ids", "telling", asked.telling, self.telling)

    def _check_trust(self, asked: Asked) -> None:
        if asked.on_trust and not self.trusting:
            raise Declining(
                "policy: aggregate",
                f"the promise would rest on the coordinator: {asked.on_trust[0]}. policy.toml says trusting "
                "= false.",
            )

    def _check_cost(self, asked: Asked) -> None:
        if asked.epsilon is None:
            if not self.without_budget:
                raise Declining(
                    "policy: no budget",
                    "nothing would be promised: the plan has no budget, and policy.toml does not say "
                    "without_budget = true.",
                )
            return
        within("policy: epsilon of a run", "max_epsilon_per_run", asked.epsilon, self.max_epsilon_per_run)
        within("policy: epsilon of a run", "max_delta", asked.delta, self.max_delta)
        _among("policy: epsilon of a run", "units", asked.unit, self.units)
        _among("policy: epsilon of a run", "adjacencies", asked.adjacency, self.adjacencies)


T = TypeVar("T")


def _refusals(checks: Iterable[Callable[[T], None]], asked: T) -> Iterator[Declining]:
    for check in checks:
        try:
            check(asked)
        except Declining as refused:
            yield refused


def _check_room(planned: Planned) -> None:
    """Refuse what the ledger beside the data has no room for: it was begun with a budget, and keeps it."""
    if planned.in_all is None or planned.allowed is None:
        return
    if planned.in_all > planned.allowed * (1 + TOLERANCE):
        raise Declining(
            "over budget",
            f"all runs on these data would cost epsilon {planned.in_all:.4g}, and their ledger was begun "
            f"with {planned.allowed:g}, which nothing changes. Ask for less, or bring other data.",
        )


def within(code: str, name: str, value: float, most: float | None) -> None:
    """Refuse a number above its limit, and one that is none."""
    if not (math.isfinite(value) and value >= 0):
        raise Declining(code, f"the plan does not say what {name} limits.")
    if most is not None and value > most * (1 + TOLERANCE):
        raise Declining(code, f"the plan comes to {value:.6g}; policy.toml says {name} = {most:g}.")


def known_recipes() -> tuple[str, ...]:
    """Return the names of all recipes, of ways to survey, and of ways to cluster."""
    from cofactor.recipes.named import classes

    return (*(kind.__name__ for kind in classes().values()), *_SURVEYS, *_CLUSTERINGS)


def _among(code: str, name: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        words = ", ".join(f'"{each}"' for each in allowed)
        raise Declining(code, f'the plan has "{value}"; policy.toml says {name} = [{words}].')


def _words(name: str, given: object, known: Iterable[str]) -> None:
    if not isinstance(given, tuple):
        raise ConfigError(f"{name} must be a list of words.")
    for word in given:
        if word not in known:
            raise ConfigError(
                f"{name} may hold {', '.join(known)}, and has {word!r}.{did_you_mean(word, known)}"
            )


TEMPLATE: Final = """# What this party agrees to, whatever a coordinator asks. No yes lifts a limit.
# See docs/deploy.md. What is left out is as it stands here.

# "by hand": a person says yes or no to every plan. "within limits": what keeps all limits is accepted.
accept = "by hand"

# What all runs on the same data may cost together, and what one may. Needed for "within limits".
# max_epsilon = 4.0
# max_epsilon_per_run = 2.0
max_delta = 1e-5

# Which recipes; left out, a person decides. Needed for "within limits".
# recipes = ["HorizontalMF", "SharedBiases"]

# What may be done: "training", "survey", "clustering".
kinds = ["training"]

# With how many parties at least, this one included.
minimum_parties = 3

# How answers may be added up: "PlainSum", "SecureSum", "EncryptedSum", "SharedSum".
aggregates = ["PlainSum", "SecureSum", "EncryptedSum", "SharedSum"]

# Whether a promise may rest on a coordinator that keeps to the protocol.
trusting = false

# How ids may become known. Epsilon does not cover them: "nothing", "catalogue" (a public list), "psi"
# (users in common are found), "intersection", "union" (every party's are told to all).
telling = ["nothing", "catalogue"]

# Whether anything may be done without a budget: then nothing is promised to anybody.
without_budget = false

# For how many seconds a plan waits for a person.
patience = 3600
"""
"""What `cofactor join new` writes."""
