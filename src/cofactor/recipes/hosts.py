"""What a party needs to take part: its door, its half of the recipe, and its end of the wire."""

from collections.abc import Collection, Mapping
from secrets import SystemRandom
from typing import Any

from cofactor.crypto.keys import Identity
from cofactor.errors import ConfigError
from cofactor.federation.door import Door
from cofactor.federation.drive import Session
from cofactor.federation.gauge import Gauge
from cofactor.federation.halves import Facts, Home, Recipe
from cofactor.federation.host import Host
from cofactor.federation.opening import Key
from cofactor.federation.party import Party
from cofactor.federation.summing import Decryption, Summing
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import Random, SecureRandom
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.sums import AnySum, PlainSum


def keys_for(recipe: Recipe, facts: Facts) -> tuple[Decryption | None, dict[str, Key]]:
    """Deal keys to decrypters, drawn by lot among the parties, where decrypters open sums.

    Returns what everybody may know, and by decrypter what it alone may. Whoever calls this is the dealer.
    """
    aggregate = aggregate_of(recipe)
    if not isinstance(aggregate, EncryptedSum | SharedSum) or facts.cohort or facts.summed < 2:
        return None, {}
    count = aggregate.decrypter_count(facts.summed)
    drawn = tuple(SystemRandom().sample(facts.parties, count))
    return aggregate.dealt(drawn)


def summing_of(
    recipe: Recipe, facts: Facts, roster: Mapping[str, bytes], decryption: Decryption | None = None
) -> Summing | None:
    """Return how sums are made by parties with these public keys; None if every answer is seen by itself."""
    aggregate, count = aggregate_of(recipe), facts.summed
    layers = aggregate.layers(count)
    if layers is None:
        return None
    return Summing(
        layers=None if facts.cohort else layers,
        neighbourhood=None if facts.cohort else aggregate.neighbourhood(count),
        decryption=decryption,
        roster=dict(roster),
        goes_on=facts.split == "on-device",
    )


def aggregate_of(recipe: Recipe) -> AnySum:
    """Return how a recipe adds up answers."""
    found: AnySum = getattr(recipe, "aggregate", PlainSum())
    return found


def noise_beside_own(
    recipe: Recipe, facts: Facts, schedules: Mapping[str, Schedule], stricter: Collection[str] = ()
) -> dict[str, float]:
    """Return, by party, the most noise that any party adds to a sum, divided by its own, as variances.

    The `stricter` parties have budgets of their own and add all of their noise, which is more than the
    others'. Sums must have room for it.
    """
    layers = aggregate_of(recipe).layers(facts.summed)
    if layers is None or not schedules:
        return {}
    sizes = {name: _noise(schedule) ** 2 for name, schedule in schedules.items()}
    plain = [size for name, size in sizes.items() if name not in stricter]
    own = [size for name, size in sizes.items() if name in stricter]
    shared = [size / (layers.fewest - layers.colluding) for size in plain]
    return {name: max(shared + own) / size for name, size in sizes.items()}


def host_of(
    recipe: Recipe,
    party: Party,
    facts: Facts,
    session: Session,
    *,
    schedule: Schedule | None,
    ledger: Ledger | None,
    random: Random,
    identity: Identity,
    key: Key | None = None,
    loudest: float = 1.0,
    seed: int = 0,
    dropout: float = 0.0,
    rounds: int | None = None,
    gauge: Gauge | None = None,
) -> Host:
    """Return a party's end of the wire; it answers so many rounds at most, if that is said.

    A `gauge` is for simulations only.
    """
    door = Door(
        party=party.name,
        ledger=ledger,
        random=random,
        run=session.name,
        schedule=schedule,
        layers=aggregate_of(recipe).layers(facts.summed),
        loudest=loudest,
        cohort=facts.cohort,
        shares=party.budget is None,
        gauge=gauge,
    )
    home = Home(party=party, facts=facts, schedule=schedule, door=door, seed=seed, dropout=dropout)
    return Host(
        recipe.participant(home),
        door,
        session=session.name,
        kinds=recipe.messages,
        file=None if session.folder is None else session.folder / f"{party.name}.npz",
        summing=session.summing,
        identity=identity,
        key=key,
        capture=session.capture,
        rounds=rounds,
    )


def role_hosts(recipe: Any, facts: Facts, session: Session, seed: int) -> dict[str, Host]:
    """Return the ends of the wire of those who take part and hold no ratings, if a recipe needs any."""
    names: tuple[str, ...] = recipe.roles(facts) if hasattr(recipe, "roles") else ()
    taken = next((name for name in names if name in facts.parties), None)
    if taken is not None:
        raise ConfigError(f"no party may be called {taken!r}: somebody else is. Give it another name.")
    return {name: _role_host(recipe, name, facts, session, seed) for name in names}


def _role_host(recipe: Any, name: str, facts: Facts, session: Session, seed: int) -> Host:
    door = Door(party=name, ledger=None, random=SecureRandom(), run=session.name)
    return Host(
        recipe.role(name, facts, door, seed),
        door,
        session=session.name,
        kinds=recipe.messages,
        file=None if session.folder is None else session.folder / f"{name}.npz",
    )


def _noise(schedule: Schedule) -> float:
    """Return how noisy a party is: all its releases are scaled alike."""
    return float(getattr(schedule.releases[0].mechanism, "noise_multiplier", 1.0))
