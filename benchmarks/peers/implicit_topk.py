"""Time implicit's top-k over the arrays of an .npz file: DATA N REPEATS."""

import json
import sys
import time

import numpy as np
from implicit.cpu.topk import topk  # type: ignore[import-not-found]
from scipy.sparse import csr_matrix


def main(path: str, n: int, repeats: int) -> None:
    """Print the least CPU time of several calls, and the items of the first users to compare."""
    data = dict(np.load(path))
    users, items = data["user_vectors"], data["item_vectors"]
    seen = csr_matrix(
        (np.ones(len(data["seen_index"]), np.float32), data["seen_index"], data["seen_ptr"]),
        shape=(len(users), len(items)),
    )
    times = []
    for _ in range(repeats):
        start = time.process_time()
        best, _ = topk(items, users, n, filter_query_items=seen, num_threads=1)
        times.append(time.process_time() - start)
    print(json.dumps({"seconds": min(times), "items": best[:100].tolist()}))


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
