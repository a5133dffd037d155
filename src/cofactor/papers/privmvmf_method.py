"""PrivMVMF's own model in its three scenarios: trained by all users' devices, and asked about new ones."""

from dataclasses import replace

import numpy as np

from cofactor.data.ratings import Ratings
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.papers.privmvmf_numbers import COLD_ITEM, COLD_USER
from cofactor.papers.privmvmf_sides import Sided
from cofactor.papers.privmvmf_splits import Parts
from cofactor.randomness import InsecureRandom
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.sums import PlainSum
from cofactor.recipes.train import train


def published() -> MultiViewMF:
    """Return the paper's setting, gradients added up as they are: sums of whole numbers are always exact."""
    return replace(MultiViewMF.as_published(), aggregate=PlainSum())


def knowing(federation: Federation, sides: Sided) -> Federation:
    """Give users the attributes that only they know, and everybody the features of items."""
    return federation.with_public_items(sides.features).with_user_attributes(sides.attributes)


def model_of(parts: Parts, sides: Sided, recipe: MultiViewMF, seed: int) -> Factors:
    """Train on what a scenario leaves, and return the model of its tested users and items.

    Decoys follow from the seed, so that a table repeats; where anybody is to be protected they must not.
    """
    devices = knowing(Federation.on_device(parts.train, scale=parts.train.scale), sides)
    run = train(recipe, devices, seed=seed, random=InsecureRandom(seed))
    [home] = run.homes.values()
    if parts.scenario == COLD_USER:
        return _of_new_users(home, parts.test, sides)
    return _of_new_items(home, parts.test, sides) if parts.scenario == COLD_ITEM else home


def _of_new_users(model: Factors, test: Ratings, sides: Sided) -> Factors:
    """Return the users' vectors that their attributes tell (equation 15)."""
    assert model.views is not None
    return replace(
        model,
        user_ids=test.user_ids,
        user_bias=np.zeros(test.user_count, np.float32),
        user_vectors=model.views.user_vectors(sides.attributes.rows(test.user_ids)),
        seen=None,
    )


def _of_new_items(model: Factors, test: Ratings, sides: Sided) -> Factors:
    """Return the items' vectors that their features tell (equation 17)."""
    assert model.views is not None
    return replace(
        model,
        item_ids=test.item_ids,
        item_bias=np.zeros(test.item_count, np.float32),
        item_vectors=model.views.item_vectors(sides.features.rows(test.item_ids)),
        home=None,
        seen=None,
    )
