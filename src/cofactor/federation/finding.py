"""Which users parties have in common: found with private set intersection, or by showing all ids.

Of more than two parties, a leader compares its users with those of each other party, or a chain compares what
is left from party to party. Both tell more than who is common to all, and `Alignment` says what, and to whom.
One process plays all parties here (`searchers`); over a network each plays itself, in the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cofactor.config import one_of
from cofactor.crypto.psi import RULES, Form, Rule, Terms, false_match, fresh_salt, normalised
from cofactor.data.ids import Ids
from cofactor.errors import ConfigError, ProtocolError
from cofactor.federation.searchers import Among as Among
from cofactor.federation.searchers import (
    Report,
    Rows,
    Searcher,
    check_forms,
    form_of,
    in_order,
    listed,
    nobody,
    own_ids,
    servers_of,
)

How = Literal["psi", "ids"]
"""Private set intersection, or all ids shown to all parties."""


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """One private set intersection of two parties, in what it told them."""

    client: str
    """Who learned which of its users the other compared, too."""
    server: str
    """Who learned only how many users the client compared."""
    client_users: int
    server_users: int
    """How many users the server compared: in a chain, those common to all parties before the client."""
    common: int
    """How many of them are the same."""


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """How the users in common were found, and who learned what by it: public among the parties."""

    how: How
    rule: Rule
    """How ids were written before they were compared."""
    parties: tuple[str, ...]
    users: tuple[int, ...]
    """How many users each party has."""
    common: int
    """How many of them all parties have."""
    among: Among = "leader"
    meetings: tuple[Meeting, ...] = ()
    """All intersections of two parties, in order; none if ids were shown."""
    traffic: int = 0
    """Bytes that parties sent each other."""

    @property
    def left_out(self) -> dict[str, int]:
        """By party, how many of its users are not common."""
        return {name: users - self.common for name, users in zip(self.parties, self.users, strict=True)}

    def sentences(self) -> tuple[str, ...]:
        """Say who learned what: what a guarantee about the users' data does not cover."""
        if self.how == "ids":
            return (
                f"Which users each party has: {self._sizes}. All parties showed each other all their ids; "
                f"{self.common:,} users are common.",
            )
        return (
            f"Who is a user of all parties: private set intersection told each of {self._names} which "
            f"{self.common:,} users these are. It adds no noise, so that being common is not differentially "
            "private; and a model that names its users tells whoever sees it.",
            f"How many users each party has: {self._sizes}. This, and all numbers here, are told to all "
            "parties and to the coordinator. Whoever carried the messages of the search "
            f"({self.traffic:,} bytes) saw how many users were compared and how many are common to all, and "
            "no id.",
            *(self._leak(at) for at in range(len(self.meetings)) if len(self.parties) > 2),
            "What parties learn who do not follow the protocol: each is trusted to compare users whom it "
            "really has. One that adds made-up ids learns which of them others have.",
            f'Ids that mean the same person and are written differently beyond the rule "{self.rule}": they '
            "are not found. Different ids are taken for the same with a probability below "
            f"{self._false_match:.0e}.",
        )

    def _leak(self, at: int) -> str:
        """Say what an intersection of two among more than two parties told them."""
        one = self.meetings[at]
        compared = [one.server] if self.among == "leader" else list(self.parties[: at + 1])
        whose = listed(compared)
        told = (
            f"Which of its {one.client_users:,} users {whose} {_has(compared)}, too: {one.client} learned it"
        )
        learned = f"{told} ({one.common:,} users, those common to all among them)."
        size = f" {one.server} learned how many users {one.client} has"
        if len(compared) == 1:
            return f"{learned}{size}."
        return f"{learned}{size}; {one.client}, that {one.server_users:,} users are common to {whose}."

    @property
    def _names(self) -> str:
        return listed(self.parties)

    @property
    def _sizes(self) -> str:
        return ", ".join(f"{name} {users:,}" for name, users in zip(self.parties, self.users, strict=True))

    @property
    def _false_match(self) -> float:
        return sum(false_match(each.client_users, each.server_users) for each in self.meetings)


@dataclass(frozen=True, kw_only=True, eq=False)
class Common:
    """The users that all parties have, in one order, and where each party has them."""

    ids: Ids = field(repr=False)
    """As the rule writes them, sorted: an order that follows from who is common, and tells nothing else."""
    rows: Mapping[str, Rows] = field(repr=False)
    """By party, where these users stand among its own ids, in that order."""
    alignment: Alignment
    """How they were found."""

    def __len__(self) -> int:
        return len(self.ids)


