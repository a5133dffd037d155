"""How a coordinator comes to terms with all parties before the first round, and what it hears in the end.

A session that is taken up again has its terms: parties that are there are told them again, and whoever is
not there is missing from the rounds, as in any other round.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cofactor.config import as_table
from cofactor.crypto.keys import verified
from cofactor.data.ids import Ids, plain_ids
from cofactor.errors import CofactorError, ConfigError, Refused, RunError
from cofactor.federation.approvals import Approved, approvals_from
from cofactor.federation.channel import Channel
from cofactor.federation.declining import WORDS
from cofactor.federation.door import COORDINATOR
from cofactor.federation.finding import Alignment
from cofactor.federation.host import write_bytes
from cofactor.federation.messages import Letter, Message
from cofactor.federation.summing import Decryption
from cofactor.federation.transcript import AGREED, Transcript
from cofactor.network.agreement import (
    alignment_from,
    charged_text,
    known_of,
    known_text,
    terms_text,
    told_text,
)
from cofactor.network.dealing import relay
from cofactor.network.dealt_keys import DealtKeys
from cofactor.network.letters import (
    ROUND_0,
    Accepted,
    Agree,
    Begin,
    Begun,
    Finish,
    Finished,
    Propose,
    Ready,
    Tell,
    Told,
)
from cofactor.network.outcomes import read_fewest, write_waiting
from cofactor.network.proposal import Proposal
from cofactor.network.searching import relay_search
from cofactor.network.work import AtCoordinator

T = TypeVar("T", bound=Message)
_REST, _LONGEST_REST = 0.25, 8.0
"""Seconds before parties that have not decided are asked again: more and more."""
_AGREED, _KEYS, _FOUND, _ENDING = "agreed.json", "keys.bin", "common.json", "ending"


class Missing(CofactorError):
    """Parties are not there, and may come back: nothing is lost by waiting for them."""

    def __init__(self, words: str, parties: tuple[str, ...]) -> None:
        super().__init__(words)
        self.parties = parties


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """What all parties have come to."""

    decryption: Decryption | None
    approvals: tuple[Approved, ...]


class Agreeing:
    """The coordinator's side of the steps before and after the rounds."""

    def __init__(
        self,
        folder: Path,
        proposal: Proposal,
        work: AtCoordinator,
        channel: Channel,
        transcript: Transcript,
        *,
        patience: float = 3600.0,
    ) -> None:
        """Take what is proposed; parties may take `patience` seconds to decide.

        All must agree; later it goes on with as many as the folder says, all if it does not.
        """
        self._folder, self._proposal, self._work = folder, proposal, work
        self._channel, self._transcript = channel, transcript
        self._patience = patience
        self._there: tuple[str, ...] = tuple(proposal.parties)
        self._fewest = read_fewest(folder, len(proposal.parties))
        self._begun = False

    def agree(self) -> Agreed:
        """Come to terms, or tell those who are there again what they are."""
        stored = self._stored()
        self._begun = stored is not None
        accepted = self._propose()
        self._there = tuple(accepted)
        if stored is None:
            stored = self._new_terms(accepted)
            write_bytes(self._folder / _AGREED, json.dumps(stored).encode())
        else:
            known, alignment = known_of(stored["known"])
            self._work.terms(_read(stored["facts"]), known, alignment)
            self._told(stored["known"], stored["facts"])
        self._send_terms(stored)
        dealt = self._dealt()
        self._ask(Begin(), Begun)
        return Agreed(decryption=dealt, approvals=approvals_from(stored["approvals"]))

    def finish(self, last: bytes) -> dict[str, bytes]:
        """Let every party finish at home, and return what each says that it charged: nothing, maybe.

        Whoever is missing is waited for once; then it ends without, if enough parties are there.
        """
        body = Finish(last=np.frombuffer(last, np.uint8))
        answers, gone = self._asked(dict.fromkeys(self._proposal.parties, body))
        if gone:
            self._check_end(gone, len(answers))
        found = {}
        for party, given in answers.items():
            answer = _one(given, Finished, party)
            ledger = answer.ledger.tobytes()
            text = charged_text(self._proposal, ledger)
            if not verified(self._proposal.roster[party], text, answer.signature.tobytes()):
                raise RunError(f"{party}: what it charged is not signed by it. Ask the people there.")
            found[party] = ledger
        return found

    def _check_end(self, gone: Mapping[str, str], there: int) -> None:
        """Refuse to end without parties who may come back, or where too few are left."""
        words = "; ".join(f"{party} {why}" for party, why in gone.items())
        if there < self._fewest:
            raise Missing(
                f"the rounds are over, and not all have finished: {words}. Bring them back; or end without "
                f"them: --resume --fewest {max(there, 1)}.",
                tuple(gone),
            )
        if not (self._folder / _ENDING).exists():
            write_bytes(self._folder / _ENDING, b"")
            raise Missing(f"the rounds are over, and some are waited for once: {words}.", ())

    def _new_terms(self, accepted: Mapping[str, Accepted]) -> dict[str, Any]:
        lists = {
            party: ids for party, answer in accepted.items() if (ids := _shown(answer, party)) is not None
        }
        if lists and len(lists) < len(accepted):
            silent = ", ".join(party for party in accepted if party not in lists)
            raise RunError(f"{silent} shows no ids, and was to. Is it of the same version?")
        alignment = self._search()
        known = known_text(lists, alignment)
        facts, signatures = self._told(known, None)
        terms = self._work.terms(_read(facts), lists, alignment)
        approvals = [asdict(self._approved(party, answer)) for party, answer in accepted.items()]
        told = {"known": known, "facts": facts, "signatures": signatures}
        return {**told, "terms": json.dumps(terms), "approvals": approvals}

    def _approved(self, party: str, answer: Accepted) -> Approved:
        """Return how a party has agreed; refuse what it did not sign."""
        table = {
            "party": party,
            "identity": self._proposal.roster[party].hex(),
            "proposal": self._proposal.digest,
            "how": answer.how,
            "when": answer.when,
            "signature": answer.signature.tobytes().hex(),
        }
        try:
            (found,) = approvals_from([table])
        except ConfigError as error:
            raise RunError(f"{error} Is it of the same version?") from None
        if not found.signed(self._proposal.session, self._proposal.roster):
            raise RunError(f"{party}: its yes is not signed by it. Ask the people there.")
        return found

    def _propose(self) -> dict[str, Accepted]:
        """Propose, as often as parties have not decided yet; return the answers of those who agree.

        Whoever declines ends it; whoever is not there may come back.
        """
        until, rest = time.monotonic() + self._patience, _REST
        found: dict[str, Accepted] = {}
        left = tuple(self._proposal.parties)
        while left:
            answers, missing = self._asked(dict.fromkeys(left, Propose(proposal=self._proposal.as_json())))
            found |= {party: _one(answer, Accepted, party) for party, answer in answers.items()}
            waiting = tuple(party for party, why in missing.items() if why == WORDS["waiting"])
            gone = {party: why for party, why in missing.items() if party not in waiting}
            self._check_gone(gone)
            if waiting and time.monotonic() > until:
                raise Refused(f"{', '.join(waiting)} did not decide in time. Nothing was begun.")
            write_waiting(self._folder, waiting)
            if waiting:  # a large proposal is not sent all the time
                time.sleep(rest)
                rest = min(2 * rest, _LONGEST_REST)
            left = waiting
        return {party: found[party] for party in self._proposal.parties if party in found}

    def _check_gone(self, gone: Mapping[str, str]) -> None:
        """Refuse if somebody declined, or is not there of whom all must be, or none are left."""
        # Whoever was restarted has forgotten this session until it is proposed again.
        back = (WORDS["unknown session"], WORDS["waiting"])
        declined = {party: why for party, why in gone.items() if why in WORDS.values() and why not in back}
        if declined:
            words = "; ".join(f"{party} {why}" for party, why in declined.items())
            raise Refused(f"{words}. Nothing more is asked of anybody.")
        if gone and (not self._begun or len(gone) == len(self._there)):
            words = "; ".join(f"{party} {why}" for party, why in gone.items())
            before = "nobody is there" if self._begun else "all parties must agree before the first round"
            raise Missing(f"{before}: {words}.", tuple(gone))

    def _search(self) -> Alignment | None:
        """Let parties search for users in common, unless they have: once they tell, they search no more."""
        search, file = self._work.search, self._folder / _FOUND
        if search is None or search.how != "psi":
            return None
        if file.exists():
            return alignment_from(json.loads(file.read_text()))
        found = relay_search(
            roster=self._proposal.roster,
            session=self._proposal.session,
            ask_all=self._ask_all,
            among=search.among,
            rule=search.rule,
        )
        write_bytes(file, json.dumps(as_table(found)).encode())
        return found

    def _told(self, known: str, before: Mapping[str, str] | None) -> tuple[dict[str, str], dict[str, str]]:
        """Let parties tell their facts; those that told them before must tell the same."""
        answers = self._ask(Tell(known=known), Told)
        for party, answer in answers.items():
            text = told_text(self._proposal, known, answer.facts)
            if not verified(self._proposal.roster[party], text, answer.signature.tobytes()):
                raise RunError(f"{party}: what it told is not signed by it. Ask the people there.")
            if before is not None and before[party] != answer.facts:
                raise RunError(
                    f"{party} tells other facts than when the session began: have its data changed? Begin a "
                    "new session."
                )
        facts = {party: answer.facts for party, answer in answers.items()}
        return facts, {party: answer.signature.tobytes().hex() for party, answer in answers.items()}

    def _send_terms(self, stored: Mapping[str, Any]) -> None:
        body = Agree(
            approvals=json.dumps(stored["approvals"]),
            facts=json.dumps(stored["facts"]),
            signatures=json.dumps(stored["signatures"]),
            terms=stored["terms"],
        )
        text = terms_text(self._proposal, stored["terms"])
        for party, answer in self._ask(body, Ready).items():
            if not verified(self._proposal.roster[party], text, answer.signature.tobytes()):
                raise RunError(f"{party}: the terms are not signed by it. Ask the people there.")

    def _dealt(self) -> Decryption | None:
        """Let parties deal keys, or read the public part of those that they have dealt."""
        aggregate, file = self._work.opened_by(), self._folder / _KEYS
        if aggregate is None:
            return None
        if file.exists():
            return DealtKeys.from_bytes(file.read_bytes()).decryption(aggregate)
        gone = tuple(party for party in self._proposal.parties if party not in self._there)
        if gone:
            raise Missing(f"{', '.join(gone)}: all parties must be there when keys are dealt.", gone)
        dealt = relay(
            aggregate,
            roster=self._proposal.roster,
            session=self._proposal.session,
            ask_all=self._ask_all,
        )
        write_bytes(file, dealt.to_bytes())
        return dealt.decryption(aggregate)

    def _stored(self) -> dict[str, Any] | None:
        file = self._folder / _AGREED
        if not file.exists():
            return None
        stored: dict[str, Any] = json.loads(file.read_text())
        return stored

    def _ask(self, body: Message, kind: type[T]) -> dict[str, T]:
        """Ask all who are there the same; once it has begun, it goes on without those who do not answer."""
        answers, missing = self._asked(dict.fromkeys(self._there, body))
        self._check_gone(missing)
        self._there = tuple(party for party in self._there if party in answers)
        return {party: _one(answers[party], kind, party) for party in self._there}

    def _ask_all(self, questions: Mapping[str, Message]) -> dict[str, Message]:
        answers, missing = self._asked(questions)
        if missing:
            self._check_gone(missing)
            words = ", ".join(missing)
            raise Missing(f"{words}: all parties must be there when keys are dealt.", tuple(missing))
        return answers

    def _asked(self, questions: Mapping[str, Message]) -> tuple[dict[str, Message], dict[str, str]]:
        letters = {party: self._letter(body) for party, body in questions.items()}
        for party, data in letters.items():
            self._note(data, COORDINATOR, party, questions[party])
        found = self._channel.ask(0, letters)
        answers = {}
        for party, data in found.by_party.items():
            letter = Letter.from_bytes(data, ROUND_0)
            if (letter.session, letter.round, letter.sender) != (self._proposal.session, 0, party):
                raise RunError(f"{party} answered something else than this session asks.")
            self._note(data, party, COORDINATOR, letter.body)
            answers[party] = letter.body
        return answers, dict(found.missing)

    def _letter(self, body: Message) -> bytes:
        return Letter(session=self._proposal.session, round=0, sender=COORDINATOR, body=body).to_bytes()

    def _note(self, data: bytes, sender: str, receiver: str, body: Message) -> None:
        self._transcript.note(
            data, round=0, sender=sender, receivers=[receiver], kind=type(body).__name__, protection=AGREED
        )


def _one(answer: Message, kind: type[T], party: str) -> T:
    if not isinstance(answer, kind):
        raise RunError(f"{party} answered with {type(answer).__name__}. Is it of the same version?")
    return answer


def _shown(answer: Accepted, party: str) -> Ids | None:
    try:
        ids = json.loads(answer.shown)
        return None if ids is None else plain_ids(ids)
    except (ValueError, TypeError, RecursionError, CofactorError):
        raise RunError(f"{party} shows ids that are none. Is it of the same version?") from None


def _read(facts: Mapping[str, str]) -> dict[str, Any]:
    try:
        return {party: dict(json.loads(text)) for party, text in facts.items()}
    except (ValueError, TypeError, RecursionError):
        raise RunError("a party told facts that cannot be read. Are all of the same version?") from None
