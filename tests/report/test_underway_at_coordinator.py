"""The training of a network, followed by the files of its session at the coordinator."""

import json
from pathlib import Path

import pytest

from cofactor.errors import RunError
from cofactor.report.live_part import live_state
from cofactor.report.underway import Watch
from tests.report.test_underway import words
from tests.report.watching import PARTIES, AtCoordinator


@pytest.fixture
def network(tmp_path: Path) -> AtCoordinator:
    """The same training at the coordinator of a network."""
    return AtCoordinator(tmp_path / "host" / "0123456789abcdef")


def test_a_network_waits_for_a_yes_and_then_for_answers(network: AtCoordinator) -> None:
    watch = Watch(network.begin().run)
    (network.place / "waiting").write_text("south, west")
    found = watch.look()
    assert "Waiting for a yes: south, west." in words(found)
    assert found.last_round == dict.fromkeys(PARTIES, 0)
    assert "agreeing" in words(found)
    network.rounds(3)
    found = watch.look()
    assert (found.done, found.waiting, found.stoppable) == (3, "", True)
    assert found.answered == dict.fromkeys(PARTIES, 3)  # to agree is no round


@pytest.mark.parametrize(
    ("outcome", "tone", "stoppable"), [("paused", "doubt", True), ("refused", "bad", False)]
)
def test_a_network_says_why_it_came_to_rest(
    outcome: str, tone: str, stoppable: bool, network: AtCoordinator
) -> None:
    network.begin().rounds(3)
    (network.place / "outcome.json").write_text(json.dumps({"outcome": outcome, "words": "west is away."}))
    found = Watch(network.run).look()
    assert (live_state(found), found.stoppable) == ((outcome, tone), stoppable)
    assert "The coordinator says: west is away." in words(found)


def test_the_run_of_a_network_lies_within_its_session(network: AtCoordinator) -> None:
    watch = Watch(network.begin().rounds(20).run)
    assert watch.finished is None
    (network.run / "run").mkdir()
    (network.run / "run" / "run.json").write_text("{}")
    assert watch.finished == network.run / "run"


@pytest.mark.parametrize("kind", ["survey", "clustering"])
def test_surveys_and_clusterings_cannot_be_stopped(kind: str, tmp_path: Path) -> None:
    network = AtCoordinator(tmp_path / "0123456789abcdef", kind=kind)
    network.begin().rounds(1)
    watch = Watch(network.run)
    assert not watch.look().stoppable
    with pytest.raises(RunError, match=f"A {kind} has no rounds"):
        watch.wish_to_stop()
    assert not (network.place / "stop").exists()
