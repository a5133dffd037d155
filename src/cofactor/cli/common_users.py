"""Which users parties with a file each have in common: options in, what to tell out."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from cofactor.config import one_of
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.cli.settings import FederationWish
    from cofactor.federation.federation import Federation
    from cofactor.federation.finding import Alignment
    from cofactor.federation.splits import Split

_USUAL = (("align", "union"), ("among", "leader"), ("id-rule", "exact"))


def checked_alignment(asked: "FederationWish", split: "Split", files: Sequence[Path]) -> dict[str, Any]:
    """Return which users `Federation.vertical` is to keep, and how they are found."""
    from cofactor.crypto.psi import RULES
    from cofactor.federation.aligning import Align
    from cofactor.federation.finding import Among

    given = {"align": asked.align, "among": asked.among, "id-rule": asked.id_rule}
    said = {name: value for name, value in given.items() if value is not None}
    if said and (split != "vertical" or len(files) < 2):
        raise ConfigError(
            f"--{next(iter(said))} is about which users parties with a file each have in common: it takes "
            "--split vertical and several files. Leave it out."
        )
    align, among, rule = (said.get(name, usual) for name, usual in _USUAL)
    one_of(get_args(Align), align=align)
    one_of(get_args(Among), among=among)
    one_of(RULES, **{"id-rule": rule})
    if align == "union" and set(said) - {"align"}:
        raise ConfigError("--among and --id-rule say how users in common are found: add --align psi.")
    return {} if align == "union" else {"align": align, "among": among, "rule": rule}


def as_before(found: "Alignment | None") -> dict[str, Any]:
    """Return how users are found as an earlier run found them."""
    return {} if found is None else {"align": "psi", "among": found.among, "rule": found.rule}


def tell_left_out(federation: "Federation") -> None:
    """Say on standard error how many users are common, and to each party, how many of its own are not."""
    found = federation.alignment
    if found is None:
        return
    print(f"{found.common:,} users are common to {', '.join(found.parties)}.", file=sys.stderr)
    for name, count in found.left_out.items():
        print(f"{name}: {count:,} of its users are not, and stay out (LOCAL).", file=sys.stderr)
