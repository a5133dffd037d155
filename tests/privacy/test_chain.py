import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.errors import LedgerError, Refused
from cofactor.privacy import chain as module
from cofactor.privacy.chain import FORMAT, Chain, TornLine

LINES = 4


def written(path: Path) -> bytes:
    """Write a small file with several lines, the last two of them of equal length."""
    chain = Chain.create(path, {"party": "north"})
    with chain.locked():
        for word in ("one", "two", "six"):
            chain.append({"word": word, "size": 0.1})
    return path.read_bytes()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return written(tmp_path_factory.mktemp("good") / "a.ledger")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bad") / "a.ledger"


def test_lines_come_back_in_order_with_the_same_head(tmp_path: Path) -> None:
    written(tmp_path / "a.ledger")
    chain = Chain.open(tmp_path / "a.ledger")
    assert [link.number for link in chain.links] == [1, 2, 3, 4]
    assert chain.links[0].facts == {"format": FORMAT, "party": "north"}
    assert [link.facts.get("word") for link in chain.links[1:]] == ["one", "two", "six"]
    assert len({link.hash for link in chain.links}) == LINES


def test_memory_and_file_seal_alike(tmp_path: Path) -> None:
    written(tmp_path / "a.ledger")
    memory = Chain.create(None, {"party": "north"})
    with memory.locked():
        for word in ("one", "two", "six"):
            memory.append({"word": word, "size": 0.1})
    assert memory.head == Chain.open(tmp_path / "a.ledger").head


@given(position=st.integers(0, 10_000), other=st.integers(1, 255), recover=st.booleans())
def test_any_changed_byte_is_noticed(
    position: int, other: int, recover: bool, good: bytes, path: Path
) -> None:
    bad = bytearray(good)
    bad[position % len(good)] ^= other
    path.write_bytes(bad)
    with pytest.raises(LedgerError):
        Chain.mend(path) if recover else Chain.open(path)
    assert path.read_bytes() == bytes(bad), "a damaged file is left as it is"


def test_changed_last_byte_never_costs_an_entry(good: bytes, path: Path) -> None:
    for other in range(1, 256):
        path.write_bytes(good[:-1] + bytes([good[-1] ^ other]))
        with pytest.raises(LedgerError, match=r"line 4: was changed"):
            Chain.mend(path)


@given(content=st.binary(max_size=300))
def test_any_other_file_is_refused(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        Chain.open(path)


@given(cut=st.integers(0, 10_000))
def test_cut_within_a_line_is_noticed_and_mending_keeps_all_whole_lines(
    cut: int, good: bytes, path: Path
) -> None:
    kept = good[: cut % len(good)]
    path.write_bytes(kept)
    whole, torn = kept.count(b"\n"), not kept.endswith(b"\n")
    if whole == 0:
        with pytest.raises(LedgerError, match="is no ledger, or lost even its first line"):
            Chain.open(path)
        return
    if torn:
        with pytest.raises(TornLine, match=rf"line {whole + 1}: was not completely written"):
            Chain.open(path)
    dropped = Chain.mend(path)
    only_end_missing = good.startswith(kept + b"\n")
    assert len(Chain.open(path).links) == whole + only_end_missing
    assert dropped == (len(kept.rpartition(b"\n")[2]) if torn and not only_end_missing else 0)


def test_whole_lines_missing_from_the_end_cannot_be_seen_but_by_count_and_head(
    good: bytes, path: Path
) -> None:
    path.write_bytes(good)
    before = Chain.open(path)
    path.write_bytes(b"".join(good.splitlines(keepends=True)[:-1]))
    after = Chain.open(path)
    assert (len(after.links), after.head) != (len(before.links), before.head)


LINE_CHANGES = {
    "swapped": [0, 2, 1, 3],
    "one missing": [0, 1, 3],
    "one twice": [0, 1, 1, 2, 3],
    "first missing": [1, 2, 3],
    "first twice": [0, 0, 1, 2, 3],
    "last two swapped": [0, 1, 3, 2],
}


@pytest.mark.parametrize("order", LINE_CHANGES.values(), ids=LINE_CHANGES)
def test_lines_out_of_order_are_refused_by_number(order: list[int], good: bytes, path: Path) -> None:
    lines = good.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[number] for number in order))
    wrong = next(place for place, number in enumerate(order) if place != number)
    with pytest.raises(LedgerError, match=rf"line {wrong + 1}: does not belong here.*backup"):
        Chain.open(path)


def resealed(good: bytes, place: int, *, number: int, word: str) -> bytes:
    """Return the file with one line written anew and sealed, after the line that really precedes it."""
    lines = good.splitlines(keepends=True)
    previous = json.loads(lines[place - 1])["hash"]
    lines[place] = module._sealed({"word": word, "size": 0.1}, number, previous)
    return b"".join(lines)


def test_line_written_anew_is_noticed_at_the_next_one(good: bytes, path: Path) -> None:
    path.write_bytes(resealed(good, 2, number=3, word="ten"))
    with pytest.raises(LedgerError, match="line 4: does not belong here"):
        Chain.open(path)


