"""Sums of which nobody sees the parts: a party's end, and the coordinator's.

All parties answer with whole numbers of the same form. Secure, they are masked, by the protocol of
`cofactor.crypto`, or hidden from all but decrypters (`opening`); simulated, they are added up in plain sight.
The noise that survivors have too much of is taken off in the end, where masks or nothing hide numbers.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.hiding import Hiding
from cofactor.crypto.keys import Identity, chain
from cofactor.crypto.neighbours import Neighbourhood
from cofactor.crypto.ring import Ring
from cofactor.crypto.sum_client import Client
from cofactor.crypto.sum_server import Opened, Server
from cofactor.crypto.sum_terms import Terms
from cofactor.errors import ProtocolError, RunError
from cofactor.federation.door import OVERFLOW, Door, Passed, Protection, Summand, weakest
from cofactor.federation.messages import Message
from cofactor.federation.sizes import laws_in, sizes_of
from cofactor.privacy.fixed_point import largest_sum
from cofactor.privacy.laws import AnyLaw
from cofactor.privacy.layers import Layers

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class SumBegun(Message):
    """A party's first answer in a secure sum: the form of what it will add, and its keys."""

    form: str
    variances: NDArray[np.float64]
    """Of each array, the variance of the sum's noise if it is Skellam noise in layers, and 0 if not."""
    scales: NDArray[np.float64]
    """Of each array, the scale of that noise if it is discrete Laplace noise in layers, and 0 if not."""
    data: Bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class SumStep(Message):
    """A later message of a secure sum, either way."""

    data: Bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class SumPart(Message):
    """A party's answer to a sum that is only simulated: everything lies open."""

    form: str
    variances: NDArray[np.float64]
    scales: NDArray[np.float64]
    values: Integers
    secrets: Bytes
    """Seeds of the layers of noise that may be excess, a row for each."""


SUM_MESSAGES = (SumBegun, SumStep, SumPart)
SIMULATION = "SIMULATION"
"""What the transcript says of answers that only a simulation hides."""
MASKED, ENCRYPTED = "masked", "encrypted"
"""What the transcript says of answers that nobody sees: masks hide them, or keys that decrypters have."""
OPENS = "a part in opening the sum"
"""What it says of a decrypter's answers."""
_SEALED: Protection = "sealed for other parties"
_KEYS = "shares of keys"
PROTECTIONS = (*get_args(Protection), _KEYS, OPENS)
"""What can stand between a party's message and its ratings."""


@dataclass(frozen=True, kw_only=True)
class Decryption:
    """How decrypters open sums; public."""

    hiding: Hiding
    decrypters: tuple[str, ...]
    """The parties that hold keys, in the order of their parts."""
    recheck: bool = True
    """Whether they add up all uploads themselves, and take no total on trust."""


@dataclass(frozen=True, kw_only=True)
class Summing:
    """How the answers of a session are added up; public."""

    layers: Layers | None
    """How noise is divided among the parties; None if one participant plays them all."""
    neighbourhood: Neighbourhood | None = None
    """Who helps whom where masks hide answers."""
    decryption: Decryption | None = None
    """How sums are opened where keys hide answers. If neither masks nor keys do, sums are simulated."""
    roster: Mapping[str, bytes] = field(default_factory=dict)
    """The parties' public keys, in the order of their places."""
    goes_on: bool = False
    """Whether a round that too few answer is left out, instead of ending the training."""
    agreed: str = ""
    """The hash of what parties have agreed on besides, such as how much noise each adds: between parties who
    were told different things, nothing is summed."""

    @property
    def simulated(self) -> bool:
        """Whether everything lies open."""
        return self.neighbourhood is None and self.decryption is None

    @property
    def hiding(self) -> Hiding:
        """What hides answers from all but decrypters."""
        assert self.decryption is not None
        return self.decryption.hiding

    def place(self, party: str) -> int:
        """Return a party's place among those who sum."""
        return list(self.roster).index(party)

    def terms(self, form: "Form", session: str, round: int) -> Terms:
        """Return what all parties of one secure sum agree on."""
        assert self.neighbourhood is not None
        assert self.layers is not None
        return Terms(
            session=f"{session} {self.agreed} {form}",
            round=round,
            roster=tuple(self.roster.values()),
            neighbourhood=self.neighbourhood,
            ring=Ring(form.bits),
            length=form.length,
            grid=self.layers.grid,
        )


