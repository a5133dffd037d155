"""A party in a process of its own: reads its file, answers letters from its standard input on its output."""

import importlib
import io
import json
import sys
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from cofactor.config import from_table
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import CofactorError
from cofactor.federation.books import open_ledger, own_budget
from cofactor.federation.door import Door, RoundLost
from cofactor.federation.halves import Facts, Home
from cofactor.federation.host import Host
from cofactor.federation.party import Party
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.recipes.together import _own_random
from tests.federation.subprocess_channel import ASK, BEGIN, DONE, FAILED, LOST, receive, send


def facts_from_json(table: dict[str, Any]) -> Facts:
    lists: dict[str, Any] = {name: tuple(table[name]) for name in ("parties", "users", "items", "ratings")}
    ids: dict[str, Any] = {name: np.array(table[name]) for name in ("shared_ids", "catalogue")}
    return Facts(
        split=table["split"], features=table["features"], scale=Scale(*table["scale"]), **lists, **ids
    )


def aligned(own: Ratings, facts: Facts) -> Ratings:
    """Number what all parties share as all of them do."""
    by_user = facts.split == "vertical"
    places = np.searchsorted(facts.shared_ids, own.user_ids if by_user else own.item_ids)
    return Ratings.from_rows(
        places[own.users] if by_user else own.users,
        own.items if by_user else places[own.items],
        own.values,
        user_ids=facts.shared_ids if by_user else own.user_ids,
        item_ids=own.item_ids if by_user else facts.shared_ids,
        scale=own.scale,
    )


def begun(setup: dict[str, Any]) -> Host:
    """Make the party's half from a file, public facts and tables of settings."""
    facts = facts_from_json(setup["facts"])
    party = Party.from_csv(setup["file"], name=setup["party"], scale=facts.scale)
    party = party.with_ratings(aligned(party.ratings, facts))
    if setup["features"] is not None:
        object.__setattr__(party, "features", np.array(setup["features"], np.float32))
    names = [name.split(":") for name in setup["recipes"]]
    known = reduce(or_, [getattr(importlib.import_module(module), name) for module, name in names])
    recipe: Any = from_table(known, setup["recipe"], "recipe")
    budget: Budget | None = setup["budget"] and from_table(Budget, setup["budget"], "budget")
    folder = setup["folder"] and Path(setup["folder"])
    ledger = schedule = None
    if budget is not None:
        own = own_budget(party, budget)
        ledger = open_ledger(party, own, folder)
        schedule = calibrated(recipe.schedule(facts, budget.unit, party.name), own)
    random = SecureRandom() if setup["insecure"] is None else InsecureRandom(setup["insecure"])
    door = Door(
        party=party.name,
        ledger=ledger,
        random=_own_random(random, facts.place(party.name)),
        run=setup["session"],
    )
    home = Home(party=party, facts=facts, schedule=schedule, door=door, seed=setup["seed"])
    file = folder and folder / f"{party.name}.npz"
    return Host(
        recipe.participant(home), door, session=setup["session"], kinds=recipe.messages, file=file or None
    )


def model_bytes(host: Host, data: bytes) -> bytes:
    model, memory = host.finish(data), io.BytesIO()
    names = ("user_ids", "item_ids", "user_bias", "item_bias", "user_vectors", "item_vectors")
    np.savez(memory, allow_pickle=False, **{name: getattr(model, name) for name in names})
    return memory.getvalue()


def main() -> None:
    # Whatever else prints must not come between the letters.
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    host: Host | None = None
    while True:
        kind, content = receive(sys.stdin.buffer)
        try:
            if kind == BEGIN:
                host = begun(json.loads(content))
                send(out, DONE, b"")
            elif kind and host is not None:
                send(out, DONE, host.handle(content) if kind == ASK else model_bytes(host, content))
            else:
                return
        except RoundLost as lost:
            send(out, LOST, str(lost).encode())
        except CofactorError as error:
            send(out, FAILED, str(error).encode())


if __name__ == "__main__":
    main()
