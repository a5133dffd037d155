"""Sums that decrypters open, for all users of ML-1M, beside python-paillier with one value per ciphertext.

A client uploads what MultiViewMF with 6 factors makes of 3,706 items and 35 features: 22,446 numbers, zeros
for items that she has not rated. The upload looks the same whatever she rated. 6,040 uploads are really read
and added, 8 different ones over and over. Three decrypters divide a sum's pieces, as they do in a training:
each of them opens two thirds. With one key, one decrypter opens all. Signatures are not in these figures.

Python-paillier is timed on a sample of values, and its figures are those of one value times their number:
reading ciphertexts is not in them. The published way with rho = 1 sends the rated items and as many others,
about 2,010 numbers a user: fewer, but whoever sees the upload sees which items it is about.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice, pairwise

import numpy as np

from benchmarks.bench import Row, ask_peer, cpu_best
from cofactor.crypto.ciphers import Part, Scheme
from cofactor.crypto.hiding import Hiding, HolderOfKey, HolderOfShares, InShares, Opener, UnderCipher
from cofactor.crypto.keys import KeyPair
from cofactor.crypto.lattice import Lattice
from cofactor.crypto.ring import Ring
from cofactor.crypto.shared_key import SharedKey
from cofactor.crypto.threshold import ThresholdPaillier

PHE = ["phe==1.5.0", "gmpy2==2.3.2"]
CLIENTS = 6_040
LENGTH = 6 * (3_706 + 35)
SPARSE = 2_010
MOST = 2**26
"""The largest number of a client, in grains, as MultiViewMF counts them without a budget."""
BITS = Ring.holding(CLIENTS * MOST).bits
"""Of a number of the sum, its sign included."""
DIFFERENT = 8
SAMPLE = 100
DECRYPTERS = 3


@dataclass(frozen=True)
class Costs:
    """CPU seconds and bytes of one sum."""

    encrypt: float
    upload: float
    add: float
    part: float
    combine: float
    decrypters: int = 1

    @property
    def opening(self) -> float:
        """What one decrypter and who combines take."""
        return self.part + self.combine

    @property
    def whole(self) -> float:
        """What all take together."""
        return CLIENTS * self.encrypt + self.add + self.decrypters * self.part + self.combine


@dataclass(frozen=True)
class Limits:
    """What the figures are held against: CPU seconds and megabytes."""

    opening: float
    encrypt: float = 0.25
    upload: float = 1.6
    add: float = 25.0


ONE_KEY = Limits(opening=2.0)
TEXTBOOK, ROOT = Limits(opening=15.0), Limits(opening=8.0)
SHARES = Limits(opening=2.0, encrypt=0.005, upload=0.6)


def rows() -> list[Row]:
    textbook = _costs(*_keys(ThresholdPaillier()))
    # Uploads under all keys of this size are added alike.
    root = replace(_costs(*_keys(ThresholdPaillier(shares="root")), clients=DIFFERENT), add=textbook.add)
    shared = replace(_costs(*_keys(SharedKey(bits=2048)), clients=DIFFERENT), add=textbook.add)
    ours = {
        "Paillier, textbook 2 of 3": (textbook, TEXTBOOK),
        "Paillier, root 2 of 3": (root, ROOT),
        "Paillier, one key": (shared, ONE_KEY),
        "BFV, one key": (_costs(*_keys(Lattice(variant="bfv"))), ONE_KEY),
        "CKKS, one key": (_costs(*_keys(Lattice(variant="ckks"))), ONE_KEY),
        "SharedSum 2 of 3": (_costs(*_shares()), SHARES),
    }
    peers = {bits: ask_peer("phe", PHE, "phe_sums.py", bits, SAMPLE) for bits in (1024, 2048)}
    found = [row for name, (costs, limits) in ours.items() for row in _against_limits(name, costs, limits)]
    for name, (costs, _) in ours.items():
        found += [_round(name, costs, f"phe {bits}", _scaled(peer, LENGTH)) for bits, peer in peers.items()]
    sparse = _scaled(peers[1024], SPARSE)
    for name in ("Paillier, textbook 2 of 3", "BFV, one key", "SharedSum 2 of 3"):
        found += _against_sparse(name, ours[name][0], "phe 1024, sparse", sparse)
    return found


def _against_limits(name: str, costs: Costs, limits: Limits) -> list[Row]:
    figures = (
        ("encrypt", costs.encrypt, limits.encrypt, "CPU s"),
        ("upload", 1e-6 * costs.upload, limits.upload, "MB"),
        (f"add {CLIENTS:,}", costs.add, limits.add, "CPU s"),
        ("decrypter", costs.part, limits.opening, "CPU s"),
        ("decrypter and combiner", costs.opening, limits.opening, "CPU s"),
    )
    return [
        Row(f"{name}: {what}", own, limit, "limit", limit / own, unit) for what, own, limit, unit in figures
    ]


def _round(name: str, costs: Costs, peer_name: str, peer: Costs) -> Row:
    return Row(f"{name}: whole round", costs.whole, peer.whole, peer_name, peer.whole / costs.whole, "CPU s")


def _against_sparse(name: str, costs: Costs, peer_name: str, peer: Costs) -> list[Row]:
    figures = (
        ("encrypt", costs.encrypt, peer.encrypt, "CPU s"),
        ("upload", 1e-6 * costs.upload, 1e-6 * peer.upload, "MB"),
        ("whole round", costs.whole, peer.whole, "CPU s"),
    )
    return [
        Row(f"{name}, dense: {what}", own, other, peer_name, other / own, unit)
        for what, own, other, unit in figures
    ]


def _scaled(peer: dict[str, float], values: int) -> Costs:
    """Return what python-paillier takes for so many values: one value's figures times their number."""
    return Costs(
        encrypt=values * peer["encrypt"],
        upload=values * peer["bytes"],
        add=CLIENTS * values * peer["add"],
        part=LENGTH * peer["decrypt"],
        combine=0.0,
    )


