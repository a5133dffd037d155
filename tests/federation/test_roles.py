"""Those who take part and hold no ratings: asked in every round, before the parties, and never in the way."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.errors import ConfigError, RunError
from cofactor.federation.channel import Failures
from cofactor.federation.door import COORDINATOR, Door
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts, State
from cofactor.federation.messages import Message
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.transcript import Transcript
from cofactor.federation.verify import verify
from cofactor.privacy.ledger import Ledger
from cofactor.recipes.opened_sums import SharedSum
from cofactor.recipes.sums import PlainSum
from tests.federation.crashing import Killed
from tests.federation.forging import Facts as Lines
from tests.federation.forging import change_facts, failed, forge_transcript
from tests.federation.making import Averager, Guess, ItemSums, Off, OffInAll, ratings, trained

SERVER = "item server"


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights(Message):
    """What the server says."""

    weights: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class WithServer(ItemSums):
    """The toy, with a server that counts how often it was asked."""

    messages: ClassVar[tuple[type[Message], ...]] = (Guess, Off, OffInAll, Weights)

    public: bool = True

    def roles(self, facts: Facts) -> tuple[str, ...]:  # noqa: ARG002
        return (SERVER,)

    def role(self, name: str, facts: Facts, door: Door, seed: int) -> "Server":  # noqa: ARG002
        return Server(self, door)

    def coordinator(self, facts: Facts, seed: int) -> "AsksServer":  # noqa: ARG002
        return AsksServer(self, facts)


class Server:
    def __init__(self, recipe: WithServer, door: Door) -> None:
        self.recipe, self.door, self.asked = recipe, door, 0

    def handle(self, round: int, message: Message) -> Message:  # noqa: ARG002
        self.asked += 1
        out = self.door.public if self.recipe.public else self.door.unprotected
        return Weights(weights=out(np.full(1, float(self.asked))))

    def state(self) -> State:
        return {"asked": np.array(self.asked)}

    def restore(self, state: State) -> None:
        self.asked = int(state["asked"])


class AsksServer(Averager):
    roles = (SERVER,)
    kept: ClassVar[list["AsksServer"]] = []

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.heard: list[tuple[int, float]] = []
        self.order: list[str] = []
        self.kept.append(self)

    def ask(self, round: int) -> Message:
        self.order.append(f"parties {round}")
        return super().ask(round)

    def ask_role(self, role: str, round: int) -> Message:
        self.order.append(f"{role} {round}")
        return Guess(mean=self.mean, words="weights?")

    def take_role(self, role: str, round: int, message: Message) -> None:
        assert role == SERVER
        self.heard.append((round, float(message.arrays["weights"][0])))


@pytest.fixture(autouse=True)
def unreckoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "_within", lambda *_: True)
    AsksServer.kept.clear()


def last() -> AsksServer:
    return AsksServer.kept[-1]


@pytest.mark.parametrize("aggregate", [PlainSum(), SharedSum()])
def test_server_is_asked_in_every_round_before_the_parties(aggregate: Any) -> None:
    run = trained(WithServer(aggregate=aggregate))
    assert last().order == [f"{who} {k}" for k in (1, 2, 3) for who in (SERVER, "parties")]
    assert last().heard == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert run.together is not None
    assert run.together.roles == (SERVER,)
    assert SERVER not in run.together.parties
    assert [event.numbers["answered"] for event in run.rounds] == [3.0] * 3


def lines(run: Run) -> list[Mapping[str, Any]]:
    assert run.together is not None
    return [json.loads(line) for line in run.together.transcript.splitlines()[1:]]


def test_transcript_names_the_server_and_its_bytes_are_counted() -> None:
    run = trained(WithServer())
    sent = lines(run)
    own = [each for each in sent if each["sender"] == SERVER]
    assert [(each["round"], each["receiver"], each["protection"]) for each in own] == [
        (k, COORDINATOR, "public") for k in (1, 2, 3)
    ]
    assert [each["round"] for each in sent if each["receiver"] == SERVER] == [1, 2, 3]
    assert run.together is not None
    assert run.together.traffic == sum(each["bytes"] for each in sent)


@pytest.mark.parametrize("kind", ["absent", "lost"])
def test_server_that_does_not_answer_is_not_taken_and_no_party_is_missing(kind: str) -> None:
    failures: Any = {kind: frozenset({(SERVER, 2)})}
    run = trained(WithServer(), failures=Failures(**failures))
    assert [round for round, _ in last().heard] == [1, 3]
    assert [event.numbers["answered"] for event in run.rounds] == [3.0] * 3


def test_model_is_that_of_the_parties_alone() -> None:
    models = [trained(recipe).model for recipe in (WithServer(), ItemSums())]
    assert models[0] is not None
    assert models[1] is not None
    np.testing.assert_array_equal(models[0].item_bias, models[1].item_bias)


def test_run_with_a_server_is_borne_out(tmp_path: Path) -> None:
    folder = trained(WithServer()).save(tmp_path / "run")
    assert not failed(verify(folder))
    loaded = Run.load(folder)
    assert loaded.together is not None
    assert loaded.together.roles == (SERVER,)


@pytest.mark.parametrize("budget", [True, False])
def test_server_that_sends_something_that_is_not_public_is_found_out(budget: bool, tmp_path: Path) -> None:
    run = trained(WithServer(public=False), **({} if budget else {"budget": None}))
    wrong = failed(verify(run.save(tmp_path / "run")))
    assert (
        "item server, round 1: it holds no ratings, and sent something that is not public" in wrong["answers"]
    )


def test_server_that_the_run_does_not_know_is_found_out(tmp_path: Path) -> None:
    folder = trained(WithServer()).save(tmp_path / "run")
    change_facts(folder, lambda facts: facts["together"].update(roles=[]))
    assert "there was no such party or round" in failed(verify(folder))["answers"]


def test_server_that_answers_twice_differently_is_found_out(tmp_path: Path) -> None:
    folder = trained(WithServer()).save(tmp_path / "run")

    def twice(sent: list[Lines]) -> None:
        first = next(line for line in sent if line["sender"] == SERVER)
        sent.append({**first, "digest": "0" * 64})

    forge_transcript(folder, twice)
    assert "two different answers left the party" in failed(verify(folder))["answers"]


def test_no_party_has_the_servers_name() -> None:
    names = ("north", SERVER)
    federation = Federation.horizontal([Party(name=each, ratings=ratings(k)) for k, each in enumerate(names)])
    with pytest.raises(ConfigError, match="no party may be called 'item server'"):
        trained(WithServer(), federation)
    trained(ItemSums(), federation)


def test_server_goes_on_after_a_crash_and_says_the_same_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: AsksServer, round: int) -> Message:
        if round == 2:
            raise Killed
        return Guess(mean=self.mean)

    monkeypatch.setattr("os.fsync", lambda _: None)
    with monkeypatch.context() as patch:
        patch.setattr(AsksServer, "ask", killed)
        with pytest.raises(Killed):
            trained(WithServer(), folder=tmp_path)
    assert last().heard == [(1, 1.0), (2, 2.0)]
    trained(WithServer(), folder=tmp_path)
    assert last().heard == [(2, 2.0), (3, 3.0)]
    own = [each for each in Transcript.open(tmp_path / "transcript.jsonl").sent if each.sender == SERVER]
    assert [each.round for each in own] == [1, 2, 2, 3]
    assert own[1].digest == own[2].digest


def test_server_begins_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    def summed(self: Server, round: int, message: Message) -> Message:
        return OffInAll(hundredths=self.door.public(np.zeros(5, np.int64), largest_sum=9))

    def seen(self: AsksServer, role: str, round: int, message: Message) -> None:
        assert isinstance(message, OffInAll)

    monkeypatch.setattr(Server, "handle", summed)
    monkeypatch.setattr(AsksServer, "take_role", seen)
    trained(WithServer(aggregate=SharedSum()))  # what it sends is seen, and is in no sum


def test_error_at_the_server_ends_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(self: Server, round: int, message: Message) -> Message:
        return Weights(weights=np.zeros(1))

    monkeypatch.setattr(Server, "handle", bare)
    with pytest.raises(
        RunError, match="item server: an answer holds numbers that did not go through the door"
    ):
        trained(WithServer())
