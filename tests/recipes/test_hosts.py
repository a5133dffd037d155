"""What a party needs to take part."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.crypto.keys import Identity
from cofactor.errors import RunError
from cofactor.federation.door import COORDINATOR
from cofactor.federation.drive import Session
from cofactor.federation.federation import Federation
from cofactor.federation.messages import Letter
from cofactor.federation.summing import SUM_MESSAGES, SumPart
from cofactor.federation.transcript import Transcript
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.layers import Layers
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import Skellam
from cofactor.randomness import InsecureRandom, SecureRandom, own_random
from cofactor.recipes.hosts import aggregate_of, host_of, noise_beside_own, summing_of
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from tests.federation.making import BUDGET, Guess, ItemSums, Off, horizontal, parties, ratings

ROSTER = {"north": b"1" * 32, "south": b"2" * 32, "west": b"3" * 32}
IDEAL, SECURE = ItemSums(aggregate=IdealSum(dropout=0.34)), ItemSums(aggregate=SecureSum())


class Old:
    """A recipe that knows nothing of sums."""


def test_recipe_says_how_it_sums_or_does_not() -> None:
    old: Any = Old()
    assert aggregate_of(old) == PlainSum()
    assert aggregate_of(SECURE) == SecureSum()
    assert summing_of(old, horizontal(3).facts, ROSTER) is None
    assert summing_of(ItemSums(), horizontal(3).facts, ROSTER) is None
    assert summing_of(SECURE, horizontal(1).facts, ROSTER) is None


def test_secure_sums_have_neighbours_and_keys_and_simulated_ones_have_none() -> None:
    facts = horizontal(3).facts
    secure, ideal = summing_of(SECURE, facts, ROSTER), summing_of(IDEAL, facts, ROSTER)
    assert secure is not None
    assert ideal is not None
    assert secure.layers == Layers(parties=3, fewest=3)
    assert secure.neighbourhood == SecureSum().neighbourhood(3)
    assert [secure.place(name) for name in facts.parties] == [0, 1, 2]
    assert secure.roster == ROSTER
    assert ideal.layers == Layers(parties=3, fewest=2)
    assert ideal.neighbourhood is None
    assert not secure.goes_on
    assert not ideal.goes_on


def test_cohort_is_added_up_by_whoever_plays_it() -> None:
    facts = Federation.on_device(ratings(1)).facts
    for recipe in (SECURE, IDEAL):
        found = summing_of(recipe, facts, {})
        assert found is not None
        assert (found.layers, found.neighbourhood, found.goes_on) == (None, None, True)


def session(recipe: ItemSums, facts: Any, folder: Path | None = None) -> Session:
    transcript = Transcript.create(None, session="s")
    how = summing_of(recipe, facts, ROSTER)
    return Session(name="s", kinds=recipe.messages, transcript=transcript, folder=folder, summing=how)


def answer(recipe: ItemSums, *, own: Any = None, folder: Path | None = None, **more: Any) -> Letter:
    """Return north's answer to the first question."""
    federation = horizontal(3)
    party, settled = federation.parties[0], recipe.settled(federation.facts, BUDGET)
    host = host_of(
        settled,
        replace(party, budget=own),
        federation.facts,
        session(settled, federation.facts, folder),
        schedule=calibrated(settled.schedule(federation.facts, "user"), BUDGET),
        ledger=Ledger.create(None, party="north", fingerprint="x", budget=BUDGET),
        random=InsecureRandom(3),
        identity=Identity.generate(),
        **more,
    )
    asked = Letter(session="s", round=1, sender=COORDINATOR, body=Guess(mean=np.full(5, 3.0)))
    return Letter.from_bytes(host.handle(asked.to_bytes()), (*ItemSums.messages, *SUM_MESSAGES))


def test_host_answers_as_the_recipe_sums(tmp_path: Path) -> None:
    plain = answer(ItemSums(), folder=tmp_path)
    assert (type(plain.body), plain.protection) == (Off, "noise")
    assert (tmp_path / "north.npz").exists()
    ideal = answer(IDEAL)
    assert (type(ideal.body), ideal.protection) == (SumPart, "a share of noise, SIMULATION")
    with pytest.raises(RunError, match="north: a secure sum needs the key"):
        answer(SECURE)  # its key is not the one that the others know


def test_party_with_a_budget_of_its_own_shares_no_noise() -> None:
    assert answer(IDEAL, own=BUDGET).protection == "noise, SIMULATION"
    body = answer(IDEAL, own=BUDGET).body
    assert isinstance(body, SumPart)
    assert body.variances.tolist() == [0.0]


def test_room_for_the_loudest_noise_is_made_by_everybody() -> None:
    usual, loud = (answer(IDEAL, loudest=each).body for each in (1.0, 1e6))
    assert isinstance(usual, SumPart)
    assert isinstance(loud, SumPart)
    assert int(loud.form.split(",")[-1].strip("]")) > int(usual.form.split(",")[-1].strip("]"))


@pytest.mark.parametrize("aggregate", [IdealSum(), IdealSum(dropout=0.34)])
def test_loudest_noise_is_that_of_the_strictest_party(aggregate: Any) -> None:
    strict, *others = parties(3)
    federation = Federation.horizontal([replace(strict, budget=replace(BUDGET, epsilon=0.5)), *others])
    recipe = ItemSums(aggregate=aggregate).settled(federation.facts, BUDGET)
    made = recipe.schedule(federation.facts, "user")
    schedules = {party.name: calibrated(made, party.budget or BUDGET) for party in federation.parties}
    found = noise_beside_own(recipe, federation.facts, schedules, {strict.name})
    noise = {}
    for name, schedule in schedules.items():
        mechanism = schedule.releases[0].mechanism
        assert isinstance(mechanism, Skellam)
        noise[name] = mechanism.noise_multiplier**2
    assert found["north"] == 1.0
    assert found["south"] == found["west"] == pytest.approx(noise["north"] / noise["south"])
    # All parties make the same room.
    assert math.isclose(found["north"] * noise["north"], found["south"] * noise["south"])


def test_without_strict_parties_nobody_is_louder_than_a_share() -> None:
    federation = horizontal(4)
    recipe = ItemSums(aggregate=IdealSum(dropout=0.25)).settled(federation.facts, BUDGET)
    made = recipe.schedule(federation.facts, "user")
    schedules = dict.fromkeys(federation.facts.parties, made)
    # Three may be left, of which one may collude: each of four adds half of the noise.
    facts = federation.facts
    assert noise_beside_own(recipe, facts, schedules) == dict.fromkeys(facts.parties, 0.5)
    assert noise_beside_own(recipe, facts, {}) == {}
    assert noise_beside_own(ItemSums(), facts, schedules) == {}


def test_repeatable_chance_is_another_one_for_each_party_and_secure_chance_is_shared() -> None:
    keys = {own_random(InsecureRandom(5), place).new_key().tobytes() for place in range(4)}
    keys |= {own_random(InsecureRandom(6), place).new_key().tobytes() for place in range(4)}
    assert len(keys) == 8
    secure = SecureRandom()
    assert own_random(secure, 3) is secure
