"""Which users parties have in common: found with private set intersection, or by showing all ids.

Of more than two parties, a leader compares its users with those of each other party, or a chain compares what
is left from party to party. Both tell more than who is common to all, and `Alignment` says what, and to whom.
One process plays all parties here, but each uses its own ids and the messages that reach it, and no more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cofactor.config import one_of
from cofactor.crypto.psi import (
    RULES,
    Form,
    IntersectionClient,
    IntersectionServer,
    Rule,
    Terms,
    false_match,
    fresh_salt,
    normalised,
)
from cofactor.data.ids import Ids, plain_ids
from cofactor.errors import ConfigError, DataError

How = Literal["psi", "ids"]
"""Private set intersection, or all ids shown to all parties."""
Among = Literal["leader", "chain"]
"""Who compares with whom, of more than two parties."""
Rows = NDArray[np.int64]


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
            f"parties. Whoever carried the messages of the search ({self.traffic:,} bytes) saw how many "
            "users were compared and how many are common to all, and no id.",
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
        whose = _listed(compared)
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
        return _listed(self.parties)

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
    if how == "ids":
        found = _shown(own)
    else:
        terms = Terms(salt=fresh_salt(), rule=rule, form=form)
        found = _led(own, terms) if among == "leader" else _chained(own, terms)
    common = len(found.rows[next(iter(own))])
    if not common:
        raise _nobody(list(own), rule)
    alignment = Alignment(
        how=how,
        rule=rule,
        parties=tuple(own),
        users=tuple(map(len, own.values())),
        common=common,
        among=among,
        meetings=found.meetings,
        traffic=found.traffic,
    )
    return _ordered(own, form, found, alignment)


Texts = dict[str, list[str]]
"""By party, its ids as the rule writes them."""


@dataclass(frozen=True, eq=False)
class _Found:
    """By party, the rows of common users in any order; and what it took."""

    rows: Mapping[str, Sequence[int]]
    meetings: tuple[Meeting, ...]
    traffic: int


def _written(ids: Mapping[str, Sequence[str] | Sequence[int] | Ids], rule: Rule) -> tuple[Texts, Form]:
    if not isinstance(ids, Mapping) or len(ids) < 2:
        raise ConfigError(
            "users in common are those of two parties or more: give the ids of each by its name."
        )
    plain = {name: _plain(given, name) for name, given in ids.items()}
    empty = next((name for name, given in plain.items() if not len(given)), None)
    if empty is not None:
        raise DataError(f"{empty} has no users, so that none are common. Leave it out.")
    text = [name for name, given in plain.items() if given.dtype.kind == "U"]
    if 0 < len(text) < len(plain):
        raise DataError(
            f"{', '.join(text)}: user ids are text, and other parties' are numbers. Bring them to one form."
        )
    own = {name: normalised(given.tolist(), rule, name) for name, given in plain.items()}
    return own, "text" if text else "numbers"


def _plain(given: Sequence[str] | Sequence[int] | Ids, name: str) -> Ids:
    try:
        return plain_ids(given)
    except (DataError, TypeError):  # whose own words might show an id
        raise DataError(
            f"{name}: ids must be a list of whole numbers below 2^63, or of text. Convert them to str first."
        ) from None


def _shown(own: Texts) -> _Found:
    common = set.intersection(*map(set, own.values()))
    rows = {name: [row for row, each in enumerate(texts) if each in common] for name, texts in own.items()}
    sent = sum(len(each.encode()) for texts in own.values() for each in texts)
    return _Found(rows, (), sent * (len(own) - 1))


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two sides that have met."""

    client: IntersectionClient
    server: IntersectionServer
    rows: list[int]
    """Those of the client's ids that are common."""
    meeting: Meeting
    traffic: int


def _met(client: str, clients: list[str], server: str, servers: list[str], terms: Terms) -> _Pair:
    agreed = terms.between(client, server)
    one, other = IntersectionClient(clients, agreed), IntersectionServer(servers, agreed)
    setup, request = other.setup(), one.request()
    answer = other.answer(request)
    rows = one.common(setup, answer)
    meeting = Meeting(
        client=client,
        server=server,
        client_users=len(clients),
        server_users=len(servers),
        common=len(rows),
    )
    return _Pair(one, other, rows, meeting, len(setup) + len(request) + len(answer))


def _led(own: Texts, terms: Terms) -> _Found:
    """Let the first party compare its users with each other party's, and tell all who is common."""
    leader, *others = own
    pairs = {other: _met(leader, own[leader], other, own[other], terms) for other in others}
    common = set.intersection(*(set(pair.rows) for pair in pairs.values()))
    rows: dict[str, Sequence[int]] = {leader: sorted(common)}
    traffic = 0
    for other, pair in pairs.items():
        message = pair.client.tell(common)
        rows[other] = pair.server.told(message)
        traffic += pair.traffic + len(message)
    return _Found(rows, tuple(pair.meeting for pair in pairs.values()), traffic)


def _chained(own: Texts, terms: Terms) -> _Found:
    """Let each party compare its users with those that all before it share; the last one tells back."""
    names = list(own)
    left = {names[0]: list(range(len(own[names[0]])))}
    pairs: list[_Pair] = []
    for server, client in pairwise(names):
        held = [own[server][row] for row in left[server]]
        pairs.append(_met(client, own[client], server, held, terms))
        left[client] = pairs[-1].rows
        if not left[client]:
            raise _nobody(names, terms.rule)
    rows: dict[str, Sequence[int]] = {names[-1]: left[names[-1]]}
    traffic = 0
    for pair in reversed(pairs):
        client, server = pair.meeting.client, pair.meeting.server
        message = pair.client.tell(rows[client])
        rows[server] = [left[server][row] for row in pair.server.told(message)]
        traffic += pair.traffic + len(message)
    return _Found(rows, tuple(pair.meeting for pair in pairs), traffic)


def _ordered(own: Texts, form: Form, found: _Found, alignment: Alignment) -> Common:
    """Put each party's rows into the order of the common ids, which each can sort by itself."""
    plain = int if form == "numbers" else str
    rows = {
        name: np.array(sorted(found.rows[name], key=lambda row: plain(texts[row])), np.int64)
        for name, texts in own.items()
    }
    first = next(iter(own))
    return Common(
        ids=plain_ids([plain(own[first][row]) for row in rows[first]]), rows=rows, alignment=alignment
    )


def _nobody(names: Sequence[str], rule: Rule) -> DataError:
    return DataError(
        f"{_listed(names)} have no user in common. Are ids of the same kind (account numbers here, e-mail "
        f'addresses there)? Are they written alike, beyond the rule "{rule}": upper and lower case '
        '(rule="folded" or --id-rule folded ignores it), leading zeros, prefixes?'
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
