"""What parties sign before they take part, and what cannot pass for it."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from cofactor.errors import ConfigError, RunError
from cofactor.federation.approvals import Approved, approvals_from, check_approvals
from tests.federation.approving import PROPOSAL, WHEN, approved

OTHER = "ce" * 32


def test_approvals_come_back_as_they_were_written() -> None:
    both = (approved("north"), approved("south"))
    assert approvals_from([asdict(each) for each in both]) == both
    assert check_approvals(both, ("north", "south")).startswith(f"2 parties signed proposal {PROPOSAL[:16]}")


CHANGES: dict[str, dict[str, Any]] = {
    "how": {"how": "by policy"},
    "when": {"when": WHEN.replace("19", "18")},
    "proposal": {"proposal": OTHER},
    "identity": {"identity": approved("south").identity},
    "signature": {"signature": approved("south").signature},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_is_changed_is_not_signed(change: dict[str, Any]) -> None:
    changed = replace(approved("north"), **change)
    assert not changed.signed
    with pytest.raises(RunError, match="north: its approval is not signed by its key"):
        check_approvals([changed], ["north"])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: [approved("north")], "south: took part, and no approval says so"),
        (lambda: [approved("north"), approved("south", proposal=OTHER)], "not of one proposal"),
        (lambda: [approved("north"), approved("south"), approved("south")], "one for each party"),
    ],
    ids=["silent", "two proposals", "twice"],
)
def test_approvals_must_be_of_all_and_of_the_same(make: Callable[[], list[Approved]], words: str) -> None:
    with pytest.raises(RunError, match=words):
        check_approvals(make(), ["north", "south"])


@pytest.mark.parametrize(
    "change",
    [
        {"identity": "ab"},
        {"proposal": "x" * 64},
        {"when": "yesterday"},
        {"when": 7},
        {"how": "by nobody"},
        {"signature": ""},
        {"party": "a/b"},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_no_approval_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        approvals_from([asdict(approved("north")) | change])
