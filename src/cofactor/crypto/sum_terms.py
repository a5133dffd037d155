"""What all who take part in one secure sum must agree on before it starts."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from cofactor.config import not_negative, whole
from cofactor.crypto.keys import PUBLIC_BYTES
from cofactor.crypto.neighbours import Neighbourhood
from cofactor.crypto.ring import Ring
from cofactor.errors import ConfigError, TooFew

SELF_MASK, MASKING_KEY, EXTRA = 0, 1, 2
"""The order of a party's secrets: its own mask, its private masking key, then the extra ones."""

Asked = tuple[int, int]
"""A share that is asked for: whose, and of which secret."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """One secure sum: who takes part, what is added up, and how many may drop out.

    Every party makes them itself, from what was agreed on, and takes none from the server. Every signature
    and key of the sum is bound to their digest. No party may take part twice under the same terms: a
    session's name is used once, and its rounds are counted.
    """

    session: str
    """A name that no other session of these parties ever had."""
    round: int
    """Number of the sum within the session, from 0 on."""
    roster: tuple[bytes, ...]
    """Public identity keys by place, as every party has pinned them."""
    neighbourhood: Neighbourhood
    """How many others each party chooses, and how many of them know its secrets together."""
    ring: Ring
    """What the numbers are added in."""
    length: int
    """How many numbers each party adds."""
    grid: tuple[int, ...] = ()
    """Falling numbers of survivors, from all parties to the fewest; one extra secret for each step down."""

    def __post_init__(self) -> None:
        whole(length=self.length)
        not_negative(round=self.round)
        if not 0 < len(self.session.encode()) < 2**16 or self.round >= 2**64:
            raise ConfigError("A session needs a name of 1 to 65,535 bytes, and its rounds are below 2^64.")
        self._check_roster()
        self._check_neighbourhood()
        self._check_grid()

    def _check_roster(self) -> None:
        if len(self.roster) != self.neighbourhood.parties or not 2 <= len(self.roster) <= 2**32:
            raise ConfigError(
                f"The roster has {len(self.roster)} keys for {self.neighbourhood.parties} parties; "
                "a secure sum needs two parties or more, and one key for each."
            )
        if any(len(key) != PUBLIC_BYTES for key in self.roster):
            raise ConfigError(f"A public identity key has {PUBLIC_BYTES} bytes.")
        if len(set(self.roster)) != len(self.roster):
            raise ConfigError("An identity stands at two places of the roster; each party needs its own.")

    def _check_neighbourhood(self) -> None:
        who = self.neighbourhood
        if not (1 <= who.threshold <= who.chosen < who.parties and 1 <= who.fewest <= who.parties):
            raise ConfigError(
                f"{who.parties} parties, each with {who.chosen} chosen ones of whom {who.threshold} know its "
                f"secrets, {who.fewest} of the parties to be left: these numbers do not fit together."
            )

    def _check_grid(self) -> None:
        ends = (self.neighbourhood.parties, self.neighbourhood.fewest)
        falling = all(above > below for above, below in zip(self.grid, self.grid[1:], strict=False))
        if self.grid and ((self.grid[0], self.grid[-1]) != ends or not falling):
            raise ConfigError(f"grid must fall from {ends[0]} parties to the fewest, {ends[1]}.")

    @property
    def parties(self) -> int:
        """How many take part."""
        return len(self.roster)

    @property
    def secrets(self) -> int:
        """How many extra secrets each party shares."""
        return max(len(self.grid) - 1, 0)

    def revealed(self, survivors: int) -> int | None:
        """Return the number of the extra secret that is opened for each survivor, if any is."""
        self.check_enough(survivors)
        first = next((j for j, level in enumerate(self.grid) if level <= survivors), self.secrets)
        return first if first < self.secrets else None

    def asked(self, owners: Iterable[int], survivors: frozenset[int]) -> list[Asked]:
        """Return the shares that a holder reveals of each owner's: own mask or masking key, never both.

        The numbers of a survivor are in the sum, and its own mask is taken off (with the extra secret for so
        many survivors). Of one who dropped out nothing is in the sum but the masks that others have with it.
        """
        extra = self.revealed(len(survivors))
        of_survivors = [SELF_MASK] if extra is None else [SELF_MASK, EXTRA + extra]
        return [
            (owner, secret)
            for owner in sorted(owners)
            for secret in (of_survivors if owner in survivors else [MASKING_KEY])
        ]

    def check_enough(self, parties: int) -> None:
        """Raise TooFew if fewer are left than were promised."""
        if parties < self.neighbourhood.fewest:
            raise TooFew(
                f"{parties} of {self.parties} parties are left; {self.neighbourhood.fewest} were promised. "
                "Nothing was opened. Try again with more parties, or plan for more dropouts."
            )

    def digest(self) -> bytes:
        """Return 32 bytes that no other terms have."""
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        who = self.neighbourhood
        numbers = (
            self.round,
            *(self.parties, who.chosen, who.threshold, who.fewest, who.colluding, int(who.active)),
            *(self.ring.bits, self.length, len(self.grid), *self.grid),
        )
        name = self.session.encode()
        parts = [b"cofactor secure sum, version 1", len(name).to_bytes(2, "little"), name]
        parts += [int(number).to_bytes(8, "little") for number in numbers]
        return sha256(b"".join([*parts, *self.roster])).digest()
