"""Who is in which clusters of two parties, counted under encryption, beside python-paillier.

20,000 users, 5 clusters each, keys of 3,072 bits: what both parties compute, without the secure sum, which is
of 25 numbers. Python-paillier is timed on a few values, and its figures are those of one value times their
number: one ciphertext a user, and a product for each. Reading and checking ciphertexts is not in them, but is
in ours.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bench import Row, ask_peer, faster
from benchmarks.bench_encryption import PHE
from cofactor.crypto.products import Layout, Offering, answered

USERS, CLUSTERS, BITS = 20_000, 5, 3072
SAMPLE = 20
LIMIT = 30.0


def rows() -> list[Row]:
    layout = Layout(users=USERS, rows=CLUSTERS, columns=CLUSTERS, bits=BITS)
    chance = np.random.default_rng(1)
    first, second = (chance.integers(0, CLUSTERS, USERS) for _ in range(2))
    offering, key = _timed(lambda: Offering(layout))
    offer, encrypt = _timed(lambda: offering.offered(first))
    (answer, share), multiply = _timed(lambda: answered(offer, layout, second))
    opened, decrypt = _timed(lambda: offering.share(answer))
    if (opened + share).sum() != USERS:
        raise RuntimeError("the shares do not add up to all users")
    whole = key + encrypt + multiply + decrypt
    peer = ask_peer("phe", PHE, "phe_sums.py", BITS, SAMPLE)
    theirs = USERS * (peer["encrypt"] + peer["add"]) + CLUSTERS * (peer["encrypt"] + peer["decrypt"])
    name, other = f"cluster: table of {USERS:,} users", f"phe {BITS}, extrapolated"
    return [
        faster(f"{name}: both parties", ours=whole, peer=LIMIT, peer_name="limit"),
        faster(f"{name}: both parties, beside", ours=whole, peer=theirs, peer_name=other),
        faster(f"{name}: encrypting", ours=encrypt, peer=USERS * peer["encrypt"], peer_name=other),
        faster(f"{name}: multiplying", ours=multiply, peer=USERS * peer["add"], peer_name=other),
        Row(f"{name}: offer", 1e-6 * len(offer), 1e-6 * USERS * peer["bytes"], other, 1.0, "MB"),
    ]


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    made = call()
    return made, time.process_time() - start
