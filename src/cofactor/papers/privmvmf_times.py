"""Table V of PrivMVMF: seconds of the four phases of a round, the paper's way of hiding and ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cofactor.crypto.lattice import Lattice
from cofactor.crypto.ring import Ring
from cofactor.crypto.shared_key import SharedKey
from cofactor.crypto.threshold import ThresholdPaillier
from cofactor.errors import ConfigError
from cofactor.papers.cells import Effort
from cofactor.papers.dpmf_rp_findings import Panel, panels
from cofactor.papers.material import Material
from cofactor.papers.privmvmf_findings import OWN_DATA
from cofactor.papers.privmvmf_method import published
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
from cofactor.papers.privmvmf_phases import SAMPLE, Hidden, Round, hidden, played
from cofactor.papers.privmvmf_sides import Sided
from cofactor.papers.privmvmf_tables import spread
from cofactor.papers.results import Row
from cofactor.progress import Listener, Progress
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum

UPLOAD = "MB a user sends"
THRESHOLD, ROOTS = "threshold Paillier, 2 of 3", "threshold Paillier by roots, 2 of 3"
BFV, SHARES = "BFV, one key", "shares of vectors, 2 of 3"
_SOME = 2_500
"""Numbers that are timed where all of them would take minutes."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to hide gradients."""

    aggregate: EncryptedSum | SharedSum
    decrypters: int = 3
    some: int | None = None
    """How many numbers are timed; all of them, if left out."""
    sparse: bool = False
    """Whether a user sends only rated items and decoys, as in the paper; then everybody sees which."""
    note: str


WAYS = {
    PRIV: Way(
        aggregate=EncryptedSum(scheme=SharedKey(bits=1024, packed=False), decrypters=1),
        decrypters=1,
        some=_SOME,
        sparse=True,
        note="one number a ciphertext of 1024 bits, only rated items and decoys, and everybody sees which; "
        "the key is whole at the decrypter; powers of one number hide plaintexts, which makes encrypting "
        "many times faster than in the paper",
    ),
    THRESHOLD: Way(
        aggregate=EncryptedSum(),
        some=_SOME,
        note="2048 bits, packed, all items; decryption is one decrypter's, who work at the same time, and "
        "putting their parts together",
    ),
    ROOTS: Way(
        aggregate=EncryptedSum(scheme=ThresholdPaillier(shares="root")),
        some=_SOME,
        note="the same with another way to share the key, which nobody has reviewed",
    ),
    BFV: Way(
        aggregate=EncryptedSum(scheme=Lattice()), note="packed, all items; every decrypter holds the key"
    ),
    SHARES: Way(
        aggregate=SharedSum(),
        note="all items; a share for every decrypter, who all add up at the same time; no key opens anything",
    ),
}
"""The paper's way, and what stands beside it."""


