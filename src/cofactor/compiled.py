"""How kernels are compiled: one place for the flags, so that all of them are cached and release the GIL.

Kernels are small pure functions on arrays, with a plain numpy twin in the tests.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])

_FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def kernel(function: F) -> F:
    """Compile a function; its machine code is kept on disk, unless there is nowhere to keep it."""
    try:
        return cast(F, numba.njit(cache=True, **_FLAGS)(function))
    except RuntimeError:  # numba found no folder to write to: read-only installations without a home
        return cast(F, numba.njit(**_FLAGS)(function))


def inlined(function: F) -> F:
    """Compile a function into those that call it.

    LLVM leaves large functions alone and does not vectorise a loop that calls one. Contraction lets a product
    and a sum round once, where the machine can; integers do not notice.
    """
    return cast(F, numba.njit(forceinline=True, fastmath={"contract"}, **_FLAGS)(function))


def kept_on_disk(kernel: object) -> bool:
    """Say whether a kernel's machine code is kept for the next start."""
    dispatcher: Any = kernel
    return dispatcher.stats.cache_path is not None
