"""Who answers, who does not, and why."""

from typing import Any

import numpy as np
import pytest

from cofactor.errors import ConfigError, Refused, RunError, TooFew
from cofactor.federation.channel import Failures, InProcess
from cofactor.federation.door import RoundLost
from cofactor.randomness import InsecureRandom
from tests.federation.making import Adder, horizontal, trained


class Echo:
    """Stands for a host."""

    def __init__(self, party: str, error: Exception | None = None) -> None:
        self.party, self.error, self.heard = party, error, 0

    def handle(self, data: bytes) -> bytes:
        self.heard += 1
        if self.error is not None:
            raise self.error
        return data + self.party.encode()


def channel(*hosts: Echo, **settings: Any) -> InProcess:
    return InProcess({host.party: host for host in hosts}, **settings)  # type: ignore[misc]


def to_all(made: InProcess) -> dict[str, bytes]:
    return dict.fromkeys(made.parties, b"?")


def test_everybody_gets_the_same_bytes_and_answers_for_itself() -> None:
    made = channel(Echo("a"), Echo("b"), Echo("c"))
    answers = made.ask(1, to_all(made))
    made.close()
    assert answers.by_party == {"a": b"?a", "b": b"?b", "c": b"?c"}
    assert not answers.missing
    assert made.parties == ("a", "b", "c")


def test_only_those_are_asked_who_have_a_letter_each_its_own() -> None:
    hosts = Echo("a"), Echo("b"), Echo("c")
    made = channel(*hosts)
    answers = made.ask(1, {"a": b"1", "c": b"2"}, 3)
    made.close()
    assert answers.by_party == {"a": b"1a", "c": b"2c"}
    assert not answers.missing
    assert [host.heard for host in hosts] == [1, 0, 1]


# Steps of a secure sum: two of keys, one with the answer, two more.
@pytest.mark.parametrize(
    ("failures", "answered", "heard"),
    [
        (Failures(absent=frozenset({("a", 1)})), [], 0),
        (Failures(lost=frozenset({("a", 1)})), [0, 1], 5),
        (Failures(delays={("a", 1): 61.0}), [0, 1], 5),
        (Failures(silent=frozenset({("a", 1)})), [0, 1, 2], 3),
        (Failures(silent=frozenset({("a", 2)})), [0, 1, 2, 3, 4], 5),
    ],
    ids=["absent", "lost", "late", "silent", "later"],
)
def test_failures_come_where_the_answer_of_a_sum_is_sent(
    failures: Failures, answered: list[int], heard: int
) -> None:
    host = Echo("a")
    made = channel(host, failures=failures)
    found = [step for step in range(5) if made.ask(1, to_all(made), step).by_party]
    made.close()
    assert (found, host.heard) == (answered, heard)


def test_silence_is_about_sums_only() -> None:
    made = channel(Echo("a"), failures=Failures(silent=frozenset({("a", 1)})))
    assert made.ask(1, to_all(made)).by_party
    made.close()


def test_party_that_stops_because_too_few_are_left_is_missing_and_not_lost() -> None:
    made = channel(Echo("a"), Echo("b", TooFew("1 of 2 is left")))
    answers = made.ask(1, to_all(made), 3)
    made.close()
    assert (answers.missing, answers.lost) == ({"b": "1 of 2 is left"}, frozenset())


def test_absent_party_computes_nothing_and_lost_answer_was_made() -> None:
    hosts = Echo("a"), Echo("b"), Echo("c"), Echo("d")
    failures = Failures(
        absent=frozenset({("a", 1)}), lost=frozenset({("b", 1)}), delays={("c", 1): 61.0, ("d", 1): 59.0}
    )
    made = channel(*hosts, failures=failures)
    answers = made.ask(1, to_all(made))
    assert answers.by_party == {"d": b"?d"}
    assert answers.missing == {
        "a": "did not get the question",
        "b": "its answer was lost",
        "c": "answered after 61 s",
    }
    assert not answers.lost
    assert [host.heard for host in hosts] == [0, 1, 1, 1]
    assert set(made.ask(2, to_all(made)).by_party) == {"a", "b", "c", "d"}
    made.close()


def test_round_that_a_crash_took_is_told_from_one_that_is_late() -> None:
    made = channel(Echo("a"), Echo("b", RoundLost("gone")))
    answers = made.ask(1, to_all(made))
    made.close()
    assert answers.missing == {"b": "gone"}
    assert answers.lost == {"b"}


def test_all_may_be_missing() -> None:
    made = channel(Echo("a"), Echo("b"), failures=Failures(absent=frozenset({("a", 1), ("b", 1)})))
    answers = made.ask(1, to_all(made))
    made.close()
    assert not answers.by_party
    assert set(answers.missing) == {"a", "b"}


@pytest.mark.parametrize("error", [RunError("broken"), ZeroDivisionError("broken"), Refused("broken")])
def test_error_at_a_party_is_not_taken_for_silence(error: Exception) -> None:
    made = channel(Echo("a"), Echo("b", error))
    with pytest.raises(type(error), match="broken"):
        made.ask(1, to_all(made))
    made.close()


def test_patience_is_positive() -> None:
    with pytest.raises(ConfigError, match="patience must be greater than 0"):
        Failures(patience=0.0)


def test_number_of_threads_does_not_change_what_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    together = trained().model
    init = InProcess.__init__
    monkeypatch.setattr(
        InProcess, "__init__", lambda self, hosts, **given: init(self, hosts, threads=1, **given)
    )
    one_by_one = trained().model
    other_noise = trained(random=InsecureRandom(6)).model
    assert together is not None
    assert one_by_one is not None
    assert other_noise is not None
    assert np.array_equal(together.item_bias, one_by_one.item_bias)
    assert not np.array_equal(together.item_bias, other_noise.item_bias)


def test_missing_parties_are_left_out_of_their_round_and_told() -> None:
    failures = Failures(absent=frozenset({("north", 2)}), lost=frozenset({("south", 3)}))
    run = trained(failures=failures)
    notes = [event.note for event in run.rounds]
    assert "3/3 parties" in notes[0]
    assert "2/3 parties" in notes[1]
    assert "north: did not get the question" in notes[1]
    assert "south: its answer was lost" in notes[2]
    assert [event.numbers["answered"] for event in run.rounds] == [3.0, 2.0, 2.0]


def test_lost_answer_is_charged_and_absent_party_is_not() -> None:
    failures = Failures(absent=frozenset({("north", 2)}), lost=frozenset({("south", 3)}))
    run = trained(failures=failures)
    assert run.guarantee.releases == 8
    assert run.together is not None
    assert run.together.parties["north"].epsilon is not None
    assert run.together.parties["south"].epsilon is not None
    assert run.together.parties["north"].epsilon < run.together.parties["south"].epsilon


def test_training_goes_on_after_a_round_in_which_nobody_answered() -> None:
    everybody = frozenset((party, 2) for party in ("north", "south", "west"))
    run = trained(failures=Failures(absent=everybody))
    assert run.guarantee.releases == 6
    assert run.model is not None
    assert [event.numbers["answered"] for event in run.rounds] == [3.0, 0.0, 3.0]


def test_error_of_a_participant_surfaces_from_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Adder, *_: Any) -> Any:
        raise RunError(f"{self.home.party.name} is broken.")

    monkeypatch.setattr(Adder, "handle", broken)
    with pytest.raises(RunError, match="is broken"):
        trained(federation=horizontal(2))
