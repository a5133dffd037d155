from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.crypto.ciphers import Integers
from cofactor.crypto.hiding import InShares
from cofactor.errors import ConfigError, RunError
from cofactor.papers.cells import Effort
from cofactor.papers.privmvmf_numbers import (
    AGGREGATION,
    DECRYPTION,
    FED,
    LOCAL,
    PHASES,
    PRIV,
    SERVER,
    TABLE_5,
)
from cofactor.papers.privmvmf_phases import Round, hidden, played
from cofactor.papers.privmvmf_sides import Sided
from cofactor.papers.privmvmf_times import BFV, ROOTS, SHARES, THRESHOLD, UPLOAD, WAYS, findings5, table5
from cofactor.papers.results import Row
from cofactor.progress import nobody
from cofactor.recipes.opened_sums import SharedSum
from tests.crypto.fixed_primes import fixed_primes
from tests.papers.sided import sided


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sided:
    return sided(tmp_path_factory.mktemp("sides"))


def test_users_of_a_round_send_gradients_of_all_items_and_attributes(sides: Sided) -> None:
    own = played(sides)
    width = sides.ratings.item_count + sides.attributes.coding.width
    assert own.gradients.shape == (20, 6 * width)
    assert own.dense == 6 * width
    assert own.users == 60
    # Few of them are zero for nothing: rated items and decoys, and attributes.
    assert (own.gradients != 0).any(axis=1).all()
    assert np.abs(own.gradients).sum(axis=0).max() <= own.most
    assert set(own.plain) == {LOCAL, AGGREGATION, SERVER}


class Clock:
    """One second goes by from look to look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_what_was_timed_is_scaled_to_all_users_and_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.process_time", Clock())
    own = Round(users=1_000, gradients=np.ones((10, 400), np.int64), most=1_000, plain={})
    found = hidden(SharedSum(), own, bits=20, sent=200, numbers=100, decrypters=3)
    # Every step takes a second: hiding of 10 users, adding, a part, and combining parts.
    assert found.times == {
        LOCAL: pytest.approx(1 / 10 * 2),
        AGGREGATION: pytest.approx(1000 / 10 * 2),
        DECRYPTION: pytest.approx(2 * 4),
    }
    # A share of 8 bytes a number for each of 3 decrypters, a key and a seal.
    assert 2 * 3 * 800 < found.upload < 2 * 3 * 900


def test_a_sum_that_opens_to_anything_else_is_never_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = InShares.combined

    def wrong(self: InShares, *given: Any) -> Integers:
        return whole(self, *given) + 1

    monkeypatch.setattr(InShares, "combined", wrong)
    own = Round(users=10, gradients=np.ones((4, 8), np.int64), most=10, plain={})
    with pytest.raises(RunError, match="did not open as it is"):
        hidden(SharedSum(), own, bits=20, sent=8, numbers=8, decrypters=3)


def test_table_5_shows_all_phases_of_all_ways_beside_the_papers(
    sides: Sided, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {line: replace(way, some=60 if way.some else None) for line, way in WAYS.items()}
    monkeypatch.setattr("cofactor.papers.privmvmf_times.WAYS", few)
    with fixed_primes():
        rows = table5(replace(sides, name="ml-1m"), Effort(), nobody)
    found = {(row.line, row.column): row for row in rows}
    for line in (FED, PRIV, THRESHOLD, ROOTS, BFV, SHARES):
        assert [row.column for row in rows if row.line == line] == [*PHASES, UPLOAD]
    assert found[FED, DECRYPTION].ours is None
    for line in (FED, PRIV):
        for phase in PHASES:
            assert found[line, phase].paper == TABLE_5[line].get(phase)
    assert found[BFV, LOCAL].paper is None
    # One number a ciphertext of 2048 bits; 60 users with 20 ratings each send 40 rows, and attributes.
    rated = 2 * 20 + sides.attributes.coding.width
    assert found[PRIV, UPLOAD].ours == pytest.approx(6 * rated * 256 / 1e6, rel=0.05)


def test_a_library_that_is_not_installed_leaves_its_line_out(
    sides: Sided, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise ConfigError("Lattice needs TenSEAL. Install it: pip install tenseal")

    monkeypatch.setattr("cofactor.crypto.lattice._tenseal", missing)
    monkeypatch.setattr("cofactor.papers.privmvmf_times.WAYS", {BFV: WAYS[BFV], SHARES: WAYS[SHARES]})
    rows = table5(sides, Effort(), nobody)
    [left] = [row for row in rows if row.line == BFV]
    assert left.ours is None
    assert "pip install" in left.note
    assert any(row.line == SHARES for row in rows)
    assert findings5(rows)


def times(line: str, *seconds: float | None) -> list[Row]:
    return [
        Row(line=line, panel="ml-1m: 6,040 users", column=phase, ours=value)
        for phase, value in zip(PHASES, seconds, strict=True)
    ]


def test_it_is_said_where_the_time_goes_and_what_is_faster() -> None:
    rows = [*times(FED, 0.001, 3.0, None, 0.1), *times(PRIV, 2.0, 50.0, 10.0, 0.1)]
    found = findings5([*rows, *times(SHARES, 0.01, 1.0, 0.2, 0.1)])
    assert any("take up most of the time. Found" in sentence for sentence in found)
    assert found[-1].endswith(
        "together take 60 s the paper's way here (337 s in the paper). Other ways, and how many times "
        "faster: shares of vectors, 2 of 3 1.2 s (50.0 times)."
    )
    slow = findings5([*times(FED, 0.001, 3.0, None, 0.1), *times(PRIV, 20.0, 50.0, 10.0, 0.1)])
    assert any("take up most of the time. Not found" in sentence for sentence in slow)
