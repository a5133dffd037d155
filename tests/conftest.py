"""Shared fixtures."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def real_data() -> Callable[[str], Path]:
    """Find a real data file in the folder that COFACTOR_DATA names; skip without it, fail under CI."""

    def find(name: str) -> Path:
        path = Path(os.environ.get("COFACTOR_DATA", "data")) / name
        if not path.exists():
            reason = f"{name} is not in the folder that COFACTOR_DATA names"
            pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
        return path

    return find
