"""What parties sign and compare before the first round: texts that are the same for everybody."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from cofactor.config import as_table, from_table
from cofactor.data.ids import Ids, plain_ids
from cofactor.errors import CofactorError, ConfigError
from cofactor.federation.declining import Declining
from cofactor.federation.finding import Alignment, Meeting
from cofactor.network.proposal import Proposal


def known_text(shown: Mapping[str, Ids], alignment: Alignment | None) -> str:
    """Write down what all parties know before they count: ids that were shown, or how users were found."""
    lists = [[party, ids.tolist()] for party, ids in shown.items()]
    return json.dumps({"shown": lists, "alignment": None if alignment is None else as_table(alignment)})


def known_of(text: str) -> tuple[dict[str, Ids], Alignment | None]:
    """Read it, from whomever it came."""
    try:
        table = json.loads(text)
        shown = {str(party): plain_ids(ids) for party, ids in table["shown"]}
        found = table["alignment"]
        return shown, None if found is None else alignment_from(found)
    except (ValueError, KeyError, TypeError, RecursionError, CofactorError):
        raise Declining("unreadable", "what all parties know cannot be read.") from None


def alignment_from(table: Mapping[str, Any]) -> Alignment:
    """Read how users in common were found."""
    plain = {name: value for name, value in table.items() if name != "meetings"}
    found = from_table(Alignment, plain, "alignment")
    meetings = tuple(from_table(Meeting, each, "meeting") for each in table.get("meetings", ()))
    if len(found.parties) != len(found.users):
        raise ConfigError("an alignment that makes no sense.")
    return Alignment(**{**vars(found), "meetings": meetings})


def told_text(proposal: Proposal, known: str, facts: str) -> bytes:
    """Return what a party signs when it tells its facts: also the proposal, and what all know by then."""
    return b"cofactor: what a party told\n" + _hashes(proposal.as_json(), known, facts)


def terms_text(proposal: Proposal, terms: str) -> bytes:
    """Return what a party signs when it is ready."""
    return b"cofactor: terms that a party accepts\n" + _hashes(proposal.as_json(), terms)


def charged_text(proposal: Proposal, ledger: bytes) -> bytes:
    """Return what a party signs when it says what it charged."""
    return b"cofactor: what a party charged\n" + _hashes(proposal.as_json()) + sha256(ledger).digest()


def _hashes(*texts: str) -> bytes:
    return b"".join(sha256(text.encode()).digest() for text in texts)
