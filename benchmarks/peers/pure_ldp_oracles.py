"""Time pure-ldp: argv is epsilon, the values, people for GRR and FastLH, reports for OLH, FastLH's functions.

CPU seconds: of GRR and FastLH for all people, of OLH for one report; reports and estimate in all of them.
What FastLH makes once for all surveys, a table of its hash functions, is not counted.
"""

import json
import sys
import time

import numpy as np
from pure_ldp.frequency_oracles.direct_encoding import (  # type: ignore[import-not-found]
    DEClient,
    DEServer,
)
from pure_ldp.frequency_oracles.local_hashing import (  # type: ignore[import-not-found]
    FastLHClient,
    FastLHServer,
    LHClient,
    LHServer,
)


def timed(client, server, values):  # type: ignore[no-untyped-def]
    """Return the CPU time of all reports and of the estimate."""
    start = time.process_time()
    for value in values:
        server.aggregate(client.privatise(value))
    server.estimate(0, suppress_warnings=True)
    return time.process_time() - start


def same(value):  # type: ignore[no-untyped-def]
    """Values are numbered from 0 here; pure-ldp would number them from 1."""
    return value


epsilon, buckets, people, sample, functions = float(sys.argv[1]), *(int(word) for word in sys.argv[2:])
values = (np.random.default_rng(0).beta(5, 2, people) * buckets).astype(int).tolist()
plain = {"epsilon": epsilon, "d": buckets, "index_mapper": same}
hashed = {**plain, "use_olh": True}
fast = {**hashed, "k": functions}
times = {
    "grr": timed(DEClient(**plain), DEServer(**plain), values),
    "olh": min(timed(LHClient(**hashed), LHServer(**hashed), values[:sample]) for _ in range(3)) / sample,
    "fast": timed(FastLHClient(**fast), FastLHServer(**fast), values),
}
print(json.dumps(times))
