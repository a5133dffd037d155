"""Who do we have in common: private set intersection of two sides that exchange bytes.

The curve and its arithmetic are those of `openmined.psi`, an extra: Diffie-Hellman on P-256, semi-honest. The
client learns which of its ids the server has, too; the server learns how many ids the client has, and no more
unless the client tells; each side learns the other's number of ids. In order:

    server   setup()     its ids, each hashed to a point and multiplied by the server's key
    client   request()   the same under the client's key
    server   answer()    the client's points, multiplied by the server's key as well
    client   common()    takes its own key off again, and compares
    client   tell()      names what is common, for a server that is to know
    server   told()      finds its own rows

Every message is "CPSI", version, kind, rule and form of ids (a byte each), a check value (32) that both sides
make of the salt and the rule, how many entries there are (4), the entries, and a code (32) that nobody makes
or changes without the salt. Reading raises ProtocolError and nothing else, whatever the bytes are.

Entries are whole points and not the filters that the library offers besides. Filters are shorter (a sixth of
the setup, which is a third of the traffic), but match by chance, fail for some sizes (a client with 100,000
ids and a server with one), and a server that sends one with all bits set makes every id of the client look
common. With points, a false match takes two ids with the same 256-bit hash: its probability for n and m ids
is below n m / 2^254, or 10^-66 for 100,000 each.

What the salt adds: whoever carries the messages cannot take a side's part, try guessed ids against it, or
change anything unnoticed; tokens in `tell` mean nothing to it; and if keys of the curve ever became known,
guesses would still have to be made by somebody who knows the salt. What it does not add: the two sides know
it, so that one of them who puts guessed ids among its own learns which of them the other has, as many as it
sent. Nor does it hide how many ids there are.
"""

import hmac
import secrets
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from hashlib import sha256
from struct import Struct
from typing import Any, Literal, get_args

from cofactor.config import one_of
from cofactor.errors import ConfigError, DataError, ProtocolError

Rule = Literal["exact", "folded"]
"""How ids are written before they are compared: public. "exact" takes spaces off both ends and puts letters
and accents into one form (Unicode NFC); "folded" also makes upper and lower case the same."""
Form = Literal["text", "numbers"]
"""What ids are. Numbers are never compared with text: 7 would never find "007"."""
RULES: tuple[Rule, ...] = get_args(Rule)
SALT_BYTES = 32

_MAGIC, _VERSION = b"CPSI", 1
_HEADER = Struct("<4sBBBB32sI")
_CODE = 32
_POINT, _TOKEN = 33, 32
_FORMS: tuple[Form, ...] = get_args(Form)


class Kind(IntEnum):
    """Which message it is."""

    SETUP = 1
    REQUEST = 2
    ANSWER = 3
    COMMON = 4


def fresh_salt() -> bytes:
    """Draw a salt: for one search, known to the parties and not to whoever carries their messages."""
    return secrets.token_bytes(SALT_BYTES)


def normalised(ids: Iterable[int | str], rule: Rule = "exact", owner: str = "") -> list[str]:
    """Write ids by a rule; refuse those that become empty or alike. Errors name entries, and never an id."""
    one_of(RULES, rule=rule)
    where = f"{owner}: " if owner else ""
    found = [_written(each, rule, f"{where}entry {at}") for at, each in enumerate(ids, 1)]
    first: dict[str, int] = {}
    twice = [(first[each], at) for at, each in enumerate(found, 1) if first.setdefault(each, at) != at]
    if twice:
        raise DataError(
            f"{where}{len(twice):,} of {len(found):,} ids repeat an earlier one by the rule {rule!r}; the "
            f"first are entries {twice[0][0]:,} and {twice[0][1]:,}. Give each user one row."
        )
    return found


