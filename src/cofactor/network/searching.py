"""Users in common, found by parties whose messages the coordinator carries.

Every party first tells a fresh public key, signed by its identity. What two of them agree on by these keys is
the salt of their private set intersection (`crypto.psi`): the coordinator does not know it, nor does a third
party; so that neither takes a side's part, tries ids, or changes a message unnoticed. From there on parties
do as they would in one process (`federation.searchers`). In the end all tell all, signed, how many users were
compared: nothing else is known to the coordinator.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cofactor.config import as_table, from_table, one_of
from cofactor.crypto.boxes import Circle, Minutes
from cofactor.crypto.keys import PUBLIC_BYTES, Identity, KeyPair
from cofactor.crypto.psi import RULES, Form, Rule, Terms, normalised
from cofactor.data.ids import Ids
from cofactor.errors import ConfigError, ProtocolError, RunError
from cofactor.federation.finding import Alignment, Common, alignment_of
from cofactor.federation.messages import Message
from cofactor.federation.searchers import (
    Among,
    Mail,
    Report,
    Searcher,
    check_forms,
    form_of,
    in_order,
    own_ids,
)
from cofactor.network.posts import AskAll, Entries, Post, Turns, asked, by_name, notes_in

_FORMS: dict[bytes, Form] = {b"T": "text", b"N": "numbers"}
_EACH_PAIR = 4
"""Messages of a private set intersection."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchPost(Post):
    """Step 0 asks for a key, step 1 brings those of all parties, and later ones bring what parties sent."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchReport(Post):
    """Step 0 asks what was compared, and step 1 brings what all parties say of it."""


class Searching:
    """A party's end: `take` what it is asked, and return what it answers, until there is a `result`."""

    def __init__(
        self,
        ids: Sequence[str] | Sequence[int] | Ids,
        *,
        party: str,
        roster: Mapping[str, bytes],
        identity: Identity,
        session: str,
        among: Among = "leader",
        rule: Rule = "exact",
    ) -> None:
        """Take its ids, each user once, and what was agreed on. The roster's first party leads."""
        self._circle = _circle(roster, session, among, rule)
        self._circle.check(party, identity)
        self._party, self._identity, self._among, self._rule = party, identity, among, rule
        plain = own_ids(ids, party)
        self._form, self._texts = form_of(plain), normalised(plain.tolist(), rule, party)
        self._minutes, self._pair = Minutes(self._circle), KeyPair.fresh()
        self._keys: dict[str, bytes] = {}
        self._searcher: Searcher | None = None
        self._talks, self._reports = Turns(), Turns()
        self._alignment: Alignment | None = None

    @property
    def result(self) -> Common | None:
        """The ids in common and this party's own rows of them, once all parties have said that they know."""
        if self._alignment is None or self._searcher is None or self._searcher.rows is None:
            return None
        ids, rows = in_order(self._texts, self._form, self._searcher.rows)
        return Common(ids=ids, rows={self._party: rows}, alignment=self._alignment)

    def take(self, message: Message) -> Post:
        """Answer; errors name the party that does not keep to it, and nobody's ids."""
        if isinstance(message, SearchPost):
            return self._talks.take(message, self._talk)
        if isinstance(message, SearchReport):
            return self._reports.take(message, self._report)
        raise ProtocolError("Something else than a search for common users was asked for.")

    def _talk(self, step: int, entries: Entries) -> Entries:
        if step == 0:
            form = b"T" if self._form == "text" else b"N"
            return [self._note(form + self._pair.public)]
        if step == 1:
            return _posted(self._begin(by_name(entries)))
        if self._searcher is None:
            raise ProtocolError("Something is to be compared before parties have told their keys.")
        mails = [Mail(sender, self._party, data) for sender, data in entries]
        return _posted([sent for mail in mails for sent in self._searcher.take(mail)])

    def _begin(self, notes: Mapping[str, bytes]) -> list[Mail]:
        self._keys = _hellos(self._minutes.read(notes))
        if self._keys[self._party] != self._pair.public:
            raise ProtocolError(f"{self._party}: an earlier note of its own was passed off as this one.")
        self._searcher = Searcher(
            self._party,
            self._texts,
            parties=tuple(self._circle.roster),
            among=self._among,
            terms=self._terms,
        )
        return self._searcher.begin()

    def _terms(self, client: str, server: str) -> Terms:
        """Return the terms of this party and another, which nobody else knows."""
        peer = self._keys[server if client == self._party else client]
        bound_to = self._circle.between(client, server, self._minutes.heard)
        return Terms(salt=self._pair.agreed(peer, bound_to), rule=self._rule, form=self._form)

    def _report(self, step: int, entries: Entries) -> Entries:
        if self._searcher is None or self._searcher.rows is None:
            raise ProtocolError(f"{self._party} does not know yet who is common to all.")
        if step == 0:
            table = as_table(self._searcher.report)
            return [self._note(json.dumps(table).encode())]
        said = self._minutes.read(by_name(entries))
        self._alignment = _aligned(said, self._among, self._rule)
        return []

    def _note(self, data: bytes) -> tuple[str, bytes]:
        return self._party, self._minutes.written(self._party, self._identity, data)


