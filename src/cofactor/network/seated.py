"""One session of a party that has agreed to it: what was agreed on step by step, and then the rounds."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import as_table
from cofactor.crypto.keys import verified
from cofactor.data.ids import Ids
from cofactor.errors import CofactorError
from cofactor.federation.approvals import Approved, approvals_from, approved_text, check_approvals
from cofactor.federation.declining import Declining
from cofactor.federation.door import COORDINATOR
from cofactor.federation.finding import Alignment
from cofactor.federation.host import Host, read_arrays, write_arrays, write_bytes
from cofactor.federation.messages import Heading, Letter, Message, heading
from cofactor.federation.session import seconds_in_rounds, tell, told_before
from cofactor.federation.summing import SumStep
from cofactor.federation.transcript import AGREED as BEFOREHAND
from cofactor.network.agreement import alignment_from, charged_text, known_of, terms_text, told_text
from cofactor.network.approval import Approval
from cofactor.network.dealing import Dealing, DealingPost
from cofactor.network.dealt_keys import DealtKeys
from cofactor.network.kept import (
    AGREED,
    BEGUN,
    FINISHED,
    PROPOSED,
    SHOWN,
    TOLD,
    check_new,
    keep,
    locked,
    note_dealing,
    note_search,
    note_served,
    transcript_of,
)
from cofactor.network.letters import (
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
from cofactor.network.searching import Searching, SearchPost, SearchReport
from cofactor.network.work import WORKED, AtParty, Planned, Sitting
from cofactor.network.works import search_of
from cofactor.progress import Progress

_FOUND, _KEYS = "_common.npz", "keys.bin"
"""What must not be called as a party can be: a recipe's half keeps its own state under the party's name."""


class Seated:
    """One session of a party that has agreed to it."""

    def __init__(self, sitting: Sitting, work: AtParty, planned: Planned, said: Approval) -> None:
        self.proposal = sitting.proposal
        self._sitting, self._work, self._planned, self._said = sitting, work, planned, said
        self._lock, self._turn = locked(sitting), threading.Lock()
        try:
            self._keep(PROPOSED, self.proposal.as_json(), "another proposal under a session's name.")
            self._transcript = transcript_of(sitting)
            self._answered = {
                each.round for each in self._transcript.sent if each.round and each.sender == sitting.name
            }
            self._alignment = self._restored_search()
            self._worked = seconds_in_rounds(told_before(sitting.folder), WORKED)
        except BaseException:
            self._lock.close()
            raise
        self._known: str | None = None
        self._approvals: tuple[Approved, ...] = ()
        self._told: dict[str, Any] = {}
        self._terms: dict[str, Any] = {}
        self._searching: Searching | None = None
        self._dealing: Dealing | None = None
        self._host: Host | None = None
        self._handlers: Mapping[type[Message], Callable[[Any], Message]] = {
            Propose: lambda _: self._accept(),
            SearchPost: self._search,
            SearchReport: self._search,
            Tell: self._tell,
            Agree: self._agree,
            DealingPost: self._deal,
            Begin: lambda _: self._begin(),
            Finish: self._finish,
        }

    def close(self) -> None:
        """Let others have this session, if there are any: here nothing is answered any more."""
        with self._turn:
            self._lock.close()

    def step(self, body: Message, data: bytes) -> bytes:
        """Answer a letter of round 0."""
        with self._turn:
            return self._step(body, data)

    def round(self, head: Heading, data: bytes) -> bytes:
        """Answer a letter of a round."""
        with self._turn:
            return self._round(head, data)

    def _step(self, body: Message, data: bytes) -> bytes:
        take = self._handlers.get(type(body))
        if take is None or self._lock.closed:
            raise Declining("out of order", "a letter that only parties write, or after the end.")
        self._note(data, COORDINATOR, self._sitting.name, type(body).__name__, 0, BEFOREHAND)
        answer = take(body)
        letter = Letter(session=self.proposal.session, round=0, sender=self._sitting.name, body=answer)
        sent = letter.to_bytes()
        self._note(sent, self._sitting.name, COORDINATOR, type(answer).__name__, 0, BEFOREHAND)
        return sent

    def _round(self, head: Heading, data: bytes) -> bytes:
        if self._host is None or self._lock.closed:
            raise Declining("unknown session", "a round before this process has begun with the session.")
        if (self._sitting.folder / FINISHED).exists():
            raise Declining("not planned", "a round after the last one.")
        self._host.check_asked(head)
        protection = "between parties" if head.kind == SumStep.__name__ else "released before"
        self._note(data, COORDINATOR, self._sitting.name, head.kind, head.round, protection)
        start = time.perf_counter()
        sent = self._host.handle(data)
        self._worked += time.perf_counter() - start
        own = heading(sent)
        self._note(sent, self._sitting.name, COORDINATOR, own.kind, head.round, own.protection)
        self._answered.add(head.round)
        note_served(self._sitting.folder, len(self._answered), self._host.rounds)
        text = f"{own.kind}, {len(sent):,} bytes, {own.protection}"
        rounds = max(self._planned.rounds, head.round)
        numbers = {"bytes": len(sent), WORKED: round(self._worked, 3)}
        tell(self._sitting.folder, Progress("round", head.round, rounds, text, numbers))
        return sent

    def _accept(self) -> Message:
        """Agree, and show ids if that was agreed on: never others than were shown before."""
        ids = self._work.showing()
        shown = json.dumps(None if ids is None else ids.tolist())
        otherwise = "other ids would be shown than before: the data have changed. A new session shows them."
        self._keep(SHOWN, sha256(shown.encode()).hexdigest(), otherwise)
        how, when = self._said.how, self._said.when
        proposal = self.proposal
        text = approved_text(proposal.session, proposal.roster, proposal.digest, how, when)
        signature = self._sitting.identity.sign(text)
        return Accepted(shown=shown, how=how, when=when, signature=_array(signature))

    def _search(self, body: Message) -> Message:
        """Take a step of the search for users in common."""
        search, ids = search_of(self.proposal), self._work.ids()
        if search is None or ids is None or self._known is not None:
            raise Declining("out of order", "a search that was not agreed on.")
        if (self._sitting.folder / TOLD).exists():
            raise Declining("out of order", "users in common were found before, and are not again.")
        if self._searching is None or _begins(body):
            note_search(self._sitting.folder)
            self._searching = Searching(
                ids,
                party=self._sitting.name,
                roster=self.proposal.roster,
                identity=self._sitting.identity,
                session=self.proposal.session,
                among=search.among,
                rule=search.rule,
            )
        answer = self._searching.take(body)
        found = self._searching.result
        if found is not None:
            self._keep_search(found.rows[self._sitting.name], found.ids, found.alignment)
        return answer

    def _tell(self, body: Tell) -> Message:
        """Take what all have shown or found, if it is what this party has, and tell its own part of it."""
        shown, alignment = known_of(body.known)
        own = self._work.showing()
        if (own is None) != (not shown) or (own is not None and not _same_ids(shown, own, self._sitting)):
            raise Declining("other terms", "other ids are said to be shown than this party has shown.")
        if alignment != self._alignment:
            raise Declining("other terms", "another search is told of than this party took part in.")
        if own is not None and self._known is None:
            self._work.shown(shown)
        if self._known not in (None, body.known):
            raise Declining("other terms", "two different things are said to be known.")
        self._known = body.known
        facts = json.dumps(self._work.told(), sort_keys=True)
        said = json.dumps({"known": body.known, "facts": facts})
        self._keep(TOLD, said, "other things are said to be known, or the data have changed since.")
        signature = self._sitting.identity.sign(told_text(self.proposal, body.known, facts))
        return Told(facts=facts, signature=_array(signature))

    def _agree(self, body: Agree) -> Message:
        """Check that all facts are signed by those who are said to have told them."""
        if self._known is None:
            raise Declining("out of order", "terms before anything is known.")
        facts, signatures, terms = _tables(body)
        for party, key in self.proposal.roster.items():
            text = told_text(self.proposal, self._known, str(facts.get(party)))
            if not verified(key, text, bytes.fromhex(str(signatures.get(party, "")))):
                raise Declining("other terms", f"what {party} is said to have told is not signed by it.")
        approvals = self._checked_approvals(body.approvals)
        told = {party: json.loads(facts[party]) for party in self.proposal.roster}
        agreed = json.dumps({"facts": facts, "terms": terms}, sort_keys=True)
        self._keep(AGREED, agreed, "other facts or terms than were agreed on before.")
        self._told, self._terms, self._approvals = told, terms, approvals
        return Ready(signature=_array(self._sitting.identity.sign(terms_text(self.proposal, body.terms))))

    def _checked_approvals(self, text: str) -> tuple[Approved, ...]:
        """Check that all parties, each by the key that is pinned for it, have agreed to this proposal."""
        try:
            found = approvals_from(json.loads(text))
            check_approvals(found, tuple(self.proposal.roster), self.proposal.session)
        except (ValueError, TypeError, AttributeError, RecursionError, CofactorError) as error:
            raise Declining("other terms", f"approvals that are none: {error}") from None
        keys = {party: key.hex() for party, key in self.proposal.roster.items()}
        if {each.party: each.identity for each in found} != keys or found[0].proposal != self.proposal.digest:
            raise Declining("other terms", "others are said to have agreed, or to something else.")
        return found

    def _deal(self, body: Message) -> Message:
        """Take a step of the dealing of keys."""
        aggregate = self._work.opened_by(self._terms)
        if aggregate is None or not self._terms or self._host is not None:
            raise Declining("out of order", "keys that were not agreed on.")
        if (self._sitting.folder / BEGUN).exists():
            raise Declining("out of order", "keys of this session were dealt before.")
        # Until something was hidden with keys, a dealing that was broken off can be begun anew.
        if self._dealing is None or _begins(body):
            note_dealing(self._sitting.folder)
            self._dealing = Dealing(
                aggregate,
                party=self._sitting.name,
                roster=self.proposal.roster,
                identity=self._sitting.identity,
                session=self.proposal.session,
            )
        answer = self._dealing.take(body)
        if self._dealing.result is not None:
            write_bytes(self._sitting.folder / _KEYS, self._dealing.result.to_bytes())
        return answer

    def _begin(self) -> Message:
        """Make the recipe's end of the wire, with room in the ledger."""
        if not self._terms:
            raise Declining("out of order", "a beginning before terms.")
        if self._host is None:
            aggregate, keys = self._work.opened_by(self._terms), self._sitting.folder / _KEYS
            dealt = None
            if aggregate is not None:
                if not keys.exists():
                    raise Declining("unknown session", "the keys of this session are not here.")
                dealt = DealtKeys.from_bytes(keys.read_bytes())
            host = self._work.host(
                self._terms,
                self._told,
                None if dealt is None or aggregate is None else dealt.decryption(aggregate),
                None if dealt is None or aggregate is None else dealt.key(aggregate),
            )
            check_new(self._sitting.folder, self.proposal.session, self._work.ledger)
            self._host = host
        return Begun()

    def _finish(self, body: Finish) -> Message:
        """Finish at home, and say what was charged."""
        if self._host is None:
            raise Declining("unknown session", "an end before this process has begun with the session.")
        last = body.last.tobytes()
        if not (self._sitting.folder / FINISHED).exists():
            self._work.finish(self._host, last, self._approvals)
            rounds = max(self._planned.rounds, *self._answered, 1)
            place = self._sitting.folder / "run"
            tell(self._sitting.folder, Progress("finished", rounds, rounds, f"this party's own: {place}"))
        self._keep(FINISHED, sha256(last).hexdigest(), "another last letter than the one before.")
        charged = self._charged()
        signature = self._sitting.identity.sign(charged_text(self.proposal, charged))
        return Finished(ledger=_array(charged), signature=_array(signature))

    def _keep(self, name: str, content: str, otherwise: str) -> None:
        keep(self._sitting.folder / name, content, otherwise)

    def _charged(self) -> bytes:
        """Return what this session has charged, for others to see."""
        ledger, planned = self._work.ledger, self._planned
        if ledger is None or planned.epsilon is None:
            return b""
        budget = replace(ledger.budget, epsilon=planned.epsilon, delta=planned.delta, personal=None)
        return ledger.extract(self.proposal.session, party=self._sitting.name, budget=budget)

    def _note(self, data: bytes, sender: str, receiver: str, kind: str, round: int, protection: str) -> None:
        self._transcript.note(
            data, round=round, sender=sender, receivers=[receiver], kind=kind, protection=protection
        )

    def _keep_search(self, rows: NDArray[np.int64], ids: Ids, alignment: Alignment) -> None:
        """Remember who is common, before anybody hears that this party knows."""
        stored = {"alignment": np.array(json.dumps(as_table(alignment))), "among": np.array(self._searched)}
        write_arrays(self._sitting.folder / _FOUND, {"rows": rows, "ids": ids, **stored})
        self._alignment = alignment
        self._work.found(rows, ids, alignment)

    def _restored_search(self) -> Alignment | None:
        file = self._sitting.folder / _FOUND
        if not file.exists():
            return None
        stored = read_arrays(file, "rows", "ids", "alignment", "among")
        if str(stored["among"]) != self._searched:
            raise Declining("newer data", "users have changed since those in common were searched for.")
        alignment = alignment_from(json.loads(str(stored["alignment"])))
        self._work.found(stored["rows"], stored["ids"], alignment)
        return alignment

    @property
    def _searched(self) -> str:
        """The hash of the ids among which users in common are searched for, in their order."""
        ids = self._work.ids()
        return "" if ids is None else sha256(json.dumps(ids.tolist()).encode()).hexdigest()


def _same_ids(shown: Mapping[str, Ids], own: Ids, sitting: Sitting) -> bool:
    mine = shown.get(sitting.name)
    return tuple(shown) == tuple(sitting.proposal.parties) and mine is not None and np.array_equal(mine, own)


def _tables(body: Agree) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
    try:
        found = tuple(dict(json.loads(text)) for text in (body.facts, body.signatures, body.terms))
    except (ValueError, TypeError, RecursionError):
        raise Declining("unreadable", "terms that cannot be read.") from None
    facts, signatures, terms = found
    return facts, signatures, terms


def _begins(body: Message) -> bool:
    return isinstance(body, SearchPost | DealingPost) and body.step == 0


def _array(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
