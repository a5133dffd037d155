"""From a recipe, a federation and a budget to a run: what it says, and the mistakes it refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Ratings
from cofactor.errors import BudgetExceeded, ConfigError, LedgerError, RunError
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.transcript import Transcript
from cofactor.privacy.accountant import spent
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.progress import Progress
from cofactor.randomness import InsecureRandom, SecureRandom, own_random
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import IdealSum, SecureSum
from cofactor.recipes.train import train
from tests.federation.making import (
    BUDGET,
    Adder,
    Averager,
    ItemSums,
    RatingSums,
    horizontal,
    on_disk,
    parties,
    ratings,
    trained,
    vertical,
)

BY_RATING = Budget(epsilon=4.0, delta=1e-6, unit="rating")


@pytest.fixture(scope="module")
def private() -> Run:
    return trained(random=SecureRandom())


def test_private_run_holds_what_it_promises(private: Run) -> None:
    promise = private.guarantee
    assert promise.holds
    assert promise.epsilon is not None
    assert 0.99 * 4.0 <= promise.epsilon <= 4.0
    assert (promise.unit, promise.delta, promise.releases) == ("user", 1e-6, 9)
    assert promise.by == ("north", "south", "west")
    assert promise.against == ("the coordinator",)
    assert promise.secure_noise is True


def test_epsilon_is_that_of_the_worst_party_where_no_unit_is_at_two(private: Run, tmp_path: Path) -> None:
    assert private.together is not None
    (tmp_path / "north.ledger").write_bytes(private.together.ledgers["north"])
    events = [entry.event for entry in Ledger.open(tmp_path / "north.ledger").entries if entry.event]
    assert len(events) == 3
    assert private.guarantee.epsilon == spent(events, 1e-6, unit="user").epsilon
    assert private.together.parties["north"].epsilon == private.guarantee.epsilon


def test_releases_of_all_parties_add_up_for_users_that_they_share() -> None:
    shared = trained(RatingSums(), vertical()).guarantee
    apart = trained(RatingSums(), vertical(), budget=BY_RATING).guarantee
    for promise in (shared, apart):
        assert promise.epsilon is not None
        assert 0.99 * 4.0 <= promise.epsilon <= 4.0
    run = trained(RatingSums(), vertical())
    assert run.together is not None
    losses = [facts.epsilon for facts in run.together.parties.values()]
    assert all(loss is not None and loss < 3.0 for loss in losses)


@pytest.mark.parametrize("aggregate", [IdealSum(), SecureSum()], ids=["ideal", "secure"])
def test_party_whose_noise_is_shared_loses_more_if_all_others_collude(aggregate: Any) -> None:
    run = trained(ItemSums(aggregate=aggregate), horizontal(4))
    assert run.together is not None
    assert run.guarantee.epsilon is not None
    for facts in run.together.parties.values():
        assert facts.epsilon is not None
        assert facts.epsilon > 1.5 * run.guarantee.epsilon


def test_repeatable_noise_promises_nothing() -> None:
    promise = trained().guarantee
    assert not promise.holds
    assert promise.secure_noise is False
    assert "InsecureRandom" in str(promise)


def test_seed_never_touches_noise() -> None:
    one, two = (trained(random=SecureRandom(), seed=3).model for _ in range(2))
    assert one is not None
    assert two is not None
    assert not np.array_equal(one.item_bias, two.item_bias)


def test_parties_never_draw_the_same_noise() -> None:
    noise = [own_random(InsecureRandom(5), place).new_key().tolist() for place in range(3)]
    assert len({tuple(key) for key in noise}) == 3


def test_training_without_a_budget_says_that_it_is_not_private() -> None:
    run = trained(budget=None)
    assert not run.guarantee.holds
    assert run.guarantee.epsilon is None
    assert str(run.guarantee).startswith("Not private: the parties kept their ratings at home")
    assert run.together is not None
    assert run.together.budget is None
    assert all(facts.epsilon is None for facts in run.together.parties.values())


def test_without_noise_the_toy_finds_the_means() -> None:
    run = trained(ItemSums(rounds=60, limit=1000.0), budget=None)
    pooled = horizontal().pooled().by_item
    means = [values.mean() for values in np.split(pooled.values, pooled.ptr[1:-1])]
    assert run.model is not None
    assert run.model.item_bias.tolist() == pytest.approx(means, abs=1e-3)


def test_run_tells_its_parties_and_its_traffic(private: Run, tmp_path: Path) -> None:
    told = private.together
    assert told is not None
    assert (told.split, told.rounds, told.simulated) == ("horizontal", 3, False)
    assert told.budget == {
        "kind": "Budget",
        "epsilon": 4.0,
        "delta": 1e-6,
        "unit": "user",
        "adjacency": "empty",
    }
    assert list(told.parties) == ["north", "south", "west"]
    assert {(each.users, each.items, each.ratings) for each in told.parties.values()} == {(10, 5, 40)}
    (tmp_path / "t.jsonl").write_bytes(told.transcript)
    transcript = Transcript.open(tmp_path / "t.jsonl")
    assert transcript.session == told.session
    assert told.traffic == transcript.total_bytes
    assert told.parties["north"].bytes_sent == transcript.bytes_by_sender()["north"]
    assert (private.data.users, private.data.items, private.data.ratings) == (30, 5, 120)


def test_progress_tells_epsilon_as_it_rises(private: Run) -> None:
    epsilons = [event.numbers["epsilon"] for event in private.events]
    assert [event.step for event in private.events] == [1, 2, 3]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] == private.guarantee.epsilon
    assert private.events[0].note.startswith(f"epsilon {epsilons[0]:.2f} of 4.00")
    assert "of 4.00  3/3 parties" in private.events[0].note


def test_progress_tells_the_largest_epsilon_if_parties_differ() -> None:
    strict, *others = parties(3)
    own = replace(strict, budget=replace(BUDGET, epsilon=0.5))
    heard: list[Progress] = []
    trained(federation=Federation.horizontal([own, *others]), progress=heard.append)
    assert heard[-1].numbers["epsilon"] > 3.9


def test_recipe_is_told_with_all_its_choices_made(private: Run) -> None:
    assert private.recipe == {
        "kind": "ItemSums",
        "rounds": 3,
        "limit": 2.0,
        "aggregate": {"kind": "PlainSum"},
    }


@pytest.mark.parametrize("change", [{}, {"folder": "runs"}], ids=["memory", "folder"])
def test_train_hands_a_federation_on(change: dict[str, Any], tmp_path: Path) -> None:
    settings = {name: tmp_path / value for name, value in change.items()}
    run = train(ItemSums(rounds=1), horizontal(2), budget=BUDGET, random=InsecureRandom(5), **settings)
    same = trained(ItemSums(rounds=1), horizontal(2))
    assert run.model is not None
    assert same.model is not None
    assert np.array_equal(run.model.item_bias, same.model.item_bias)


MISTAKES: dict[str, tuple[Any, Any, Any, str]] = {
    "split": (
        ItemSums(),
        vertical(),
        BUDGET,
        "ItemSums is for horizontal federations, and this one is vertical",
    ),
    "other split": (RatingSums(), horizontal(), BUDGET, "RatingSums is for vertical federations"),
    "unit": (
        ItemSums(),
        horizontal(),
        BY_RATING,
        "ItemSums protects each user, and the budget is for each rating",
    ),
    "ratings": (ItemSums(), ratings(1), BUDGET, r"Make one with Federation.horizontal\(parties\)"),
    "parties": (ItemSums(), parties(2), BUDGET, r"Make one with Federation.horizontal\(parties\)"),
    "budget": (ItemSums(), horizontal(), 2.0, "budget must be a Budget, got 2.0"),
}


@pytest.mark.parametrize(("recipe", "data", "budget", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_refused_before_any_work(
    recipe: Any, data: Any, budget: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        trained(recipe, data, budget=budget, folder=tmp_path / "run")
    assert not list(tmp_path.rglob("*.ledger"))
    assert not list(tmp_path.rglob("session.json"))


@pytest.mark.parametrize("recipe", [SharedBiases(), SecureALS()])
def test_features_that_were_not_declared_public_are_refused_before_any_ledger_is_written(
    recipe: Any, tmp_path: Path
) -> None:
    (own,) = on_disk(tmp_path, 1)
    described = replace(own, features=np.ones((own.ratings.item_count, 2), np.float32))
    with pytest.raises(ConfigError, match=r"must be declared: Federation\.with_public_items"):
        train(recipe, Federation.horizontal([described]), budget=BUDGET, folder=tmp_path / "run")
    assert not list(tmp_path.rglob("*.ledger"))
    assert not (tmp_path / "run").exists()


def test_party_without_ratings_is_named() -> None:
    none = Ratings.from_rows(
        [], [], np.zeros(0), user_ids=np.arange(3), item_ids=np.arange(5), scale=ratings(1).scale
    )
    federation = Federation.horizontal([*parties(1), Party(name="empty", ratings=none)])
    with pytest.raises(ConfigError, match="empty has no ratings"):
        trained(federation=federation)


def test_budget_that_is_spent_is_refused_before_the_first_round(tmp_path: Path) -> None:
    def run(**settings: Any) -> Run:
        return trained(federation=Federation.horizontal(on_disk(tmp_path)), **settings)

    run()
    heard: list[Progress] = []
    with pytest.raises(BudgetExceeded, match="Nothing was released"):
        run(progress=heard.append)
    assert not heard


def test_ledger_of_another_unit_is_refused(tmp_path: Path) -> None:
    (party,) = on_disk(tmp_path, 1)
    assert party.ledger_path is not None
    Ledger.create(party.ledger_path, party="x", fingerprint=party.fingerprint, budget=BY_RATING)
    with pytest.raises(LedgerError, match="Use a recipe and a --unit that the ledger knows"):
        trained(federation=Federation.horizontal([party]))


def test_grown_file_is_trained_on_only_if_that_is_said(tmp_path: Path) -> None:
    def run(**settings: Any) -> Run:
        small = replace(BUDGET, epsilon=1.0)
        return trained(federation=Federation.horizontal(on_disk(tmp_path, 1)), budget=small, **settings)

    (party,) = on_disk(tmp_path, 1)
    assert party.file is not None
    assert party.ledger_path is not None
    Ledger.create(party.ledger_path, party="north", fingerprint=party.fingerprint, budget=BUDGET)
    run()
    party.file.write_text(party.file.read_text() + "999,1,5\n")
    with pytest.raises(LedgerError, match="other data"):
        run()
    run(newer_data=True)
    run()
    assert len(Ledger.open(party.ledger_path).entries) == 10


def test_finished_training_is_not_done_again(tmp_path: Path) -> None:
    first = trained(folder=tmp_path)
    heard: list[Progress] = []
    again = trained(folder=tmp_path, progress=heard.append)
    assert not heard
    assert first.model is not None
    assert again.model is not None
    assert np.array_equal(first.model.item_bias, again.model.item_bias)
    assert again.guarantee.epsilon == first.guarantee.epsilon
    assert again.together is not None
    assert first.together is not None
    assert again.together.session == first.together.session
    assert again.together.ledgers == first.together.ledgers


def interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, round: int = 2) -> None:
    """Train until an interruption within a round."""
    taken = Averager.take

    def stopping(self: Averager, number: int, replies: Any) -> None:
        if number == round:
            raise KeyboardInterrupt
        taken(self, number, replies)

    with monkeypatch.context() as patched:
        patched.setattr(Averager, "take", stopping)
        with pytest.raises(KeyboardInterrupt):
            trained(folder=folder)


def test_interrupted_training_goes_on_with_the_answers_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(tmp_path, monkeypatch)
    asked: list[int] = []
    handle = Adder.handle

    def counted(self: Adder, round: int, message: Any) -> Any:
        asked.append(round)
        return handle(self, round, message)

    monkeypatch.setattr(Adder, "handle", counted)
    run = trained(folder=tmp_path)
    assert asked == [3, 3, 3]
    assert run.guarantee.releases == 9


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "seed": ({"seed": 8}, "differs in seed"),
    "recipe": ({"recipe": ItemSums(rounds=4)}, "differs in recipe"),
    "budget": ({"budget": replace(BUDGET, epsilon=3.0)}, "differs in budget"),
    "no budget": ({"budget": None}, "differs in budget"),
    "ratings": ({"federation": horizontal(seed=2)}, "differs in parties"),
    "fewer parties": ({"federation": horizontal(2)}, "differs in parties"),
    "their budgets": ({"federation": horizontal(budget=replace(BUDGET, epsilon=3.0))}, "differs in parties"),
}


@pytest.mark.parametrize(("change", "message"), OTHERS.values(), ids=OTHERS)
def test_other_training_is_not_taken_for_the_interrupted_one(
    change: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(tmp_path, monkeypatch)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(RunError, match=message):
        trained(folder=tmp_path, **change)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_reservations_are_given_up_when_a_training_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up: list[str] = []
    monkeypatch.setattr(Ledger, "give_up_reserved", lambda self: given_up.append(self.party))
    monkeypatch.setattr(Averager, "take", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trained()
    assert given_up == ["north", "south", "west"]
