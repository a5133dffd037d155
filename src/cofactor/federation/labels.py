"""What events of a session are called: which release, and in which round."""

from cofactor.privacy.events import Event

_ROUND = ", round "


def in_round(what: str, round: int) -> str:
    """Return what a release is called in a round."""
    return f"{what}{_ROUND}{round}"


def release_of(event: Event) -> str:
    """Return which release an event is of, its round apart."""
    what, mark, _ = event.what.rpartition(_ROUND)
    return what if mark else event.what


def round_of(event: Event) -> int | None:
    """Return the round that an event's label tells, if it has one."""
    _, mark, number = event.what.rpartition(_ROUND)
    return int(number) if mark and number.isascii() and number.isdigit() else None
