"""Segments for recommenders: which cluster each of a party's users belongs to, as an attribute of hers.

    told = segments(found, records)                            # the party's own users, by its own columns
    federation = federation.with_user_attributes(told)         # for a recipe that uses them: MultiViewMF
    run = train(MultiViewMF(), federation, budget=...)
    run.recommend_for_attributes({"segment": "cluster 2"})     # somebody who has rated nothing yet

What that means for privacy. The centres were released, with noise, and charged when they were found: whatever
is done with them costs nothing more. But to which of them a user is closest follows from her own columns. So
her segment is as private as these: it goes to her own party, as other attributes do, and leaves it only
through the door of a recipe, which charges for it as it charges for ratings: to the ledger of the ratings,
not to that of the columns. How many segments there are, and what they are called, is public.
"""

import csv
import io

import numpy as np

from cofactor.cluster.method import NOWHERE
from cofactor.cluster.records import Records
from cofactor.cluster.result import Clustering
from cofactor.data.attributes import UserAttributes
from cofactor.data.coding import Coding

SEGMENT = "segment"
"""What the attribute is called."""


def segment_names(clusters: int) -> tuple[str, ...]:
    """Return what clusters are called, in their order: words, so that nobody takes them for amounts."""
    return tuple(f"cluster {number}" for number in range(clusters))


def segment_coding(clustering: Clustering) -> Coding:
    """Return how segments are coded: a number for each, known to everybody who knows the centres."""
    return Coding.stated({SEGMENT: segment_names(clustering.clusters)})


def segments(clustering: Clustering, records: Records) -> UserAttributes:
    """Return the segment of each of a party's users, by the party's own columns; private, as these are.

    Of a user with a missing number it is unknown.
    """
    found = clustering.assign(records)
    known = np.eye(clustering.clusters, dtype=np.float32)
    unknown = np.full((1, clustering.clusters), np.nan, np.float32)
    return UserAttributes(
        coding=segment_coding(clustering),
        ids=np.array(records.ids, np.str_),
        matrix=np.concatenate([known, unknown])[np.where(found == NOWHERE, clustering.clusters, found)],
        source=f"segments of the users of {records.name}",
    )


def segments_table(clustering: Clustering, records: Records) -> str:
    """Return the same as the text of a .csv file, which a party keeps: LOCAL."""
    names = dict(enumerate(segment_names(clustering.clusters))) | {NOWHERE: ""}
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(("user", SEGMENT))
    rows = zip(records.ids, clustering.assign(records).tolist(), strict=True)
    writer.writerows((one, names[place]) for one, place in rows)
    return written.getvalue()
