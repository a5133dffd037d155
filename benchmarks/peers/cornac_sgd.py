"""Time cornac's MF: argv is a .npz file of users, items and values, the number of factors, and the repeats.

Its compiled epoch is called as `MF.fit` calls it, on ratings sorted by user (its fastest order), one thread.
"""

import json
import sys
import time

import numpy as np
from cornac.models.mf import backend_cpu  # type: ignore[import-not-found]

path, factors, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with np.load(path) as file:
    users, items, values = (np.asarray(file[name]) for name in ("users", "items", "values"))
generator = np.random.default_rng(0)
user_vectors = generator.normal(0, 0.01, (users.max() + 1, factors)).astype(np.float32)
item_vectors = generator.normal(0, 0.01, (items.max() + 1, factors)).astype(np.float32)
tables = (user_vectors, item_vectors, *(np.zeros(len(t), np.float32) for t in (user_vectors, item_vectors)))
ratings = (users.astype(np.int64), items.astype(np.int64), values.astype(np.float32))
settings = (0.01, 0.02, float(values.mean()), 1, 1, True, False, False)

times = []
for _ in range(repeats):
    start = time.process_time()
    backend_cpu.fit_sgd(*ratings, *tables, *settings)
    times.append(time.process_time() - start)
print(json.dumps({"seconds": min(times)}))
