"""The last scene of `cofactor demo`: a server reads ratings off plain gradients, and cannot any more."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli.audit_text import COLOURS, shown_verdict
from cofactor.cli.interrupt import interrupted_between_steps
from cofactor.cli.outcome import as_object, size_of
from cofactor.cli.text import ProgressLine, print_line

if TYPE_CHECKING:
    from cofactor.attacks.result import Audit
    from cofactor.federation.federation import Federation
    from cofactor.federation.run import Run

PHONES, RATINGS, EPSILON, SEED = 120, 2_400, 4.0, 7
ROLE, ATTACK = "coordinator", "reconstruction"
STORY = "Phones that keep their ratings and send gradients, to a server that tries to read ratings off them."


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """A training of phones, and what the server made of it."""

    run: "Run"
    audit: "Audit"
    folder: Path

    def as_object(self) -> dict[str, Any]:
        """Return what programs are told."""
        return as_object(self.run.facts(), self.folder) | {"audit": self.audit.as_json()}


def folders(out: Path) -> dict[str, Path]:
    """Return where the two runs go, by whether they are private."""
    return {name: out / f"phones-{name}" for name in ("plain", "private")}


def attacked(places: Mapping[str, Path], *, quiet: bool) -> dict[str, Attacked]:
    """Let phones train twice, attack what the server saw, and keep all of it."""
    phones = made()
    return {
        "plain": _attacked(phones, places["plain"], private=False, quiet=quiet),
        "private": _attacked(phones, places["private"], private=True, quiet=quiet),
    }


def tell(found: Mapping[str, Attacked]) -> None:
    """Print what came of it."""
    plain, private = found["plain"], found["private"]
    print_line(f"\n{STORY}", "bold")
    print_line(f"{size_of(plain.run.facts())}; {plain.run.recipe['kind']}")
    print_line("One round of gradients, as they are:")
    _tell_verdict(plain.audit)
    print_line(f"The same, added up before anybody sees them, with noise for epsilon {EPSILON:g}:")
    _tell_verdict(private.audit)
    print_line(f"Saved in {plain.folder} and {private.folder}.")


def made() -> "Federation":
    """Make ratings up, and give each user's to a phone."""
    from cofactor.data.partition import horizontal
    from cofactor.data.synthetic import Shape, make
    from cofactor.federation.federation import Federation
    from cofactor.federation.party import Party

    ratings = make(Shape(users=PHONES, items=100, ratings=RATINGS, minimum=8), seed=SEED).ratings
    users = horizontal(ratings, PHONES, seed=SEED)
    phones = [Party(name=f"phone-{number}", ratings=own) for number, own in enumerate(users, 1)]
    return Federation.on_device(phones, scale=ratings.scale, ratings_each=RATINGS // PHONES)


def _attacked(phones: "Federation", folder: Path, *, private: bool, quiet: bool) -> Attacked:
    from cofactor.attacks.audit import audit
    from cofactor.privacy.budget import Budget
    from cofactor.recipes.multiview import MultiViewMF
    from cofactor.recipes.opened_sums import SharedSum
    from cofactor.recipes.sums import PlainSum
    from cofactor.recipes.train import train

    budget = Budget(epsilon=EPSILON, delta=1e-6, unit="user") if private else None
    recipe = MultiViewMF(rounds=2, aggregate=SharedSum() if private else PlainSum())
    with interrupted_between_steps(ProgressLine(quiet=quiet)) as progress:
        run = train(recipe, phones, budget=budget, seed=SEED, progress=progress, capture=ROLE)
        found = audit(run, ATTACK, seen_by=ROLE, progress=progress)
    run.save(folder, overwrite=True)
    found.save(folder)
    return Attacked(run=run, audit=found, folder=folder)


def _tell_verdict(audit: "Audit") -> None:
    print_line(f"  {shown_verdict(audit.verdict)}: {audit.headline}", COLOURS[audit.verdict])
