"""Segments for recommenders: who has rated nothing is served by the cluster that her columns put her in."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from cofactor.cluster.clustering import find_clusters
from cofactor.cluster.method import NOWHERE, Floats, Integers
from cofactor.cluster.records import Records
from cofactor.cluster.result import Clustering
from cofactor.cluster.segments import SEGMENT, segment_coding, segment_names, segments, segments_table
from cofactor.cluster.tables import SecureTable
from cofactor.data.attributes import UserAttributes
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import CofactorError
from cofactor.federation.federation import Federation
from cofactor.randomness import InsecureRandom
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_weights import ObsOnly
from cofactor.recipes.train import train
from tests.cluster.making import budget

USERS, KINDS, ITEMS = 600, 3, 45
KIND = np.random.default_rng(4).integers(0, KINDS, USERS)
"""Three kinds of users: what they earn and buy goes with what they like."""
IDS = tuple(f"u{row}" for row in range(USERS))


def holding(name: str, columns: dict[str, list[float]], seed: int) -> Records:
    chance = np.random.default_rng(seed)
    means: Floats = np.array(list(columns.values()))[:, KIND].T
    return Records(
        name=name,
        ids=IDS,
        columns=tuple(columns),
        values=means + chance.normal(0, 4, means.shape),
        ranges=dict.fromkeys(columns, (0.0, 100.0)),
    )


BANK = holding("bank", {"age": [20, 50, 80], "income": [20, 80, 50]}, 5)
SHOP = holding("shop", {"visits": [75, 20, 45], "basket": [25, 80, 25]}, 6)


@pytest.fixture(scope="module")
def found() -> Clustering:
    return find_clusters(
        [BANK, SHOP],
        clusters=KINDS,
        budget=budget(8.0),
        method=SecureTable(bits=2048),
        align="ids",
        seed=1,
        random=InsecureRandom(3),
    )


def labels(found: UserAttributes) -> Integers:
    return np.where(np.isnan(found.matrix[:, 0]), NOWHERE, found.matrix.argmax(axis=1))


def test_segments_are_categories_that_everybody_knows(found: Clustering) -> None:
    told = segments(found, BANK)
    assert told.coding == segment_coding(found)
    assert told.coding.names == tuple(f"segment={name}" for name in segment_names(KINDS))
    assert not told.coding.read_off
    np.testing.assert_array_equal(labels(told), found.assign(BANK))
    assert told.ids.tolist() == list(IDS)
    assert "u17" not in repr(told)


def test_users_of_one_kind_are_in_one_segment_by_either_partys_columns(found: Clustering) -> None:
    for party in (BANK, SHOP):
        own = labels(segments(found, party))
        for kind in range(KINDS):
            # A tenth may be on the wrong side of noisy centres.
            these = own[kind == KIND]
            assert np.bincount(these, minlength=KINDS).max() > 0.9 * len(these)


def test_the_segment_of_somebody_with_a_missing_number_is_unknown(found: Clustering) -> None:
    values = BANK.values.copy()
    values[3, 1] = np.nan
    told = segments(found, replace(BANK, values=values))
    assert np.isnan(told.matrix[3]).all()
    assert not np.isnan(told.matrix[[0, 1, 2, 4]]).any()


def test_a_table_of_segments_reads_as_categories_and_not_as_amounts(found: Clustering) -> None:
    values = BANK.values.copy()
    values[3, 1] = np.nan
    named = replace(BANK, values=values, ids=('"quoted", with a comma', *IDS[1:]))
    rows = list(csv.reader(io.StringIO(segments_table(found, named))))
    assert rows[0] == ["user", SEGMENT]
    assert rows[1][0] == '"quoted", with a comma'
    assert rows[4] == ["u3", ""]
    names = segment_names(KINDS)
    assert [row[1] for row in rows[5:]] == [names[at] for at in found.assign(BANK)[4:]]


def test_only_a_party_with_its_own_columns_has_segments(found: Clustering) -> None:
    for stranger in (replace(BANK, name="thief"), replace(BANK, name="shop")):
        with pytest.raises(CofactorError):
            segments(found, stranger)


def test_newcomers_are_served_better_by_their_segment_than_by_what_is_popular(found: Clustering) -> None:
    chance = np.random.default_rng(7)
    quality = chance.normal(0, 0.3, ITEMS)
    liked = np.where(np.arange(ITEMS) % KINDS == np.arange(KINDS)[:, None], 4.4, 2.4) + quality
    rated = (chance.random((USERS, ITEMS)) < 0.25) & (np.arange(USERS) < 450)[:, None]
    users, items = np.nonzero(rated)
    stars = np.clip(np.rint(liked[KIND[users], items] + chance.normal(0, 0.5, len(users))), 1, 5)
    ratings = Ratings.from_arrays([IDS[user] for user in users], items, stars.astype(np.float32))
    told = segments(found, BANK)
    federation = Federation.on_device(ratings, scale=Scale(1, 5)).with_user_attributes(told)
    run = train(MultiViewMF(factors=3, rounds=60, unrated=ObsOnly(), penalty=1.0), federation)
    assert run.model is not None
    names = segment_names(KINDS)
    served = {
        name: np.array([best.item for best in run.model.recommend_for_attributes({SEGMENT: name}, n=10)])
        for name in names
    }
    means = np.bincount(items, stars, minlength=ITEMS) / np.bincount(items, minlength=ITEMS)
    popular = np.argsort(-means)[:10]
    # The newcomers have rated nothing: all that is known of them is what the bank knows.
    newcomers = np.arange(450, USERS)
    own = labels(told)
    by_segment = np.mean([liked[KIND[user], served[names[own[user]]]].mean() for user in newcomers])
    by_popularity = np.mean([liked[KIND[user], popular].mean() for user in newcomers])
    # At best 4.4 and the quality of the best ten of fifteen, against a third of that and two thirds of 2.4.
    assert by_segment > by_popularity + 0.8
    assert by_segment > 4.2