def test_line_with_a_wrong_number_is_refused(good: bytes, path: Path) -> None:
    path.write_bytes(resealed(good, 3, number=5, word="six"))
    with pytest.raises(LedgerError, match="line 4: does not belong here"):
        Chain.open(path)


@pytest.mark.parametrize("change", [b" ", b"\n", b"\r"])
def test_space_between_lines_is_a_change(change: bytes, good: bytes, path: Path) -> None:
    lines = good.splitlines(keepends=True)
    path.write_bytes(lines[0] + change + b"".join(lines[1:]))
    with pytest.raises(LedgerError, match="line 2: was changed"):
        Chain.open(path)


def test_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    line = module._sealed({"format": FORMAT + 1}, 1, module.NOTHING_BEFORE)
    (tmp_path / "a.ledger").write_bytes(line)
    with pytest.raises(LedgerError, match="newer cofactor"):
        Chain.open(tmp_path / "a.ledger")


def test_two_writers_continue_each_other(tmp_path: Path) -> None:
    one = Chain.create(tmp_path / "a.ledger", {})
    two = Chain.open(tmp_path / "a.ledger")
    for chain, word in ((one, "a"), (two, "b"), (one, "c")):
        with chain.locked():
            chain.append({"word": word})
    assert [link.facts["word"] for link in Chain.open(tmp_path / "a.ledger").links[1:]] == ["a", "b", "c"]


def test_existing_file_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.ledger").write_text("precious")
    with pytest.raises(Refused, match="never replaced"):
        Chain.create(tmp_path / "a.ledger", {})
    assert (tmp_path / "a.ledger").read_text() == "precious"


@pytest.mark.parametrize("fails", ["write", "fsync"])
def test_full_disk_leaves_the_file_as_it_was(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written(tmp_path / "a.ledger")
    chain = Chain.open(tmp_path / "a.ledger")
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        write(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    def nothing(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, fails, half if fails == "write" else nothing)
    with pytest.raises(LedgerError, match=r"cannot be written .*Nothing was released"), chain.locked():
        chain.append({"word": "lost"})
    monkeypatch.undo()
    assert (tmp_path / "a.ledger").read_bytes() == before
    with chain.locked():
        chain.append({"word": "seven"})
    assert Chain.open(tmp_path / "a.ledger").head == chain.head


def test_line_is_on_disk_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    write, fsync = os.write, os.fsync

    def noted_write(descriptor: int, data: bytes) -> int:
        done.append("write")
        return write(descriptor, data)

    def noted_fsync(descriptor: int) -> None:
        done.append("fsync")
        fsync(descriptor)

    monkeypatch.setattr(os, "write", noted_write)
    monkeypatch.setattr(os, "fsync", noted_fsync)
    chain = Chain.create(tmp_path / "a.ledger", {})
    assert done == ["fsync", "fsync"], "the first line, then the folder"
    done.clear()
    with chain.locked():
        chain.append({})
    assert done == ["write", "fsync"]


def test_a_file_is_seen_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(LedgerError, match="cannot be made"):
        Chain.create(tmp_path / "a.ledger", {})
    assert list(tmp_path.iterdir()) == []


def test_another_file_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "north.csv").write_text("user,item,rating\n1,2,3\n")
    with pytest.raises(LedgerError, match=r"is no ledger\. Name the file that ends in \.ledger"):
        Chain.open(tmp_path / "north.csv")


def test_file_replaced_while_open_is_noticed(tmp_path: Path) -> None:
    written(tmp_path / "a.ledger")
    chain = Chain.open(tmp_path / "a.ledger")
    lines = (tmp_path / "a.ledger").read_bytes().splitlines(keepends=True)
    (tmp_path / "a.ledger").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(LedgerError, match="cut or replaced"):
        chain.refresh()


@pytest.mark.parametrize("trouble", ["missing", "folder"])
def test_file_that_cannot_be_read_is_no_bug(trouble: str, tmp_path: Path) -> None:
    if trouble == "folder":
        (tmp_path / "a.ledger").mkdir()
    with pytest.raises(LedgerError, match=r"a\.ledger: cannot be"):
        Chain.open(tmp_path / "a.ledger")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.text().filter(lambda name: name not in ("hash", "number", "previous")), JSON))
def test_whatever_can_be_written_can_be_read(facts: dict[str, Any]) -> None:
    chain = Chain.create(None, {})
    with chain.locked():
        assert chain.append(facts).facts == facts


def test_content_is_the_file_whether_or_not_there_is_one(tmp_path: Path) -> None:
    content = written(tmp_path / "a.ledger")
    assert Chain.open(tmp_path / "a.ledger").content() == content
    memory = Chain.create(None, {"party": "north"})
    with memory.locked():
        for word in ("one", "two", "six"):
            memory.append({"word": word, "size": 0.1})
    assert memory.content() == content


def test_content_opens_as_a_chain_of_its_own(tmp_path: Path) -> None:
    memory = Chain.create(
        None, {"party": "north", "numbers": [0.1, 1e-300, 3, None, True], "text": "\u00fc\n"}
    )
    (tmp_path / "copy.ledger").write_bytes(memory.content())
    again = Chain.open(tmp_path / "copy.ledger")
    assert again.links == memory.links
    assert again.head == memory.head
