"""What tests of real parties share: files, the apps of their coordinators, and comparisons."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.books import compared
from benchmarks.real_parties import RealParties
from cofactor.federation.run import Run
from cofactor.network.hosting import Hosted
from cofactor.network.sources import RatingsSource
from cofactor.privacy.budget import Budget
from tests.network.making import NAMES, rows, vertical_rows, write
from tests.network.relay import Relay

BUDGET = Budget(epsilon=4.0, delta=1e-5, unit="user")
Files = Mapping[str, Mapping[str, Path]]
"""By kind and party."""
ARRAYS = ("item_bias", "item_vectors", "user_bias", "user_vectors")


def written(folder: Path) -> Files:
    """Write ratings of three kinds: of own users, of common users, and of many items."""
    kinds = {"": rows, "-vertical": vertical_rows, "-wide": _wide}
    return {
        kind: {name: write(folder / f"{name}{kind}.csv", make(place)) for place, name in enumerate(NAMES)}
        for kind, make in kinds.items()
    }


def _wide(place: int) -> list[tuple[str, int, int]]:
    return rows(place, users=60, items=3000, each=40)


def sources_of(files: Mapping[str, Path]) -> dict[str, tuple[RatingsSource]]:
    """Return what each party brings."""
    return {name: (RatingsSource(file=str(file), scale="1:5"),) for name, file in files.items()}


@contextmanager
def between(parties: RealParties) -> Iterator[Relay]:
    """Stand between the parties and their server, and count bytes."""
    with Relay(parties.port) as relay:
        parties.reroute(relay.port)
        yield relay


def bring(federation: RealParties, files: Mapping[str, Path]) -> None:
    """Let every party bring its file."""
    for name, sources in sources_of(files).items():
        federation.sites[name].bringing(*sources).write()


def begun(federation: RealParties, work: Mapping[str, Any], **patience: float) -> Hosted:
    """Propose a training to all parties."""
    return federation.begin(federation.proposal(work), **patience)


def finished(federation: RealParties, hosted: Hosted, **how: Any) -> Run:
    """See it through to its end, and return the coordinator's run."""
    outcome = federation.run(hosted, **how)
    assert outcome["outcome"] == "finished", outcome
    return Run.load(hosted.folder / "run")


def check_as_in_one_process(federation: RealParties, hosted: Hosted, here: Run, within: float = 1e-6) -> None:
    """Compare all models with those of a simulation; the coordinator has nobody's own."""
    there = Run.load(hosted.folder / "run")
    assert not there.homes
    if here.model is not None:
        _check_same(there.model, here.model, within)
    for name in NAMES:
        own = Run.load(federation.folder / name / "sessions" / hosted.proposal.session / "run")
        assert set(own.homes) == {name}
        _check_same(own.homes[name], here.homes[name], within)


def _check_same(one: Any, other: Any, within: float) -> None:
    for array in ARRAYS:
        np.testing.assert_allclose(getattr(one, array), getattr(other, array), rtol=0, atol=within)


def check_books(federation: RealParties, hosted: Hosted, files: Mapping[str, Path]) -> None:
    """Compare ledgers, transcripts, folders and the promise."""
    lines, wrong = compared(federation, hosted, files)
    assert not wrong, lines


def rounds_done(hosted: Hosted) -> int:
    """Return how many rounds the coordinator has finished."""
    file = hosted.folder / "events.jsonl"
    return len(file.read_text().splitlines()) if file.exists() else 0
