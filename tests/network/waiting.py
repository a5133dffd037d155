"""Tests of real processes wait for what must happen, and fail if it does not."""

import time
from collections.abc import Callable


def wait_for(happened: Callable[[], object], *, seconds: float = 90.0) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)
