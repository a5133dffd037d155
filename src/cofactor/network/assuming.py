"""What a promise rests on, where parties sit on machines of their own and deal keys among themselves."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from cofactor.federation.hidden_sums import KNOWN_KEYS
from cofactor.network.dealing import dealing_assumptions
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.guarantee import Guarantee
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.sums import AnySum

PINNED: Final = Assumption(
    what=KNOWN_KEYS.what,
    met="people at each party compared the fingerprints of the others' keys with their owners, and pinned "
    "them; whatever parties tell each other through the coordinator is signed with these",
)


def assumed(aggregate: AnySum, parties: int) -> tuple[Assumption, ...]:
    """Return what sums of so many parties on a network rest on."""
    return (*pinned(aggregate.assumptions(parties)), *_dealt(aggregate, parties))


def pinned(assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Return assumptions with the way in which keys became known on a network."""
    return tuple(PINNED if each == KNOWN_KEYS else each for each in assumptions)


def on_a_network(guarantee: Guarantee, aggregate: AnySum | None = None, parties: int = 0) -> Guarantee:
    """Return a guarantee that says how keys became known, and who made them."""
    if not guarantee.assumptions:
        return guarantee
    dealt = () if aggregate is None else _dealt(aggregate, parties)
    return replace(guarantee, assumptions=(*pinned(guarantee.assumptions), *dealt))


def _dealt(aggregate: AnySum, parties: int) -> tuple[Assumption, ...]:
    opened = isinstance(aggregate, EncryptedSum | SharedSum) and parties > 1
    return dealing_assumptions(aggregate, parties) if opened else ()  # type: ignore[arg-type]
