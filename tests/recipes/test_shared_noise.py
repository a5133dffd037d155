"""What shared noise may not do: charge lasting ledgers too little, tell who is empty, or promise too much."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import Refused, RunError
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.verify import verify
from cofactor.privacy.budget import Budget
from cofactor.randomness import SecureRandom
from cofactor.recipes.clipping import EmbeddingClipping, GradientClipping
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from cofactor.recipes.train import train
from tests.federation.making import BUDGET, ItemSums, horizontal, on_disk, parties, trained
from tests.recipes.test_questions import host, joined

STRICT = Budget(epsilon=1.0, delta=1e-6, unit="user")


def test_ledgers_beside_files_are_not_charged_for_a_simulation(tmp_path: Path) -> None:
    federation = Federation.horizontal(on_disk(tmp_path, 3))
    with pytest.raises(Refused, match=r"ledgers beside files would be charged too little\. Use SecureSum"):
        trained(ItemSums(aggregate=IdealSum()), federation)
    assert not list(tmp_path.glob("*.ledger"))
    assert trained(ItemSums(aggregate=SecureSum()), federation).together is not None
    assert trained(ItemSums(aggregate=IdealSum()), federation, budget=None).together is not None


def test_two_parties_add_all_the_noise_and_a_simulated_sum_of_them_is_verified(tmp_path: Path) -> None:
    run = trained(ItemSums(aggregate=IdealSum()), horizontal(2), random=SecureRandom())
    assert run.guarantee.holds
    assert verify(run.save(tmp_path / "run")).holds


@pytest.mark.parametrize("scale", [Scale(1, 5), None])
@pytest.mark.parametrize(
    "recipe", [OnDeviceMF(rounds=2, factors=2), pytest.param(SecureALS(), marks=pytest.mark.slow)]
)
def test_device_without_ratings_takes_part_like_any_other(recipe: Any, scale: Scale | None) -> None:
    devices = list(joined("on-device", range(2, 8)).parties)
    nothing = np.zeros(0, np.int64)
    quiet = Ratings.from_rows(
        nothing,
        nothing,
        np.zeros(0, np.float32),
        user_ids=np.array(["quiet"]),
        item_ids=devices[0].ratings.item_ids,
        scale=scale,
    )
    devices.append(Party(name="quiet", ratings=quiet))
    federation = Federation.on_device(devices, scale=Scale(1, 5))
    run = train(recipe, federation, budget=STRICT)
    assert run.together is not None
    sizes = {facts.bytes_sent for facts in run.together.parties.values()}
    assert max(sizes) - min(sizes) <= 16 * 3  # names differ in length, and nothing else
    assert run.guarantee.holds


def test_host_answers_one_letter_at_a_time() -> None:
    made = host(OnDeviceMF(rounds=2, factors=2), joined("on-device", range(2, 8)))

    def ask() -> None:
        with pytest.raises(RunError, match="cannot be read"):
            made.handle(b"?")

    with made._busy:
        asked = threading.Thread(target=ask, daemon=True)
        asked.start()
        asked.join(0.2)
        assert asked.is_alive()
    asked.join(5)
    assert not asked.is_alive()


@pytest.mark.parametrize(
    "clipping",
    [EmbeddingClipping(), GradientClipping(limit=2.0, nonnegative=True)],
    ids=["short", "positive"],
)
def test_vectors_that_may_not_be_negative_find_their_rate_for_sums(
    clipping: EmbeddingClipping | GradientClipping,
) -> None:
    facts = horizontal(5).facts
    rates = [
        HorizontalMF(factors=2, rounds=3, clipping=clipping, aggregate=aggregate)
        .settled(facts, BUDGET)
        .learning_rate
        for aggregate in (PlainSum(), SecureSum())
    ]
    assert rates[0] is not None
    assert rates[1] == pytest.approx(rates[0], rel=0.15)  # Renyi bounds ask for a little more noise


def test_party_with_a_budget_of_its_own_is_not_said_to_lose_its_neighbours_noise() -> None:
    strict, *others = parties(4)
    own = Party(name="strict", ratings=strict.ratings, budget=STRICT)
    run = trained(ItemSums(aggregate=SecureSum()), Federation.horizontal([own, *others]))
    assert run.together is not None
    lost = run.together.parties["strict"].epsilon
    assert lost is not None
    assert lost <= 1.0
    assert all(
        (run.together.parties[other.name].epsilon or np.inf) > BUDGET.epsilon for other in others
    )  # with all others against it, a share alone protects less


def test_two_devices_are_warned() -> None:
    federation = joined("on-device", range(2, 8))
    two = Federation.on_device(federation.parties[:2], scale=Scale(1, 5))
    recipe = OnDeviceMF(aggregate=SecureSum(dropout=0.0, colluding=0.0)).settled(two.facts, STRICT)
    assert any("Of two parties" in warning for warning in recipe.promise(two.facts, STRICT).warnings)
    assert not recipe.promise(federation.facts, STRICT).warnings
