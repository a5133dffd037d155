"""Time multi-freq-ldpy's GRR and OLH: argv is epsilon, the values, people for GRR, and reports for OLH.

CPU seconds: of GRR for all people, of OLH for one report; everybody's report and the estimate in both.
"""

import json
import sys
import time

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import (  # type: ignore[import-not-found]
    GRR_Aggregator_MI,
    GRR_Client,
)
from multi_freq_ldpy.pure_frequency_oracles.LH import (  # type: ignore[import-not-found]
    LH_Aggregator_MI,
    LH_Client,
)


def timed(client, aggregator, values, buckets, epsilon):  # type: ignore[no-untyped-def]
    """Return the CPU time of all reports and of the estimate."""
    start = time.process_time()
    aggregator([client(value, buckets, epsilon) for value in values], buckets, epsilon)
    return time.process_time() - start


epsilon, buckets, people, sample = float(sys.argv[1]), *(int(word) for word in sys.argv[2:])
values = (np.random.default_rng(0).beta(5, 2, people) * buckets).astype(int).tolist()
GRR_Client(0, buckets, epsilon)  # compiles
grr = timed(GRR_Client, GRR_Aggregator_MI, values, buckets, epsilon)
olh = min(timed(LH_Client, LH_Aggregator_MI, values[:sample], buckets, epsilon) for _ in range(3))
print(json.dumps({"grr": grr, "olh": olh / sample}))
