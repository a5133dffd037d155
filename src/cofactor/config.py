"""Settings: frozen dataclasses that check themselves, and their way to and from TOML and JSON."""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from cofactor.errors import ConfigError, did_you_mean

T = TypeVar("T")


def positive(**settings: float | int | None) -> None:
    """Refuse numbers below or at zero, NaN included; None means "not set"."""
    for name, value in settings.items():
        if value is None:
            continue
        if isinstance(value, int) and value < 1:
            raise ConfigError(f"{name} must be at least 1, got {value}.")
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(f"{name} must be greater than 0, got {value}.")


def not_negative(**settings: float) -> None:
    """Refuse negative numbers, NaN and infinity."""
    for name, value in settings.items():
        if not (math.isfinite(value) and value >= 0):
            raise ConfigError(f"{name} must be 0 or more, got {value}.")


def fraction(**settings: float) -> None:
    """Refuse anything outside the open interval (0, 1)."""
    for name, value in settings.items():
        if not 0 < value < 1:
            raise ConfigError(f"{name} must lie between 0 and 1, both excluded, got {value}.")


def one_of(choices: tuple[str, ...], **settings: str) -> None:
    """Refuse a word that is not among the choices."""
    for name, value in settings.items():
        if value not in choices:
            words = ", ".join(choices)
            raise ConfigError(f"{name} must be one of {words}, got {value!r}.{did_you_mean(value, choices)}")


def as_table(config: object) -> dict[str, Any]:
    """Turn a settings dataclass into a table for TOML or JSON; `kind` names its class, None is left out."""
    assert dataclasses.is_dataclass(config)
    table: dict[str, Any] = {"kind": type(config).__name__}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value is not None:
            table[field.name] = as_table(value) if dataclasses.is_dataclass(value) else value
    return table


def from_table(expected: type[T] | types.UnionType, table: Mapping[str, Any], where: str) -> T:
    """Build the settings that a table describes; `where` names the table in errors."""
    choices = typing.get_args(expected) or (expected,)
    by_name = {choice.__name__: choice for choice in choices if choice is not types.NoneType}
    kind = table.get("kind", next(iter(by_name)) if len(by_name) == 1 else None)
    if kind not in by_name:
        words = ", ".join(by_name)
        raise ConfigError(f"{where}: kind must be one of {words}, got {kind!r}.{did_you_mean(kind, by_name)}")
    return typing.cast(T, _build(by_name[kind], table, where))


def _build(cls: type, table: Mapping[str, Any], where: str) -> object:
    hints = typing.get_type_hints(cls)
    known = [field.name for field in dataclasses.fields(cls)]
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name == "kind":
            continue
        if name not in known:
            raise ConfigError(f'{where} has "{name}".{did_you_mean(name, known)} Known: {", ".join(known)}.')
        read = from_table if isinstance(value, Mapping) else _checked
        values[name] = read(hints[name], value, f"{where}.{name}")
    return cls(**values)


def _checked(hint: Any, value: object, where: str) -> object:
    """Accept a plain value only if its type fits the field; an integer serves where a float is meant."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    allowed = tuple(typing.get_origin(t) or t for t in (typing.get_args(hint) if union else (hint,)))
    if isinstance(value, bool) and bool not in allowed:
        raise ConfigError(f"{where} must be a {_names(allowed)}, got {value!r}.")
    if float in allowed and isinstance(value, int):
        return float(value)
    if tuple in allowed and isinstance(value, list):
        return tuple(value)
    if not isinstance(value, allowed):
        raise ConfigError(f"{where} must be a {_names(allowed)}, got {value!r}.")
    return value


def _names(allowed: tuple[type, ...]) -> str:
    words = {int: "whole number", float: "number", str: "text", bool: "true or false", tuple: "list"}
    return " or ".join(words.get(t, t.__name__) for t in allowed if t is not types.NoneType)
