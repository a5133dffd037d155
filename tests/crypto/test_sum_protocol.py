"""The secure sum is the plain sum, for all dropouts that it tolerates."""

import numpy as np

from tests.crypto.making import Play, make_terms


def test_a_secure_sum_equals_the_plain_sum() -> None:
    play = Play(make_terms())
    opened = play.run()
    assert opened.survivors == tuple(range(6))
    np.testing.assert_array_equal(opened.total, play.values.sum(axis=0))
