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
from cofactor.federation.summing import Form
from cofactor.privacy.budget import Budget
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.together import Training, train_together
from cofactor.recipes.vertical_taste import VerticalTaste
from tests.crypto.fixed_primes import fixed_primes
from tests.recipes.parties import horizontal, transcript, vertical
from tests.recipes.summing_toys import QUICK, USER, few_ratings

Sums = NDArray[Any]
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


def sums_and_vectors(kind: str, aggregate: Any, budget: Budget | None = None) -> tuple[Sums, Sums, Run]:
    """Train, and return all sums that were opened, one after the other, and all item vectors."""
    found: list[Sums] = []
    message = Form.message

    def noted(self: Form, total: Sums, kinds: Any) -> Any:
        found.append(total.copy())
        return message(self, total, kinds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Form, "message", noted)
        run = trained(kind, aggregate, budget)
    models = [run.model] if run.model is not None else list(run.homes.values())
    return np.concatenate(found), np.concatenate([model.item_vectors for model in models]), run


@pytest.mark.parametrize("kind", RECIPES)
def test_all_sums_are_the_same_and_train_the_same_vectors_bit_for_bit(kind: str) -> None:
    sums, vectors, _ = sums_and_vectors(kind, SecureSum(dropout=0.0))
    assert sums.any()
    assert vectors.any()
    # Least squares take many sums: two ways of opening them are enough there.
    ways = OPENED if kind != "least squares" else {name: OPENED[name] for name in ("shared", "bfv")}
    for name, aggregate in ways.items():
        own_sums, own_vectors, run = sums_and_vectors(kind, aggregate)
        np.testing.assert_array_equal(own_sums, sums, err_msg=name)
        np.testing.assert_array_equal(own_vectors, vectors, err_msg=name)
        assert not run.guarantee.holds
        assert "is no differential privacy" in str(run.guarantee)


def test_sums_in_plain_sight_of_the_same_whole_numbers_give_the_same_vectors() -> None:
    plain = trained("views", PlainSum())
    _, vectors, _ = sums_and_vectors("views", OPENED["paillier"])
    assert plain.model is not None
    np.testing.assert_array_equal(plain.model.item_vectors, vectors)


def test_with_a_budget_the_same_noise_is_in_all_sums() -> None:
    sums, vectors, _ = sums_and_vectors("horizontal", SecureSum(dropout=0.0), USER)
    for name, aggregate in OPENED.items():
        own_sums, own_vectors, _ = sums_and_vectors("horizontal", aggregate, USER)
        np.testing.assert_array_equal(own_sums, sums, err_msg=name)
        np.testing.assert_array_equal(own_vectors, vectors, err_msg=name)
    assert not np.array_equal(vectors, sums_and_vectors("horizontal", SecureSum(dropout=0.0))[1])


def test_guarantee_holds_and_says_that_noise_was_added_and_what_hid_the_answers() -> None:
    run = trained("horizontal", OPENED["shared"], USER, random=SecureRandom())
    assert run.guarantee.holds
    assert "answers were cut into shares" in str(run.guarantee)
    assert run.together is not None
    # Whoever is alone against all others has its share of the noise only.
    assert all((each.epsilon or np.inf) > USER.epsilon for each in run.together.parties.values())


def test_device_that_drops_out_is_left_out_and_training_goes_on() -> None:
    aggregate = SharedSum(dropout=0.5)
    failures = Failures(lost=frozenset({("p0", 1)}), absent=frozenset((f"p{k}", 2) for k in range(5)))
    run = trained("devices", aggregate, failures=failures)
    answered = [event.numbers["answered"] for event in run.rounds]
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
    with pytest.raises(ConfigError, match="of 4 parties 1 may be left, and 1 of them may collude"):
        trained("horizontal", SharedSum(dropout=0.75))
