"""`Alone`: every party by itself. Nothing leaves anybody; what joining is measured against."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from cofactor.errors import ConfigError
from cofactor.factors.bayes import Bayes
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.privacy.guarantee import Guarantee

NOTHING_LEFT = Guarantee.nothing(
    "Nothing left any party, so there was nothing to protect. The models are made from ratings as they are: "
    "they stay with their parties, and are not private if shown to others."
)


@dataclass(frozen=True, kw_only=True)
class Alone:
    """Each party fits the home model to its own ratings and hears of nobody.

    `VerticalMF(alone=True)` is the private counterpart: vectors with noise, and no exchange.
    """

    home: Bayes = field(default_factory=Bayes)
    """The model that each party fits."""

    def fit(self, federation: Federation, *, seed: int = 0) -> dict[str, Factors]:
        """Return each party's own model."""
        if federation.kind == "on-device":
            raise ConfigError(
                "a device has the ratings of one user, and alone it has their mean, nothing to fit. A run of "
                "OnDeviceMF is compared with that mean."
            )
        with ThreadPoolExecutor() as pool:
            futures = {
                party.name: pool.submit(fitted_alone, self.home, party, seed) for party in federation.parties
            }
            return {name: future.result() for name, future in futures.items()}


def fitted_alone(home: Bayes, party: Party, seed: int) -> Factors:
    """Fit the home model to one party's own ratings."""
    return home.fit(party.ratings, features=party.features, seed=seed)
