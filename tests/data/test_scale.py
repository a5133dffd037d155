import numpy as np

from cofactor.data.scale import Scale


def test_step_is_read_off_values_that_come_late_too() -> None:
    assert Scale.of(np.array([1, 3] * 10_000 + [2], np.float32)) == Scale(1, 3, 1)


def test_gap_that_is_tiny_beside_the_scale_is_no_step() -> None:
    assert Scale.of(np.array([0, 1e-4, 1000], np.float32)) == Scale(0, 1000)
    assert Scale.of(np.array([0, 0.5, 1000], np.float32)) == Scale(0, 1000, 0.5)
