"""Real sites with real files and keys, and a channel that brings bytes to their seats."""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.federation.channel import Answers
from cofactor.federation.declining import answers_from
from cofactor.federation.messages import Heading, heading
from cofactor.network.conducting import PROPOSAL, Outcome, conduct
from cofactor.network.proposal import Kind, Proposal
from cofactor.network.seat import Seat
from cofactor.network.site import POLICY, Site
from cofactor.network.sources import RatingsSource
from cofactor.network.training_terms import TrainingWork
from cofactor.privacy.events import Event
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import Random, SecureRandom

NAMES = ("north", "south", "west")
SESSION = "0123456789abcdef"
POLICY_TEXT = """
accept = "within limits"
max_epsilon = 9.0
max_epsilon_per_run = 8.0
recipes = ["HorizontalMF", "VerticalMF", "SecureALS", "SharedBiases", "OnDeviceMF", "VerticalTaste",
  "MultiViewMF"]
kinds = ["training", "survey", "clustering"]
minimum_parties = 2
telling = ["union", "intersection", "catalogue", "psi", "nothing"]
without_budget = true
"""


def rows(place: int, *, users: int = 30, items: int = 12, each: int = 5) -> list[tuple[str, int, int]]:
    """Return ratings of a party's own users."""
    chance = np.random.default_rng(place)
    found = []
    for user in range(users):
        for item in sorted(chance.choice(items, each, replace=False).tolist()):
            found.append((f"u{place}-{user}", int(item) + 1, int(chance.integers(1, 6))))
    return found


def vertical_rows(place: int, *, users: int = 40, items: int = 8) -> list[tuple[str, int, int]]:
    """Return ratings of the same users about a party's own items."""
    chance = np.random.default_rng(place)
    return [
        (f"u{user}", 100 * place + int(item), int(chance.integers(1, 6)))
        for user in range(users)
        for item in sorted(chance.choice(items, 4, replace=False).tolist())
    ]


def write(path: Path, found: list[tuple[str, int, int]]) -> Path:
    lines = ["user,item,rating", *(f"{user},{item},{rating}" for user, item, rating in found)]
    path.write_text("\n".join(lines) + "\n")
    return path


def sites(
    folder: Path,
    *,
    names: tuple[str, ...] = NAMES,
    make: Callable[[int], list[tuple[str, int, int]]] = rows,
    policy: str = POLICY_TEXT,
) -> dict[str, Site]:
    """Make a folder, keys and a file for each party, and let each pin the others."""
    found = {}
    for place, name in enumerate(names):
        site = Site.create(folder / name, name=name)
        file = write(folder / f"{name}.csv", make(place))
        site = site.bringing(RatingsSource(file=str(file), scale="1:5"))
        site.write()
        (site.folder / POLICY).write_text(policy)
        found[name] = site
    for site in found.values():
        for other in found.values():
            if other is not site:
                site.pins.pin(other.name, other.identity.public)
    return {name: Site.open(site.folder) for name, site in found.items()}


def proposal_of(
    known: Mapping[str, Site], work: Mapping[str, Any], *, kind: Kind = "training", session: str = SESSION
) -> Proposal:
    return Proposal(
        kind=kind,
        session=session,
        version=version("cofactor"),
        parties={name: site.identity.public.hex() for name, site in known.items()},
        work=work,
        seed=7,
    )


class Killed(BaseException):
    """The coordinator's process has died: nothing catches it."""


class SeatChannel:
    """Brings bytes to seats, and counts them; what it is told to lose is lost."""

    def __init__(self, seats: Mapping[str, Seat]) -> None:
        self.seats = dict(seats)
        self.parties = tuple(seats)
        self.lose: Callable[[str, int, int | None], bool] = lambda *_: False
        self.before: Callable[[str, Heading], None] = lambda *_: None
        """Called before a letter is brought to a party: it may restart it, or kill the coordinator."""
        self.after: Callable[[str, Heading], None] = lambda *_: None
        """Called when the party has answered, and nobody has heard it."""
        self.bytes = 0
        self.kinds: list[tuple[int, str]] = []
        self.letters: dict[tuple[str, str, int], bytes] = {}
        """By party, kind and round, the latest letter."""
        self.answers: list[tuple[str, Heading, bytes]] = []
        """All that parties ever answered, with the heading of each answer."""

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        replies: dict[str, bytes | str] = {}
        for party, data in letters.items():
            if self.lose(party, round, step):
                replies[party] = "was not reached"
                continue
            replies[party] = self.bring(party, data)
        return answers_from(replies)

    def bring(self, party: str, data: bytes) -> bytes:
        """Bring one letter to one party."""
        head = heading(data)
        self.kinds.append((head.round, head.kind))
        self.letters[party, head.kind, head.round] = data
        self.before(party, head)
        answer = self.seats[party].handle(data)
        self.bytes += len(data) + len(answer)
        self.answers.append((party, heading(answer), answer))
        self.after(party, head)
        return answer

    def restart(self, party: str, site: Site) -> None:
        """End a party's process, and start another."""
        self.seats[party].close()
        self.seats[party] = Seat(site)


def channel_to(known: Mapping[str, Site], randoms: Mapping[str, Random] | None = None) -> SeatChannel:
    chance = randoms or {}
    return SeatChannel(
        {name: Seat(site, random=chance.get(name, SecureRandom())) for name, site in known.items()}
    )


def entries(site: Site) -> list[tuple[str, Event]]:
    """Return what a party's ledger holds: run and event of each release."""
    assert site.ratings is not None
    path = Path(f"{site.ratings.file}.ledger")
    if not path.exists():
        return []
    return [(each.run, each.event) for each in Ledger.open(path).entries if each.event is not None]


def conducted(folder: Path, proposal: Proposal, channel: SeatChannel) -> Outcome:
    folder.mkdir(exist_ok=True)
    (folder / PROPOSAL).write_text(proposal.as_json())
    return conduct(folder, channel)


def training(recipe: Any, **settings: Any) -> dict[str, Any]:
    return TrainingWork(**{"split": recipe.split, "recipe": recipe, "scale": (1.0, 5.0), **settings}).table()