def find_common(
    ids: Mapping[str, Sequence[str] | Sequence[int] | Ids],
    *,
    how: How = "psi",
    among: Among = "leader",
    rule: Rule = "exact",
) -> Common:
    """Find the users that all parties have; `ids` are each party's own, by name, each user once.

    With "psi", two parties learn who is common and how many users the other has. Of more, the first leads:
    it learns which of its users each single other party has. Or each in a "chain" learns who is common to all
    before it and itself. With "ids", every party sees all ids.
    """
    one_of(("psi", "ids"), how=how)
    one_of(("leader", "chain"), among=among)
    one_of(RULES, rule=rule)
    own, form = _written(ids, rule)
    rows, alignment = _shown(own, rule, among) if how == "ids" else _searched(own, form, rule, among)
    placed = {name: in_order(texts, form, rows[name]) for name, texts in own.items()}
    found, _ = next(iter(placed.values()))
    return Common(ids=found, rows={name: at for name, (_, at) in placed.items()}, alignment=alignment)


def alignment_of(reports: Mapping[str, Report], *, rule: Rule, among: Among) -> Alignment:
    """Put together what parties told of a private set intersection; refuse what does not fit."""
    parties = tuple(reports)
    if len({report.common for report in reports.values()}) != 1:
        raise ProtocolError(
            "The parties differ in how many users are common to all of them: search once more."
        )
    return Alignment(
        how="psi",
        rule=rule,
        parties=parties,
        users=tuple(report.users for report in reports.values()),
        common=reports[parties[0]].common,
        among=among,
        meetings=tuple(each for party in parties for each in _meetings(party, reports, among)),
        traffic=sum(report.sent for report in reports.values()),
    )


def _meetings(client: str, reports: Mapping[str, Report], among: Among) -> list[Meeting]:
    servers = servers_of(client, tuple(reports), among)
    if len(servers) != len(reports[client].shared):
        raise ProtocolError(f"{client} reports of other searches than it took part in.")
    return [
        Meeting(
            client=client,
            server=server,
            client_users=reports[client].users,
            server_users=reports[server].held,
            common=common,
        )
        for server, common in zip(servers, reports[client].shared, strict=True)
    ]


Texts = dict[str, list[str]]
"""By party, its ids as the rule writes them."""
Found = tuple[Mapping[str, Sequence[int]], Alignment]
"""By party, the rows of common users in any order; and how they were found."""


def _written(ids: Mapping[str, Sequence[str] | Sequence[int] | Ids], rule: Rule) -> tuple[Texts, Form]:
    if not isinstance(ids, Mapping) or len(ids) < 2:
        raise ConfigError(
            "users in common are those of two parties or more: give the ids of each by its name."
        )
    plain = {name: own_ids(given, name) for name, given in ids.items()}
    forms = {name: form_of(given) for name, given in plain.items()}
    check_forms(forms)
    own = {name: normalised(given.tolist(), rule, name) for name, given in plain.items()}
    return own, next(iter(forms.values()))


def _shown(own: Texts, rule: Rule, among: Among) -> Found:
    common = set.intersection(*map(set, own.values()))
    if not common:
        raise nobody(list(own), rule)
    rows = {name: [row for row, each in enumerate(texts) if each in common] for name, texts in own.items()}
    sent = sum(len(each.encode()) for texts in own.values() for each in texts)
    alignment = Alignment(
        how="ids",
        rule=rule,
        parties=tuple(own),
        users=tuple(map(len, own.values())),
        common=len(common),
        among=among,
        traffic=sent * (len(own) - 1),
    )
    return rows, alignment


def _searched(own: Texts, form: Form, rule: Rule, among: Among) -> Found:
    """Play all parties, and carry their messages."""
    terms = Terms(salt=fresh_salt(), rule=rule, form=form)
    searchers = {
        name: Searcher(name, texts, parties=tuple(own), among=among, terms=terms.between)
        for name, texts in own.items()
    }
    waiting = [mail for searcher in searchers.values() for mail in searcher.begin()]
    while waiting:
        mail = waiting.pop(0)
        waiting += searchers[mail.receiver].take(mail)
    reports = {name: searcher.report for name, searcher in searchers.items()}
    rows = {name: searcher.rows or [] for name, searcher in searchers.items()}
    return rows, alignment_of(reports, rule=rule, among=among)


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
