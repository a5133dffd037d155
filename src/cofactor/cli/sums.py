"""From --sum, --dropout and --colluding to how a recipe adds up; and what such a sum needs, in words."""

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cofactor.config import one_of
from cofactor.errors import ConfigError
from cofactor.figures import number_of, readable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cofactor.cli.settings import RecipeWish
    from cofactor.federation.halves import Facts

SUMS = ("plain", "secure", "encrypted", "shared", "ideal")
ABOUT_SUMS = ("sum", "dropout", "colluding", "decrypters", "scheme")
SCHEMES = ("paillier", "paillier-root", "bfv", "ckks", "shared-key")


def with_sum(recipe: Any, about: "RecipeWish", able: "Iterable[str]") -> Any:
    """Return the recipe with the sum that was asked for; `able` names those that add up anything.

    What is not said about a sum that hides its parts stays as the recipe has it, or as the sum usually is.
    """
    from cofactor.recipes.opened_sums import EncryptedSum, OpenedSum, SharedSum
    from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum

    said: dict[str, Any] = {
        name: value for name in ABOUT_SUMS[1:] if (value := getattr(about, name)) is not None
    }
    if about.sum is None and not said:
        return recipe
    one_of(SUMS, sum=about.sum or "plain")
    if not hasattr(recipe, "aggregate"):
        raise ConfigError(
            f"{type(recipe).__name__} adds up nothing that could be hidden. --sum, --dropout, --colluding, "
            f"--decrypters and --scheme go with {', '.join(able)}."
        )
    own: Any = recipe.aggregate
    kinds: dict[str, Any] = {
        "plain": PlainSum,
        "secure": SecureSum,
        "encrypted": EncryptedSum,
        "shared": SharedSum,
        "ideal": IdealSum,
    }
    kind = type(own) if about.sum is None else kinds[about.sum]
    if kind is PlainSum:
        if said:
            words = " and ".join(f"--{name}" for name in said)
            raise ConfigError(
                f"a plain sum hides nothing, and nobody opens it. Leave out {words}, or add --sum secure, "
                "--sum encrypted or --sum shared."
            )
        return replace(recipe, aggregate=kind())
    if "decrypters" in said and not issubclass(kind, OpenedSum):
        raise ConfigError("--decrypters goes with --sum encrypted and --sum shared.")
    if "scheme" in said:
        if kind is not EncryptedSum:
            raise ConfigError("--scheme goes with --sum encrypted.")
        said["scheme"] = _scheme(said["scheme"])
    if kind is type(own):
        return replace(recipe, aggregate=replace(own, **said))
    # Noise that is too much stays where decrypters open sums, so nobody drops out there unless it is said.
    apart = isinstance(own, PlainSum) or issubclass(kind, OpenedSum)
    kept = {} if apart else {"dropout": own.dropout, "colluding": own.colluding}
    return replace(recipe, aggregate=kind(**(kept | said)))


def _scheme(name: str) -> Any:
    """Return how numbers are encrypted, by its name."""
    from cofactor.crypto.lattice import Lattice
    from cofactor.crypto.shared_key import SharedKey
    from cofactor.crypto.threshold import ThresholdPaillier

    one_of(SCHEMES, scheme=name)
    schemes: dict[str, Any] = {
        "paillier": ThresholdPaillier(),
        "paillier-root": ThresholdPaillier(shares="root"),
        "bfv": Lattice(variant="bfv"),
        "ckks": Lattice(variant="ckks"),
        "shared-key": SharedKey(),
    }
    return schemes[name]


def check_sum(recipe: Any, parties: int) -> None:
    """Refuse a sum that so many parties cannot make."""
    aggregate = getattr(recipe, "aggregate", None)
    if aggregate is not None:
        aggregate.layers(parties)
        aggregate.neighbourhood(parties)


