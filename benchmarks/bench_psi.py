"""Who is common to 100,000 and 100,000 ids, beside the library that does the arithmetic, called by itself.

The library sends a filter (GCS, false matches with probability 1e-9) where we send whole points, and tells
the server nothing; ours tells it who is common, and its messages carry codes. Ids are text, half of them
common. A plain intersection of sets, which shows all ids, is the floor.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.bench import Row, cpu_best, faster
from cofactor.crypto.psi import IntersectionClient, IntersectionServer, Terms, fresh_salt, normalised

COUNT = 100_000
FALSE_MATCH = 1e-9
PHASES = ("setup", "request", "answer", "common")


class Clock:
    """CPU seconds by phase, and bytes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.bytes = 0

    def timed(self, phase: str, call: Callable[[], Any]) -> Any:
        """Call, and note how long it took and how many bytes came out."""
        start = time.process_time()
        made = call()
        self.seconds[phase] = time.process_time() - start
        self.bytes += len(made) if isinstance(made, bytes) else 0
        return made

    @property
    def whole(self) -> float:
        """What both sides take together."""
        return sum(self.seconds.values())


def rows() -> list[Row]:
    held, asked = (
        [f"user-{at}@example.org" for at in range(start, start + COUNT)] for start in (0, COUNT // 2)
    )
    ours, peer = _ours(held, asked), _library(held, asked)
    floor = cpu_best(lambda: set(held) & set(asked), 3)
    name, library = f"psi {COUNT:,} x {COUNT:,}", "openmined.psi, GCS"
    parts = [
        faster(f"{name}: {phase}", ours=ours.seconds[phase], peer=peer.seconds[phase], peer_name=library)
        for phase in PHASES
    ]
    return [
        *parts,
        faster(f"{name}: both sides", ours=ours.whole, peer=peer.whole, peer_name=library),
        Row(
            f"{name}: messages", 1e-6 * ours.bytes, 1e-6 * peer.bytes, library, peer.bytes / ours.bytes, "MB"
        ),
        faster(f"{name}: beside no privacy", ours=ours.whole, peer=floor, peer_name="set, ids shown"),
    ]


def _ours(held: Sequence[str], asked: Sequence[str]) -> Clock:
    clock, terms = Clock(), Terms(salt=fresh_salt())
    server, client = clock.timed(
        "hash",
        lambda: (IntersectionServer(normalised(held), terms), IntersectionClient(normalised(asked), terms)),
    )
    setup = clock.timed("setup", server.setup)
    request = clock.timed("request", client.request)
    answer = clock.timed("answer", lambda: server.answer(request))
    found = clock.timed("common", lambda: client.common(setup, answer))
    told = clock.timed("tell", lambda: client.tell(found))
    clock.timed("told", lambda: server.told(told))
    _check(found)
    return clock


def _library(held: Sequence[str], asked: Sequence[str]) -> Clock:
    import private_set_intersection.python as library

    clock, filters = Clock(), library.DataStructure.GCS
    server, client = library.server.CreateWithNewKey(True), library.client.CreateWithNewKey(True)
    setup = clock.timed(
        "setup",
        lambda: server.CreateSetupMessage(FALSE_MATCH, len(asked), held, filters).SerializeToString(),
    )
    request = clock.timed("request", lambda: client.CreateRequest(asked).SerializeToString())
    read = library.Request.FromString
    answer = clock.timed("answer", lambda: server.ProcessRequest(read(request)).SerializeToString())
    found = clock.timed(
        "common",
        lambda: client.GetIntersection(
            library.ServerSetup.FromString(setup), library.Response.FromString(answer)
        ),
    )
    _check(found)
    return clock


def _check(found: Sequence[int]) -> None:
    if sorted(found) != list(range(COUNT // 2)):
        raise RuntimeError("somebody was missed, or found who is not common")
