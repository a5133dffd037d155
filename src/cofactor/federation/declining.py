"""What a party says that does not answer: a code, and nothing else.

Words of errors may quote what a party holds, so they stay with it. Codes are a closed list; whoever reads one
finds the words, and what to do, in this file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cofactor.errors import (
    BudgetExceeded,
    CofactorError,
    DataError,
    LedgerError,
    ProtocolError,
    Refused,
    RunError,
    TooFew,
)
from cofactor.federation.channel import Answers
from cofactor.federation.door import RoundLost
from cofactor.federation.messages import Letter, Message

LOST: Final = "lost"
WORDS: Final[Mapping[str, str]] = {
    "unreadable": "could not read the message. Is it of the same version?",
    "unknown session": "knows nothing of this session: it was restarted, or never agreed to it",
    "out of order": "was asked something that does not come next, or makes no sense",
    LOST: "had charged this round before a crash, and does not answer it twice",
    "too few": "found that too few parties are left, and told nothing",
    "over budget": "refused: its ledger has no room for that. Ask for less, or for fewer rounds",
    "not planned": "refused: that is more than was agreed on",
    "ledger": "cannot use its ledger: the people there must look at it",
    "version": "has another version of cofactor. Bring all to one version",
    "waiting": "has not decided yet",
    "not approved": "did not approve the plan. Talk to the people there",
    "policy: recipe": "has a policy that does not allow this recipe",
    "policy: epsilon of a run": "has a policy that allows less epsilon for a run",
    "policy: epsilon in all": "has a policy that allows less epsilon for all runs together",
    "policy: no budget": "has a policy that allows nothing without a budget",
    "policy: parties": "has a policy that asks for more parties",
    "policy: aggregate": "has a policy that asks for another kind of sum",
    "policy: ids": "has a policy that does not allow ids to be told in this way",
    "policy: kind": "has a policy that does not allow this kind of work",
    "unknown keys": "does not know the key of some party, or knows another. Compare fingerprints, and pin",
    "other terms": "found terms that do not follow from what it agreed to",
    "no data": "has no data that can be used for this. The people there must look at their file",
    "items": "holds items that the catalogue lacks. Extend the catalogue, or agree on the union",
    "scale": "has ratings on another scale than was proposed. Name the right scale",
    "kind of ids": "has ids of another form (text or numbers). Bring all to one form",
    "newer data": "has other data than its ledger was begun with. The people there must say if they grew",
    "missing extra": "lacks a package that this needs. The people there must install the extra",
    "failed": "failed. The people there find the reason in their log",
}
"""What each code means, after the party's name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Declined(Message):
    """No answer, and why not."""

    code: str


class Declining(CofactorError):
    """A party's own reason not to answer: the code goes out, the words stay at home."""

    exit_code = 1

    def __init__(self, code: str, words: str) -> None:
        """Take a code of the list, and words for the people at home."""
        super().__init__(words)
        self.code = code if code in WORDS else "failed"


def code_of(error: BaseException) -> str:
    """Return what others are told of an error."""
    kinds: tuple[tuple[type[BaseException], str], ...] = (
        (RoundLost, LOST),
        (TooFew, "too few"),
        (BudgetExceeded, "over budget"),
        (LedgerError, "ledger"),
        (DataError, "no data"),
        (Refused, "not planned"),
        (RunError, "out of order"),
        (ProtocolError, "out of order"),
        (ImportError, "missing extra"),
    )
    if isinstance(error, Declining):
        return error.code
    return next((code for kind, code in kinds if isinstance(error, kind)), "failed")


def declined(code: str, *, session: str, round: int, sender: str) -> bytes:
    """Return the letter that says so."""
    body = Declined(code=code if code in WORDS else "failed")
    return Letter(session=session, round=round, sender=sender, body=body).to_bytes()


def code_in(data: bytes) -> str | None:
    """Return the code of a letter that declines; None if it is an answer, or something else."""
    try:
        found = Letter.from_bytes(data, (Declined,)).body
    except RunError:
        return None
    assert isinstance(found, Declined)
    return found.code if found.code in WORDS else "failed"


def answers_from(replies: Mapping[str, bytes | str]) -> Answers:
    """Sort what came back: answers, and who is missing; a text says why nothing came at all."""
    codes = {party: code_in(data) for party, data in replies.items() if isinstance(data, bytes)}
    silent = {party: why for party, why in replies.items() if isinstance(why, str)}
    return Answers(
        by_party={
            party: data for party, data in replies.items() if isinstance(data, bytes) and codes[party] is None
        },
        missing={party: WORDS[code] for party, code in codes.items() if code is not None} | silent,
        lost=frozenset(party for party, code in codes.items() if code == LOST),
    )
