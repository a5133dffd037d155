import math
from dataclasses import replace
from typing import Any

import pytest

from cofactor.errors import ConfigError
from cofactor.privacy.budget import Budget
from cofactor.privacy.mechanisms import Skellam
from cofactor.privacy.plan import Plan
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.local_reports import LocalReports
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.plan import plan
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum

BUDGET = Budget(epsilon=2, delta=1e-6, unit="user")
STEPS = {"factors": 4, "rounds": 5, "centre": 3.5}


def made(recipe: Any, parties: int = 1) -> Plan:
    return plan(recipe, BUDGET, parties=parties, users=4_000, items=300, ratings=200_000)


def noise_of(one: Plan) -> float:
    mechanism = one.schedule.releases[0].mechanism
    assert isinstance(mechanism, Skellam)
    return mechanism.noise_multiplier


def signal_of(one: Plan) -> float:
    [ratio] = one.signal_to_noise
    assert ratio is not None
    return ratio


def test_parties_that_share_noise_have_that_of_about_one_in_their_sum() -> None:
    secure = HorizontalMF(**STEPS, aggregate=SecureSum(colluding=0.1))  # type: ignore[arg-type]
    found = made(secure, parties=40)
    # All users' parts in each of 5 sums of 1,200 numbers, over the noise of 40 parties of whom 36 would do.
    wanted = 4_000 / (noise_of(found) * math.sqrt(1_200)) * math.sqrt(5) / math.sqrt(40 / 36)
    assert signal_of(found) == pytest.approx(wanted, rel=1e-9)
    assert found.schedule.parties == 40
    assert found.total_bytes == 2 * 40 * 5 * 1_200 * 4


def test_two_parties_add_all_of_the_noise_each_and_are_warned() -> None:
    secure = HorizontalMF(**STEPS, aggregate=SecureSum())  # type: ignore[arg-type]
    found = made(secure, parties=2)
    wanted = 4_000 / (noise_of(found) * math.sqrt(1_200)) * math.sqrt(5) / math.sqrt(2)
    assert signal_of(found) == pytest.approx(wanted, rel=1e-9)
    assert any("of two parties" in each for each in found.warnings)


def test_several_local_steps_share_no_noise_and_the_plan_says_so() -> None:
    plain = HorizontalMF(**STEPS, local_steps=5)  # type: ignore[arg-type]
    found = made(replace(plain, aggregate=SecureSum()), parties=40)
    assert found.signal_to_noise == made(plain, parties=40).signal_to_noise
    [warning] = found.warnings
    assert "5 local steps" in warning
    assert "every party adds all of its noise" in warning
    assert made(plain, parties=40).warnings == ()


def test_devices_are_planned_as_one_crowd_of_users() -> None:
    found = made(OnDeviceMF(factors=4, rounds=5))
    # Of 4,000 devices 400 may collude.
    wanted = 4_000 / (noise_of(found) * math.sqrt(1_200)) * math.sqrt(5) / math.sqrt(4_000 / 3_600)
    assert signal_of(found) == pytest.approx(wanted, rel=1e-9)
    assert found.schedule.parties == 4_000
    assert found.total_bytes == 2 * 4_000 * 5 * 1_200 * 4
    assert found.holds
    assert found.warnings == ()


def test_devices_whose_answers_are_seen_add_all_of_the_noise_each() -> None:
    hidden = OnDeviceMF(factors=4, rounds=5, most_ratings=1, aggregate=IdealSum())
    found, shared = made(replace(hidden, aggregate=PlainSum())), made(hidden)
    # The noise of 4,000 devices, not of 4,000 of whom 3,999 would do.
    assert signal_of(shared) / signal_of(found) == pytest.approx(math.sqrt(3_999), rel=0.01)
    assert any("will drown gradients of items" in each for each in found.warnings)
    assert any("only about 1 users" in each for each in found.warnings)


def test_local_reports_are_planned_by_device() -> None:
    found = made(LocalReports(rounds=4))
    assert found.holds
    assert (found.schedule.parties, found.signal_to_noise) == (4_000, (None,))


def test_devices_are_not_dealt_out_to_parties() -> None:
    with pytest.raises(ConfigError, match="every user is a device"):
        made(OnDeviceMF(), parties=3)
