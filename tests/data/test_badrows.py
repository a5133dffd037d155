import numpy as np

from cofactor.data.badrows import duplicate_lines
from cofactor.data.layout import Record


def test_duplicate_is_the_pair_whose_second_row_comes_first() -> None:
    # Users and items go A B C B A in the file: B comes twice first, though A is first by number.
    users, items = np.array([0, 1, 0, 1, 0], np.int32), np.array([0, 0, 1, 0, 0], np.int32)
    records: list[Record] = [(line, []) for line in (2, 3, 5, 6, 9)]
    assert duplicate_lines(users, items, records) == (3, 6)
