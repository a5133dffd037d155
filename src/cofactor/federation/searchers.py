"""One party's part in a search for users whom several parties have, whatever carries its messages.

Two meet at a time, a client and a server (`crypto.psi`). A leader is the client of all others. In a chain
each party is the client of the one before it, about users whom all before that one share, too; and who is
common to all is told back. Each party uses its own ids and the messages that reach it, and no more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.psi import Form, IntersectionClient, IntersectionServer, Rule, Terms
from cofactor.data.ids import Ids, plain_ids
from cofactor.errors import DataError, ProtocolError

Among = Literal["leader", "chain"]
"""Who compares with whom, of more than two parties."""
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Mail:
    """A message on its way."""

    sender: str
    receiver: str
    data: bytes


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a party tells all others, and whoever carried the messages, after a search: sizes only."""

    users: int
    """How many users it has."""
    held: int
    """How many of them a client has compared with its own; 0 if it was nobody's server."""
    shared: tuple[int, ...]
    """How many each server that it was the client of has, too, in the order of parties."""
    common: int
    """How many of them all parties have."""
    sent: int
    """Bytes that it has sent to other parties."""


class Searcher:
    """A party in a search. Messages of one sender must come in the order in which they were sent."""

    def __init__(
        self,
        name: str,
        texts: Sequence[str],
        *,
        parties: Sequence[str],
        among: Among,
        terms: Callable[[str, str], Terms],
    ) -> None:
        """Take its ids, as the rule writes them, and what gives the terms of a client and a server."""
        self._name, self._texts, self._parties, self._terms = name, texts, parties, terms
        servers, self._client = _partners(name, parties, among)
        self._clients = {server: IntersectionClient(texts, terms(name, server)) for server in servers}
        self._server: IntersectionServer | None = None
        self._came: dict[str, list[bytes]] = {}
        self._shared: dict[str, list[int]] = {}
        self._left: list[int] = []
        self._sent = 0
        self.rows: list[int] | None = None
        """Where its users stand that all parties have, in any order; None until it knows."""

    @property
    def report(self) -> Report:
        """What it tells of the search once it knows who is common."""
        assert self.rows is not None
        return Report(
            users=len(self._texts),
            held=len(self._left) if self._client else 0,
            shared=tuple(len(self._shared[server]) for server in self._clients),
            common=len(self.rows),
            sent=self._sent,
        )

    def begin(self) -> list[Mail]:
        """Return what it sends first."""
        requests = [self._mail(server, client.request()) for server, client in self._clients.items()]
        return requests if requests else self._compared(list(range(len(self._texts))))

    def take(self, mail: Mail) -> list[Mail]:
        """Take a message, and return what it sends in turn. Errors name the sender, and nobody's ids."""
        came = self._came.setdefault(mail.sender, [])
        came.append(mail.data)
        if len(came) > 2 or mail.sender not in (*self._clients, self._client):
            raise ProtocolError(f"{mail.sender} sent {self._name} more than belongs to this search.")
        try:
            if mail.sender == self._client:
                return self._from_client(came)
            return self._from_server(mail.sender, came)
        except ProtocolError as error:
            raise ProtocolError(f"What {mail.sender} sent {self._name} is refused. {error}") from None

    def _from_server(self, server: str, came: Sequence[bytes]) -> list[Mail]:
        """Take its ids under its key, and then the answer."""
        if len(came) < 2:
            return []
        self._shared[server] = self._clients[server].common(*came)
        if len(self._shared) < len(self._clients):
            return []
        left = sorted(set.intersection(*map(set, self._shared.values())))
        if not left:
            raise nobody(self._parties, self._terms(self._name, server).rule)
        return self._compared(left)

    def _from_client(self, came: Sequence[bytes]) -> list[Mail]:
        """Take the request, which may have to wait, and then who is common to all."""
        if self._server is None and len(came) == 1:
            return []
        if self._server is None or self._client is None:
            raise ProtocolError("It tells who is common before anything was compared.")
        if len(came) == 1:
            return [self._mail(self._client, self._server.answer(came[0]))]
        return self._known([self._left[row] for row in self._server.told(came[1])])

    def _compared(self, left: list[int]) -> list[Mail]:
        """Go on with the users whom all servers have, too: compare them with the client's, or tell all."""
        if self._client is None:
            return self._known(left)
        self._left = left
        terms = self._terms(self._client, self._name)
        self._server = IntersectionServer([self._texts[row] for row in left], terms)
        setup = self._mail(self._client, self._server.setup())
        waiting = self._came.get(self._client)
        return [setup, *(self._from_client(waiting) if waiting else ())]

    def _known(self, rows: list[int]) -> list[Mail]:
        """Tell its servers who is common to all."""
        self.rows = rows
        return [self._mail(server, client.tell(rows)) for server, client in self._clients.items()]

    def _mail(self, receiver: str, data: bytes) -> Mail:
        self._sent += len(data)
        return Mail(self._name, receiver, data)


def servers_of(party: str, parties: Sequence[str], among: Among) -> tuple[str, ...]:
    """Return those whose client a party is, in the order of parties."""
    return _partners(party, parties, among)[0]


def _partners(party: str, parties: Sequence[str], among: Among) -> tuple[tuple[str, ...], str | None]:
    """Return a party's servers, and its client."""
    at = list(parties).index(party)
    if among == "leader":
        return (tuple(parties[1:]), None) if at == 0 else ((), parties[0])
    return tuple(parties[max(at - 1, 0) : at]), parties[at + 1] if at + 1 < len(parties) else None


def in_order(texts: Sequence[str], form: Form, rows: Sequence[int]) -> tuple[Ids, Rows]:
    """Return common ids, sorted, and where a party has them: each can do that by itself."""
    plain = int if form == "numbers" else str
    found = sorted(rows, key=lambda row: plain(texts[row]))
    return plain_ids([plain(texts[row]) for row in found]), np.array(found, np.int64)


def form_of(ids: Ids) -> Form:
    """Return what ids are."""
    return "text" if ids.dtype.kind == "U" else "numbers"


def check_forms(forms: Mapping[str, Form]) -> None:
    """Refuse to compare numbers with text."""
    text = [name for name, form in forms.items() if form == "text"]
    if 0 < len(text) < len(forms):
        raise DataError(
            f"{', '.join(text)}: user ids are text, and other parties' are numbers. Bring them to one form."
        )


def own_ids(given: Sequence[str] | Sequence[int] | Ids, name: str) -> Ids:
    """Return a party's ids as they are compared, before the rule; errors show none of them."""
    try:
        found = plain_ids(given)
    except (DataError, TypeError):  # whose own words might show an id
        raise DataError(
            f"{name}: ids must be a list of whole numbers below 2^63, or of text. Convert them to str first."
        ) from None
    if not len(found):
        raise DataError(f"{name} has no users, so that none are common. Leave it out.")
    return found


def nobody(names: Sequence[str], rule: Rule) -> DataError:
    """Return what is said when nobody is common."""
    return DataError(
        f"{listed(names)} have no user in common. Are ids of the same kind (account numbers here, e-mail "
        f'addresses there)? Are they written alike, beyond the rule "{rule}": upper and lower case '
        '(rule="folded" or --id-rule folded ignores it), leading zeros, prefixes?'
    )


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