def _written(each: object, rule: Rule, where: str) -> str:
    if isinstance(each, bool) or not isinstance(each, int | str):
        raise DataError(f"{where} is no id: ids are whole numbers or text.")
    text = unicodedata.normalize("NFC", str(each))
    if rule == "folded":
        # Letters and accents apart while case is taken off: some accents have a case of their own.
        text = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    text = text.strip()
    if not text:
        raise DataError(f"{where} is an empty id by the rule {rule!r}. Leave it out, or name its user.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{where} is no valid text: it has half a character.") from None
    return text


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What two sides agree on before they compare; whoever carries their messages does not know the salt."""

    salt: bytes = field(repr=False)
    """32 secret bytes from `fresh_salt`, for one search."""
    rule: Rule = "exact"
    """How ids were written: both sides must have used `normalised` with it."""
    form: Form = "text"
    """What ids are."""

    def __post_init__(self) -> None:
        one_of(RULES, rule=self.rule)
        one_of(_FORMS, form=self.form)
        if not isinstance(self.salt, bytes) or len(self.salt) != SALT_BYTES:
            raise ConfigError(f"a salt is {SALT_BYTES} secret bytes. Draw one with fresh_salt().")

    def between(self, client: str, server: str) -> "Terms":
        """Return the terms of two of several parties: messages of one pair do not pass for another's."""
        names = b"".join(
            len(name.encode()).to_bytes(4, "little") + name.encode() for name in (client, server)
        )
        return replace(self, salt=self._made(b"pair", names))

    def tokens(self, ids: Sequence[str]) -> list[bytes]:
        """Return a keyed hash of each id."""
        key = self._made(b"key of tokens", b"")
        return [hmac.digest(key, each.encode(), sha256) for each in ids]

    def packed(self, kind: Kind, entries: Sequence[bytes]) -> bytes:
        """Return a message."""
        rule, form = RULES.index(self.rule), _FORMS.index(self.form)
        header = _HEADER.pack(_MAGIC, _VERSION, kind, rule, form, self._check, len(entries))
        message = header + b"".join(entries)
        return message + self._made(b"code", message)

    def read(self, message: bytes, kind: Kind, size: int) -> list[bytes]:
        """Return a message's entries; ProtocolError says what the other side did otherwise."""
        if len(message) < _HEADER.size + _CODE or message[:4] != _MAGIC:
            raise ProtocolError("A message is none of a search for common users, or was cut off.")
        _, version, found, rule, form, check, count = _HEADER.unpack_from(message)
        if version != _VERSION:
            raise ProtocolError(
                f"The other side speaks version {version} of the search, and this one {_VERSION}. Install "
                "the same version of cofactor."
            )
        _same("ids are written by the rule", RULES, rule, self.rule)
        _same("ids are", _FORMS, form, self.form)
        if not hmac.compare_digest(check, self._check):
            raise ProtocolError(
                "The two sides have different salts, so that no id could be found: agree on one and search "
                "again."
            )
        if not hmac.compare_digest(message[-_CODE:], self._made(b"code", message[:-_CODE])):
            raise ProtocolError("A message was changed on its way.")
        body = message[_HEADER.size : -_CODE]
        if found != kind or len(body) != count * size:
            raise ProtocolError(f"A message of kind {kind.name} was expected, and another one came.")
        return [body[at : at + size] for at in range(0, len(body), size)]

    @property
    def _check(self) -> bytes:
        return self._made(b"check", f"{_VERSION} {self.rule} {self.form}".encode())

    def _made(self, purpose: bytes, content: bytes) -> bytes:
        key = hmac.digest(self.salt, b"cofactor psi: " + purpose, sha256)
        return hmac.digest(key, content, sha256)


def _same(what: str, words: tuple[str, ...], found: int, own: str) -> None:
    other = words[found] if found < len(words) else "unknown"
    if other != own:
        raise ProtocolError(f"On the other side {what} {other}, and here {own}. Bring them to one form.")


class _Side:
    """Tokens of ids, in an order drawn by chance: neither that of a side's rows, nor one that others know.

    Sent in the order of tokens, which both sides can reckon, they would show that nobody lies between two
    common ones.
    """

    def __init__(self, ids: Sequence[str], terms: Terms) -> None:
        if not len(ids):
            raise DataError("there are no ids to compare.")
        tokens = terms.tokens(ids)
        self._terms = terms
        self._rows = list(range(len(tokens)))
        secrets.SystemRandom().shuffle(self._rows)
        self._tokens = [tokens[row] for row in self._rows]
        if len(set(tokens)) < len(tokens):
            raise DataError("an id is there twice. Write ids with normalised(ids, rule), which says where.")

    @property
    def _texts(self) -> list[str]:
        return [token.hex() for token in self._tokens]


