"""Was this user in? Whoever knows somebody's ratings asks how well the published items fit them.

Items were fitted to those who were in, so that ratings of theirs are predicted better than anybody else's.
Every rating is predicted from the user's others: then neither how many she has nor how flexible the model is
makes up for what the items do not know. Nothing is used of a model but its items, even where it lists users.
"""

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.membership_errors import Floats, Rows, errors, usual_errors
from cofactor.data.ratings import Ratings
from cofactor.errors import DataError, RunError
from cofactor.factors.model import Factors
from cofactor.federation.run import Run
from cofactor.federation.view import View

FEWEST = 10
"""Users of either kind below which nothing can be told."""
_FEWEST_RATINGS = 3
"""Ratings of known items below which nothing is said of a user."""
_ENOUGH = 30
"""Users from whom it can be told what their number of ratings does to scores."""
_LEAST = 1e-9


def membership(view: View | Factors, candidates: Ratings, *, reference: Factors | None = None) -> Floats:
    """Return a score for each user of `candidates`, larger if she seems to have been in.

    That is by how much better the model predicts her ratings than the means of items and users do, or than a
    `reference` does, a model of others who certainly were not in: the log-ratio of squared errors. What
    merely follows from how many ratings she has is taken off. Whoever scores knows the ratings of the
    candidates, and what was published; a model alone serves as well as the view of any role.
    """
    model = view.model if isinstance(view, View) else view
    if model is None:
        raise RunError(
            "no model was published, so that nobody can be folded into it. Attack what rounds show, with the "
            "view of the coordinator: membership_in_rounds."
        )
    found, known = errors(model, candidates)
    usual = usual_errors(model, candidates) if reference is None else errors(reference, candidates)[0]
    heard = (known >= _FEWEST_RATINGS) & ~np.isnan(usual)
    if not heard.any():
        raise DataError(
            f"no candidate has rated {_FEWEST_RATINGS} of the model's items. Are their ids the same?"
        )
    scores = np.zeros(candidates.user_count)
    told = np.log(np.maximum(usual[heard], _LEAST)) - np.log(np.maximum(found[heard], _LEAST))
    scores[heard] = _beyond_activity(told, known[heard])
    return scores


def split_by_membership(run: Run, candidates: Ratings) -> NDArray[np.bool_]:
    """Say of each user of `candidates` whether the run has met her; refuse if there are too few of a kind."""
    models = [*run.homes.values(), *([] if run.model is None else [run.model])]
    known = {str(user) for model in models for user in model.user_ids.tolist()}
    if not known:
        raise RunError("this run does not say who was in: it kept no model that lists users.")
    members = np.array([str(user) in known for user in candidates.user_ids.tolist()], np.bool_)
    for count, what in ((int(members.sum()), "were in the run"), (int((~members).sum()), "were not in it")):
        if count < FEWEST:
            raise DataError(
                f"{count:,} of {len(members):,} candidates {what}, and it takes {FEWEST} or more of either "
                "kind to tell them apart. Give ratings of users who were in and of others: train without "
                "some users, and audit with all of them."
            )
    return members


def _beyond_activity(scores: Floats, ratings: Rows) -> Floats:
    """Return scores less what the number of ratings lets one expect: a parabola in its logarithm."""
    if len(scores) < _ENOUGH:
        return np.asarray(scores - scores.mean())
    size = np.log(ratings)
    design = np.column_stack([np.ones_like(size), size, size**2])
    expected = design @ np.linalg.lstsq(design, scores, rcond=None)[0]
    return np.asarray(scores - expected)
