"""`cofactor recommend --out`: the lists of all users in one table."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cofactor.cli.export import items_of
from cofactor.cli.places import written_whole
from cofactor.cli.text import RED, YELLOW, print_json, print_line
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

    from cofactor.data.ids import Id
    from cofactor.factors.model import Factors
    from cofactor.federation.run import Run

ENDINGS = (".parquet", ".csv")
_ROWS = 1_000_000
"""Of the table, made at a time."""


@dataclass(frozen=True, kw_only=True)
class Lists:
    """Whose lists, made by which models, and how long they are."""

    models: Mapping[str, "Factors"]
    """By party; each has lists for all users that it knows."""
    n: int
    include_seen: bool
    by_party: bool
    """Whether it is said which party's model a list is from."""
    protection: str
    """RELEASED, LOCAL or NOT PRIVATE: who may see them."""
    told: str
    """From what they are made, and what that means."""

    @property
    def count(self) -> int:
        """How many lists there are."""
        return sum(len(model.user_ids) for model in self.models.values())

    def parts(self) -> "Iterator[pl.DataFrame]":
        """Yield the table in parts that need little memory."""
        for party, model in self.models.items():
            columns = _Columns(self, model)
            size = max(_ROWS // columns.n, 1)
            for start in range(0, len(model.user_ids), size):
                yield columns.of(slice(start, start + size), party)


class _Columns:
    """One model's ids and titles as the columns of a table; ids are text if any model's are."""

    def __init__(self, lists: Lists, model: "Factors") -> None:
        import polars as pl

        self.lists, self.model, self.n = lists, model, min(lists.n, len(model.item_ids))
        models = lists.models.values()
        self.users = _series([each.user_ids for each in models], model.user_ids)
        self.items = _series([each.item_ids for each in models], model.item_ids)
        titles = [None] * len(model.item_ids) if model.titles is None else model.titles.tolist()
        self.titles = pl.Series([title or None for title in titles], dtype=pl.String)

    def of(self, users: slice, party: str) -> "pl.DataFrame":
        """Return the lists of some users: a row for each user and item, the best item first."""
        import polars as pl

        model = self.model
        found, scores = model.top_items(users, self.n, include_seen=self.lists.include_seen)
        rows, ranks = np.nonzero(found >= 0)
        chosen, those = found[rows, ranks], (rows + users.start).astype(np.int32)
        rated = [None] * len(rows) if model.scale is None else model.predict_rows(those, chosen)
        columns = {
            "party": pl.repeat(party, len(rows), dtype=pl.String, eager=True),
            "user": self.users.gather(those),
            "rank": pl.Series(ranks + 1, dtype=pl.Int32),
            "item": self.items.gather(chosen),
            "title": self.titles.gather(chosen),
            "score": pl.Series(scores[rows, ranks], dtype=pl.Float32),
            "rating": pl.Series(rated, dtype=pl.Float32),
        }
        table = pl.DataFrame(columns)
        return table if self.lists.by_party else table.drop("party")


def _series(all_ids: list[Any], ids: Any) -> "pl.Series":
    import polars as pl

    text = any(each.dtype.kind == "U" for each in all_ids)
    return pl.Series(ids.astype(np.str_).tolist() if text else ids)


def lists_of_all(run: "Run", party: str | None, *, n: int, include_seen: bool) -> Lists:
    """Return the lists of all users of a run, or of one party's."""
    if party is not None and not run.homes:
        raise ConfigError("this run has one model for all, and none of a party's own. Leave out --party.")
    if run.homes and party is None:
        models: Mapping[str, Factors] = run.homes
    else:
        models = {party or "": run.model_of("", party)}
    if not any(len(model.user_ids) for model in models.values()):
        raise ConfigError(
            "this run has a model that everyone may see, and no users: their own models stayed with the "
            "parties. Name new users' ratings with --ratings FILE, or a run folder that has users."
        )
    protection, told = _made_from(run, party)
    played = run.together is not None and run.together.simulated and run.together.split == "on-device"
    return Lists(
        models=models,
        n=n,
        include_seen=include_seen,
        by_party=bool(run.homes) and not played,
        protection=protection,
        told=told,
    )


def _made_from(run: "Run", party: str | None) -> tuple[str, str]:
    """Say of lists what is said of the models that they are made from."""
    if run.homes and party is None:
        return "LOCAL", "the parties' own models, which no guarantee covers: as private as their ratings."
    items = items_of(run, party)
    return items.protection, items.told


def lists_of_new(
    run: "Run",
    party: str | None,
    model: "Factors",
    ratings: Mapping["Id", Mapping["Id", float]],
    *,
    n: int,
    include_seen: bool,
) -> Lists:
    """Return the lists of users that a run's model, or its party's own, has never met, from their ratings."""
    protection, told = _made_for_new(run, party)
    return Lists(
        models={"": _all_folded_in(model, ratings)},
        n=n,
        include_seen=include_seen,
        by_party=False,
        protection=protection,
        told=told,
    )


def _made_for_new(run: "Run", party: str | None) -> tuple[str, str]:
    """Say who may see lists of new users: they tell of their ratings, and may tell of those of training."""
    items = items_of(run, party)
    if items.protection == "RELEASED":
        return "LOCAL", "these users' ratings: as private as those."
    return items.protection, f"these users' ratings, as private as those, and from {items.told}"


def _all_folded_in(model: "Factors", ratings: Mapping["Id", Mapping["Id", float]]) -> "Factors":
    from cofactor.factors.model import Seen

    each = [model.fold_in(own, user=user) for user, own in ratings.items()]
    seen = [own.seen.index for own in each if own.seen is not None]
    return replace(
        model,
        user_ids=np.concatenate([own.user_ids for own in each]),
        user_bias=np.concatenate([own.user_bias for own in each]),
        user_vectors=np.concatenate([own.user_vectors for own in each]),
        seen=Seen(np.cumsum([0, *map(len, seen)]), np.concatenate(seen)),
    )


def write_lists(lists: Lists, target: Path, *, as_json: bool) -> None:
    """Write the table whole or not at all, and say what it may be used for."""
    rows = 0
    with written_whole(target) as draft, _folder_beside(target) as parts:
        for number, part in enumerate(lists.parts()):
            part.write_parquet(Path(parts) / f"{number:08}.parquet")
            rows += len(part)
        _join(Path(parts), draft, target.suffix.lower())
    if as_json:
        told = {"lists": str(target), "users": lists.count, "rows": rows, "n": lists.n}
        warning = f"The lists are made from {lists.told}"
        print_json(told | {"protection": lists.protection, "warning": warning})
        return
    print_line(f"Written to {target}: {lists.count:,} lists, {rows:,} rows.")
    colour = RED if lists.protection == "NOT PRIVATE" else YELLOW
    print_line(f"{lists.protection}: made from {lists.told}", colour)


def _folder_beside(target: Path) -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix=f".{target.name}.", suffix=".part", dir=target.parent)


def _join(parts: Path, draft: Path, ending: str) -> None:
    """Make one file of the parts, without holding them all in memory."""
    import polars as pl

    # The folder is called after the table, whose name may look like a pattern.
    table = pl.scan_parquet(sorted(parts.iterdir()), glob=False)
    if ending == ".csv":
        table.sink_csv(draft)
    else:
        table.sink_parquet(draft)
