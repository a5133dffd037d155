"""Time flwr's masks of one client: argv is how many values and neighbours, and the repeats.

The masks of SecAgg+ are made, added and taken off by the functions and on the arrays that its client uses;
keys are agreed beforehand. Its seeds have 28 effective bits, ours 256.
"""

import base64
import json
import os
import sys
import time

import numpy as np
from flwr.common.secure_aggregation.ndarrays_arithmetic import (  # type: ignore[import-not-found]
    parameters_addition,
    parameters_mod,
    parameters_subtraction,
)
from flwr.common.secure_aggregation.secaggplus_utils import (  # type: ignore[import-not-found]
    pseudo_rand_gen,
)

MODULUS = 1 << 32
"""The default of flwr's SecAgg+."""


def masked(values: list[np.ndarray], keys: list[bytes]) -> list[np.ndarray]:
    """Mask as flwr's client does, for half of the neighbours with each sign."""
    shapes = [array.shape for array in values]
    for number, key in enumerate(keys):
        combine = parameters_addition if number % 2 else parameters_subtraction
        values = combine(values, pseudo_rand_gen(key, MODULUS, shapes))
    return parameters_mod(values, MODULUS)


count, neighbours, repeats = (int(word) for word in sys.argv[1:])
keys = [base64.urlsafe_b64encode(os.urandom(32)) for _ in range(neighbours)]
values = [np.arange(count, dtype=np.int64)]
times = []
for _ in range(repeats):
    start = time.process_time()
    masked(values, keys)
    times.append(time.process_time() - start)
print(json.dumps({"seconds": min(times)}))
