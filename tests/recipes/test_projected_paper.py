import pytest

from cofactor.privacy.accountant import spent
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.mechanisms import PoissonBinomial
from cofactor.recipes.projected_paper import coins_of_label, optimal_rows, paper_epsilon, true_loss

ML100K = {"rows": 1682, "factors": 14, "participants": 94}


def test_epsilon_is_that_of_equation_18() -> None:
    found = paper_epsilon(
        theta=0.1, trials=2, rows=3, factors=5, participants=7, rounds=11, order=3.0, constant=4.0
    )
    assert found == pytest.approx(4 * (0.01 / 0.8**4) * 9 / 2 * 2 * 3 * 5 * 11 / 7)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 1e3, 1e6, 3e7])
def test_coins_of_a_label_spend_it_in_the_paper_s_own_counting(epsilon: float) -> None:
    coins = coins_of_label(epsilon, **ML100K)
    spent_by_one_more = paper_epsilon(theta=coins.theta, trials=coins.trials + 1, **ML100K)
    assert coins.theta == 0.25 or coins.trials == 1
    found = paper_epsilon(theta=coins.theta, trials=coins.trials, **ML100K)
    if coins.theta < 0.25:
        assert found == pytest.approx(epsilon)
    else:
        assert found <= epsilon < spent_by_one_more


def test_what_the_label_says_is_not_what_is_lost() -> None:
    # Noise of epsilon 1 at order 2, with C_0 = 1: its Renyi divergence is 4, and 4.87 with rows padded.
    coins = coins_of_label(1.0, **ML100K)
    true = true_loss(coins, rows=1682, factors=14, delta=1e-5)
    assert 10.0 < true.epsilon < 12.5
    event = Event(
        what="coins",
        by="a device",
        to="coordinator",
        mechanism=coins,
        bound=Bound(size=9.0, norm="max", unit="user", adjacency="replace"),
        dimension=2048 * 14,
        count=60,
    )
    assert true.epsilon == pytest.approx(
        spent([event], 1e-5, unit="user", adjacency="replace").epsilon, rel=1e-3
    )


def test_fewer_rows_and_fewer_rounds_lose_less() -> None:
    coins = PoissonBinomial(trials=1, theta=0.004, participants=94)
    most = true_loss(coins, rows=1682, factors=14, delta=1e-5).epsilon
    assert true_loss(coins, rows=561, factors=14, delta=1e-5).epsilon < most
    assert true_loss(coins, rows=1682, factors=14, delta=1e-5, rounds=6).epsilon < most


def test_rows_by_equation_40_weigh_noise_against_projection() -> None:
    # sqrt(8 (beta n)^2 eps (alpha - 1) m beta n / 4 / (C_0 k^2 alpha^2)), in one round.
    found = optimal_rows(epsilon=0.02, items=30_000, factors=20, participants=100, rounds=1)
    assert found == round((8 * 100**2 * 0.02 * 30_000 * 100 / 4 / (400 * 4)) ** 0.5)
    assert optimal_rows(epsilon=1e9, items=300, factors=2, participants=9) == 300
    assert optimal_rows(epsilon=1e-9, items=300, factors=2, participants=9) == 1
    bent = optimal_rows(epsilon=0.02, items=30_000, factors=20, participants=100, rounds=1, theta=0.25)
    assert bent == pytest.approx(found / 4, abs=1)
