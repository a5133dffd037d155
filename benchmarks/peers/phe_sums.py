"""Time python-paillier, one value per ciphertext: argv is the key's bits and how many values are sampled.

Whole numbers go in, which spares it the alignment of exponents that floats need; ciphertexts stay in memory.
Times are CPU seconds for one value, the least of three turns.
"""

import json
import sys
import time

from phe.paillier import generate_paillier_keypair  # type: ignore[import-not-found]


def timed(call, values):  # type: ignore[no-untyped-def]
    """Call it on each value; return the least CPU time for one of them, and the answers."""
    best, answers = float("inf"), []
    for _ in range(3):
        start = time.process_time()
        answers = [call(*value) for value in values]
        best = min(best, (time.process_time() - start) / len(values))
    return best, answers


bits, count = (int(word) for word in sys.argv[1:])
public, private = generate_paillier_keypair(n_length=bits)
numbers = [(place * 7919) % 2**33 - 2**32 for place in range(count)]
encrypt, encrypted = timed(public.encrypt, [(number,) for number in numbers])
add, sums = timed(lambda a, b: a + b, [(each, each) for each in encrypted])
decrypt, opened = timed(private.decrypt, [(each,) for each in sums])
if opened != [2 * number for number in numbers]:
    raise SystemExit("python-paillier's sum is wrong")
print(json.dumps({"encrypt": encrypt, "add": add, "decrypt": decrypt, "bytes": 2 * bits // 8}))
