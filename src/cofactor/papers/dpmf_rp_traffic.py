"""Table 1 and Figure 3 of dpmf-rp: how many bytes a user sends in a round.

The paper counts p k log q + beta n (section 4.3.2). What is sent must hold the sum of all participants, not
one user's count, and rows are padded to a power of two; keys and shares go to every neighbour.
"""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cofactor.crypto.ring import Ring
from cofactor.data.ratings import Ratings, Scale
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.transcript import Transcript
from cofactor.papers.cells import Effort
from cofactor.papers.dpmf_rp_findings import panels
from cofactor.papers.dpmf_rp_method import labelled, published, trained
from cofactor.papers.dpmf_rp_numbers import DPMF_RP
from cofactor.papers.material import Material
from cofactor.papers.results import Row
from cofactor.progress import Listener, Progress
from cofactor.recipes.projected import ProjectedMF
from cofactor.recipes.projected_paper import coins_of_label
from cofactor.recipes.projected_steps import padded
from cofactor.recipes.sums import PlainSum, SecureSum

FORMULA, OURS, MEASURED = "the paper's formula", "what is sent, reckoned", "measured"
NUMBERS, KEYS = "of it numbers", "of it keys and shares"
SECURE, PLAIN = "pure SecAgg", "non-private"
_NOBODY_DROPS = SecureSum(dropout=0.0, colluding=0.0)
_WORD = 32
"""Bits of a number: b in the paper."""
_STEPS = 2**30
"""Steps that a gradient has without coins."""
_FEW, _MORE = 10, 40
"""Devices that are really there, each with keys of its own."""
_EACH, _ONCE = 129, 1_462
"""Bytes that a device sends for each neighbour, and once: keys, sealed shares, shares, signatures."""
_REDUCTIONS = (1, 2, 3)
_PARTICIPANTS = 1_000
"""Of Figure 3: a tenth of 10,000 users."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """What one user sends in a round."""

    rows: int
    """p in the paper; m where nothing is projected."""
    factors: int
    participants: int
    """beta n."""
    most: int
    """The largest number that one user adds: q, or how many steps a gradient has."""
    masked: bool = True

    @property
    def published(self) -> float:
        """Bytes by the paper's formula, in which q heads take log2(q + 1) bits, and other numbers b."""
        bits = _WORD if self.most == _STEPS else math.log2(self.most + 1)
        neighbours = self.participants * _WORD if self.masked else 0
        return (self.rows * self.factors * bits + neighbours) / 8

    @property
    def numbers(self) -> float:
        """Bytes of the numbers: padded rows, in a ring that holds the sum of all; and one number more."""
        count = padded(self.rows) * self.factors + 1
        bits = Ring.holding(self.most * self.participants).bits if self.masked else 2 * _WORD
        return count * bits / 8

    @property
    def keys(self) -> float:
        """Bytes of all the rest; up to 200 participants everybody is everybody's neighbour."""
        near = _NOBODY_DROPS.neighbourhood(self.participants) if self.masked else None
        return _EACH * near.chosen + _ONCE if near is not None else 0.0


