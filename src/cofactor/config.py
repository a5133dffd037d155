"""Settings: frozen dataclasses that check themselves, and their way to and from TOML and JSON."""

import dataclasses
import math
import numbers
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from cofactor.errors import ConfigError, did_you_mean

T = TypeVar("T")

_PLAIN = frozenset({int, float, bool, str, tuple, types.NoneType})
"""What is no number of numpy's, or any other that must be made plain."""


def positive(**settings: float | int | None) -> None:
    """Refuse numbers below or at zero, NaN included; None means "not set"."""
    for name, value in settings.items():
        if value is None:
            continue
        _number(name, value)
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(f"{name} must be greater than 0, got {value}.")


def whole(**settings: int | None) -> None:
    """Refuse anything but whole numbers of at least 1; None means "not set"."""
    for name, value in settings.items():
        given: object = value
        if given is not None and not _is_integral(given):
            raise ConfigError(f"{name} must be a whole number, got {value!r}.")
        if value is not None and not 1 <= value < 2**63:
            most = ", and below 2^63" if value >= 1 else ""
            raise ConfigError(f"{name} must be at least 1{most}, got {value}.")


def not_negative(**settings: float) -> None:
    """Refuse negative numbers, NaN and infinity."""
    for name, value in settings.items():
        _number(name, value)
        if not math.isfinite(value):
            raise ConfigError(f"{name} must be a finite number, got {value}.")
        if value < 0:
            raise ConfigError(f"{name} must be 0 or more, got {value}.")


def fraction(**settings: float) -> None:
    """Refuse anything outside the open interval (0, 1)."""
    for name, value in settings.items():
        _number(name, value)
        if not 0 < value < 1:
            raise ConfigError(f"{name} must lie between 0 and 1, both excluded, got {value}.")


def _number(name: str, value: Any) -> None:
    if not _is_real(value):
        raise ConfigError(f"{name} must be a number, got {value!r}.")
    try:
        float(value)
    except OverflowError:
        raise ConfigError(f"{name} is too large a number.") from None


# Settings are checked by the hundred thousand. Python's own numbers are known without asking `numbers`, which
# takes ten times as long.


def _is_integral(value: object) -> bool:
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def _is_real(value: object) -> bool:
    return type(value) in (float, int) or (isinstance(value, numbers.Real) and not isinstance(value, bool))


def one_of(choices: tuple[str, ...], **settings: str) -> None:
    """Refuse a word that is not among the choices."""
    for name, value in settings.items():
        if value not in choices:
            words = ", ".join(choices)
            raise ConfigError(f"{name} must be one of {words}, got {value!r}.{did_you_mean(value, choices)}")


def plain_numbers(config: object) -> None:
    """Turn numpy's numbers among a dataclass's fields into Python's, which neither wrap nor lose digits."""
    for name, value in tuple(vars(config).items()):
        if type(value) not in _PLAIN and _is_real(value):
            plain = int(value) if isinstance(value, numbers.Integral) else float(value)
            object.__setattr__(config, name, plain)


def as_table(config: object) -> dict[str, Any]:
    """Turn a settings dataclass into a table for TOML or JSON; `kind` names its class.

    TOML knows no None: such fields are left out, so what may be None must default to None. Fields with the
    metadata {"table": False} are left out, too: they hold data, which is no setting.
    """
    assert dataclasses.is_dataclass(config)
    table: dict[str, Any] = {"kind": type(config).__name__}
    for field in _settings(type(config)):
        value = getattr(config, field.name)
        if value is not None:
            table[field.name] = _as_value(value)
        else:
            assert field.default is None, f"{field.name} may be None, so it must default to None"
    return table


def _as_value(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(_as_value(each) for each in value)
    return as_table(value) if dataclasses.is_dataclass(value) else value


def from_table(expected: type[T] | types.UnionType, table: Mapping[str, Any], where: str) -> T:
    """Build the settings that a table describes; `where` names the table in errors."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} must be a table of settings, got {table!r}.")
    by_name = {choice.__name__: choice for choice in _plain_types(expected) if _is_settings(choice)}
    if not by_name:
        raise ConfigError(f"{where} must be a {_names(_plain_types(expected))}, got a table.")
    kind = table.get("kind", next(iter(by_name)) if len(by_name) == 1 else None)
    if not isinstance(kind, str) or kind not in by_name:
        words = ", ".join(by_name)
        raise ConfigError(f"{where}: kind must be one of {words}, got {kind!r}.{did_you_mean(kind, by_name)}")
    return typing.cast(T, _build(by_name[kind], table, where))


def _build(cls: type, table: Mapping[str, Any], where: str) -> object:
    hints = _hints_of(cls)
    known = [field.name for field in _settings(cls)]
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name == "kind":
            continue
        if name not in known:
            raise ConfigError(f'{where} has "{name}".{did_you_mean(name, known)} Known: {", ".join(known)}.')
        read = from_table if isinstance(value, Mapping) else _checked
        values[name] = read(hints[name], value, f"{where}.{name}")
    missing = [name for name in _required(cls) if name not in values]
    if missing:
        raise ConfigError(f"{where} needs {', '.join(missing)}: {cls.__name__} has no default for that.")
    try:
        return cls(**values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


@lru_cache(maxsize=128)
def _hints_of(cls: type) -> dict[str, Any]:
    """Return what each field may be: kept, because every entry of a ledger asks, and it takes long."""
    return typing.get_type_hints(cls)


def _settings(cls: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if field.metadata.get("table", True)]


def _required(cls: type) -> list[str]:
    nothing = dataclasses.MISSING
    fields = dataclasses.fields(cls)
    return [field.name for field in fields if field.default is nothing and field.default_factory is nothing]


def _checked(hint: Any, value: object, where: str) -> object:
    """Accept a plain value only if its type fits the field; an integer serves where a float is meant."""
    allowed = _plain_types(hint)
    if isinstance(value, list | tuple) and tuple in allowed:
        kinds = [each for choice in _choices(hint) for each in typing.get_args(choice) if _is_settings(each)]
        return tuple(
            from_table(kinds[0], each, f"{where}[{at}]") if kinds and isinstance(each, Mapping) else each
            for at, each in enumerate(value)
        )
    whole_for_float = float in allowed and int not in allowed and isinstance(value, int)
    fits = whole_for_float or isinstance(value, allowed)
    if not fits or (isinstance(value, bool) and bool not in allowed):
        raise ConfigError(f"{where} must be a {_names(allowed)}, got {value!r}.")
    return float(typing.cast(int, value)) if whole_for_float else value


def _choices(hint: Any) -> tuple[Any, ...]:
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if union else (hint,)


def _plain_types(hint: Any) -> tuple[type, ...]:
    # A Literal is a word; which words are allowed, the settings check themselves.
    origins = [typing.get_origin(choice) or choice for choice in _choices(hint)]
    return tuple(str if origin is typing.Literal else origin for origin in origins)


def _is_settings(choice: type) -> bool:
    return dataclasses.is_dataclass(choice)


def _names(allowed: tuple[type, ...]) -> str:
    words = {int: "whole number", float: "number", str: "text", bool: "true or false", tuple: "list"}
    return " or ".join(
        words.get(t, f"table with kind {t.__name__}") for t in allowed if t is not types.NoneType
    )
