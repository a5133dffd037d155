"""Crashes in every phase of work between real processes: `make test-net-full` runs it."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.real_parties import RealParties, in_background
from cofactor.federation.verify import verify
from cofactor.network.hosting import Hosted
from cofactor.network.jobs import Apps
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.opened_sums import SharedSum
from cofactor.recipes.sums import SecureSum
from cofactor.recipes.vertical import VerticalMF
from tests.network.halting_app import HALTS
from tests.network.making import NAMES, training
from tests.network.real import BUDGET, Files, begun, bring, check_books, written
from tests.network.waiting import wait_for

pytestmark = pytest.mark.net
HALTING = Apps(coordinator="tests.network.halting_app.HaltingCoordinator")
SECURE = HorizontalMF(factors=3, rounds=8, local_steps=1, aggregate=SecureSum(dropout=0.0))
# Together all phases of a training with secure sums, in their order: a crash within a sum costs its round.
OF_THE_COORDINATOR = ("Propose", "Agree", "asking-Begin", "step-2", "step-4", "Finish")
OF_A_PARTY = ("Tell", "Begin", "step-1", "step-3", "asking-Shared", "Finish")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """New ones for each test, with all of their budget."""
    return written(tmp_path)


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealParties]:
    folder, nothing = tmp_path_factory.mktemp("federation"), dict.fromkeys(NAMES, ())
    with RealParties(folder, nothing, classes=("tests.network.halting_app.",)) as warm:
        yield warm


def crash(federation: RealParties, victim: str) -> None:
    if victim == "the coordinator":
        federation.server.crash()
    elif victim == "a party":
        federation.clients["south"].stop()
        federation.clients["south"].start()
    else:
        for worker in federation.clients["south"].workers:
            os.kill(worker, signal.SIGKILL)


def hit(federation: RealParties, hosted: Hosted, phases: tuple[str, ...], victim: str) -> None:
    """Let the victim crash in each of the phases, once; the work must finish all the same."""
    (hosted.folder / HALTS).write_text(json.dumps(phases))
    thread, found = in_background(lambda: federation.run(hosted, apps=HALTING))
    for phase in phases:
        wait_for((hosted.folder / f"at-{phase}").exists)
        crash(federation, victim)
    thread.join(150)
    assert found.get("outcome") == "finished", found


@pytest.mark.parametrize(
    ("victim", "phases"),
    [("the coordinator", OF_THE_COORDINATOR), ("a party", OF_A_PARTY), ("a party's worker", ("step-2",))],
)
def test_crashes_in_every_phase_lose_nothing_and_charge_nothing_twice(
    federation: RealParties, files: Files, victim: str, phases: tuple[str, ...]
) -> None:
    bring(federation, files[""])
    hosted = begun(federation, training(SECURE, budget=BUDGET), ping_every=0.5, ping_patience=2.0)
    hit(federation, hosted, phases, victim)
    check_books(federation, hosted, files[""])


@pytest.mark.parametrize("victim", ["the coordinator", "a party"])
def test_crash_while_keys_are_dealt_is_survived(federation: RealParties, files: Files, victim: str) -> None:
    bring(federation, files[""])
    recipe = replace(SECURE, aggregate=SharedSum(), rounds=2)
    hosted = begun(federation, training(recipe, budget=BUDGET), ping_every=0.5, ping_patience=2.0)
    hit(federation, hosted, ("DealingPost",), victim)
    check_books(federation, hosted, files[""])


@pytest.mark.parametrize(
    ("victim", "phases"), [("the coordinator", ("SearchReport", "Tell")), ("a party", ("SearchPost",))]
)
def test_crash_while_users_in_common_are_searched_for_is_survived(
    federation: RealParties, files: Files, victim: str, phases: tuple[str, ...]
) -> None:
    bring(federation, files["-vertical"])
    work = training(VerticalMF(factors=3, rounds=2), ids="psi")
    hosted = begun(federation, work, ping_every=0.5, ping_patience=2.0)
    hit(federation, hosted, phases, victim)
    assert verify(hosted.folder / "run").holds
