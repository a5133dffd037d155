"""The nearest probabilities to numbers that should be some: Norm-Sub."""

from typing import Any

import numpy as np

from cofactor.errors import DataError
from cofactor.survey.method import Floats


def norm_sub(values: Any) -> Floats:
    """Return max(value - amount, 0) with the one amount for which these add up to 1 (thesis, section 3.4.1).

    That is where subtracting again and again from what is left above 0 ends, and it is the nearest point of
    the simplex (Wang et al. 2020). Where numbers above 0 add up to less than 1, the amount is negative, and
    those below 0 get their part of it, too.
    """
    found = np.asarray(values, np.float64)
    if found.ndim != 1 or not found.size or not np.all(np.isfinite(found)):
        raise DataError("norm_sub needs a row of one or more finite numbers.")
    # Adding the same to all changes nothing. With the largest at 0, whatever is above 0 in the end lies
    # between -1 and 0: no digits are lost to a large amount.
    below = found - found.max()
    return np.asarray(np.maximum(below - _amount(below), 0.0))


def _amount(below: Floats) -> float:
    """Return what is subtracted, where the largest number is 0: at most as many are left as fit into 1."""
    ordered = np.sort(below[below > -1])[::-1]
    amounts = (np.cumsum(ordered) - 1) / np.arange(1, ordered.size + 1)
    return float(amounts[np.flatnonzero(ordered > amounts)[-1]])