def _keys(scheme: Scheme) -> tuple[Hiding, list[Opener]]:
    dealt = scheme.dealt(DECRYPTERS)
    return UnderCipher(dealt.cipher), [HolderOfKey(dealt.cipher, holder) for holder in dealt.holders]


def _shares() -> tuple[Hiding, list[Opener]]:
    pairs = [KeyPair.fresh() for _ in range(DECRYPTERS)]
    return InShares([pair.public for pair in pairs], quorum=2), [HolderOfShares(pair) for pair in pairs]


def _costs(hiding: Hiding, openers: Sequence[Opener], clients: int = CLIENTS) -> Costs:
    """Play a sum of so many clients, and check that it is right."""
    values = np.random.default_rng(0).integers(-MOST, MOST, (DIFFERENT, LENGTH))
    bound = [b"client %d" % client for client in range(DIFFERENT)]
    boxes = [hiding.boxes(row, BITS, who) for row, who in zip(values, bound, strict=True)]
    decrypters = len(openers) if hiding.quorum > 1 else 1  # with one key, one opens all
    totals, parts, add, part = [], [], 0.0, 0.0
    for number, opener in enumerate(openers[:decrypters]):
        if number == 0 or len(boxes[0]) > 1:  # with one box for all, a second decrypter's total is the same
            at = number if len(boxes[0]) > 1 else 0
            own = [(each[at], who) for each, who in zip(boxes, bound, strict=True)]
            start = time.process_time()
            totals.append(opener.total(islice(cycle(own), clients), LENGTH, BITS))
            add = time.process_time() - start
        start = time.process_time()
        for pieces in _opened_by(number, hiding, decrypters):
            parts.append(Part(number, pieces, opener.part(totals[-1], LENGTH, BITS, pieces)))
        part = max(part, time.process_time() - start)
    start = time.process_time()
    total = hiding.combined(totals[0], LENGTH, BITS, parts)
    combine = time.process_time() - start
    if not np.array_equal(total, clients // DIFFERENT * values.sum(axis=0)):
        raise RuntimeError("the sum is wrong")
    encrypt = cpu_best(lambda: hiding.boxes(values[0], BITS, bound[0]), 3)
    return Costs(encrypt, sum(map(len, boxes[0])), add, part, combine, decrypters)


def _opened_by(number: int, hiding: Hiding, decrypters: int) -> list[range]:
    """Return what a decrypter opens where all of them answer: each piece is opened by a quorum."""
    pieces = hiding.pieces(LENGTH, BITS)
    ends = [pieces * at // decrypters for at in range(decrypters + 1)]
    blocks = [range(*pair) for pair in pairwise(ends)]
    return [own for step in range(hiding.quorum) if (own := blocks[(number - step) % decrypters])]
