"""What to do about a release that does not fit: how many would, or how much noise it needs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from cofactor.errors import CofactorError
from cofactor.figures import rounded_up
from cofactor.privacy.events import Event

Fits = Callable[[Sequence[Event]], bool]

_MOST_NOISE = 1024.0
"""Times the noise that was asked for; what needs more drowns anyway."""
_CLOSE = 1.01
"""How near to the least sufficient noise the search goes."""


def described(events: Sequence[Event]) -> str:
    """Name the releases: "item gradients by north (100 times)"."""
    if len(events) > 1:
        return f"these {_releases(events):,} releases"
    [event] = events
    times = f" ({event.count:,} times)" if event.count > 1 else ""
    return f"{event.what} by {event.by}{times}"


def told_apart(epsilon: float, allowed: float) -> tuple[str, str]:
    """Write an epsilon, rounded up, with enough digits to tell it from the smaller one that is allowed."""
    words = f"{allowed:.2f}" if round(allowed, 2) == allowed else f"{allowed:g}"
    if math.isinf(epsilon):
        return "infinity", words
    decimals = next((n for n in range(2, 12) if round(epsilon, n) > allowed), 12)
    steps = math.ceil(round(epsilon * 10**decimals, 6))
    return f"{steps / 10**decimals:.{decimals}f}", words


def advice(events: Sequence[Event], fits: Fits) -> str:
    """Say what would fit, given that these events together do not."""
    most, noise = _most_that_fit(events, fits), _enough_noise(events, fits)
    if most == 0:
        return f"Not one such release would fit; use {noise}." if noise else "The budget is spent."
    some = (
        f"{most:,} such releases would fit" if len(events) == 1 else f"The first {most:,} of them would fit"
    )
    return f"{some}, or use {noise}." if noise else f"{some}."


def _most_that_fit(events: Sequence[Event], fits: Fits) -> int:
    """Return how many releases from the first on fit; that all do is known to be wrong."""
    most, too_many = 0, _releases(events)
    while too_many - most > 1:
        middle = (most + too_many) // 2
        if fits(_first(events, middle)):
            most = middle
        else:
            too_many = middle
    return most


def _enough_noise(events: Sequence[Event], fits: Fits) -> str:
    """Return the noise with which all fit, in words; nothing if there is none."""
    enough = 2.0
    while not _fits_with(enough, events, fits):
        enough *= 2
        if enough > _MOST_NOISE:
            return ""
    too_little = enough / 2
    while enough / too_little > _CLOSE:
        middle = math.sqrt(enough * too_little)
        if _fits_with(middle, events, fits):
            enough = middle
        else:
            too_little = middle
    return _in_words(enough, events)


def _fits_with(factor: float, events: Sequence[Event], fits: Fits) -> bool:
    try:
        scaled = [replace(event, mechanism=event.mechanism.scaled(factor)) for event in events]
    except CofactorError:
        return False
    return fits(scaled)


def _in_words(factor: float, events: Sequence[Event]) -> str:
    multiplier = getattr(events[0].mechanism, "noise_multiplier", None)
    if len(events) == 1 and multiplier is not None:
        return f"noise_multiplier >= {rounded_up(factor * multiplier)}"
    epsilon = getattr(events[0].mechanism, "epsilon", None)
    if len(events) == 1 and epsilon is not None:
        return f"epsilon <= {math.floor(1000 * epsilon / factor) / 1000:g}"
    return f"{rounded_up(factor)} times the noise"


def _first(events: Sequence[Event], releases: int) -> list[Event]:
    chosen: list[Event] = []
    for event in events:
        count = min(event.count, releases)
        releases -= count
        if count:
            chosen.append(replace(event, count=count))
    return chosen


def _releases(events: Sequence[Event]) -> int:
    return sum(event.count for event in events)
