"""Models on disk: one .npz file of arrays and one JSON text, without pickle."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError, DataError, RunError
from cofactor.factors.choosing import Choice
from cofactor.factors.model import Factors, HomeFit, Seen
from cofactor.factors.views import Views

FORMAT = 3
"""Of files; 1, which knows no choice, and 2, which knows no views, are read as well."""


def write(model: Factors, path: str | Path) -> None:
    """Write a model to one file."""
    arrays: dict[str, Any] = {
        name: getattr(model, name)
        for name in ("user_ids", "item_ids", "user_bias", "item_bias", "user_vectors", "item_vectors")
    }
    facts: dict[str, Any] = {"format": FORMAT, "mean": model.mean}
    if model.scale is not None:
        facts["scale"] = asdict(model.scale)
    if model.titles is not None:
        arrays["titles"] = model.titles
    if model.seen is not None:
        arrays |= {"seen_ptr": model.seen.ptr, "seen_index": model.seen.index}
    if model.home is not None:
        arrays |= {"home_precision": model.home.precision, "home_weights": model.home.weights}
        facts["home"] = {name: getattr(model.home, name) for name in ("growth", "confidence", "calibrated")}
    if model.choice is not None:
        arrays |= {"choice_log_counts": model.choice.log_counts, "choice_columns": model.choice.columns}
        facts["choice"] = {name: getattr(model.choice, name) for name in ("variance", "rating_weight")}
    if model.views is not None:
        arrays |= {"views_users": model.views.users, "views_items": model.views.items}
        if model.views.feature_means is not None:
            arrays["views_means"] = model.views.feature_means
        facts["views"] = _views_as_json(model.views)
    with Path(path).open("wb") as file:
        np.savez(file, facts=np.array(json.dumps(facts)), **arrays)


def read(path: str | Path) -> Factors:
    """Read a model that `write` wrote, and refuse anything else by name."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = dict(stored)
            facts = json.loads(str(arrays.pop("facts")))
        newer = facts["format"] > FORMAT
    except FileNotFoundError:
        raise RunError(f"{path}: there is no such file. Name a model that cofactor has saved.") from None
    except Exception as error:
        raise RunError(f"{path}: not a model that cofactor has saved ({type(error).__name__}).") from None
    if newer:
        raise RunError(f"{path}: written by a newer cofactor. Upgrade cofactor to read it.")
    try:
        return _assembled(arrays, facts)
    except (KeyError, TypeError, ValueError, IndexError, DataError, ConfigError) as error:
        raise RunError(f"{path}: the model is damaged ({error}). Fit it again.") from None


def _assembled(arrays: dict[str, Any], facts: dict[str, Any]) -> Factors:
    home = seen = choice = views = None
    if "home_weights" in arrays:
        home = HomeFit(arrays.pop("home_precision"), arrays.pop("home_weights"), **facts["home"])
    if "seen_ptr" in arrays:
        seen = Seen(arrays.pop("seen_ptr"), arrays.pop("seen_index"))
    if "choice_columns" in arrays:
        choice = Choice(arrays.pop("choice_log_counts"), arrays.pop("choice_columns"), **facts["choice"])
    if "views" in facts:
        views = _views_from_json(facts["views"], arrays)
    scale = Scale(**facts["scale"]) if "scale" in facts else None
    parts: dict[str, Any] = {"seen": seen, "home": home, "choice": choice, "views": views}
    model = Factors(**arrays, mean=facts["mean"], scale=scale, **parts)
    _check(model)
    return model


def _views_as_json(views: Views) -> dict[str, Any]:
    return {
        "ridge": views.ridge,
        "features": list(views.features),
        "attributes": None if views.attributes is None else views.attributes.as_json(),
        "feature_coding": None if views.feature_coding is None else views.feature_coding.as_json(),
    }


def _views_from_json(facts: dict[str, Any], arrays: dict[str, Any]) -> Views:
    """Take the views' arrays from the others."""
    from cofactor.data.coding import Coding

    attributes, coding = (
        None if facts[name] is None else Coding.from_json(facts[name])
        for name in ("attributes", "feature_coding")
    )
    return Views(
        users=arrays.pop("views_users"),
        items=arrays.pop("views_items"),
        ridge=facts["ridge"],
        attributes=attributes,
        features=tuple(facts["features"]),
        feature_coding=coding,
        feature_means=arrays.pop("views_means", None),
    )


def _check(model: Factors) -> None:
    """Refuse arrays that do not fit together; kernels would read beyond their ends."""
    users, items, width = len(model.user_ids), len(model.item_ids), model.user_vectors.shape[1]
    shapes = {
        "user_bias": (users,),
        "item_bias": (items,),
        "user_vectors": (users, width),
        "item_vectors": (items, width),
    }
    for name, shape in shapes.items():
        if getattr(model, name).shape != shape:
            raise ValueError(f"{name} has shape {getattr(model, name).shape}, not {shape}")
    if model.titles is not None and len(model.titles) != items:
        raise ValueError(f"{len(model.titles):,} titles for {items:,} items")
    home = model.home
    if home is not None and (
        home.weights.shape != (items,) or home.precision.shape not in [(w, w) for w in (width, width + 1)]
    ):
        raise ValueError("what folding in needs does not fit items and factors")
    if model.choice is not None and len(model.choice.log_counts) != items:
        raise ValueError(f"a choice among {len(model.choice.log_counts):,} items for {items:,}")
    if model.views is not None and model.views.factors != width:
        raise ValueError(f"views of {model.views.factors} factors for vectors of {width}")
    if model.seen is not None and not _fits(model.seen, users, items):
        raise ValueError("what users have seen does not fit users and items")


def _fits(seen: Seen, users: int, items: int) -> bool:
    ptr, index = seen.ptr, seen.index
    if (
        ptr.dtype != np.int64
        or index.dtype != np.int32
        or len(ptr) != users + 1
        or ptr[0] < 0
        or ptr[-1] > len(index)
        or (np.diff(ptr) < 0).any()
    ):
        return False
    return len(index) == 0 or bool(index.min() >= 0 and index.max() < items)
