"""A party's end of the wire: stored before it is sent, and never made twice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.errors import BudgetExceeded, RunError
from cofactor.federation import host as module
from cofactor.federation.books import open_ledger
from cofactor.federation.door import COORDINATOR, Door, RoundLost
from cofactor.federation.halves import Home
from cofactor.federation.host import Host, read_arrays, write_arrays, write_bytes
from cofactor.federation.messages import Letter, Message
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import SecureRandom
from tests.federation.making import BUDGET, Adder, Guess, ItemSums, Off, horizontal

FEDERATION = horizontal(2)
RECIPE = ItemSums().settled(FEDERATION.facts, BUDGET)


class Place:
    """A host that can be started again where it was."""

    def __init__(
        self, folder: Path, *, budget: Budget | None = BUDGET, ledger_budget: Budget = BUDGET
    ) -> None:
        self.folder, self.budget, self.ledger_budget = folder, budget, ledger_budget
        self.participant: Any = None

    def started(self, answer: Callable[[Door], Message] | None = None, *, stored: bool = True) -> Host:
        party = FEDERATION.party("north")
        ledger = None if self.budget is None else open_ledger(party, self.ledger_budget, self.folder)
        door = Door(party="north", ledger=ledger, random=SecureRandom(), run="s")
        schedule = None
        if self.budget is not None:
            schedule = calibrated(RECIPE.schedule(FEDERATION.facts, "user", "north"), self.budget)
        home = Home(party=party, facts=FEDERATION.facts, schedule=schedule, door=door, seed=0)
        self.participant = Adder(RECIPE, home) if answer is None else Scripted(door, answer)
        file = self.folder / "north.npz" if stored else None
        return Host(self.participant, door, session="s", kinds=RECIPE.messages, file=file)

    @property
    def charged(self) -> int:
        return len(Ledger.open(self.folder / "north.ledger").entries)


class Scripted:
    def __init__(self, door: Door, answer: Callable[[Door], Message]) -> None:
        self.door, self.answer = door, answer

    def handle(self, round: int, message: Message) -> Message:  # noqa: ARG002
        return self.answer(self.door)

    def finish(self, message: Message) -> Any:
        return message

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Any) -> None:
        pass


def question(round: int = 1, *, session: str = "s", mean: float = 3.0) -> bytes:
    body = Guess(mean=np.full(5, mean))
    return Letter(session=session, round=round, sender=COORDINATOR, body=body).to_bytes()


def read(data: bytes) -> Letter:
    return Letter.from_bytes(data, RECIPE.messages)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_answer_is_a_letter_in_its_place(place: Place) -> None:
    letter = read(place.started().handle(question(4)))
    assert (letter.session, letter.round, letter.sender, letter.protection) == ("s", 4, "north", "noise")
    assert isinstance(letter.body, Off)


def test_letter_of_another_session_is_refused(place: Place) -> None:
    host = place.started()
    for ask in (host.handle, host.finish):
        with pytest.raises(RunError, match="another session"):
            ask(question(session="other"))
    assert place.charged == 0


def test_rounds_that_are_over_are_refused(place: Place) -> None:
    host = place.started()
    host.handle(question(3))
    for old in (-1, 0, 1, 2):
        with pytest.raises(RunError, match=f"round {old} is over"):
            host.handle(question(old))
    assert place.charged == 1


@pytest.mark.parametrize("round", [0, -1])
def test_rounds_begin_with_one(round: int, place: Place) -> None:
    with pytest.raises(RunError, match="is over"):
        place.started().handle(question(round))


def test_asked_again_a_party_sends_the_same_bytes_and_charges_nothing(place: Place) -> None:
    host = place.started()
    first = host.handle(question(1))
    assert host.handle(question(1)) == first
    assert host.handle(question(1, mean=4.0)) == first
    assert place.started().handle(question(1, mean=1.0)) == first
    assert place.charged == 1


def test_party_goes_on_where_it_was(place: Place) -> None:
    place.started().handle(question(1))
    again = place.started()
    assert place.participant.asked == 1
    again.handle(question(2))
    place.started()
    assert place.participant.asked == 2
    assert place.charged == 2


def test_answer_is_stored_before_it_is_sent(place: Place) -> None:
    reply = place.started().handle(question(1))
    assert read_arrays(place.folder / "north.npz")["reply bytes"].tobytes() == reply


def test_answer_that_cannot_be_stored_is_never_sent(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    host = place.started()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_arrays", full)
    with pytest.raises(OSError, match="No space"):
        host.handle(question(1))
    monkeypatch.undo()
    for each in (host, place.started()):
        with pytest.raises(RoundLost):
            each.handle(question(1))
    assert place.charged == 1


def test_crash_between_charge_and_store_loses_the_round_and_charges_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = place.started()
    monkeypatch.setattr(host, "_keep", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        host.handle(question(1))
    again = place.started()
    with pytest.raises(RoundLost):
        again.handle(question(1))
    assert read(again.handle(question(2))).round == 2
    assert place.charged == 2


def test_exceeded_budget_leaves_no_answer_and_no_state(tmp_path: Path) -> None:
    place = Place(tmp_path, ledger_budget=Budget(epsilon=0.01, delta=1e-6, unit="user"))
    host = place.started()
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            host.handle(question(1))
    assert place.charged == 0
    assert not (tmp_path / "north.npz").exists()


def test_answer_with_numbers_that_did_not_pass_is_refused(place: Place) -> None:
    def sneaking(door: Door) -> Message:
        door.public(np.zeros(5))
        return Off(sums=np.zeros(5))

    with pytest.raises(RunError, match="did not go through the door"):
        place.started(sneaking).handle(question(1))
    assert not (place.folder / "north.npz").exists()


def test_answer_with_plain_numbers_is_refused(place: Place) -> None:
    with pytest.raises(RunError, match="only arrays that went through the door"):
        place.started(lambda door: Guess(mean=door.public(np.zeros(5)), words="hidden")).handle(question(1))


def test_empty_answer_is_public(place: Place) -> None:
    assert place.started(lambda _: Message()).handle(question(1)).count(b'"protection":"public"') == 1


def test_weakest_protection_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path, budget=None)

    def mixed(door: Door) -> Message:
        sums = door.unprotected(np.zeros(5))
        door.public(np.zeros(5))
        return Off(sums=sums)

    assert read(place.started(mixed).handle(question(1))).protection == "nothing"
    assert not (tmp_path / "north.ledger").exists()


def test_file_of_another_session_is_refused(place: Place) -> None:
    place.started().handle(question(1))
    door = Door(party="north", ledger=None, random=SecureRandom(), run="t")
    with pytest.raises(RunError, match="another session"):
        Host(place.participant, door, session="t", kinds=(), file=place.folder / "north.npz")


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04", b"nonsense"])
def test_damaged_file_is_named(damage: bytes, place: Place) -> None:
    (place.folder / "north.npz").write_bytes(damage)
    with pytest.raises(RunError, match=r"north\.npz: cannot be read"):
        place.started()


def test_file_without_an_answer_is_named(place: Place) -> None:
    write_arrays(place.folder / "north.npz", {"asked": np.array(1)})
    with pytest.raises(RunError, match=r"north\.npz: cannot be read"):
        place.started()


def test_party_finishes_on_the_last_letter(place: Place) -> None:
    assert place.started().finish(question(9, mean=2.5)).item_bias.tolist() == [2.5] * 5


def test_arrays_come_back_from_their_file(tmp_path: Path) -> None:
    state = {"a": np.arange(3), "b": np.array(2.5), "items of the north": np.zeros((0, 2), np.float32)}
    write_arrays(tmp_path / "x.npz", state, **{"more words": np.array(json.dumps({}))})
    found = read_arrays(tmp_path / "x.npz")
    assert set(found) == {*state, "more words"}
    for name, array in state.items():
        assert np.array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_objects_are_not_stored(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(tmp_path / "x.npz", {"a": np.array([{}], object)})
    assert not (tmp_path / "x.npz").exists()


def test_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    write_bytes(file, b"old")
    monkeypatch.setattr("os.fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_bytes(file, b"new and longer")
    monkeypatch.undo()
    assert file.read_bytes() == b"old"
    write_bytes(file, b"new")
    assert file.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