def table5(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Time one round of all users, as often as there are seeds."""
    assert isinstance(material, Sided)
    rounds = [played(material) for _ in range(effort.seeds)]
    ratings = material.ratings
    panel = f"{material.name}: {ratings.user_count:,} users, {ratings.item_count:,} items, processor seconds"
    rows = _phase_rows(FED, panel, [own.plain for own in rounds], "the coordinator sees every gradient")
    sizes = [Row(line=FED, panel=_sizes(panel), column=UPLOAD, ours=rounds[0].dense * 8 / 1e6)]
    for number, (line, way) in enumerate(WAYS.items(), 1):
        try:
            found = [_timed(way, own, material) for own in rounds]
        except ConfigError as why:  # a library is not installed
            rows.append(Row(line=line, panel=panel, column=LOCAL, ours=None, note=str(why)))
            continue
        times = [_with_rest(own, each) for own, each in zip(rounds, found, strict=True)]
        rows += _phase_rows(line, panel, times, way.note)
        sizes.append(Row(line=line, panel=_sizes(panel), column=UPLOAD, ours=found[0].upload / 1e6))
        progress(Progress("ways to hide", number, len(WAYS), f"{material.name}, {line}"))
    return [*rows, *sizes]


def _timed(way: Way, own: Round, sides: Sided) -> Hidden:
    sent = _sparse(own, sides) if way.sparse else own.dense
    return hidden(
        way.aggregate,
        own,
        bits=Ring.holding(own.most).bits,
        sent=sent,
        numbers=min(way.some or sent, sent),
        decrypters=way.decrypters,
    )


def _sparse(own: Round, sides: Sided) -> int:
    """Return how many numbers a usual user sends by the paper: rated items, as many decoys, attributes."""
    rated = len(sides.ratings) / sides.ratings.user_count
    rows = round(2 * rated + sides.attributes.coding.width)
    return min(rows * published().factors, own.dense)


def _with_rest(own: Round, found: Hidden) -> dict[str, float]:
    """Add what has to be done whether gradients are hidden or not."""
    return found.times | {LOCAL: own.plain[LOCAL] + found.times[LOCAL], SERVER: own.plain[SERVER]}


def _sizes(panel: str) -> str:
    return f"{panel.split(':')[0]}: uploads"


def _phase_rows(line: str, panel: str, times: Sequence[dict[str, float]], note: str) -> list[Row]:
    return [
        Row(
            line=line,
            panel=panel,
            column=phase,
            paper=TABLE_5.get(line, {}).get(phase) if panel.startswith(OWN_DATA) else None,
            note=note,
            at_home=False,
            **(spread([one[phase] for one in times]) if phase in times[0] else {"ours": None}),
        )
        for phase in PHASES
    ]


def findings5(rows: Sequence[Row]) -> list[str]:
    """Say what was timed, where the time goes, and what other ways to hide change."""
    found = [
        f"Gradients of {SAMPLE} users were hidden, added up and opened, and every sum came out as it is. "
        f"Adding up is scaled to all users; Paillier's encryption was timed on {_SOME:,} numbers or fewer of "
        "each, and scaled to all. Making keys is not counted. The paper's times are of its own server, of 32 "
        "cores."
    ]
    for panel in panels(rows):
        if FED in panel.lines and LOCAL in panel.lines[FED]:
            found += [*_where_time_goes(panel), *_compared(panel)]
    return found


def _where_time_goes(panel: Panel) -> list[str]:
    known, plain = _known(panel, PRIV), _known(panel, FED)
    if len(known) < len(PHASES):
        return []
    most = {AGGREGATION, DECRYPTION} == set(sorted(known, key=lambda phase: -known[phase])[:2])
    return [
        f"{_data(panel)}: the paper says that aggregation and decryption take up most of the time. "
        f"{'Found' if most else 'Not found'}, its way ("
        f"{_listed(known)}; nothing hidden: {_listed(plain)})."
    ]


def _known(panel: Panel, line: str) -> dict[str, float]:
    found = {phase: panel.value(line, phase) for phase in PHASES}
    return {phase: value for phase, value in found.items() if value is not None}


def _listed(times: Mapping[str, float]) -> str:
    return ", ".join(f"{phase} {value:.2g} s" for phase, value in times.items())


def _compared(panel: Panel) -> list[str]:
    base = _together(panel, PRIV)
    theirs = sum(TABLE_5[PRIV][phase] for phase in (AGGREGATION, DECRYPTION))
    beside = f" ({theirs:.0f} s in the paper)" if panel.name.startswith(OWN_DATA) else ""
    others = {line: _together(panel, line) for line in WAYS if line != PRIV}
    known = {line: value for line, value in others.items() if value}
    if not base or not known:
        return []
    words = "; ".join(f"{line} {value:.2g} s ({base / value:.1f} times)" for line, value in known.items())
    return [
        f"{_data(panel)}: aggregation and decryption together take {base:.2g} s the paper's way here"
        f"{beside}. Other ways, and how many times faster: {words}."
    ]


def _data(panel: Panel) -> str:
    return panel.name.split(":")[0]


def _together(panel: Panel, line: str) -> float | None:
    parts = [panel.value(line, phase) for phase in (AGGREGATION, DECRYPTION)]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
