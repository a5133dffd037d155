import numpy as np
import pytest

from cofactor.errors import ConfigError
from cofactor.randomness import Seeds


def draws(seed: int, purpose: str, count: int = 1000) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return Seeds(seed).generator(purpose).random(count)


def test_same_seed_and_purpose_give_the_same_stream() -> None:
    assert np.array_equal(draws(7, "split"), draws(7, "split"))


@pytest.mark.parametrize(("seed", "purpose"), [(8, "split"), (7, "splits"), (7, ""), (7, "Split")])
def test_other_seeds_and_other_purposes_give_other_streams(seed: int, purpose: str) -> None:
    assert not np.isin(draws(7, "split"), draws(seed, purpose)).any()


def test_asking_for_one_stream_does_not_shift_another() -> None:
    seeds = Seeds(3)
    seeds.generator("initial factors").random(10)
    assert np.array_equal(seeds.generator("split").random(1000), draws(3, "split"))


def test_streams_of_neighbouring_seeds_are_uncorrelated() -> None:
    streams = np.stack([draws(seed, "noise-free", 10_000) for seed in range(40)])
    correlations = np.asarray(np.corrcoef(streams))
    off_diagonal = correlations[np.triu_indices(40, 1)]
    # 780 correlations of standard deviation 0.01: one beyond 0.065 has a chance below 1e-7.
    assert np.abs(off_diagonal).max() < 0.065


def test_the_stream_of_a_seed_is_pinned_so_that_old_runs_can_be_repeated() -> None:
    assert Seeds(0).generator("pinned").integers(1000, size=4).tolist() == [985, 353, 825, 435]


@pytest.mark.parametrize("seed", [-1, 1.5, "7", None, True])
def test_bad_seed_is_refused(seed: object) -> None:
    with pytest.raises(ConfigError, match="seed must be a whole number, 0 or more, got"):
        Seeds(seed)  # type: ignore[arg-type]
