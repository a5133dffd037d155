"""The same recipes between real processes: certificates, sockets, crashes. One warm federation serves all."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from benchmarks.real_parties import RealParties, in_background
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.transcript import Transcript
from cofactor.network.hosting import Hosted
from cofactor.network.jobs import Apps
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF
from tests.network.making import NAMES, training
from tests.network.real import (
    BUDGET,
    Files,
    begun,
    between,
    bring,
    check_as_in_one_process,
    check_books,
    finished,
    rounds_done,
    sources_of,
    written,
)
from tests.network.relay import Relay
from tests.network.waiting import wait_for

GREEDY = Apps(coordinator="tests.network.greedy_app.GreedyCoordinator")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return written(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def parties(files: Files, tmp_path_factory: pytest.TempPathFactory) -> RealParties:
    folder = tmp_path_factory.mktemp("federation")
    return RealParties(folder, sources_of(files[""]), classes=("tests.network.greedy_app.",))


@pytest.fixture(scope="module")
def relay(parties: RealParties) -> Iterator[Relay]:
    with between(parties) as found:
        yield found


@pytest.fixture(scope="module")
def federation(parties: RealParties, relay: Relay) -> Iterator[RealParties]:
    with parties:
        yield parties


def pooled(files: Mapping[str, Path]) -> list[Party]:
    return [Party.from_csv(file, name=name) for name, file in files.items()]


def test_same_model_as_in_one_process_and_nobody_elses_at_the_coordinator(
    federation: RealParties, files: Files
) -> None:
    recipe = HorizontalMF(factors=3, rounds=4, local_steps=2, aggregate=PlainSum())
    bring(federation, files[""])
    hosted = begun(federation, training(recipe))
    finished(federation, hosted)
    here = train(recipe, Federation.horizontal(pooled(files[""])), seed=7)
    check_as_in_one_process(federation, hosted, here)


def test_vertical_parties_train_as_in_one_process(federation: RealParties, files: Files) -> None:
    recipe = VerticalMF(factors=3, rounds=3)
    bring(federation, files["-vertical"])
    hosted = begun(federation, training(recipe))
    finished(federation, hosted)
    here = train(recipe, Federation.vertical(pooled(files["-vertical"])), seed=7)
    check_as_in_one_process(federation, hosted, here)


@pytest.fixture(scope="module")
def greedy(federation: RealParties, relay: Relay, files: Files) -> tuple[Hosted, int]:
    """A private training with secure sums, after which the coordinator asks for one round more."""
    recipe = HorizontalMF(factors=20, rounds=3, local_steps=1, aggregate=SecureSum(dropout=0.0))
    bring(federation, files["-wide"])
    hosted, before = begun(federation, training(recipe, budget=BUDGET)), relay.bytes
    finished(federation, hosted, apps=GREEDY)
    wait_for(lambda: (hosted.folder / "greedy.json").exists())
    return hosted, relay.bytes - before


def test_bytes_on_the_sockets_are_those_of_the_transcript_and_their_frames(
    greedy: tuple[Hosted, int],
) -> None:
    hosted, passed = greedy
    noted = Transcript.open(hosted.folder / "transcript.jsonl").total_bytes
    print(f"transcript {noted:,} bytes, sockets {passed:,}")
    # Beside messages and their frames: what begins a job, and what keeps connections alive.
    assert noted < passed < 1.1 * noted + 3_000_000


def test_coordinator_that_asks_for_one_more_round_is_refused_and_all_books_agree(
    federation: RealParties, greedy: tuple[Hosted, int], files: Files
) -> None:
    hosted, _ = greedy
    told = json.loads((hosted.folder / "greedy.json").read_text())
    assert told["answers"] == []
    assert set(told["missing"]) == set(NAMES)
    assert all("refused: that is more than was agreed on" in why for why in told["missing"].values())
    # The coordinator's copies are from before: ledgers hold no more than they did then.
    check_books(federation, hosted, files["-wide"])


def test_killed_party_and_killed_coordinator_come_back_and_nothing_is_charged_twice(
    federation: RealParties, files: Files
) -> None:
    recipe = HorizontalMF(factors=3, rounds=40, local_steps=2, aggregate=SecureSum(dropout=0.0))
    bring(federation, files[""])
    hosted = begun(federation, training(recipe, budget=BUDGET), ping_every=0.5, ping_patience=2.0)
    thread, found = in_background(lambda: federation.run(hosted))
    wait_for(lambda: rounds_done(hosted) >= 3)
    federation.clients["south"].stop()
    federation.clients["south"].start()
    before = rounds_done(hosted)
    wait_for(lambda: rounds_done(hosted) >= before + 3)
    federation.server.crash()
    assert rounds_done(hosted) < 40
    thread.join(150)
    assert found.get("outcome") == "finished", found
    check_books(federation, hosted, files[""])
