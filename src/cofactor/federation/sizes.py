"""What a message of a sum says of the noise in its arrays, in layers: a size for each array and law."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import RunError
from cofactor.privacy.laws import AnyLaw, PolyaLaw, SkellamLaw


def sizes_of(laws: Sequence[AnyLaw | None]) -> dict[str, NDArray[np.float64]]:
    """Return the fields that say which noise of the sum lies in layers, for each array; None for none."""
    return {
        "variances": np.array([law.variance if isinstance(law, SkellamLaw) else 0.0 for law in laws]),
        "scales": np.array([law.scale if isinstance(law, PolyaLaw) else 0.0 for law in laws]),
    }


def laws_in(message: Any, arrays: int, party: str) -> list[AnyLaw | None]:
    """Return what a message says of the noise in its arrays; refuse what cannot be."""
    variances, scales = (np.asarray(each, np.float64) for each in (message.variances, message.scales))
    for found in (variances, scales):
        if found.shape != (arrays,) or not (np.isfinite(found) & (found >= 0)).all():
            raise RunError(f"{party} says something impossible about its noise.")
    if np.any((variances > 0) & (scales > 0)):
        raise RunError(f"{party} says that its noise follows two laws at once.")
    return [_law(*sizes) for sizes in zip(variances.tolist(), scales.tolist(), strict=True)]


def _law(variance: float, scale: float) -> AnyLaw | None:
    if variance > 0:
        return SkellamLaw(variance=variance)
    return PolyaLaw(scale=scale) if scale > 0 else None
