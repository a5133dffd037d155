"""Whether encryption changes a training: a few real devices train with every kind of sum."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.lattice import Lattice
from cofactor.errors import ConfigError
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.papers.privmvmf_findings import DIFFERING
from cofactor.papers.privmvmf_method import knowing, published
from cofactor.papers.privmvmf_sides import Sided
from cofactor.papers.results import Row
from cofactor.randomness import InsecureRandom
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.sums import AnySum, PlainSum, SecureSum
from cofactor.recipes.train import train

SUMS: dict[str, AnySum] = {
    "masks": SecureSum(),
    "shares of vectors, 2 of 3": SharedSum(),
    "BFV": EncryptedSum(scheme=Lattice()),
    "CKKS, rounded": EncryptedSum(scheme=Lattice(variant="ckks")),
    "threshold Paillier, 2 of 3": EncryptedSum(),
}
_DEVICES, _ITEMS, _ROUNDS = 24, 200, 5
"""Devices with keys of their own, the items that most users rated, and rounds: what takes some seconds."""


def lossless(sides: Sided) -> list[Row]:
    """Train with the same seed and the same decoys under every kind of sum, and count what differs."""
    devices = _federation(sides)
    facts = devices.facts
    plain = _vectors(devices, PlainSum())
    panel = (
        f"{sides.name}: {len(facts.parties)} devices that really encrypt, {facts.item_count} items, "
        f"{_ROUNDS} rounds"
    )
    return [_row(line, panel, devices, aggregate, plain) for line, aggregate in SUMS.items()]


def _row(line: str, panel: str, devices: Federation, aggregate: AnySum, plain: NDArray[np.float32]) -> Row:
    try:
        found = _vectors(devices, aggregate)
    except ConfigError as why:  # a library is not installed
        return Row(line=line, panel=panel, column=DIFFERING, ours=None, note=str(why))
    differ = int((found != plain).sum())
    return Row(line=line, panel=panel, column=DIFFERING, ours=differ, note=f"of {len(plain):,}, bit for bit")


def _federation(sides: Sided) -> Federation:
    most_rated = np.argsort(-sides.ratings.by_item.sizes, kind="stable")[:_ITEMS]
    kept = sides.ratings.select(items=np.sort(most_rated))
    users = np.flatnonzero(kept.by_user.sizes)[:_DEVICES]
    parties = [Party(name=f"device-{user}", ratings=kept.select(users=[user])) for user in users.tolist()]
    return knowing(Federation.on_device(parties, scale=kept.scale), sides)


def _vectors(devices: Federation, aggregate: AnySum) -> NDArray[np.float32]:
    """Return all vectors of items, attributes, features and users that a training ends with."""
    recipe = replace(published(), rounds=_ROUNDS, aggregate=aggregate)
    run = train(recipe, devices, seed=1, random=InsecureRandom(1))
    assert run.model is not None
    assert run.model.views is not None
    tables = [run.model.item_vectors, run.model.views.users, run.model.views.items]
    tables += [home.user_vectors for home in run.homes.values()]
    return np.concatenate([table.ravel() for table in tables])
