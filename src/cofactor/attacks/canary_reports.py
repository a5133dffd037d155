"""Canaries among devices that report single bits: each report is seen by itself, and its law is public."""

import numpy as np

from cofactor.attacks.canary_evidence import Reals
from cofactor.attacks.canary_planting import Planted
from cofactor.attacks.replay import Setting, questions
from cofactor.federation.messages import Message
from cofactor.federation.party import Party
from cofactor.federation.view import Seen, View
from cofactor.recipes.local_reports import LocalReports, Reports, coordinates_of
from cofactor.recipes.on_device_halves import DeviceParticipant

_SURE = 1 - 1e-9
"""How often a bit is right at most: so that odds are finite where nothing is private."""


def report_odds(planted: Planted, setting: Setting, view: View) -> Reals:
    """Return by how much the bits of each canary speak for its presence, in all rounds."""
    asked, own = questions(view, setting), planted.ratings
    canaries, first = np.unique(own.canary, return_index=True)
    states = [
        planted.federation(np.full(planted.canaries, present), alone=True).parties
        for present in (False, True)
    ]
    total = np.zeros(planted.canaries)
    for seen in view.messages(Reports.__name__):
        at = setting.facts.place(seen.sender)
        odds = _log_odds([state[at] for state in states], setting, asked[seen.round], seen)
        here = own.party[first] == at
        total[canaries[here]] += odds[own.user[first][here]]
    return total


def _log_odds(states: list[Party], setting: Setting, question: Message, seen: Seen) -> Reals:
    """Return, for each user of a party, by how much her bit speaks for the second state."""
    recipe = setting.recipe
    assert isinstance(recipe, LocalReports)
    rows, factors = np.divmod(seen.arrays["places"], recipe.factors)
    signs = recipe.signs(setting.facts.item_count, setting.seed)
    side = (2.0 * seen.arrays["bits"] - 1) * min(1 / float(seen.arrays["weight"][0]), _SURE)
    likely = []
    for state in states:
        device = DeviceParticipant(recipe.fitting().settled(setting.facts, None), setting.home(state))
        items, users = device.fitted(question)
        found = coordinates_of(device.ratings, users, items, signs, rows, factors)
        likely.append(np.log1p(side * np.clip(found, -1.0, 1.0)))
    return np.asarray(likely[1] - likely[0])
