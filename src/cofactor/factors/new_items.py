"""Items that nobody has rated, added to a model that knows what features of items mean."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ids import Ids
from cofactor.data.public_items import PublicItems
from cofactor.data.tables import Table
from cofactor.errors import ConfigError, DataError
from cofactor.factors.views import Views, listed

if TYPE_CHECKING:
    from cofactor.factors.model import Factors

NO_FEATURES = (
    "this model knows nothing about items but their ratings. To add items that nobody has rated, train the "
    "recipe MultiViewMF (multi-view) with public items: Federation.with_public_items, or --public-items."
)


def with_items(model: "Factors", items: PublicItems | Table) -> "Factors":
    """Return the model with the items that it does not have yet; see `Factors.add_items`."""
    if not isinstance(items, PublicItems | Table):
        raise ConfigError(
            'new items are given as a table, read_items("new.csv"), or as PublicItems, and not as a '
            f"{type(items).__name__}."
        )
    if model.views is None or not model.views.features:
        raise DataError(NO_FEATURES)
    if model.choice is not None:
        raise DataError(
            "this model puts items in order of how often they are chosen, which nobody knows of new items."
        )
    numbers = _numbers(items, model.views)
    new = _unknown(items, model.item_ids)
    ids, count = items.ids[new], int(new.sum())
    vectors = model.views.item_vectors(numbers[new], usual=model.item_vectors.mean(axis=0))
    home, titles = model.home, model.titles
    if home is not None:
        # Nothing is known of the noise in ratings of a new item: they count like those of a usual one.
        home = replace(home, weights=np.append(home.weights, np.full(count, np.median(home.weights))))
    if titles is not None:
        told = items.titles() if isinstance(items, Table) else {}
        titles = np.concatenate([titles, np.array([told.get(one, "") for one in ids.tolist()], np.str_)])
    return replace(
        model,
        item_ids=_joined(model.item_ids, ids),
        item_bias=np.append(model.item_bias, np.zeros(count, np.float32)),
        item_vectors=np.concatenate([model.item_vectors, vectors]),
        home=home,
        titles=titles,
    )


def _numbers(items: PublicItems | Table, views: Views) -> NDArray[np.float32]:
    """Return a row for each item: the numbers that the view of items is made for."""
    if isinstance(items, PublicItems):
        if items.names != views.features:
            raise DataError(_other_names(items, views.features))
        return items.rows(items.ids)
    if views.feature_coding is None:
        raise DataError(
            "this model was trained on numbers, not on a table of items. Give new items as "
            f"PublicItems.of_numbers, with the columns {listed(views.features)}."
        )
    return views.feature_coding.encoded(items, items.ids)


def _unknown(items: PublicItems | Table, known: Ids) -> NDArray[np.bool_]:
    """Say of each of the items whether it is not among the known ones, and refuse if all are."""
    source, ids = items.source or "the table", [str(one) for one in items.ids.tolist()]
    if len(set(ids)) < len(ids):
        raise DataError(f"{source}: an id occurs twice. Give each item one row.")
    texts = {str(one) for one in known.tolist()}
    if texts.issuperset(ids):
        raise DataError(
            f"every item of {source} is in the model already and stays as it is. Name a table with new ones."
        )
    return np.array([one not in texts for one in ids])


def _joined(ids: Ids, more: Ids) -> Ids:
    """Return ids followed by more of them; whole numbers beside text become text."""
    if ids.dtype.kind != more.dtype.kind:
        ids, more = ids.astype(np.str_), more.astype(np.str_)
    return np.concatenate([ids, more])


def _other_names(items: PublicItems, wanted: tuple[str, ...]) -> str:
    missing = [name for name in wanted if name not in items.names]
    extra = [name for name in items.names if name not in wanted]
    found = [f"{word} {listed(names)}" for word, names in (("lacks", missing), ("adds", extra)) if names]
    reason = " and ".join(found) or "has the same columns in another order, or twice"
    return (
        f"{items.source} has other columns than the items that the model was trained with: it {reason}. "
        "Give the same columns, or a table, which the model codes as it coded the first."
    )
