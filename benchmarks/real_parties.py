"""A coordinator and parties as processes of their own, with real certificates: to measure, and to test."""

import os
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

from cofactor.data.partition import horizontal
from cofactor.data.synthetic import like
from cofactor.federation.flare import Patience
from cofactor.network import kits
from cofactor.network.enrolling import admit, new_party, read_enrolment
from cofactor.network.hosting import Hosted
from cofactor.network.jobs import OUR_APPS, Apps
from cofactor.network.kit_policies import OUR_CLASSES
from cofactor.network.processes import Client, Server
from cofactor.network.proposal import Kind, Proposal
from cofactor.network.site import POLICY, Site
from cofactor.network.sources import PeopleSource, RatingsSource, RecordsSource
from cofactor.network.supervising import Waiting, supervise
from cofactor.progress import Listener, nobody

ROOT = Path(__file__).parents[1]
NAMES = ("north", "south", "west", "east")
POLICY_TEXT = """
accept = "within limits"
max_epsilon = 9.0
max_epsilon_per_run = 8.0
recipes = [
    "HorizontalMF", "VerticalMF", "SecureALS", "SharedBiases", "VerticalTaste", "OnDeviceMF", "SquareWave",
    "SecureTable"
]
kinds = ["training", "survey", "clustering"]
minimum_parties = 2
telling = ["union", "intersection", "catalogue", "psi", "nothing"]
without_budget = true
"""
Source = RatingsSource | PeopleSource | RecordsSource


def free_port() -> int:
    """Return a TCP port that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(eq=False)
class RealParties:
    """One server and a process for each party; they serve one piece of work after the other."""

    folder: Path
    sources: Mapping[str, tuple[Source, ...]]
    policy: str = POLICY_TEXT
    port: int = field(default_factory=free_port)
    classes: tuple[str, ...] = ()
    """What the coordinator's own server may run besides ours."""
    party_classes: tuple[str, ...] = ()
    """What parties may."""

    def __post_init__(self) -> None:
        self.host = self.folder / "host"
        mark = kits.new_host(
            self.host, address="localhost", port=self.port, classes=[*OUR_CLASSES, *self.classes]
        )
        with ThreadPoolExecutor(2) as pool:
            made = list(pool.map(lambda name: self._admitted(name, mark), self.sources))
        self.sites = dict(zip(self.sources, made, strict=True))
        for site in made:
            for other in made:
                if other is not site:
                    site.pins.pin(other.name, other.identity.public)
        environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        self.server = Server(self.host, environment=environment)
        self.clients = {
            name: Client(site.folder, environment=environment) for name, site in self.sites.items()
        }
        self._stack = ExitStack()

    def _admitted(self, name: str, mark: str) -> Site:
        site, request = new_party(self.folder / name)
        signed = admit(self.host, read_enrolment(request))
        kits.install(site.folder, signed, fingerprint=mark, classes=[*OUR_CLASSES, *self.party_classes])
        (site.folder / POLICY).write_text(self.policy)
        site.bringing(*self.sources[name]).write()
        return Site.open(site.folder)

    def reroute(self, port: int) -> None:
        """Let parties reach the server by another port, where something stands between them."""
        for site in self.sites.values():
            path = site.kit / "startup" / "fed_client.json"
            path.write_text(path.read_text().replace(f":{self.port}", f":{port}"))

    def __enter__(self) -> Self:
        self._stack.enter_context(self.server)
        self.server.wait()
        for client in self.clients.values():
            self._stack.enter_context(client)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def proposal(
        self, work: Mapping[str, Any], *, kind: Kind = "training", seed: int = 7, session: str | None = None
    ) -> Proposal:
        """Propose work to all parties, under a new name."""
        return Proposal(
            kind=kind,
            session=session or token_hex(16),
            version=version("cofactor"),
            parties={name: site.identity.public.hex() for name, site in self.sites.items()},
            work=work,
            seed=seed,
        )

    def begin(self, proposal: Proposal, **patience: float) -> Hosted:
        """Keep a proposal at the coordinator's."""
        return Hosted.begin(self.host, proposal, Patience(**patience))

    def run(
        self,
        hosted: Hosted,
        *,
        fewest: int | None = None,
        gather: float = 30.0,
        apps: Apps = OUR_APPS,
        listen: Listener = nobody,
    ) -> Mapping[str, Any]:
        """See a piece of work through with the warm server."""
        see = partial(supervise, server=self.server, apps=apps)
        waiting = Waiting(gather=gather, come=180.0, again=40)
        return hosted.run(fewest=fewest, waiting=waiting, listen=listen, see=see)


def write_files(folder: Path, shape: str = "ml-100k", parties: int = 3) -> dict[str, Path]:
    """Deal synthetic ratings of a shape out to parties, a file for each."""
    folder.mkdir(exist_ok=True)
    found = {}
    for name, part in zip(NAMES[:parties], horizontal(like(shape).ratings, parties), strict=True):
        rows = zip(part.user_ids[part.users], part.item_ids[part.items], part.values, strict=True)
        lines = [f"{user},{item},{rating:g}" for user, item, rating in rows]
        found[name] = folder / f"{name}.csv"
        found[name].write_text("\n".join(["user,item,rating", *lines, ""]))
    return found


def in_background(action: Callable[[], Mapping[str, Any]]) -> tuple[threading.Thread, dict[str, Any]]:
    """Do something beside; its result is there when the thread has ended."""
    found: dict[str, Any] = {}
    thread = threading.Thread(target=lambda: found.update(action()))
    thread.start()
    return thread, found
