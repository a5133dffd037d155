"""How parties relate: who holds what of whom. Apart from recipes, since run folders tell of it, too."""

from typing import Literal

from cofactor.privacy.budget import Unit

Split = Literal["horizontal", "vertical", "on-device"]


def shared_units(split: Split, unit: Unit) -> bool:
    """Say whether parties hold parts of the same unit: only users of a vertical federation are shared."""
    return split == "vertical" and unit == "user"
