"""What parties sign before they take part, and what cannot pass for it."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from cofactor.errors import ConfigError, RunError
from cofactor.federation.approvals import Approved, approvals_from, check_approvals
from tests.federation.approving import BOTH, PROPOSAL, SESSION, WHEN, approved

OTHER = "ce" * 32


def test_approvals_come_back_as_they_were_written() -> None:
    both = (approved("north"), approved("south"))
    assert approvals_from([asdict(each) for each in both]) == both
    assert check_approvals(both, BOTH, SESSION).startswith(f"2 parties signed proposal {PROPOSAL[:16]}")
    assert check_approvals(both, ("south",), SESSION) == check_approvals(both, BOTH, SESSION)


CHANGES: dict[str, dict[str, Any]] = {
    "how": {"how": "by policy"},
    "when": {"when": WHEN.replace("19", "18")},
    "proposal": {"proposal": OTHER},
    "identity": {"identity": approved("south").identity},
    "signature": {"signature": approved("south").signature},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_is_changed_is_not_signed(change: dict[str, Any]) -> None:
    changed = replace(approved("north", parties=["north"]), **change)
    assert not changed.signed(SESSION, ["north"])
    with pytest.raises(RunError, match="north: this approval is not what its key signed"):
        check_approvals([changed], ["north"], SESSION)


def test_an_approval_is_for_one_session_and_for_all_who_agreed() -> None:
    both = [approved("north"), approved("south")]
    for approvals, session in (
        (both, "5f" * 8),
        (both[:1], SESSION),
        ([*both, approved("west")], SESSION),
        ([approved("north", parties=["north"]), both[1]], SESSION),
    ):
        with pytest.raises(RunError, match="not for this session, or others agreed than are named"):
            check_approvals(approvals, ["north"], session)


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
        check_approvals(make(), BOTH, SESSION)


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
