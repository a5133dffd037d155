"""Threads that run kernels side by side: kernels release the GIL, so plain Python threads do."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

_WORTH_A_THREAD = 200_000
"""Ratings below which handing work to another thread costs more than it saves."""


def team_size(threads: int | None, *, ratings: int, most: int | None = None) -> int:
    """Return the wanted number of threads, or the number that these ratings keep busy on this machine."""
    if threads is None:
        threads = max(1, min(len(os.sched_getaffinity(0)), ratings // _WORTH_A_THREAD))
    return threads if most is None else min(threads, most)


class Team:
    """So many threads, of which the caller's is the first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._others = ThreadPoolExecutor(size - 1) if size > 1 else None

    def together(self, work: Callable[[int], None]) -> None:
        """Run work(0) to work(size - 1) at the same time; return when all are done."""
        started = [self._others.submit(work, part) for part in range(1, self.size)] if self._others else []
        work(0)
        for future in started:
            future.result()

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._others:
            self._others.shutdown()
