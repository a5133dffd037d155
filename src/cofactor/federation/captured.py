"""What was captured of a simulation, on disk: a folder of the run's that is marked as unsafe."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.data.scale import Scale
from cofactor.errors import RunError
from cofactor.factors.model import Factors
from cofactor.federation.view import Captured, Seen, Truth, View

_WARNING = (
    "UNSAFE. Here lie messages of a simulation as some of its roles saw them, and, to score attacks on them, "
    "the ratings themselves. Do not pass this folder on: remove it from a run that you share.\n"
)
_RATINGS = ("users", "items", "values", "user_ids", "item_ids")
_HEAD = ("round", "sender", "receiver", "kind", "protection")


def write_captured(captured: Captured, folder: Path) -> None:
    """Write everything but keys into a new folder."""
    folder.mkdir()
    (folder / "README.txt").write_text(_WARNING)
    whole, truth = captured.whole, captured.truth
    places: dict[int, str] = {}
    arrays: dict[str, NDArray[Any]] = {}
    lines = []
    for seen in whole.seen:
        named = {}
        for name, array in seen.arrays.items():
            # A question to many parties is one array: it is written once.
            if id(array) not in places:
                places[id(array)] = str(len(places))
                arrays[places[id(array)]] = array
            named[name] = places[id(array)]
        head = {name: getattr(seen, name) for name in _HEAD}
        lines.append({**head, "plain": dict(seen.plain), "arrays": named})
    np.savez_compressed(folder / "messages.npz", allow_pickle=False, **arrays)
    np.savez_compressed(folder / "truth.npz", allow_pickle=False, **_true_arrays(truth))
    scale = None if whole.scale is None else asdict(whole.scale)
    facts = {
        "roles": whole.roles,
        "recipe": dict(whole.recipe),
        "split": whole.split,
        "parties": whole.parties,
        "users": whole.users,
        "items": whole.items,
        "scale": scale,
        "messages": lines,
    }
    (folder / "view.json").write_text(json.dumps(facts))


def read_captured(folder: Path, model: Factors | None) -> Captured:
    """Read what `write_captured` wrote; the published model lies in the run's folder itself."""
    try:
        facts = json.loads((folder / "view.json").read_text())
        with np.load(folder / "messages.npz", allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        with np.load(folder / "truth.npz", allow_pickle=False) as stored:
            truth = _truth({name: stored[name] for name in stored.files}, facts)
        seen = tuple(
            Seen(
                **{name: line[name] for name in _HEAD},
                plain=line["plain"],
                arrays={name: arrays[place] for name, place in line["arrays"].items()},
            )
            for line in facts["messages"]
        )
        whole = View(
            roles=tuple(facts["roles"]),
            recipe=facts["recipe"],
            split=facts["split"],
            parties=tuple(facts["parties"]),
            users=tuple(facts["users"]),
            items=facts["items"],
            scale=_scale(facts),
            seen=seen,
            model=model,
        )
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise RunError(f"{folder}: cannot be read ({type(error).__name__}). Train again.") from None
    return Captured(whole=whole, truth=truth)


def _scale(facts: Mapping[str, Any]) -> Scale | None:
    return None if facts["scale"] is None else Scale(**facts["scale"])


def _true_arrays(truth: Truth) -> dict[str, NDArray[Any]]:
    """Return the truth as arrays, by the party's place and a name."""
    found: dict[str, NDArray[Any]] = {}
    for place, (party, ratings) in enumerate(truth.ratings.items()):
        for name in _RATINGS:
            found[f"{place} {name}"] = getattr(ratings, name)
        if party in truth.attributes:
            found[f"{place} attributes"] = truth.attributes[party]
    return found


def _truth(arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Truth:
    scale, ratings, attributes = _scale(facts), {}, {}
    for place, party in enumerate(facts["parties"]):
        own = {name: arrays[f"{place} {name}"] for name in _RATINGS}
        values = None if scale is None else own["values"]
        ratings[party] = Ratings.from_rows(
            own["users"],
            own["items"],
            values,
            user_ids=own["user_ids"],
            item_ids=own["item_ids"],
            scale=scale,
        )
        if f"{place} attributes" in arrays:
            attributes[party] = arrays[f"{place} attributes"]
    return Truth(ratings=ratings, attributes=attributes)
