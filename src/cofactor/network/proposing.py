"""From a coordinator's `job.toml`, and the parties it has admitted, to a `Proposal`."""

import secrets
from collections.abc import Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cofactor.config import from_table
from cofactor.errors import ConfigError, Refused, did_you_mean
from cofactor.network.job_tables import FederationTable, Job
from cofactor.network.proposal import Kind, Proposal
from cofactor.network.toml import read_toml

_TABLES: Mapping[Kind, tuple[str, ...]] = {
    "training": ("federation", "recipe", "budget", "attributes"),
    "survey": ("federation", "question", "method"),
    "clustering": ("federation", "clustering", "budget"),
}
_PLAIN = ("seed", "not_private")


def propose(config: Path, admitted: Mapping[str, bytes], *, revoked: Collection[str] = ()) -> Proposal:
    """Read a job, and return the proposal that asks the parties for it, under a new session."""
    tables = read_toml(config)
    kind = _kind(tables, config.name)
    seed = tables.pop("seed", 0)
    if type(seed) is not int or seed < 0:
        raise ConfigError(f"{config.name}: seed must be a whole number, 0 or more.")
    among = from_table(FederationTable, tables.pop("federation", {}), f"{config.name} [federation]")
    parties = _parties(among, admitted, revoked, config.name)
    reading = Job(config=config, tables=tables, federation=among, parties=len(parties))
    return Proposal(
        kind=kind,
        session=secrets.token_hex(16),
        version=version("cofactor"),
        parties={name: key.hex() for name, key in parties.items()},
        work=getattr(reading, kind)(),
        seed=seed,
    )


def _kind(tables: Mapping[str, Any], where: str) -> Kind:
    kind: Kind = "survey" if "question" in tables else "clustering" if "clustering" in tables else "training"
    known = (*_TABLES[kind], *_PLAIN)
    for name in tables:
        if name not in known:
            everything = {each for names in _TABLES.values() for each in names} | set(_PLAIN)
            raise ConfigError(
                f'{where} has "{name}".{did_you_mean(name, everything)} A {kind} has {", ".join(known)}.'
            )
    return kind


def _parties(
    among: FederationTable, admitted: Mapping[str, bytes], revoked: Collection[str], where: str
) -> dict[str, bytes]:
    names = among.parties or tuple(name for name in admitted if name not in revoked)
    for name in names:
        if name not in admitted:
            hint = did_you_mean(name, admitted)
            raise ConfigError(
                f"{where} [federation] names {name!r}, which was not admitted.{hint} Admit it: cofactor host "
                "admit FOLDER REQUEST"
            )
        if name in revoked:
            raise Refused(f"{where} [federation] names {name}, which was revoked. Leave it out.")
    if len(set(names)) < len(names):
        raise ConfigError(f"{where} [federation] names a party twice.")
    if len(names) < 2:
        raise ConfigError("work on a network takes two parties or more. Admit them first.")
    return {name: admitted[name] for name in names}
