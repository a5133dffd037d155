"""Somebody who has rated nothing, and items that nobody has rated, as the command line is told of them."""

import csv
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cofactor.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    from cofactor.data.codes import Code
    from cofactor.data.coding import Coding
    from cofactor.data.ids import Id
    from cofactor.data.tables import Table
    from cofactor.factors.model import Factors, Recommendation

LIKE = "--attributes must look like NAME=VALUE,NAME=VALUE, for example age=31,gender=F"


def parsed_attributes(text: str) -> dict[str, str]:
    """Read NAME=VALUE pairs between commas; a pair that has a comma in it stands in double quotes."""
    told: dict[str, str] = {}
    try:
        pairs = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:
        raise ConfigError(f"{LIKE}; got {text!r}.") from None
    for pair in pairs:
        name, found, value = (part.strip() for part in pair.partition("="))
        if not (name and found and value):
            raise ConfigError(f"{LIKE}; got {pair!r}.")
        if name in told:
            raise ConfigError(f"--attributes names {name} twice. Give each attribute once.")
        told[name] = value
    if not told:
        raise ConfigError(f"{LIKE}; it is empty.")
    return told


def person(model: "Factors", attributes: str, name: str) -> "Factors":
    """Return the model for somebody new; what she says about herself must mean something to it."""
    told = parsed_attributes(attributes)
    if model.views is not None and model.views.attributes is not None:
        _check(told, model.views.attributes)
    return model.for_attributes(told, user=name)


def _check(told: dict[str, str], coding: "Coding") -> None:
    """Refuse names and values without a meaning: a slip on the command line must not count as an answer."""
    codes = dict(zip(coding.columns, coding.codes, strict=True))
    for name, value in told.items():
        if name not in codes:
            known = "; ".join(f"{each}: {_meaning(code)}" for each, code in codes.items())
            raise DataError(f'there is no attribute "{name}".{did_you_mean(name, codes)} There are {known}.')
        if not _understood(name, value, coding):
            hint = did_you_mean(value, getattr(codes[name], "values", ()))
            raise DataError(
                f"{name}={value} means nothing to the model.{hint} Give {_meaning(codes[name], most=50)}, or "
                "leave it out."
            )


def _understood(name: str, value: str, coding: "Coding") -> bool:
    try:
        missing = all(map(math.isnan, coding.one({name: value}).tolist()))
    except DataError:
        return False
    return not missing and not coding.not_coded({name: value})


def _meaning(code: "Code", most: int = 4) -> str:
    """Say which values an attribute has."""
    from cofactor.data.codes import Category, Region, Tags, Year
    from cofactor.factors.views import listed

    if isinstance(code, Category):
        return ("any of " if isinstance(code, Tags) else "one of ") + listed(code.values, most)
    if isinstance(code, Region):
        return "a US zip code"
    return "a year" if isinstance(code, Year) else "a number"


def with_new_items(model: "Factors", path: Path) -> tuple["Factors", frozenset[str]]:
    """Return the model with the items of a table that it does not have yet, and their ids as text."""
    from cofactor.data.tables import read_items

    table = read_items(path)
    grown = model.add_items(table)
    new = frozenset(map(str, grown.item_ids[len(model.item_ids) :].tolist()))
    _note(model, table, path.name, len(new))
    return grown, new


def best_new(
    model: "Factors", user: "Id", new: frozenset[str], n: int, *, include_seen: bool
) -> list["Recommendation"]:
    """Return the n best of the new items for a user, in a list of their own.

    Features tell less than ratings do: among all items the new ones seldom come first.
    """
    ranked = model.recommend(user, len(model.item_ids), include_seen=include_seen)
    return [one for one in ranked if str(one.item) in new][:n]


def _note(model: "Factors", table: "Table", name: str, new: int) -> None:
    """Say on standard error what of the table is not used."""
    from cofactor.data.codes import why_missing

    assert model.views is not None
    assert model.views.feature_coding is not None
    known = len(table) - new
    if known:
        stay = "item is in the model already and stays as it is"
        many = "items are in the model already and stay as they are"
        print(f"{name}: {known:,} {stay if known == 1 else many}", file=sys.stderr)
    coding = model.views.feature_coding
    for column, rows in coding.unseen(table).items():
        items = "1 item has" if rows == 1 else f"{rows:,} items have"
        why = why_missing(coding.code(column))
        what = f"{why}, and counts as missing" if why else "the model has never met"
        print(f'{name}: "{column}" of {items} a value that {what}', file=sys.stderr)