@dataclass(frozen=True)
class Form:
    """What all parties add: a message of this kind with these arrays, in numbers of so many bits."""

    kind: str
    arrays: tuple[tuple[str, int, tuple[int, ...]], ...]
    """Name, number by which its noise is drawn, and shape."""
    bits: int

    @classmethod
    def of(cls, answer: Message, passed: Mapping[str, Passed]) -> "Form":
        """Return the form of an answer, with numbers wide enough for every sum, noise included."""
        largest, arrays = 0, []
        for name, each in passed.items():
            assert each.summand is not None
            if each.values.dtype != np.int64:
                raise RunError(f"{name} is not of whole numbers (int64), so it cannot be summed.")
            largest = max(largest, _largest(each.summand, each.values.size))
            arrays.append((name, each.summand.array, each.values.shape))
        return cls(type(answer).__name__, tuple(arrays), Ring.holding(largest).bits)

    @classmethod
    def read(cls, text: str) -> "Form":
        """Read what a party says."""
        try:
            kind, arrays, bits = json.loads(text)
            found = cls(
                str(kind), tuple((str(a), int(b), tuple(map(int, c))) for a, b, c in arrays), int(bits)
            )
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise RunError("a party says something about its numbers that makes no sense.") from None
        if not 1 <= found.bits <= 64 or any(length < 0 for *_, shape in found.arrays for length in shape):
            raise RunError("a party says something impossible about its numbers.")
        return found

    def __str__(self) -> str:
        """Write it as parties send it."""
        return json.dumps([self.kind, [list(each) for each in self.arrays], self.bits], separators=(",", ":"))

    @property
    def length(self) -> int:
        """How many numbers there are in all."""
        return sum(math.prod(shape) for *_, shape in self.arrays)

    def message(self, total: Integers, kinds: Sequence[type[Message]]) -> Message:
        """Return the message that a sum makes."""
        kind = next((each for each in kinds if each.__name__ == self.kind), None)
        if kind is None:
            raise RunError(f"the parties' answers are of kind {self.kind!r}, which is not expected here.")
        return kind(**self.split(total))

    def split(self, total: Integers) -> dict[str, Integers]:
        """Return the arrays that lie one after the other in a sum."""
        ends = np.cumsum([math.prod(shape) for *_, shape in self.arrays])
        parts = np.split(total, ends[:-1])
        return {name: part.reshape(shape) for (name, _, shape), part in zip(self.arrays, parts, strict=True)}


class PartySum:
    """A party's end of one sum. Every message comes with what protects it, for the transcript."""

    def __init__(self, summing: Summing, answer: Message, passed: Mapping[str, Passed], door: Door) -> None:
        """Take the answer: whole numbers that went through the door."""
        self._summing, self._secrets = summing, door.extra_secrets
        self._form, self._protection = Form.of(answer, passed), weakest(passed)
        self._noise = sizes_of([each.summand.layered if each.summand else None for each in passed.values()])
        self._values = np.concatenate([each.values.ravel() for each in passed.values()])
        self._steps: list[tuple[Callable[[bytes], bytes], str]] = []
        self.underway = False
        """Whether a step was taken: each is taken once, so that the sum cannot be begun again."""

    @property
    def secure(self) -> bool:
        """Whether nobody sees its part: otherwise the sum is simulated."""
        return not self._summing.simulated

    def begun(
        self, party: str, identity: Identity | None, *, session: str, round: int
    ) -> tuple[Message, str]:
        """Return the first message: keys for the others, or, where the sum is simulated, the numbers."""
        form, summing = str(self._form), self._summing
        if not self.secure:
            secrets = np.frombuffer(b"".join(self._secrets), np.uint8).reshape(-1, 32)
            part = SumPart(form=form, **self._noise, values=self._values, secrets=secrets)
            return part, f"{self._protection}, {SIMULATION}"
        if identity is None or summing.roster.get(party) != identity.public:
            raise RunError(f"{party}: a secure sum needs the key by which the other parties know this one.")
        client = Client(summing.terms(self._form, session, round), summing.place(party), identity)
        self._steps = [
            (lambda data: client.share(data, self._secrets), _SEALED),
            (lambda data: client.mask(data, self._values), f"{self._protection}, {MASKED}"),
            (client.confirm, "public"),
            (client.unmask, _KEYS),
        ]
        keys = _as_array(client.advertise())
        return SumBegun(form=form, **self._noise, data=keys), "public"

    def step(self, message: SumStep) -> tuple[SumStep, str]:
        """Answer the coordinator's next message; each step is taken once."""
        if not self._steps:
            raise ProtocolError("this secure sum is over. It is not opened twice.")
        take, protection = self._steps.pop(0)
        self.underway = True
        return SumStep(data=_as_array(take(message.data.tobytes()))), protection


