from dataclasses import replace

import numpy as np
import pytest

from cofactor.attacks.knowledge import Knowledge
from cofactor.attacks.reconstruction import Reconstruction, attack_upload, reconstruct, scored, uploads
from cofactor.attacks.uploads import Update, with_laplace
from cofactor.errors import ConfigError
from cofactor.federation.door import SUM
from cofactor.federation.run import Run
from cofactor.privacy.budget import Budget
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_weights import InclUnc, ObsOnly, Unrated
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.sums import PlainSum, SecureSum
from tests.attacks.devices import (
    KINDS,
    PLAIN,
    PUBLIC,
    UPDATES,
    USERS,
    captured,
    devices,
    made,
    table,
)


def attacked(run: Run, *, noise: float = 0.0, most: int = USERS) -> Reconstruction:
    """Attack what the coordinator saw last; with noise, as if devices had added it."""
    assert run.captured is not None
    random = np.random.default_rng(0)
    seen = uploads(run.captured.view("coordinator"))[:most]
    seen = tuple(with_laplace(each, noise, random) for each in seen)
    return scored([attack_upload(each, PUBLIC) for each in seen], run.captured.truth, PUBLIC)


@pytest.mark.parametrize("unrated", KINDS)
@pytest.mark.parametrize("update", UPDATES)
def test_one_round_of_plain_gradients_gives_everything_away(unrated: Unrated, update: Update) -> None:
    recipe = replace(PLAIN, unrated=unrated)
    run = captured(replace(recipe, update="sgd") if update == "sgd" else recipe)
    assert run.captured is not None
    guesses = reconstruct(run.captured.view("coordinator"))
    found = scored(guesses, run.captured.truth, PUBLIC)
    assert (found.users, found.single) == (USERS, True)
    for each in (found.rated, found.told, found.all_items, found.attributes, found.questions):
        assert each is not None
        assert each.right == 1.0
        assert each.better
    np.testing.assert_array_equal(guesses[0].rated, ~np.isnan(table()[0]))
    assert {guess.round for guess in guesses} == {PLAIN.rounds}


def test_the_users_vector_is_read_as_well() -> None:
    upload, _, vector = made(InclUnc())
    guess = attack_upload(upload, PUBLIC)
    np.testing.assert_allclose(guess.vector, vector, rtol=1e-5)
    assert guess.noise < 1e-4
    assert guess.seconds > 0


def test_more_noise_leaves_less_and_much_noise_nothing() -> None:
    run = captured()
    found = [attacked(run, noise=noise, most=5) for noise in (0.1, 1.0, 50.0)]
    right = [each.rated.right for each in found]
    assert right[0] > 0.9
    assert right[0] > right[1] > right[2]
    # Five users of 20 ratings each: a rating in three is guessed by chance, give or take 0.05.
    assert right[2] <= found[2].rated.trivial + 0.2
    assert not found[2].rated.better
    assert found[2].questions is not None
    assert not found[2].questions.better


def test_known_noise_and_noise_that_is_seen_are_as_good() -> None:
    upload, row, _ = made(ObsOnly())
    noisy = with_laplace(upload, 0.1, np.random.default_rng(4))
    known, seen = attack_upload(noisy, PUBLIC), attack_upload(replace(noisy, noise=None), PUBLIC)
    assert seen.noise == pytest.approx(0.1, rel=0.5)
    right = [float(np.mean(each.ratings == np.nan_to_num(row))) for each in (known, seen)]
    assert min(right) > 0.95


def test_a_secure_sum_tells_no_more_than_trivial_guesses() -> None:
    recipe = replace(PLAIN, rounds=3, aggregate=SecureSum(dropout=0.0, colluding=0.1))
    run = captured(recipe)
    assert run.captured is not None
    view = run.captured.view("coordinator")
    guesses = reconstruct(view)
    assert [guess.sender for guess in guesses] == [SUM]
    # What the other nine have sent is noise to whoever looks for one of them.
    [mean] = uploads(view)
    assert guesses[0].noise > 2 * np.sqrt(np.mean(mean.item_rows**2))
    assert not guesses[0].rated.any()
    found = scored(guesses, run.captured.truth, PUBLIC)
    assert (found.users, found.single) == (USERS, False)
    for each in (found.rated, found.told, found.all_items, found.attributes, found.questions):
        assert each is not None
        assert not each.better
    # The same gradients, each of them seen.
    assert attacked(captured(replace(recipe, aggregate=PlainSum()))).rated.right == 1.0


def test_a_budget_leaves_no_more_than_trivial_guesses() -> None:
    run = captured(replace(PLAIN, rounds=2), budget=Budget(epsilon=4.0, delta=1e-6, unit="user"))
    found = attacked(run, most=6)
    assert found.single  # everything is seen, and noise protects it
    for each in (found.rated, found.told, found.all_items, found.attributes, found.questions):
        assert each is not None
        assert not each.better


def test_devices_that_shorten_gradients_give_much_away() -> None:
    recipe = OnDeviceMF(factors=4, rounds=4, aggregate=PlainSum())
    run = captured(recipe, devices(attributes=False))
    found = attacked(run)
    assert found.attributes is None
    assert found.rated.better
    assert found.rated.right > 0.6


def test_some_devices_can_be_attacked_alone() -> None:
    run = captured(replace(PLAIN, rounds=2))
    assert run.captured is not None
    view = run.captured.view("coordinator")
    guesses = reconstruct(view, parties=["device-03", "device-05"], round=1)
    assert [(guess.sender, guess.round) for guess in guesses] == [("device-03", 1), ("device-05", 1)]


def test_who_has_sent_nothing_is_not_guessed() -> None:
    upload, _, _ = made(ObsOnly())
    silent = replace(upload, item_rows=0 * upload.item_rows, attribute_rows=0 * upload.attribute_rows)
    guess = attack_upload(silent, PUBLIC)
    assert not guess.rated.any()
    assert np.isnan(guess.attributes).all()


def test_a_run_without_messages_cannot_be_attacked() -> None:
    run = captured(replace(PLAIN, rounds=1))
    assert run.captured is not None
    with pytest.raises(ConfigError, match="payloads were not captured"):
        reconstruct(run.captured.view("public"))


def test_views_name_the_questions() -> None:
    run = captured(MultiViewMF(factors=2, rounds=1, aggregate=PlainSum(), unrated=ObsOnly()))
    assert run.captured is not None
    assert Knowledge.of_view(run.captured.view("coordinator")).groups == PUBLIC.groups
