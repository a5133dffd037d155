"""`--user-attributes`: what is known about users, and how it is coded."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli import choose
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.data.attributes import UserAttributes
    from cofactor.federation.federation import Federation


def check_attributes(recipe: Any, wanted: str | None, coding: Mapping[str, Any] | None) -> None:
    """Refuse attributes that the recipe would not use, and a coding without attributes."""
    if wanted is not None and not getattr(recipe, "takes_attributes", False):
        able = [name for name, kind in choose.classes().items() if getattr(kind, "takes_attributes", False)]
        hint = f", or name a recipe that does: --recipe {' or '.join(able)}" if able else ""
        raise ConfigError(
            f"{type(recipe).__name__} makes no use of user attributes. Leave out --user-attributes{hint}."
        )
    if wanted is None and coding is not None:
        raise ConfigError(
            "the table [attributes] says how user attributes are coded, and there are none. Name them: "
            "--user-attributes users.csv, or --user-attributes auto."
        )


def user_attributes(
    wanted: str | None, file: Path, coding: Mapping[str, Any] | None
) -> "UserAttributes | None":
    """Return what `--user-attributes` names, coded as is stated or else by the usual rules."""
    from cofactor.data.attributes import UserAttributes
    from cofactor.data.coding import Coding
    from cofactor.data.tables import read_users, users_beside

    if wanted is None:
        return None
    table = users_beside(file) if wanted == "auto" else read_users(wanted)
    if table is None:
        raise ConfigError(
            f"--user-attributes auto takes the table of users that came with the ratings, and none is beside "
            f"{file}. Name it: --user-attributes users.csv."
        )
    return UserAttributes.of_table(table, None if coding is None else Coding.of_settings(coding))


def tell_attributes(found: "UserAttributes", federation: "Federation") -> None:
    """Say on standard error how attributes are coded, of how many users, and what was left out."""
    coding = found.coding
    how = "read off that table, and public" if coding.read_off else "stated beforehand, and public"
    users = sum(party.ratings.user_count for party in federation.parties)
    missing = users - sum(found.known(party.ratings.user_ids) for party in federation.parties)
    lines = [
        f"User attributes from {found.source} ({coding.width} numbers for each user) are private: they stay "
        f"with their party. How they are coded is {how}:",
        *(f"  {line}" for line in coding.lines()),
    ]
    if missing:
        lines.append(f"{missing:,} of {users:,} users are not in it: they have none.")
    lines += _unseen(found)
    lines += [f"left out: {each}" for each in coding.left_out]
    print("\n".join(lines), file=sys.stderr)


def _unseen(found: "UserAttributes") -> list[str]:
    """Say of how many users a column holds what the coding does not know, and which columns say nothing."""
    from cofactor.data.codes import why_missing

    nothing = found.coding.unknown(found.matrix)
    lines = [
        f'"{name}": no user has a value that the coding knows; the column tells nothing.' for name in nothing
    ]
    for name, count in found.unseen.items():
        why = why_missing(found.coding.code(name))
        what = f"a value that {why}; it counts as missing" if why else "a value that no number stands for"
        users = "1 user has" if count == 1 else f"{count:,} users have"
        if name not in nothing:
            lines.append(f'"{name}": {users} {what}.')
    return lines


def codes_items(kind: str) -> bool:
    """Say whether recipes of this kind keep how public items are coded."""
    classes = {each.__name__: each for each in choose.classes().values()}
    return bool(getattr(classes.get(kind), "coded_items", False))
