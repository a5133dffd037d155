from typing import Any

import numba
import pytest

from cofactor.compiled import kept_on_disk, kernel


def double(number: int) -> int:
    return 2 * number


def test_kernel_is_compiled_and_kept() -> None:
    compiled = kernel(double)
    assert compiled(21) == 42
    assert kept_on_disk(compiled)


def test_kernel_works_where_there_is_nowhere_to_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_it: Any = numba.njit

    def without_a_folder(**flags: Any) -> object:
        if flags.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return compile_it(**flags)

    monkeypatch.setattr(numba, "njit", without_a_folder)
    compiled = kernel(double)
    assert compiled(21) == 42
    assert not kept_on_disk(compiled)