def table1(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Play devices that really mask their numbers, and read what one of them sent off the transcript."""
    items, rows = material.ratings.item_count, []
    sizes = effort.shown((_FEW, _MORE), (_FEW,))
    for number, count in enumerate(sizes, 1):
        devices = _devices(count, items)
        for line, (message, sent) in _compared(published(material), devices).items():
            columns = {FORMULA: message.published, OURS: message.numbers + message.keys} | sent
            panel = f"{count} devices, {items:,} items"
            rows += [
                Row(line=line, panel=panel, column=column, ours=value / 1e3, note=_NOTES[line.split(",")[0]])
                for column, value in columns.items()
            ]
        progress(Progress("sums", number, len(sizes), f"{count} devices"))
    return rows


_NOTES = {
    PLAIN: "user O(m k b), server O(beta n m k b); 64 bits a number here, as gradients come in fine steps",
    SECURE: "user O(m k b + beta n b), server O(beta n m k b + (beta n b)^2)",
    DPMF_RP: "user O(p k log q + beta n b), server O(beta n p k log q + (beta n b)^2)",
}


def _compared(setting: ProjectedMF, devices: Federation) -> dict[str, tuple[Message, dict[str, float]]]:
    """Return by line what is reckoned and what was sent."""
    facts, whole = devices.facts, replace(setting, participation=1.0, rounds=1, reduction=1)
    plain = Message(
        rows=facts.item_count,
        factors=setting.factors,
        participants=facts.user_count,
        most=_STEPS,
        masked=False,
    )
    found = {
        PLAIN: (plain, _sent(trained(replace(whole, aggregate=PlainSum()), devices, None, 0))),
        SECURE: (
            replace(plain, masked=True),
            _sent(trained(replace(whole, aggregate=_NOBODY_DROPS), devices, None, 0)),
        ),
    }
    for reduction in _REDUCTIONS:
        reduced = replace(whole, reduction=reduction, aggregate=_NOBODY_DROPS)
        coined, loss = labelled(reduced, facts, 1.0)
        assert coined.trials is not None
        message = replace(plain, rows=coined.row_count(facts), most=coined.trials, masked=True)
        found[_projected(reduction)] = message, _sent(trained(coined, devices, loss, 0))
    return found


def _projected(reduction: int) -> str:
    return f"{DPMF_RP}, m/p = {reduction}"


def _devices(count: int, items: int) -> Federation:
    """Return devices with two ratings each: how long a message is does not depend on them."""
    scale = Scale(1, 5, 1)
    parties = [
        Party(
            name=f"device-{number}",
            ratings=Ratings.from_rows(
                [0, 0],
                [number % items, (number + 1) % items],
                [3.0, 4.0],
                user_ids=np.array([number]),
                item_ids=np.arange(items),
                scale=scale,
            ),
        )
        for number in range(count)
    ]
    return Federation.on_device(parties, scale=scale)


def _sent(run: Run) -> dict[str, float]:
    """Read off the transcript what the first device sent in the only round."""
    assert run.together is not None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "transcript.jsonl"
        file.write_bytes(run.together.transcript)
        own = [each for each in Transcript.open(file).sent if each.sender == "device-0" and each.round == 1]
    # Whoever masks nothing sends one message; otherwise the longest holds the numbers.
    numbers, total = max(each.bytes for each in own), sum(each.bytes for each in own)
    return {MEASURED: total, NUMBERS: numbers, KEYS: total - numbers}


def findings1(rows: Sequence[Row]) -> list[str]:
    """Say how far the paper's formula is from what is sent, and ours."""
    found = [
        "Computation is not measured here. Formulas are read with constants of 1, and q heads as log2(q + 1) "
        "bits: with the q = 1 of section 4.3.1 the paper's log q would be no bits at all."
    ]
    for panel in panels(rows):
        private = [line for line in panel.lines if line.startswith(DPMF_RP)]
        formula, ours, sent = (
            [panel.value(line, column) or 0.0 for line in private] for column in (FORMULA, OURS, MEASURED)
        )
        times = sorted(each / of for each, of in zip(sent, formula, strict=True))
        apart = max(abs(each / of - 1) for each, of in zip(sent, ours, strict=True))
        found.append(
            f"{panel.name}: {DPMF_RP} sends {times[0]:.2g} to {times[-1]:.2g} times the paper's formula, and "
            f"within {apart:.2%} of p' k numbers that hold q beta n and a sign, {_EACH} bytes for each "
            f"neighbour and {_ONCE:,} more: p' is the power of two above p, and a number that is masked must "
            "hold the sum of all."
        )
    return found


def figure3(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Reckon what a user sends among 1,000 participants, by factors and by items, for several m/p."""
    items = (2_000, 5_000, 10_000, 15_000, 20_000, 25_000)
    by_factors = {f"k = {k}": (10_000, k) for k in effort.shown((5, 10, 15, 20, 25), (5, 25))}
    by_items = {f"m = {m:,}": (m, 14) for m in effort.shown(items, items[::5])}
    rows = []
    for panel, shapes in {"m = 10,000": by_factors, "k = 14": by_items}.items():
        for reduction in (1, 2, 3, 5, 10):
            for column, (m, k) in shapes.items():
                message = _among_many(round(m / reduction), k)
                sent = (message.numbers + message.keys) / 1e3
                rows.append(Row(line=f"m/p = {reduction}", panel=panel, column=column, ours=sent))
    progress(Progress("figure", 1, 1, material.name))
    return rows


def _among_many(rows: int, factors: int) -> Message:
    coins = coins_of_label(1.0, rows=rows, factors=factors, participants=_PARTICIPANTS)
    return Message(rows=rows, factors=factors, participants=_PARTICIPANTS, most=coins.trials)


def findings3(rows: Sequence[Row]) -> list[str]:
    """Say what of section 6.3.1 holds where rows are padded to a power of two."""
    by_factors, by_items = panels(rows)
    ends = [row.ours or 0.0 for row in by_factors.rows if row.line == "m/p = 3"]
    found = [
        "These are reckoned, not measured: table1 shows that what is sent is what is reckoned.",
        f"{by_factors.name}: the paper says that the cost grows linearly with k. Found: with m/p = 3 from "
        f"{ends[0]:.0f} to {ends[-1]:.0f} kB, keys and shares of "
        f"{_among_many(1, 1).keys / 1e3:.0f} kB in each.",
    ]
    for reduction, claim in ((2, 0.5), (3, 0.34)):
        whole, less = by_items.lines["m/p = 1"], by_items.lines[f"m/p = {reduction}"]
        parts = [(less[c].ours or 0.0) / (whole[c].ours or 1.0) for c in whole]
        found.append(
            f"{by_items.name}: the paper says that m/p = {reduction} takes about {claim:.0%} of what no "
            f"projection takes. It takes {min(parts):.0%} to {max(parts):.0%} here: rows are padded to a "
            "power of two (Algorithm 3), projected or not."
        )
    return found
