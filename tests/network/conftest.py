"""What tests of seats leave behind is put away."""

from collections.abc import Iterator
from typing import Any

import pytest

from cofactor.network.seat import Seat


@pytest.fixture(autouse=True)
def all_seats_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every seat that a test has opened."""
    made: list[Seat] = []
    first = Seat.__init__

    def noted(self: Seat, *given: Any, **more: Any) -> None:
        first(self, *given, **more)
        made.append(self)

    monkeypatch.setattr(Seat, "__init__", noted)
    yield
    for seat in made:
        seat.close()