def relay_search(
    *,
    roster: Mapping[str, bytes],
    session: str,
    ask_all: AskAll,
    among: Among = "leader",
    rule: Rule = "exact",
) -> Alignment:
    """Carry the messages of a search, the coordinator's end; return who learned how many, and no id."""
    minutes = Minutes(_circle(roster, session, among, rule))
    hellos = notes_in(asked(ask_all, {party: SearchPost.of(0, []) for party in roster}))
    _hellos(minutes.read(hellos))
    begun = asked(ask_all, {party: SearchPost.of(1, hellos.items()) for party in roster})
    _carry(begun, tuple(roster), ask_all)
    reports = notes_in(asked(ask_all, {party: SearchReport.of(0, []) for party in roster}))
    alignment = _aligned(minutes.read(reports), among, rule)
    asked(ask_all, {party: SearchReport.of(1, reports.items()) for party in roster})
    return alignment


def search_tells(parties: Iterable[str], among: Among) -> tuple[str, ...]:
    """Say beforehand what a search will tell, and to whom."""
    first, *others = parties
    found = (
        "Private set intersection tells all parties which of their users all have, and how many users each "
        "has; the coordinator learns how many. Epsilon does not cover it."
    )
    if len(others) < 2:
        return (found,)
    if among == "chain":
        return (found, "Each party learns in the search which of its users all parties before it have.")
    return (found, f"{first}, which leads the search, learns which of its users each other party has.")


def _carry(sent: Mapping[str, Entries], parties: Sequence[str], ask_all: AskAll) -> None:
    """Bring parties what others have sent them, until nobody sends anything."""
    step = 2
    while waiting := _sorted(sent, parties):
        if step > 2 + _EACH_PAIR * len(parties):
            raise RunError(f"{', '.join(sent)}: a search goes on after its end. Nothing was begun.")
        sent = asked(ask_all, {party: SearchPost.of(step, mail) for party, mail in waiting.items()})
        step += 1


def _sorted(sent: Mapping[str, Entries], parties: Sequence[str]) -> dict[str, Entries]:
    """Return by receiver what its mail is, with who sent it."""
    waiting: dict[str, Entries] = {}
    for sender, entries in sent.items():
        for receiver, data in entries:
            if receiver not in parties or receiver == sender:
                raise RunError(f"{sender} writes to somebody who does not take part. Nothing was begun.")
            waiting.setdefault(receiver, []).append((sender, data))
    return waiting


def _circle(roster: Mapping[str, bytes], session: str, among: Among, rule: Rule) -> Circle:
    one_of(("leader", "chain"), among=among)
    one_of(RULES, rule=rule)
    return Circle(purpose="users in common", session=session, roster=dict(roster), agreed=f"{among} {rule}")


def _hellos(said: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return by party its key; refuse ids of different forms, and keys that are none."""
    for party, hello in said.items():
        if len(hello) != 1 + PUBLIC_BYTES or hello[:1] not in _FORMS:
            raise ProtocolError(f"{party} begins a search otherwise than this version does.")
    check_forms({party: _FORMS[hello[:1]] for party, hello in said.items()})
    return {party: hello[1:] for party, hello in said.items()}


def _aligned(said: Mapping[str, bytes], among: Among, rule: Rule) -> Alignment:
    reports = {party: _read_report(party, data) for party, data in said.items()}
    return alignment_of(reports, rule=rule, among=among)


def _read_report(party: str, data: bytes) -> Report:
    try:
        found = from_table(Report, json.loads(data), "report")
    except (ValueError, ConfigError, RecursionError):
        found = None
    if found is None or min(found.users, found.held, found.common, found.sent, *found.shared) < 0:
        raise ProtocolError(f"{party} reports of a search otherwise than this version does.")
    return found


def _posted(mails: Sequence[Mail]) -> Entries:
    return [(mail.receiver, mail.data) for mail in mails]
