"""Messages about users of which nobody sees more than the sum: whole grains, and parts of its noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.federation.door import SUM
from cofactor.federation.halves import Facts, Home, array_of
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.layers import Layers
from cofactor.privacy.mechanisms import Skellam
from cofactor.recipes.taste_items import Matrix
from cofactor.recipes.taste_letters import USER_MESSAGES, Integers, TasteShares

_MOST_VARIANCE = 2**40
"""More than the variance of any noise that can be drawn."""


@dataclass(frozen=True)
class Shares:
    """How messages are counted, and how the noise of their sum is divided; public."""

    grain: float
    layers: Layers

    def answer(self, home: Home, bounded: Bounded, mechanism: Skellam | None) -> TasteShares:
        """Let a party's message out, into the sum."""
        door, place, parties = home.door, home.facts.place(home.party.name), len(home.facts.parties)
        # One user's ratings at all parties: no more than there are items.
        most = home.facts.item_count * int(np.ceil(bounded.bound.size))

        def at_place(value: int, largest: int) -> NDArray[Any]:
            row = np.zeros(parties, np.int64)
            row[place] = value
            return door.public(row, largest_sum=largest)

        if mechanism is None:
            sums, full = door.unprotected(bounded.value, largest_sum=most), 0
        else:
            full = int(np.ceil(mechanism.noise_size(bounded.bound) ** 2))
            sums = door.share(mechanism, bounded, what=USER_MESSAGES, largest_sum=most)
        alone = home.party.budget is not None
        return TasteShares(
            sums=sums,
            answered=at_place(1, 1),
            shared=at_place(0 if alone else full, _MOST_VARIANCE),
            alone=at_place(full if alone else 0, _MOST_VARIANCE),
        )

    def opened(self, total: Message, facts: Facts, width: int) -> dict[str, NDArray[Any]]:
        """Return the sum in the units of messages, the variance of its noise, and who is in it."""
        sums = array_of(total, "sums", (facts.user_count, 2 * width), SUM)
        parties = (len(facts.parties),)
        answered, shared, alone = (
            array_of(total, name, parties, SUM) for name in ("answered", "shared", "alone")
        )
        count = max(int(answered.sum()), 1)
        variance = sum(self.left(count, float(each)) for each in shared) + float(alone.sum())
        return {
            "total": sums * self.grain,
            "variance": np.array([variance * self.grain**2]),
            "answered": answered > 0,
        }

    def left(self, count: int, full: float) -> float:
        """Return the variance of one party's noise that stays in a sum of so many."""
        return self.layers.remaining(count, full) if full > 0 else 0.0

    def own_part(self, sent: Integers, full: float, count: int, secrets: NDArray[np.uint8]) -> Matrix:
        """Return what a party has left in a sum of so many: its message without the excess of its noise."""
        kept = self.layers.kept(count)
        seeds = [secret.tobytes() for secret in secrets[kept - 1 :]]
        excess = self.layers.excess(sent.shape, full, count, seeds) if full > 0 and seeds else 0
        return np.asarray((sent - excess) * self.grain, np.float64)
