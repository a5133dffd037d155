"""Weights of users: private, aligned with their users, and in no text. Those of items are public."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError, DataError, LedgerError
from cofactor.federation.books import open_ledger, own_budget
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.session import terms_of
from cofactor.federation.verify import verify
from cofactor.federation.weights import read_weights
from cofactor.privacy.budget import Budget, Personal
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.personal import PersonalBudget, PersonalPromise
from cofactor.privacy.weights import HDPMF_USERS, LEAST_WEIGHT, Weights
from cofactor.recipes import promising
from cofactor.recipes.personal_biases import PersonalBiases
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import PlainSum
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF
from cofactor.recipes.weighing import personal_promise
from tests.federation.forging import change_facts, failed
from tests.federation.making import ItemSums
from tests.federation.shops import ratings, shops

OWN = Weights.by({3: 0.3, 4: 0.4, 5: 0.5, 8: 0.8, 9: 0.9}, expected=0.6)


def own(federation: Federation, party: str) -> list[float]:
    weights = federation.party(party).weights
    assert weights is not None
    return [float(number) for number in weights]


def test_every_party_gets_the_weights_of_its_own_users_and_all_those_of_items() -> None:
    budget = PersonalBudget(epsilon=2.0, users=OWN, items=Weights.by({2: 0.25}, otherwise=1.0))
    known = shops().with_weights(budget.users, budget.items, budget=budget)
    assert (own(known, "north"), own(known, "south")) == ([0.3, 0.4, 0.5], [0.8, 0.9])
    public = known.facts.weights
    assert public is not None
    assert public.items.tolist() == [1.0, 1.0, 0.25, 1.0]
    assert (public.expected, public.epsilon, public.threshold) == (0.6, 2.0, None)
    assert "0.3" not in repr(known)


def test_a_party_that_brings_its_own_weights_keeps_them() -> None:
    north, south = shops().parties
    brought = Federation.horizontal([north.with_weights(Weights.equal(0.1)), south])
    known = brought.with_weights(OWN)
    assert (own(known, "north"), own(known, "south")) == ([0.1, 0.1, 0.1], [0.8, 0.9])


def test_equal_ids_at_two_parties_need_weights_of_their_own() -> None:
    parties = [Party(name="north", ratings=ratings(3)), Party(name="south", ratings=ratings(3, 4))]
    with pytest.raises(DataError, match="bring weights of its own"):
        Federation.horizontal(parties).with_weights(OWN)
    apart = [each.with_weights(Weights.equal(0.2)) for each in parties]
    assert own(Federation.horizontal(apart).with_weights(OWN), "south") == [0.2, 0.2]


def test_users_of_several_parties_have_no_weights_yet() -> None:
    with pytest.raises(ConfigError, match="one party"):
        Federation.vertical([Party(name="a", ratings=ratings(3, 4))]).with_weights(OWN)


def test_missing_weights_are_refused_by_party_and_never_by_user() -> None:
    with pytest.raises(DataError, match=r"users of south: 2 of 2 have no weight") as caught:
        shops().with_weights(Weights.by({3: 0.3, 4: 0.4, 5: 0.5}))
    assert "8" not in str(caught.value)
    with pytest.raises(ConfigError, match="shape"):
        replace(shops().parties[0], weights=np.ones(2))


def test_weights_follow_their_users_and_new_ones_get_the_least() -> None:
    party = Party(name="north", ratings=ratings(5, 3, 4)).with_weights(OWN)
    other = party.with_ratings(ratings(4, 6))
    assert other.weights is not None
    assert other.weights.tolist() == [0.4, LEAST_WEIGHT]


def test_parts_of_a_split_keep_the_weights() -> None:
    train_part, test_part = shops().with_weights(OWN).split(0.25, seed=1)
    assert own(train_part, "north") == [0.3, 0.4, 0.5]
    assert own(test_part, "south") == [0.8, 0.9]
    assert train_part.facts.weights is not None


def test_a_training_that_goes_on_must_have_the_same_weights_and_none_is_written_down() -> None:
    first = terms_of(ItemSums(), None, shops().with_weights(OWN), 0)
    changed = Weights.by({3: 0.3, 4: 0.4, 5: 0.51, 8: 0.8, 9: 0.9}, expected=0.6)
    second = terms_of(ItemSums(), None, shops().with_weights(changed), 0)
    assert first["parties"]["north"] != second["parties"]["north"]
    assert first["parties"]["south"] == second["parties"]["south"]
    assert "0.51" not in json.dumps(second)


def test_a_file_holds_weights_or_names_of_groups(tmp_path: Path) -> None:
    file = tmp_path / "weights.csv"
    file.write_text("user,weight\n3,0.25\n4,1\n")
    assert read_weights(file).of([4, 3]).tolist() == [1.0, 0.25]
    file.write_text("user,group\n3,liberal\n4,conservative\n5,\n")
    named = read_weights(file, groups=HDPMF_USERS, otherwise="moderate")
    assert named.of([3, 4, 5, 6]).tolist() == [1.0, 0.1, 0.5, 0.5]
    file.write_text("item,weight\n3,0.5\n")
    assert read_weights(file, of="items").of([3]).tolist() == [0.5]


def test_a_file_without_weights_or_with_other_things_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "weights.csv"
    file.write_text("user,age\n3,25\n")
    with pytest.raises(DataError, match=r'weights.csv: no column is called "weight" or "group".*age'):
        read_weights(file)
    file.write_text("user,group\n3,shy\n")
    with pytest.raises(DataError, match="conservative, moderate, liberal"):
        read_weights(file, groups=HDPMF_USERS).of([3])
    with pytest.raises(ConfigError, match="users"):
        read_weights(file, of="people")


def test_a_recipe_that_does_not_regard_weights_refuses_them() -> None:
    budget = PersonalBudget(epsilon=1.0, delta=1e-6, unit="user", adjacency="empty", users=OWN)
    with pytest.raises(ConfigError, match="ItemSums gives all users the same privacy"):
        train(ItemSums(), shops(), budget=budget)
    with pytest.raises(ConfigError, match="VerticalMF"):
        train(VerticalMF(), shops(), budget=budget)


def test_a_personal_ledger_serves_no_run_in_which_all_are_alike(tmp_path: Path) -> None:
    file = tmp_path / "north.csv"
    file.write_text("user,item,rating\n3,0,4\n3,1,2\n4,0,5\n")
    party = Party.from_csv(file)
    personal = PersonalBudget(epsilon=1.0, users=OWN).public
    plain = Budget(epsilon=1.0, delta=0.0, unit="rating", adjacency="value")
    assert open_ledger(party, personal, None).budget == personal
    assert open_ledger(party, personal, None).budget.personal == "stretching"
    with pytest.raises(LedgerError, match="its budget is personal"):
        open_ledger(party, plain, None)
    with pytest.raises(LedgerError, match="personal"):
        open_ledger(party, replace(personal, personal="sampling"), None)


def test_an_ordinary_ledger_serves_a_personal_run_too(tmp_path: Path) -> None:
    file = tmp_path / "north.csv"
    file.write_text("user,item,rating\n3,0,4\n3,1,2\n4,0,5\n")
    plain = Budget(epsilon=1.0, delta=0.0, unit="rating", adjacency="value")
    party = Party.from_csv(file)
    open_ledger(party, plain, None)
    assert open_ledger(party, replace(plain, personal="stretching"), None).budget == plain


def test_a_sampling_ledger_keeps_small_weights_over_many_runs(tmp_path: Path) -> None:
    file = tmp_path / "north.csv"
    file.write_text("user,item,rating\n3,0,4\n3,1,2\n4,0,5\n")
    party = Party.from_csv(file)

    def sampled(epsilon: float, threshold: float) -> Budget:
        return PersonalBudget(epsilon=epsilon, users=OWN, mechanism="sampling", threshold=threshold).public

    assert sampled(1.0, 0.5).of_weight_1 == 1.0
    assert open_ledger(party, sampled(1.0, 0.5), None).budget == sampled(1.0, 0.5)
    # Ten runs of a tenth: a weight of 0.1 loses a tenth of 0.1 in each.
    open_ledger(party, sampled(0.1, 0.05), None)
    # Ten runs of a small threshold: a weight of 0.1 would lose as much as one of 1.
    with pytest.raises(LedgerError, match="Use a larger --threshold"):
        open_ledger(party, sampled(1.0, 0.05), None)


def test_a_budget_that_says_it_is_personal_needs_weights() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6, unit="user", personal="stretching")
    with pytest.raises(ConfigError, match="nobody has weights"):
        train(ItemSums(), shops(), budget=budget)


def test_weights_come_from_one_place() -> None:
    budget = PersonalBudget(epsilon=1.0, unit="user", users=OWN)
    with pytest.raises(ConfigError, match="not with both"):
        train(SharedBiases(), shops().with_weights(OWN), budget=budget)
    plain = Budget(epsilon=1.0, delta=1e-6, unit="user")
    with pytest.raises(ConfigError, match="Use a PersonalBudget"):
        train(SharedBiases(), shops().with_weights(OWN), budget=plain)


def test_a_party_with_a_budget_of_its_own_is_neither_personal_nor_sampled() -> None:
    north, south = shops().parties
    with pytest.raises(ConfigError, match="must be a Budget"):
        replace(north, budget=PersonalBudget(epsilon=0.5, unit="user"))
    own = replace(north, budget=Budget(epsilon=0.5, delta=1e-9, unit="user"))
    sampled = PersonalBudget(epsilon=1.0, unit="user", users=OWN, mechanism="sampling")
    with pytest.raises(ConfigError, match="one chance at all parties"):
        train(SharedBiases(), Federation.horizontal([own, south]), budget=sampled)


def test_weights_that_no_weight_can_be_are_refused() -> None:
    for wrong in (0.0, 2.0, np.nan):
        with pytest.raises(ConfigError, match=r"between 0\.0001 and 1"):
            replace(shops().parties[0], weights=np.array([1.0, wrong, 1.0]))


def test_drawn_weights_are_said_to_be_a_simulation() -> None:
    budget = PersonalBudget(epsilon=1.0, users=Weights.drawn(HDPMF_USERS, seed=3))
    run = train(PersonalBiases(aggregate=PlainSum()), shops(), budget=budget)
    assert any("drawn by a seed" in warning for warning in run.guarantee.warnings)
    assert run.guarantee.holds
    assert 0 < (run.guarantee.for_user(3).epsilon or 0) < 1


@pytest.mark.parametrize("mechanism", ["stretching", "sampling"])
def test_a_forged_promise_to_smaller_weights_is_found(mechanism: Personal, tmp_path: Path) -> None:
    threshold = 0.5 if mechanism == "sampling" else None
    users = Weights.drawn(HDPMF_USERS, seed=3)
    budget = PersonalBudget(epsilon=1.0, users=users, mechanism=mechanism, threshold=threshold)
    north, south = shops().parties
    careful = replace(south, budget=Budget(epsilon=0.1, delta=1e-9, unit="rating", adjacency="value"))
    parties = [north, south if threshold else careful]
    recipe = PersonalBiases(aggregate=PlainSum())
    run = train(recipe, Federation.horizontal(parties, scale=Scale(1, 5)), budget=budget)
    told = run.guarantee.personal
    assert told is not None
    assert verify(run.save(tmp_path / "run")).holds
    quiet = tuple(replace(each, mechanism=each.mechanism.scaled(10.0)) for each in told.events)
    forgeries = {
        "epsilon": 0.3,
        "events": quiet,
        "mechanism": "sampling" if threshold is None else "stretching",
    }
    for name, value in forgeries.items():
        folder = run.save(tmp_path / name)

        def forge(facts: dict[str, Any], name: str = name, value: Any = value) -> None:
            read = Guarantee.from_json(facts["guarantee"])
            assert read.personal is not None
            facts["guarantee"] = replace(read, personal=replace(read.personal, **{name: value})).as_json()

        change_facts(folder, forge)
        assert set(failed(verify(folder))) == {"guarantee"}, name


def test_what_forgets_weights_keeps_no_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(*facts: Any) -> PersonalPromise:
        told = personal_promise(*facts)
        assert told is not None
        events = [replace(each, bound=replace(each.bound, weighed=False)) for each in told.events]
        return replace(told, events=tuple(events))

    monkeypatch.setattr(promising, "personal_promise", forgetful)
    budget = PersonalBudget(epsilon=1.0, users=Weights.drawn(HDPMF_USERS, seed=3))
    run = train(PersonalBiases(aggregate=PlainSum()), shops(), budget=budget)
    assert not run.guarantee.holds
    assert "Users of weight 0.5 have lost more" in str(run.guarantee)


def test_a_party_with_a_budget_of_its_own_has_a_personal_ledger_too() -> None:
    budget = PersonalBudget(epsilon=1.0, users=OWN).public
    own = Budget(epsilon=0.5, delta=1e-9, unit="rating", adjacency="value")
    assert own_budget(replace(shops().parties[0], budget=own), budget) == replace(own, personal="stretching")