class CoordinatorSum:
    """The coordinator's end of one secure sum: its first message asks all who have begun for shares."""

    def __init__(self, summing: Summing, begun: Mapping[str, SumBegun], session: str, round: int) -> None:
        """Take the first answers."""
        self.form = one_form(begun)
        self._summing, self._names = summing, list(summing.roster)
        self._noise = {party: laws_in(each, len(self.form.arrays), party) for party, each in begun.items()}
        self._server = Server(summing.terms(self.form, session, round))
        self._asked = self._server.adverts(
            {self._summing.place(p): each.data.tobytes() for p, each in begun.items()}
        )
        self._next = [self._server.shares, self._server.masked, self._server.confirmed]
        self._total: Integers | None = None

    @property
    def finished(self) -> bool:
        """Whether all steps were taken."""
        return self._total is not None

    def asks(self) -> dict[str, SumStep]:
        """Return what each party is asked next."""
        return {self._names[place]: SumStep(data=_as_array(data)) for place, data in self._asked.items()}

    @property
    def refused(self) -> dict[str, str]:
        """Whose messages made no sense, and why."""
        return {self._names[place]: why for place, why in self._server.refused.items()}

    def take(self, replies: Mapping[str, SumStep]) -> None:
        """Take the answers of a step; those of the last one open the sum."""
        answers = {self._summing.place(p): each.data.tobytes() for p, each in replies.items()}
        if self._next:
            self._asked = self._next.pop(0)(answers)
        else:
            self._total = self._without_excess(self._server.opened(answers))

    def opened(self) -> Integers:
        """Return the sum of all survivors, without excess noise."""
        assert self._total is not None
        return self._total

    def _without_excess(self, found: Opened) -> Integers:
        laws = {party: self._noise[party] for party in map(self._names.__getitem__, found.survivors)}
        secrets = {self._names[place]: secret for place, secret in found.revealed.items()}
        return without_excess(found.total, self.form, self._summing, laws, secrets)


def simulated(summing: Summing, parts: Mapping[str, SumPart]) -> tuple[Form, Integers]:
    """Add up what lies open, as a secure sum would have."""
    form = one_form(parts)
    for party, part in parts.items():
        if part.values.shape != (form.length,) or part.values.dtype != np.int64:
            raise RunError(f"{party} sent other numbers than it says.")
    total = np.sum([part.values for part in parts.values()], axis=0)
    if summing.layers is None:
        return form, total
    kept = summing.layers.kept(len(parts))
    secrets = {
        party: part.secrets[kept - 1].tobytes() for party, part in parts.items() if kept <= len(part.secrets)
    }
    laws = {party: laws_in(part, len(form.arrays), party) for party, part in parts.items()}
    return form, without_excess(total, form, summing, laws, secrets)


def without_excess(
    total: Integers,
    form: Form,
    summing: Summing,
    laws: Mapping[str, Sequence[AnyLaw | None]],
    secrets: Mapping[str, bytes],
) -> Integers:
    """Return a sum without the layers of noise that are too much for its parties.

    A secret is the seed of the first of them; its chain gives the others.
    """
    layers, total = summing.layers, total.copy()
    assert layers is not None
    count, arrays = len(laws), form.split(total)  # views: what is taken off them is taken off the sum
    for party, secret in secrets.items():
        seeds = chain(secret, len(layers.grid) - layers.kept(count))
        for (name, array, shape), law in zip(form.arrays, laws[party], strict=True):
            if law is not None:
                arrays[name] -= layers.excess(shape, law, count, seeds, array=array)
    return total


def _largest(summand: Summand, count: int) -> int:
    """Return what no number of a sum exceeds, noise included, but with a chance that is charged to delta."""
    if summand.noise is None:
        return summand.largest
    return largest_sum(1, max(summand.largest, 1), summand.noise, count, failure=OVERFLOW / 4)


def one_form(messages: Mapping[str, Any]) -> Form:
    """Return the form of all answers; refuse answers that have no sum."""
    texts = {each.form for each in messages.values()}
    if len(texts) > 1:
        raise RunError("the parties' answers differ in kind, shape or size of numbers, so they have no sum.")
    return Form.read(texts.pop())


def _as_array(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)
