import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.data.grouping import Grouped
from cofactor.errors import ConfigError
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_letters import ViewsAsked
from cofactor.recipes.multiview_weights import Entries, InclUnc, ObsOnly, SampledUnrated, entries_of
from tests.recipes.multiview_parties import CODING, ITEMS, dense, device, some_attributes, some_rows


def grouped(rated: list[list[int]]) -> Grouped:
    sizes = [len(each) for each in rated]
    index = np.array([item for each in rated for item in each], np.int32)
    return Grouped(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), index, index + np.float32(1))


def decoys_of(entries: Entries, user: int) -> set[int]:
    part = slice(entries.ptr[user], entries.ptr[user + 1])
    own = entries.items[part][entries.weights[part] != 1.0].tolist()
    assert len(set(own)) == len(own)
    return set(own)


@given(
    st.lists(st.sets(st.integers(0, 8)), max_size=5),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.integers(0, 2**32),
)
def test_decoys_are_as_many_as_asked_for_and_none_was_rated(
    rated: list[set[int]], rho: float, seed: int
) -> None:
    lists = [sorted(each) for each in rated]
    found = entries_of(grouped(lists), SampledUnrated(alpha=0.3, rho=rho), 9, InsecureRandom(seed).new_key())
    for user, own in enumerate(lists):
        decoys = decoys_of(found, user)
        assert len(decoys) == min(round(rho * len(own)), 9 - len(own))
        assert not decoys & set(own)
        part = slice(found.ptr[user], found.ptr[user + 1])
        told = dict(zip(found.items[part].tolist(), found.values[part].tolist(), strict=True))
        assert told == {item: item + 1.0 for item in own} | dict.fromkeys(decoys, 0.0)
        assert set(found.weights[part].tolist()) <= {1.0, 0.3}


def test_the_same_key_gives_the_same_decoys_and_another_key_others() -> None:
    own, unrated = grouped([list(range(20))]), SampledUnrated()
    keys = [SecureRandom().new_key() for _ in range(2)]
    first, again, other = (decoys_of(entries_of(own, unrated, 200, keys[at]), 0) for at in (0, 0, 1))
    assert first == again
    assert first != other  # the same 20 of 180 have a chance of 10^-26


def test_all_decoys_are_equally_likely() -> None:
    # Two of four unrated items: six pairs. A count is 10 deviations off once in 10^22 times.
    own, draws, seen = grouped([[1, 3]] * 100), 60, Counter[frozenset[int]]()
    for _ in range(draws):
        found = entries_of(own, SampledUnrated(rho=1.0), 6, SecureRandom().new_key())
        seen.update(frozenset(decoys_of(found, user)) for user in range(100))
    each = 100 * draws / 6
    assert len(seen) == 6
    assert all(abs(count - each) < 10 * math.sqrt(each) for count in seen.values())


def test_without_decoys_what_was_not_rated_counts_alike_everywhere() -> None:
    own = grouped([[0, 2], []])
    for unrated, everywhere in ((ObsOnly(), 0.0), (InclUnc(alpha=0.25), 0.25)):
        found = entries_of(own, unrated, 3, SecureRandom().new_key())
        assert found.everywhere == everywhere
        np.testing.assert_array_equal(
            found.dense(3).weights.reshape(2, 3), [[1, everywhere, 1], [everywhere] * 3]
        )
        np.testing.assert_array_equal(found.dense(3).values.reshape(2, 3), [[1, 0, 3], [0, 0, 0]])


def test_decoys_stay_the_same_in_all_rounds_and_after_a_restart() -> None:
    # If they were drawn anew, what stays in every round would be what was rated.
    rows, attributes = some_rows(), some_attributes()
    recipe = MultiViewMF(unrated=SampledUnrated(rho=0.5), factors=2)
    asked = ViewsAsked(items=np.ones((ITEMS, 2)), attributes=np.ones((CODING.width, 2)))
    half = device(recipe, rows, attributes, random=SecureRandom())
    begun = dense(half)[1]
    assert (begun == 0.1).sum() > 3
    for round in range(1, 4):
        half.handle(round, asked)
        np.testing.assert_array_equal(dense(half)[1], begun)
    for _ in range(5):
        again = device(recipe, rows, attributes, random=SecureRandom())
        again.restore(half.state())
        np.testing.assert_array_equal(dense(again)[1], begun)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, math.nan])
def test_weights_outside_0_to_1_are_refused(alpha: float) -> None:
    for kind in (InclUnc, SampledUnrated):
        with pytest.raises(ConfigError, match="alpha must lie between 0 and 1"):
            kind(alpha=alpha)
    with pytest.raises(ConfigError, match="rho must be"):
        SampledUnrated(rho=-1.0)
