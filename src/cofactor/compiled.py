"""How kernels are compiled: one place for the flags, so that all of them are cached and release the GIL.

Kernels are small pure functions on arrays, with a plain numpy twin in the tests.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])

_FLAGS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


def kernel(function: F) -> F:
    """Compile a function for one thread."""
    return cast(F, numba.njit(**_FLAGS)(function))
