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
from cofactor.crypto.keys import Identity
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import CofactorError, TooFew
from cofactor.federation.books import open_ledger, own_budget
from cofactor.federation.door import RoundLost
from cofactor.federation.drive import Session
from cofactor.federation.halves import Facts
from cofactor.federation.host import Host
from cofactor.federation.party import Party
from cofactor.federation.transcript import Transcript
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.randomness import InsecureRandom, SecureRandom, own_random
from cofactor.recipes.hosts import host_of, summing_of
from tests.federation.subprocess_channel import ASK, BEGIN, DONE, FAILED, KEY, LOST, STOPPED, receive, send


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


def party_of(setup: dict[str, Any], facts: Facts) -> Party:
    """Read the party's own file."""
    party = Party.from_csv(setup["file"], name=setup["party"], scale=facts.scale)
    party = party.with_ratings(aligned(party.ratings, facts))
    if setup["features"] is not None:
        object.__setattr__(party, "features", np.array(setup["features"], np.float32))
    return party


def recipe_of(setup: dict[str, Any]) -> Any:
    names = [name.split(":") for name in setup["recipes"]]
    known = reduce(or_, [getattr(importlib.import_module(module), name) for module, name in names])
    return from_table(known, setup["recipe"], "recipe")


def begun(setup: dict[str, Any], identity: Identity) -> Host:
    """Make the party's half from a file, public facts and tables of settings."""
    facts, recipe = facts_from_json(setup["facts"]), recipe_of(setup)
    party = party_of(setup, facts)
    budget: Budget | None = setup["budget"] and from_table(Budget, setup["budget"], "budget")
    folder = Path(setup["folder"]) if setup["folder"] else None
    ledger = schedule = None
    if budget is not None:
        own = own_budget(party, budget)
        ledger = open_ledger(party, own, folder)
        schedule = calibrated(recipe.schedule(facts, budget.unit, party.name), own)
    random = SecureRandom() if setup["insecure"] is None else InsecureRandom(setup["insecure"])
    roster = {name: bytes.fromhex(key) for name, key in setup["roster"].items()}
    session = Session(
        name=setup["session"],
        kinds=recipe.messages,
        transcript=Transcript.create(None, session=setup["session"]),
        folder=folder,
        summing=summing_of(recipe, facts, roster),
    )
    return host_of(
        recipe,
        party,
        facts,
        session,
        schedule=schedule,
        ledger=ledger,
        random=own_random(random, facts.place(party.name)),
        identity=identity,
        seed=setup["seed"],
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
    identity = Identity.generate()
    while True:
        kind, content = receive(sys.stdin.buffer)
        try:
            if kind == KEY:
                send(out, DONE, identity.public)
            elif kind == BEGIN:
                host = begun(json.loads(content), identity)
                send(out, DONE, b"")
            elif kind and host is not None:
                send(out, DONE, host.handle(content) if kind == ASK else model_bytes(host, content))
            else:
                return
        except RoundLost as lost:
            send(out, LOST, str(lost).encode())
        except TooFew as few:
            send(out, STOPPED, str(few).encode())
        except CofactorError as error:
            send(out, FAILED, str(error).encode())


if __name__ == "__main__":
    main()
