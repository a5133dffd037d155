import numpy as np
import pytest

from cofactor.errors import ConfigError
from cofactor.randomness import InsecureRandom, Key, Random, SecureRandom, Seeds


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


def keys(random: Random, count: int) -> list[Key]:
    return [random.new_key() for _ in range(count)]


def test_secure_keys_never_repeat() -> None:
    # 256 bits: the chance of a repetition among so few is below 1e-70.
    drawn = keys(SecureRandom(), 500) + keys(SecureRandom(), 500)
    assert len({key.tobytes() for key in drawn}) == 1000


def test_secure_keys_use_all_their_bits() -> None:
    bits = np.unpackbits(np.stack(keys(SecureRandom(), 10_000)).view(np.uint8), axis=1)
    # 256 means of standard deviation 0.005: one beyond 0.035 has a chance below 1e-9.
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.035


@pytest.mark.parametrize("random", [SecureRandom(), InsecureRandom(3)])
def test_a_key_is_eight_words_of_its_own(random: Random) -> None:
    first, second = keys(random, 2)
    assert first.shape == second.shape == (8,)
    assert first.dtype == second.dtype == np.uint32
    first[:] = 0
    assert second.any()


def test_secure_random_takes_no_seed() -> None:
    assert SecureRandom().secure
    with pytest.raises(TypeError):
        SecureRandom(7)  # type: ignore[call-arg]


def test_insecure_keys_repeat_with_the_seed_and_differ_within_it() -> None:
    assert not InsecureRandom(7).secure
    one, two = keys(InsecureRandom(7), 100), keys(InsecureRandom(7), 100)
    assert np.array_equal(one, two)
    assert len({key.tobytes() for key in one + keys(InsecureRandom(8), 100)}) == 200


@pytest.mark.parametrize("seed", [-1, 1.5, "7", None, True])
def test_bad_insecure_seed_is_refused(seed: object) -> None:
    with pytest.raises(ConfigError, match="seed must be a whole number, 0 or more, got"):
        InsecureRandom(seed)  # type: ignore[arg-type]