class IntersectionServer(_Side):
    """The side that answers, once: it learns how many ids the client has, and no more unless it is told."""

    def __init__(self, ids: Sequence[str], terms: Terms) -> None:
        super().__init__(ids, terms)
        self._library = _library()
        self._key = self._library.server.CreateWithNewKey(True)
        self._answered = False

    def setup(self) -> bytes:
        """Return its own ids under its key."""
        # The two numbers size filters, and mean nothing for whole points.
        whole = self._library.DataStructure.RAW
        made = self._key.CreateSetupMessage(1e-9, 1, self._texts, whole)
        return self._terms.packed(Kind.SETUP, made.raw.encrypted_elements)

    def answer(self, request: bytes) -> bytes:
        """Return the client's points under both keys. One request only: a second would be about more ids."""
        points = self._terms.read(request, Kind.REQUEST, _POINT)
        if self._answered:
            raise ProtocolError("The client asked twice. Nothing was answered: begin a new search.")
        asked = self._library.Request(reveal_intersection=True, encrypted_elements=points)
        answer = _computed(lambda: self._key.ProcessRequest(asked))
        self._answered = True
        return self._terms.packed(Kind.ANSWER, answer.encrypted_elements)

    def told(self, message: bytes) -> list[int]:
        """Return its own rows of the ids that the client names as common."""
        own = dict(zip(self._tokens, self._rows, strict=True))
        named = self._terms.read(message, Kind.COMMON, _TOKEN)
        if len(set(named)) != len(named) or any(token not in own for token in named):
            raise ProtocolError("The client names common ids that this side has not, or twice.")
        return [own[token] for token in named]


class IntersectionClient(_Side):
    """The side that asks, and learns which of its ids the server has."""

    def __init__(self, ids: Sequence[str], terms: Terms) -> None:
        super().__init__(ids, terms)
        self._library = _library()
        self._key = self._library.client.CreateWithNewKey(True)

    def request(self) -> bytes:
        """Return its own ids under its key."""
        return self._terms.packed(Kind.REQUEST, self._key.CreateRequest(self._texts).encrypted_elements)

    def common(self, setup: bytes, answer: bytes) -> list[int]:
        """Return its own rows of the ids that the server has, too, in ascending order."""
        held = self._terms.read(setup, Kind.SETUP, _POINT)
        points = self._terms.read(answer, Kind.ANSWER, _POINT)
        if len(points) != len(self._rows):
            raise ProtocolError("The server answered about more or fewer ids than it was asked about.")
        library = self._library
        made = library.ServerSetup()
        made.raw.encrypted_elements.extend(held)
        given = library.Response(encrypted_elements=points)
        found = _computed(lambda: self._key.GetIntersection(made, given))
        return sorted(self._rows[at] for at in found)

    def tell(self, rows: Iterable[int]) -> bytes:
        """Name ids of its own by their rows, to a server that is to know them as common."""
        wanted = set(rows)
        pairs = zip(self._rows, self._tokens, strict=True)
        return self._terms.packed(Kind.COMMON, sorted(token for row, token in pairs if row in wanted))


def false_match(client: int, server: int) -> float:
    """Return a bound of the probability that two different ids of so many are taken for one."""
    return client * server / 2.0**254


def _computed(call: Any) -> Any:
    """Call the library on points from outside; it refuses what is none."""
    try:
        return call()
    except (RuntimeError, ValueError):
        raise ProtocolError("A message holds something that is no point of the curve.") from None


def _library() -> Any:
    try:
        import private_set_intersection.python as library
    except ImportError:
        raise ConfigError(
            "private set intersection needs the package openmined.psi. Run: pip install 'cofactor[psi]' (or, "
            "in a clone, pip install '.[psi]')"
        ) from None
    return library
