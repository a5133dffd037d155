"""Which recipe to use, if nobody says."""

from typing import Any

from cofactor.federation.splits import Split
from cofactor.privacy.budget import Unit

USUAL_UNIT: dict[Split, Unit] = {"vertical": "rating", "horizontal": "user", "on-device": "user"}
"""Who is protected, if nobody says: the most that the split can protect usefully."""


def recommended(split: Split, unit: Unit) -> Any:
    """Return the recipe that serves a split and a unit best."""
    from cofactor.recipes.personal_biases import PersonalBiases
    from cofactor.recipes.secure_als import SecureALS
    from cofactor.recipes.vertical import VerticalMF
    from cofactor.recipes.vertical_taste import VerticalTaste

    if split == "vertical":
        return VerticalTaste() if unit == "rating" else VerticalMF()
    return PersonalBiases() if unit == "rating" else SecureALS()
