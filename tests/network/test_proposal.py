"""Proposals: the same text for the same thing, and nothing else can be read."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.data.coding import Coding
from cofactor.data.public_items import PublicItems
from cofactor.errors import ConfigError
from cofactor.network.proposal import Proposal
from cofactor.network.training_terms import OwnFacts, TrainingWork, facts_of
from cofactor.privacy.budget import Budget
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from cofactor.recipes.vertical import VerticalMF

KEYS = {"north": "ab" * 32, "south": "cd" * 32}
PROPOSAL = Proposal(
    kind="training", session="0123456789abcdef", version="1", parties=KEYS, work={"b": 1, "a": [1.5]}, seed=3
)
BUDGET = Budget(epsilon=1.0, delta=1e-5, unit="user")


def test_a_proposal_can_be_read_again_and_has_one_hash() -> None:
    again = Proposal.from_json(PROPOSAL.as_json())
    assert again == PROPOSAL
    assert again.digest == PROPOSAL.digest
    assert again.roster == {"north": b"\xab" * 32, "south": b"\xcd" * 32}
    assert replace(PROPOSAL, work={"a": [1.5], "b": 1}).digest == PROPOSAL.digest


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "survey"},
        {"session": "f" * 16},
        {"version": "2"},
        {"parties": {"south": "cd" * 32, "north": "ab" * 32}},
        {"parties": {**KEYS, "west": "ef" * 32}},
        {"work": {"b": 1, "a": [1.25]}},
        {"seed": 4},
    ],
)
def test_every_part_of_a_proposal_is_in_its_hash_the_order_of_parties_too(other: dict[str, Any]) -> None:
    assert replace(PROPOSAL, **other).digest != PROPOSAL.digest


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "theft"}, "kind must be one of"),
        ({"session": "../../etc"}, "16 to 64 hexadecimal digits"),
        ({"session": "0123456789ABCDEF"}, "16 to 64 hexadecimal digits"),
        ({"parties": {"../north": "ab" * 32}}, "letters, digits"),
        ({"parties": {"coordinator": "ab" * 32}}, "reports use the word otherwise"),
        ({"parties": {"north": "ab" * 31}}, "64 hexadecimal digits"),
        ({"parties": {"north": "ab" * 32, "south": "ab" * 32}}, "a key of its own"),
        ({"parties": {}}, "there is one at least"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        replace(PROPOSAL, **change)


def table(**change: Any) -> str:
    return json.dumps(json.loads(PROPOSAL.as_json()) | change)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "[" * 100_000,
        table(more=1),
        table(seed="3"),
        table(seed=True),
        table(work=[]),
        table(parties={"north": "ab" * 32}),
        table(parties=[["north"]]),
        table(session=7),
        json.dumps({"kind": "training"}),
    ],
)
def test_what_is_no_proposal_cannot_be_read(text: str) -> None:
    with pytest.raises(ConfigError):
        Proposal.from_json(text)


def test_of_two_keys_under_one_name_none_is_overlooked() -> None:
    twice = table(parties=[["north", "ab" * 32], ["north", "cd" * 32]])
    found = Proposal.from_json(twice)
    # The hash is of what was understood, so that nobody signs the other.
    assert found.as_json() != twice
    assert list(found.parties) == ["north"]


WORKS: dict[str, TrainingWork] = {
    "horizontal": TrainingWork(
        split="horizontal", recipe=HorizontalMF(rounds=2), scale=(1.0, 5.0), budget=BUDGET
    ),
    "vertical": TrainingWork(
        split="vertical", recipe=VerticalMF(), scale=(1.0, 5.0), ids="psi", among="chain"
    ),
    "devices": TrainingWork(
        split="on-device",
        recipe=OnDeviceMF(),
        scale=(1.0, 5.0),
        ids="catalogue",
        catalogue=np.array(["a", "b"]),
        ratings_each=20,
    ),
    "views": TrainingWork(
        split="horizontal",
        recipe=MultiViewMF(aggregate=SecureSum()),
        scale=(0.5, 5.0),
        items=PublicItems.of_numbers(np.arange(3), np.eye(3), source="a test"),
        attributes=Coding.stated({"sex": ("f", "m")}),
    ),
}


@pytest.mark.parametrize("name", WORKS)
def test_a_training_can_be_read_again_from_json(name: str) -> None:
    written = json.loads(json.dumps(WORKS[name].table()))
    assert json.dumps(TrainingWork.of(written).table()) == json.dumps(written)


@pytest.mark.parametrize(
    "change",
    [
        {"split": "diagonal"},
        {"split": "vertical"},
        {"ids": "psi"},
        {"ids": "catalogue"},
        {"catalogue": [1, 2]},
        {"recipe": {"kind": "pooled"}},
        {"recipe": {"kind": "os.system"}},
        {"recipe": []},
        {"scale": [1]},
        {"scale": "15"},
        {"scale": [5, 1]},
        {"scale": [float("nan"), 5]},
        {"ratings_each": "many"},
        {"budget": {"epsilon": "much"}},
        {"budget": {"epsilon": 1.0, "delta": 1e-5, "unit": "rating"}},
        {"budget": {"epsilon": 1.0, "delta": 1e-5, "unit": "user", "personal": "stretching"}},
        {"items": {"source": "x"}},
        {"attributes": 3},
        {"more": 1},
    ],
)
def test_a_training_that_makes_no_sense_is_refused_and_nothing_else_happens(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        TrainingWork.of({**WORKS["horizontal"].table(), **change})


def test_sums_that_only_simulations_have_are_refused() -> None:
    with pytest.raises(ConfigError, match="IdealSum is for simulations"):
        TrainingWork(split="horizontal", recipe=HorizontalMF(aggregate=IdealSum()), scale=(1.0, 5.0))


def test_devices_need_a_catalogue_and_a_guess() -> None:
    recipe = OnDeviceMF(aggregate=PlainSum())
    for given in ({}, {"ids": "catalogue", "catalogue": np.arange(3)}):
        with pytest.raises(ConfigError, match="devices need a public catalogue"):
            TrainingWork(split="on-device", recipe=recipe, scale=(1.0, 5.0), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"users": -1},
        {"users": True},
        {"users": 2**50},
        {"ratings": 1.5},
        {"ratings": "9"},
        {"implicit": 1},
        {"others": [1.5]},
        {"others": {}},
    ],
)
def test_facts_that_make_no_sense_name_who_told_them(change: dict[str, Any]) -> None:
    plain = {"users": 3, "items": 2, "ratings": 4, "implicit": False, "others": None}
    assert OwnFacts.of(plain, "south").table() == plain
    with pytest.raises(Exception, match="south told facts that make no sense"):
        OwnFacts.of({**plain, **change}, "south")


def test_facts_of_parties_that_do_not_fit_together_name_them() -> None:
    own = OwnFacts(users=3, items=2, ratings=4, others=None, implicit=False)
    work, shared = WORKS["horizontal"], np.arange(2)
    assert facts_of(work, {"north": own, "south": own}, shared).rating_count == 8
    for other, words in (
        (replace(own, implicit=True), "south: the training is about ratings with values"),
        (replace(own, ratings=0), "south: no ratings"),
    ):
        with pytest.raises(Exception, match=words):
            facts_of(work, {"north": own, "south": other}, shared)
    with pytest.raises(Exception, match="south: a device has the ratings of one user"):
        facts_of(WORKS["devices"], {"north": replace(own, users=1), "south": own}, shared)
