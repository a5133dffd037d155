"""Recipes whose sums decrypters open: the same models as with any other way of adding up, to the last bit."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.crypto.lattice import Lattice
from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError, Refused
from cofactor.federation.channel import Failures
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.privacy.budget import Budget
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from cofactor.recipes.together import Training, train_together
from cofactor.recipes.vertical_taste import VerticalTaste
from tests.crypto.fixed_primes import fixed_primes
from tests.recipes.parties import horizontal, transcript, vertical
from tests.recipes.summing_toys import QUICK, RATING, USER, few_ratings

RATINGS = few_ratings()
OPENED: dict[str, Any] = {
    "shared": SharedSum(),
    "paillier": EncryptedSum(),
    "bfv": EncryptedSum(scheme=Lattice()),
    "ckks": EncryptedSum(scheme=Lattice(variant="ckks"), decrypters=2),
}


def phones(count: int = 8) -> Federation:
    parties = [
        Party(name=f"p{user}", ratings=RATINGS.where(RATINGS.users == user).compact())
        for user in range(count)
    ]
    return Federation.on_device(parties, scale=Scale(0.5, 5.0))


RECIPES: dict[str, tuple[Any, Callable[[], Federation]]] = {
    "horizontal": (replace(QUICK, rounds=2), lambda: horizontal(RATINGS, 4)),
    "devices": (OnDeviceMF(factors=2, rounds=2), phones),
    "least squares": (SecureALS(factors=2), lambda: horizontal(RATINGS, 4)),
    "taste": (VerticalTaste(), lambda: vertical(RATINGS, 4)),
    "views": (MultiViewMF(factors=2, rounds=2), phones),
}


@pytest.fixture(autouse=True, scope="module")
def fixed() -> Any:
    with fixed_primes():
        yield


def trained(kind: str, aggregate: Any, budget: Budget | None = None, **more: Any) -> Run:
    recipe, federation = RECIPES[kind]
    training = Training(**({"random": InsecureRandom(5)} | more))
    return train_together(replace(recipe, aggregate=aggregate), federation(), budget, training)


def vectors(run: Run) -> NDArray[np.float32]:
    """Return the item vectors that a run made, its own or those that parties keep."""
    models = [run.model] if run.model is not None else list(run.homes.values())
    return np.concatenate([model.item_vectors for model in models])


@pytest.mark.parametrize("kind", RECIPES)
def test_all_sums_train_the_same_item_vectors_bit_for_bit(kind: str) -> None:
    wanted = vectors(trained(kind, SecureSum(dropout=0.0)))
    assert np.abs(wanted).sum() > 0
    np.testing.assert_array_equal(vectors(trained(kind, IdealSum())), wanted)
    for name, aggregate in OPENED.items():
        run = trained(kind, aggregate)
        np.testing.assert_array_equal(vectors(run), wanted, err_msg=name)
        assert not run.guarantee.holds
        assert "is no differential privacy" in str(run.guarantee)


@pytest.mark.parametrize("kind", ["taste", "views"])
def test_sums_in_plain_sight_of_the_same_whole_numbers_are_the_same(kind: str) -> None:
    wanted = vectors(trained(kind, PlainSum()))
    np.testing.assert_array_equal(vectors(trained(kind, OPENED["paillier"])), wanted)


@pytest.mark.parametrize(("kind", "budget"), [("horizontal", USER), ("taste", RATING)])
def test_with_a_budget_the_same_noise_is_in_all_sums(kind: str, budget: Budget) -> None:
    wanted = vectors(trained(kind, SecureSum(dropout=0.0), budget))
    for name, aggregate in OPENED.items():
        np.testing.assert_array_equal(vectors(trained(kind, aggregate, budget)), wanted, err_msg=name)
    assert not np.array_equal(wanted, vectors(trained(kind, SecureSum(dropout=0.0))))


def test_guarantee_holds_and_says_that_noise_was_added_and_what_hid_the_answers() -> None:
    run = trained("horizontal", OPENED["shared"], USER, random=SecureRandom())
    assert run.guarantee.holds
    assert "answers were cut into shares" in str(run.guarantee)
    assert run.together is not None
    # Whoever is alone against all others has its share of the noise only.
    assert all((each.epsilon or np.inf) > USER.epsilon for each in run.together.parties.values())


def test_more_noise_stays_where_parties_may_drop_out_and_nobody_does() -> None:
    strict, tolerant = (
        trained("horizontal", SharedSum(dropout=each), USER, random=SecureRandom()) for each in (0.0, 0.5)
    )
    assert strict.together is not None
    assert tolerant.together is not None
    losses = [
        max(each.epsilon or np.inf for each in run.together.parties.values())
        for run in (strict, tolerant)
        if run.together is not None
    ]
    assert losses[0] > losses[1]  # a party's own share is larger


def test_device_that_drops_out_is_left_out_and_training_goes_on() -> None:
    aggregate = SharedSum(dropout=0.5)
    failures = Failures(lost=frozenset({("p0", 1)}), absent=frozenset((f"p{k}", 2) for k in range(5)))
    run = trained("devices", aggregate, failures=failures)
    answered = [event.numbers["answered"] for event in run.events]
    assert answered[:2] == [7.0, 3.0]
    opened = {each.round for each in transcript(run) if each.protection == "a part in opening the sum"}
    assert 1 in opened
    assert 2 not in opened


def test_party_that_drops_out_where_none_may_ends_the_training() -> None:
    with pytest.raises(Refused, match="at least 4 of 4 parties must"):
        trained("horizontal", SharedSum(), failures=Failures(absent=frozenset({("party-1", 1)})))


def test_cohort_only_simulates_such_sums() -> None:
    recipe = OnDeviceMF(factors=2, rounds=1, aggregate=EncryptedSum(dropout=0.1, colluding=0.2))
    federation = Federation.on_device(RATINGS)
    run = train_together(recipe, federation, None, Training())
    assert run.recipe["aggregate"] == {"kind": "IdealSum", "dropout": 0.1, "colluding": 0.2}
    assert "nobody was meant to see" in str(run.guarantee)


def test_too_few_parties_for_the_colluding_ones_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, match="of 4 parties 2 may be left, and 2 of them may collude"):
        trained("horizontal", SharedSum(dropout=0.45, colluding=0.5))
