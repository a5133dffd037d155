"""What in a federation's data may contradict what a guarantee takes for granted."""

from cofactor.federation.federation import Federation
from cofactor.federation.weights import SIMULATED_WEIGHTS

_READ_SCALE = (
    "The scale of the ratings was read off the parties' data. Name it, so that nobody's extreme rating shows "
    "in it."
)
_READ_CATALOGUE = (
    "The catalogue was read off the devices' ratings: an item that only one of them has rated shows that "
    "somebody did. Give all devices the same catalogue, with items that nobody has rated, too."
)


def doubts_about(federation: Federation) -> list[str]:
    """Say what in the data may contradict what the guarantee takes for granted."""
    found, twice = [], federation.at_two_parties()
    if federation.weights is not None and federation.weights.simulated:
        found.append(SIMULATED_WEIGHTS)
    if not (federation.scale_stated or federation.simulated):
        found.append(_READ_SCALE)
    if federation.kind == "on-device" and not federation.simulated:
        found.append(_READ_CATALOGUE)
    if twice:
        found.append(
            f"{twice:,} user ids occur at more than one party. They are taken to be different people; if "
            "they are not, those users lose what all their parties release; and a sum whose noise parties "
            "share changes by as many bounds as a user has parties."
        )
    return found
