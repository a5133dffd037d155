"""Who saw what, sealed."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.errors import RunError
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.federation import Federation
from cofactor.federation.transcript import Transcript
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from tests.federation.making import BUDGET, ItemSums, parties, trained


def filled(path: Path | None) -> Transcript:
    transcript = Transcript.create(path, session="s")
    ask = {"round": 1, "sender": COORDINATOR, "kind": "Guess", "protection": "released before"}
    transcript.note(b"question", receivers=["north", "south"], **ask)  # type: ignore[arg-type]
    for party in ("north", "south"):
        transcript.note(
            party.encode(), round=1, sender=party, receivers=[COORDINATOR], kind="Off", protection="noise"
        )
    return transcript


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "t.jsonl"
    filled(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bad") / "t.jsonl"


def test_every_receiver_of_a_message_has_a_line() -> None:
    sent = filled(None).sent
    assert [(each.sender, each.receiver, each.bytes) for each in sent] == [
        (COORDINATOR, "north", 8),
        (COORDINATOR, "south", 8),
        ("north", COORDINATOR, 5),
        ("south", COORDINATOR, 5),
    ]
    assert sent[0].digest == sent[1].digest == sha256(b"question").hexdigest()


def test_bytes_are_those_of_the_messages() -> None:
    transcript = filled(None)
    assert transcript.total_bytes == 8 + 8 + 5 + 5
    assert transcript.bytes_by_sender()["north"] == 5
    assert transcript.bytes_by_sender()[COORDINATOR] == 16
    assert transcript.bytes_by_sender()["west"] == 0


def test_transcript_comes_back_as_it_was(tmp_path: Path) -> None:
    first = filled(tmp_path / "t.jsonl")
    again = Transcript.open(tmp_path / "t.jsonl")
    assert again.sent == first.sent
    assert (again.session, again.count, again.head) == ("s", 5, first.head)
    assert again.content() == first.content() == (tmp_path / "t.jsonl").read_bytes()


def test_memory_and_file_hold_the_same(good: bytes) -> None:
    assert filled(None).content() == good


def test_no_message_is_in_the_file(good: bytes) -> None:
    assert b"question" not in good


@given(position=st.integers(0, 10_000), other=st.integers(1, 255))
def test_any_changed_byte_is_noticed(position: int, other: int, good: bytes, path: Path) -> None:
    bad = bytearray(good)
    bad[position % len(good)] ^= other
    path.write_bytes(bad)
    with pytest.raises(RunError, match="changed or cut"):
        Transcript.open(path)


@pytest.mark.parametrize(
    "order", [(0, 2, 1, 3, 4), (0, 1, 2, 4), (1, 2, 3, 4), (0, 1, 1, 2, 3, 4), ()], ids=str
)
def test_lines_left_out_or_moved_are_noticed(order: tuple[int, ...], good: bytes, path: Path) -> None:
    lines = good.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[k] for k in order))
    with pytest.raises(RunError, match="changed or cut"):
        Transcript.open(path)


def test_lines_cut_off_the_end_are_noticed_by_count_and_head(good: bytes, path: Path) -> None:
    path.write_bytes(b"".join(good.splitlines(keepends=True)[:-1]))
    cut = Transcript.open(path)
    whole = filled(None)
    assert (cut.count, cut.head) != (whole.count, whole.head)


def test_torn_line_is_dropped_when_a_run_goes_on(good: bytes, path: Path) -> None:
    path.write_bytes(good[:-20])
    with pytest.raises(RunError, match="is cut off"):
        Transcript.open(path)
    mended = Transcript.open(path, recover=True)
    assert len(mended.sent) == 3
    mended.note(b"south", round=1, sender="south", receivers=[COORDINATOR], kind="Off", protection="noise")
    assert Transcript.open(path).content() == good


def test_what_is_no_transcript_is_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "x.ledger"
    budget = Budget(epsilon=1.0, delta=1e-6, unit="user")
    Ledger.create(ledger, party="north", fingerprint="data", budget=budget)
    for place in (ledger, tmp_path / "missing.jsonl"):
        with pytest.raises(RunError, match="changed or cut"):
            Transcript.open(place)


def test_sealed_line_with_other_facts_is_refused(tmp_path: Path) -> None:
    transcript = Transcript.create(tmp_path / "t.jsonl", session="s")
    with transcript._chain.locked():
        transcript._chain.append({"round": 1, "colour": "red"})
    with pytest.raises(RunError, match="changed or cut"):
        Transcript.open(tmp_path / "t.jsonl")


PARTS = [
    ("SumBegun", COORDINATOR, "public"),
    ("SumStep", COORDINATOR, "sealed for other parties"),
    ("SumStep", COORDINATOR, "a share of noise, masked"),
    ("SumStep", COORDINATOR, "public"),
    ("SumStep", COORDINATOR, "shares of keys"),
]
KEPT = [*PARTS[:2], ("SumStep", COORDINATOR, "nothing, masked"), *PARTS[3:]]


@pytest.mark.parametrize(
    ("aggregate", "budget", "told"),
    [
        (PlainSum(), BUDGET, [("Off", COORDINATOR, "noise")]),
        (IdealSum(), BUDGET, [("SumPart", SUM, "a share of noise, SIMULATION")]),
        (SecureSum(), BUDGET, PARTS),
        (PlainSum(), None, [("Off", COORDINATOR, "nothing")]),
        (IdealSum(), None, [("SumPart", SUM, "nothing, SIMULATION")]),
        (SecureSum(), None, KEPT),
    ],
    ids=["noise", "ideal sum", "secure sum", "not private", "ideal, not private", "secure, not private"],
)
def test_run_tells_how_answers_were_protected(
    aggregate: Any, budget: Budget | None, told: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    run = trained(ItemSums(rounds=1, aggregate=aggregate), budget=budget)
    assert run.together is not None
    (tmp_path / "t.jsonl").write_bytes(run.together.transcript)
    sent = Transcript.open(tmp_path / "t.jsonl").sent
    for party in ("north", "south", "west"):
        own = [each for each in sent if each.sender == party]
        assert [(each.kind, each.receiver, each.protection) for each in own] == told


def test_party_that_adds_all_its_noise_to_a_sum_has_it_told(tmp_path: Path) -> None:
    strict, *others = parties(3)
    own = replace(strict, budget=replace(BUDGET, epsilon=1.0))
    run = trained(ItemSums(rounds=1, aggregate=SecureSum()), Federation.horizontal([own, *others]))
    assert run.together is not None
    (tmp_path / "t.jsonl").write_bytes(run.together.transcript)
    masked = {
        each.sender: each.protection
        for each in Transcript.open(tmp_path / "t.jsonl").sent
        if each.protection.endswith("masked")
    }
    assert masked == {
        "north": "noise, masked",
        "south": "a share of noise, masked",
        "west": "a share of noise, masked",
    }
