"""Which key belongs to which party: what people compared with each other, and no coordinator can change."""

from collections.abc import Mapping
from pathlib import Path

from cofactor.errors import ConfigError, Refused
from cofactor.federation.declining import Declining
from cofactor.federation.party import check_name
from cofactor.figures import fingerprint
from cofactor.network.proposal import KEY, Proposal
from cofactor.network.toml import read_toml, toml, write_private

_HEAD = """# The public keys of the other parties, by name, as 64 hexadecimal digits.
# Compare each with its owner, by telephone or in person, before you pin it.

"""


def public_key(text: str, where: str = "the key") -> bytes:
    """Read a public key, as 64 hexadecimal digits."""
    digits = text.strip().lower() if isinstance(text, str) else ""
    if not KEY.fullmatch(digits):
        raise ConfigError(
            f"{where} must have 64 hexadecimal digits. 'cofactor join show' prints a party's own key there."
        )
    return bytes.fromhex(digits)


class Pins:
    """The keys that a party has pinned."""

    def __init__(self, path: Path, known: Mapping[str, bytes]) -> None:
        self.path = path
        self.known = dict(known)

    @classmethod
    def read(cls, path: Path) -> "Pins":
        """Read the file; without one nobody is known."""
        if not path.exists():
            return cls(path, {})
        table = read_toml(path)
        for name in table:
            check_name(name)
        return cls(path, {name: public_key(key, f"{path}: {name}") for name, key in table.items()})

    def pin(self, name: str, key: bytes, *, replace: bool = False) -> None:
        """Know a party by this key from now on; a key once pinned changes only if that is said."""
        self.check_free(name, key, replace=replace)
        self.known[name] = key
        write_private(self.path, _HEAD + toml({each: its.hex() for each, its in sorted(self.known.items())}))

    def check_free(self, name: str, key: bytes, *, replace: bool = False) -> None:
        """Refuse a key that cannot be pinned."""
        check_name(name)
        if len(key) != 32:
            raise ConfigError(f"{name}: a public key has 32 bytes.")
        old = self.known.get(name, key)
        if old != key and not replace:
            raise Refused(
                f"{name} is pinned with another key: {fingerprint(old)}. The new one is {fingerprint(key)}. "
                f"Ask the people at {name} whether they have a new key, and compare the fingerprint with "
                "them; then say --replace (and --again, where a request is signed)."
            )
        twin = next((other for other, its in self.known.items() if its == key and other != name), None)
        if twin is not None:
            raise Refused(f"{name} has the key of {twin}. Two parties never share one: ask both.")

    def check(self, proposal: Proposal, name: str, key: bytes) -> None:
        """Refuse a proposal among parties that are not all known by just the keys it names."""
        if proposal.roster.get(name) != key:
            raise Declining(
                "unknown keys",
                f"the proposal does not name {name} with its own key, {fingerprint(key)}. Ask the "
                "coordinator to admit the right one.",
            )
        others = {each: its for each, its in proposal.roster.items() if each != name}
        unknown = [each for each, its in others.items() if self.known.get(each) != its]
        if unknown:
            told = "; ".join(f"{each} {fingerprint(others[each])}" for each in unknown)
            raise Declining(
                "unknown keys",
                f"these keys are not pinned, or others are: {told}. Compare each with the people there, and "
                f"pin it: cofactor join pin FOLDER {unknown[0]}={others[unknown[0]].hex()}",
            )
