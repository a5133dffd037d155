"""How long the phases of a round take: real gradients of some users, hidden, added up and opened again.

Times are processor seconds, whatever number of cores there is.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.ciphers import Part
from cofactor.crypto.hiding import Hiding, Opener
from cofactor.errors import RunError
from cofactor.federation.door import Door
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts, Home
from cofactor.federation.party import Party
from cofactor.papers.privmvmf_method import knowing, published
from cofactor.papers.privmvmf_numbers import AGGREGATION, DECRYPTION, LOCAL, SERVER
from cofactor.papers.privmvmf_sides import Sided
from cofactor.randomness import SecureRandom
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_halves import ViewsCoordinator
from cofactor.recipes.multiview_letters import ITEM_SERVER, ViewGradients
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum

T = TypeVar("T")
Times = dict[str, float]
"""By phase: the first for each user, the others for each round."""
SAMPLE = 20
"""Users whose gradients are timed; what is added up grows linearly with users."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    """One round of all users: what some of them add to it, and what it takes without hiding anything."""

    users: int
    gradients: NDArray[np.int64]
    """Whole numbers, a row for each user of the sample."""
    most: int
    """The largest sum of all users."""
    plain: Times

    @property
    def dense(self) -> int:
        """How many numbers a user sends who hides which items she has rated."""
        return int(self.gradients.shape[1])


def played(sides: Sided) -> Round:
    """Let some users take part in a round as devices, and the coordinator and the item server act on it."""
    users = sides.ratings.user_count
    sample = np.linspace(0, users - 1, min(SAMPLE, users)).astype(int)
    parties = [Party(name=f"device-{u}", ratings=sides.ratings.select(users=[u])) for u in sample.tolist()]
    devices = knowing(Federation.on_device(parties, scale=sides.ratings.scale), sides)
    facts = devices.facts
    recipe = published().settled(facts, None)
    coordinator = recipe.coordinator(facts, 1)
    # Twice, for the first vectors are so small that nothing would be large.
    for _ in range(2):
        answers, local = _answers(recipe, devices, coordinator)
        rows = np.array([answer.gradients.ravel() for answer in answers])
        total, adding = timed(np.sum, rows, 0)
        server = _server(recipe, facts, coordinator, answers[0], total)
    plain = {LOCAL: local / len(rows), AGGREGATION: adding * users / len(rows), SERVER: server}
    return Round(users=users, gradients=rows, most=recipe.most(facts) * users, plain=plain)


def _answers(
    recipe: MultiViewMF, devices: Federation, coordinator: ViewsCoordinator
) -> tuple[list[ViewGradients], float]:
    homes = [
        Home(
            party=party,
            facts=devices.facts,
            schedule=None,
            door=Door(party=party.name, ledger=None, random=SecureRandom(), run="times"),
            seed=1,
        )
        for party in devices.parties
    ]
    participants, asked = [recipe.participant(home) for home in homes], coordinator.ask(1)
    answers = [timed(participant.handle, 1, asked) for participant in participants]
    told = [answer for answer, _ in answers if isinstance(answer, ViewGradients)]
    return told, sum(seconds for _, seconds in answers)


def _server(
    recipe: MultiViewMF,
    facts: Facts,
    coordinator: ViewsCoordinator,
    answer: ViewGradients,
    total: NDArray[np.int64],
) -> float:
    """Return how long it takes to move all vectors by the sum, those of features included."""
    door = Door(party=ITEM_SERVER, ledger=None, random=SecureRandom(), run="times")
    server = recipe.role(ITEM_SERVER, facts, door, 1)
    count = np.array([facts.user_count], np.int64)
    told = ViewGradients(gradients=total.reshape(answer.gradients.shape), count=count)

    def moved() -> None:
        coordinator.take_role(ITEM_SERVER, 1, server.handle(1, coordinator.ask_role(ITEM_SERVER, 1)))
        coordinator.take(1, {"sum": told})

    return timed(moved)[1]


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """What hiding takes: for all numbers and users, where only some of them were timed."""

    times: Times
    upload: float
    """Bytes that a user sends."""


def hidden(
    aggregate: EncryptedSum | SharedSum, own: Round, *, bits: int, sent: int, numbers: int, decrypters: int
) -> Hidden:
    """Hide, add up and open the first `numbers` of what every user of the sample adds.

    `sent` is how many numbers a user sends; the opened sum always has all. Everything grows linearly.
    """
    dealing, keys = aggregate.dealt(tuple(f"decrypter-{at}" for at in range(decrypters)))
    openers = [key.opener for key in keys.values()][: dealing.hiding.quorum]
    # What is made once, such as tables of powers, is made before the clock runs.
    _passed(dealing.hiding, openers, own.gradients[:1, :1], bits)
    times, upload = _passed(dealing.hiding, openers, own.gradients[:, :numbers], bits)
    longer, more = sent / numbers, own.users / len(own.gradients)
    return Hidden(
        times={
            LOCAL: times[LOCAL] * longer,
            AGGREGATION: times[AGGREGATION] * more * longer,
            DECRYPTION: times[DECRYPTION] * own.dense / numbers,
        },
        upload=upload * longer,
    )


def _passed(
    hiding: Hiding, openers: Sequence[Opener], gradients: NDArray[np.int64], bits: int
) -> tuple[Times, int]:
    """Hide, add up and open gradients; return the seconds of it all, and the bytes that a user sends."""
    values = np.ascontiguousarray(gradients)
    length, adding, opening, parts = values.shape[1], [], [], []
    boxes, hide = timed(lambda: [hiding.boxes(row, bits, b"") for row in values])
    pieces = range(hiding.pieces(length, bits))
    for place, opener in enumerate(openers):
        # One box is for all decrypters, or each has one of its own.
        own_boxes = [(one[min(place, len(one) - 1)], b"") for one in boxes]
        total, seconds = timed(opener.total, own_boxes, length, bits)
        adding.append(seconds)
        part, seconds = timed(opener.part, total, length, bits, pieces)
        opening.append(seconds)
        parts.append(Part(place, pieces, part))
    found, combining = timed(hiding.combined, total, length, bits, parts)
    if not np.array_equal(found, values.sum(axis=0)):
        raise RunError("a sum that was hidden did not open as it is. Please report this.")
    times = {
        LOCAL: hide / len(values),
        AGGREGATION: statistics.fmean(adding),
        DECRYPTION: statistics.fmean(opening) + combining,
    }
    return times, sum(map(len, boxes[0]))


def timed(work: Callable[..., T], *given: Any) -> tuple[T, float]:
    """Return what a function returns, and the processor seconds that it took."""
    start = time.process_time()
    found = work(*given)
    return found, time.process_time() - start