def tell_slow(recipe: Any, facts: "Facts") -> None:
    """Say beforehand where opening sums takes long."""
    from cofactor.crypto.threshold import ThresholdPaillier

    scheme = getattr(getattr(recipe, "aggregate", None), "scheme", None)
    if isinstance(scheme, ThresholdPaillier) and scheme.shares == "textbook" and not facts.cohort:
        print(
            "opening sums under threshold Paillier takes decrypters long: seconds to minutes a round. "
            "--sum shared and --scheme paillier-root take less, and rest on other assumptions",
            file=sys.stderr,
        )


@dataclass(frozen=True, kw_only=True)
class SumNeeds:
    """What a sum of which nobody sees the parts needs and costs; public."""

    kind: str
    who: str
    """What the parties are: parties or devices."""
    parties: int
    fewest: int
    """With fewer answers a round's sum is not opened."""
    colluding: int
    """Of so many parties the attacker may know all, and the noise of the others is still enough."""
    simulated: bool
    """Whether the answers lie open to whoever runs it."""
    opened: bool
    """Whether decrypters open it."""
    why_not: tuple[str, ...]
    """Why the guarantee of a run would not hold, if it would not."""
    neighbours: int | None
    """With how many others, whom it chooses, each party shares keys; None where sums are simulated."""
    key_bytes: int | None
    """About how much a party sends and receives of keys and shares in a round, besides numbers."""
    noise: float | None
    """Variance of the noise in a sum of all, relative to what protects; None if no noise is shared."""
    assumptions: tuple[str, ...]
    """What must be so, and how far it is seen to; nothing if no noise is shared."""

    @classmethod
    def of(
        cls, aggregate: Any, parties: int, *, who: str, shared: bool, coins: bool = False
    ) -> "SumNeeds | None":
        """Reckon it for so many parties, that share noise or not; None where every answer is seen.

        Of noise that is made of `coins`, which all parties toss, nothing is taken off again.
        """
        from cofactor.crypto.sum_wire import overhead
        from cofactor.recipes.opened_sums import OpenedSum
        from cofactor.recipes.sums import IdealSum, own_share

        layers, near = aggregate.layers(parties), aggregate.neighbourhood(parties)
        if layers is None:
            return None
        needed = aggregate.assumptions(parties) if shared else ()
        share = 1 / (layers.fewest - layers.colluding) if coins else own_share(aggregate, parties)
        return cls(
            kind=type(aggregate).__name__,
            who=who,
            parties=parties,
            fewest=layers.fewest,
            colluding=layers.colluding,
            simulated=isinstance(aggregate, IdealSum),
            opened=isinstance(aggregate, OpenedSum),
            why_not=aggregate.why_not(parties) if shared else (),
            neighbours=None if near is None else near.chosen,
            key_bytes=None if near is None else overhead(near, len(layers.grid) - 1),
            noise=parties * share if shared else None,
            assumptions=tuple(f"{each.what} ({each.met})" for each in needed),
        )

    def lines(self) -> list[str]:
        """Say it in a few lines."""
        some = "one of them" if self.colluding == 1 else f"{self.colluding:,} of them"
        parts = [
            f"{self.kind} of {self.parties:,} {self.who}: {self.fewest:,} must answer in every round, or its "
            "sum is not opened"
        ]
        if self.noise is not None:
            parts.append(
                f"{some} may collude, so that the sum of all has {self.noise:.3g} times the variance of "
                "noise that is needed"
            )
        if self.neighbours is not None and self.key_bytes is not None:
            others = number_of(self.neighbours, "other")
            few = self.neighbours < self.parties - 1
            choosers = " that it chooses, and with about as many that choose it" if few else ""
            parts.append(
                f"each shares keys with {others}{choosers}, about "
                f"{readable(self.key_bytes)} both ways in each round besides the traffic above"
            )
        if self.opened:
            parts.append(
                "hidden numbers take more bytes than the traffic above counts, and decrypters of whom "
                "several must come together receive everybody's"
            )
        found = ["; ".join(parts), *(f"it rests on this: {each}" for each in self.assumptions)]
        return found + [f"the guarantee of a run would not hold: {each}" for each in self.why_not]
