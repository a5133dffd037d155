"""What a training in one process keeps of its messages, for attacks: only where all of it is a simulation."""

from collections.abc import Mapping, Sequence
from typing import Any

from cofactor.config import as_table
from cofactor.errors import ConfigError, Refused
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts, Recipe
from cofactor.federation.view import Capture, Captured, Truth, View
from cofactor.recipes.hosts import aggregate_of

AnyCapture = str | Sequence[str] | Capture
"""A role, several, or a `Capture` that also says which rounds."""


def capture_of(wanted: AnyCapture | None, recipe: Recipe, federation: Federation) -> Capture | None:
    """Return who takes messages down, if somebody is to; refuse where parties have files of their own."""
    if wanted is None:
        return None
    if not isinstance(wanted, Capture | Sequence):
        raise ConfigError(f'capture must be a role, such as "coordinator", or several, got {wanted!r}.')
    capture = wanted if isinstance(wanted, Capture) else Capture(wanted)
    capture.check_roles(federation.facts.parties)
    facts = federation.facts
    if facts.cohort and hasattr(recipe, "aggregate") and aggregate_of(recipe).layers(facts.summed) is None:
        raise Refused(
            "here every device's answer is seen by itself, and one participant plays all devices: messages "
            "would show less than a coordinator sees. Make each device a party, Federation.on_device([Party, "
            "...]), or add answers up (--sum secure)."
        )
    owner = next((party.name for party in federation.parties if party.file is not None), None)
    if owner is not None:
        raise Refused(
            f"{owner} has a file of its own, and captured messages lie open in the run's folder, with all "
            "ratings beside them. Capture simulations only: ratings dealt out from one file (--parties 3), "
            "or parties made in memory."
        )
    return capture


def captured(
    capture: Capture | None,
    recipe: Recipe,
    federation: Federation,
    model: Factors | None,
    keys: Mapping[str, Any],
) -> Captured | None:
    """Return all that was taken down, with what everybody knows, and what is true."""
    if capture is None:
        return None
    frame = framed(recipe, federation.facts, model, keys)
    parties = federation.parties
    told = {party.name: party.attributes for party in parties if party.attributes is not None}
    return capture.end(
        frame, Truth(ratings={party.name: party.ratings for party in parties}, attributes=told)
    )


def framed(recipe: Recipe, facts: Facts, model: Factors | None, keys: Mapping[str, Any]) -> View:
    """Return a view that holds no message yet."""
    return View(
        roles=(),
        recipe=as_table(recipe),
        split=facts.split,
        parties=facts.parties,
        users=facts.users,
        items=facts.item_count,
        scale=None if facts.implicit else facts.scale,
        model=model,
        keys=dict(keys),
    )
