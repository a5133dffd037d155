"""What parties and the coordinator know together: of sums that masks or keys hide, and of open answers."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.attacks.collusion import colluded, noise_left, rests
from cofactor.attacks.collusion_decoys import FreshDecoys, Shown, rated_sets, shown_items
from cofactor.attacks.collusion_keys import opened_uploads, quorum_of, with_opened
from cofactor.attacks.reconstruction import reconstruct
from cofactor.crypto.shared_key import SharedKey
from cofactor.data import partition
from cofactor.data.files import read_ratings
from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make
from cofactor.errors import ConfigError, TooFew
from cofactor.federation.door import SUM
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.view import Capture, Captured, View
from cofactor.privacy.budget import Budget
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.item_rounds import ItemRound
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_weights import ObsOnly
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF
from tests.crypto.fixed_primes import fixed_primes

Find = Callable[[str], Path]
USER = Budget(epsilon=8.0, delta=1e-6, unit="user")
RATED, ITEMS = 60, 4000
"""Nobody has rated the items beyond the first ones: sums about them are nothing but noise."""


@pytest.fixture(autouse=True, scope="module")
def fixed() -> Iterator[None]:
    with fixed_primes():
        yield


def sparse(users: int = 90) -> Ratings:
    few = make(Shape(users=users, items=RATED, ratings=20 * users, minimum=5), seed=2).ratings
    return Ratings.from_rows(
        few.users,
        few.items,
        few.values,
        user_ids=few.user_ids,
        item_ids=np.arange(ITEMS),
        scale=few.scale,
    )


def dealt(ratings: Ratings, parties: int, how: Any = partition.horizontal) -> list[Party]:
    return [Party(name=f"p{k}", ratings=own) for k, own in enumerate(how(ratings, parties, seed=1))]


def captured(recipe: Any, federation: Federation, **more: Any) -> Captured:
    """Train, and keep what everybody saw."""
    roles = ["coordinator", *(f"party:{party.name}" for party in federation.parties)]
    run = train(recipe, federation, capture=roles, **more)
    assert run.captured is not None
    return run.captured


def together(kept: Captured, *parties: str) -> View:
    return kept.view("coordinator", *(f"party:{name}" for name in parties))


def biases(aggregate: Any) -> SharedBiases:
    rounds = (ItemRound(share=0.5, count_weight=1.2),)
    return SharedBiases(item_rounds=rounds, gain_share=0.0, home=UsersOnly(), aggregate=aggregate)


# Noise that parties share.


@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.slow), 0.17])
def test_colluding_parties_take_their_own_noise_off_and_the_promised_one_is_left(dropout: float) -> None:
    federation = Federation.horizontal(dealt(sparse(), 6))
    kept = captured(biases(SecureSum(dropout=dropout, colluding=0.34)), federation, budget=USER)
    for colluding in range(6):
        view = together(kept, *(f"p{k}" for k in range(colluding)))
        found = noise_left(view, kept.truth)
        assert (found.colluding, found.promised) == (colluding, 2)
        assert found.numbers > 7000
        assert found.expected == pytest.approx((6 - colluding) / 4, rel=0.03)
        assert found.left == pytest.approx(found.expected, abs=6 * found.error)
        # As many as were promised may collude; with more, less is left than was promised.
        assert found.kept == (colluding <= 2)
        assert f"With {colluding} colluding parties, where noise is made for 2" in str(found)
        seen = colluded(view)
        assert (seen.honest, seen.colluding, seen.promised) == (6 - colluding, colluding, 2)
        assert not seen.alone
    assert "had those of the one that is left" in str(seen)


def test_without_a_budget_there_is_no_noise_to_measure() -> None:
    federation = Federation.horizontal(dealt(sparse(30), 3))
    kept = captured(biases(SecureSum(dropout=0.0)), federation)
    with pytest.raises(
        ConfigError, match="noise that parties share is in secure sums of a run with a budget"
    ):
        noise_left(together(kept, "p0"), kept.truth)


def test_of_two_parties_each_has_the_others_answers_from_the_sum() -> None:
    federation = Federation.horizontal(dealt(sparse(30), 2))
    kept = captured(biases(SecureSum(dropout=0.0, colluding=0.0)), federation)
    found = list(rests(together(kept, "p0")))
    assert [(each.round, each.kind, each.honest) for each in found] == [
        (1, "UserSums", ("p1",)),
        (2, "ItemSums", ("p1",)),
    ]
    for each in found:
        (hidden,) = kept.whole.messages(each.kind, sender="p1", receiver=SUM)
        for name, array in each.arrays.items():
            assert array.any()
            np.testing.assert_array_equal(array, hidden.arrays[name])
    assert "had those of the one that is left" in str(colluded(together(kept, "p0")))


# Answers that are not hidden.


def test_without_hidden_sums_the_coordinator_sees_every_answer_with_or_without_noise() -> None:
    recipe = HorizontalMF(factors=2, rounds=2, home=UsersOnly(), aggregate=PlainSum())
    federation = Federation.horizontal(dealt(sparse(30), 3))
    open_ones = colluded(together(captured(recipe, federation), "p0"))
    assert open_ones.alone == {"nothing": 6}  # a mean, and two rounds, of two honest parties
    assert (open_ones.rests, open_ones.promised) == (0, None)
    assert "6 with nothing" in str(open_ones)
    noisy = colluded(together(captured(recipe, federation, budget=USER), "p0"))
    assert noisy.alone == {"noise": 6}


def test_in_a_vertical_federation_the_coordinator_sees_the_others_noisy_vectors() -> None:
    recipe = VerticalMF(factors=2, rounds=2)
    budget = Budget(epsilon=2.0, delta=1e-6, unit="rating")
    federation = Federation.vertical(dealt(sparse(30).compact(), 3, partition.vertical))
    kept = captured(recipe, federation, budget=budget)
    found = colluded(together(kept, "p0"))
    assert set(found.alone) == {"noise", "public"}
    # Parties alone see what the coordinator tells all, and no answer of another.
    assert not colluded(kept.view("party:p0", "party:p1")).alone


# Keys.


PHONES, ROUNDS = 4, 2


def phones() -> Federation:
    shape = Shape(users=40, items=30, ratings=600, minimum=12, busiest=0.5, activity=0.3)
    ratings = make(shape, seed=5).ratings
    parties = [Party(name=f"u{user}", ratings=ratings.select(users=[user])) for user in range(PHONES)]
    return Federation.on_device(parties, scale=ratings.scale)


@cache
def encrypted(kind: str) -> Captured:
    ways: dict[str, Any] = {
        "shared key": EncryptedSum(scheme=SharedKey(), decrypters=PHONES),
        "paillier": EncryptedSum(),
        "shares": SharedSum(decrypters=4, needed=3),
    }
    recipe = MultiViewMF(factors=2, rounds=ROUNDS, unrated=ObsOnly(), penalty=1.0, aggregate=ways[kind])
    return captured(recipe, phones())


def holders(kept: Captured) -> list[str]:
    return list(kept.whole.keys)


def assert_opened(kept: Captured, view: View) -> None:
    """Every upload was opened, and is what its party sent, bit for bit."""
    found = opened_uploads(view)
    assert len(found) == ROUNDS * PHONES
    for each in found:
        (sent,) = kept.whole.messages(each.kind, round=each.round, sender=each.sender, receiver=SUM)
        assert sent.arrays["gradients"].any()
        for name, array in each.arrays.items():
            np.testing.assert_array_equal(array, sent.arrays[name])


def test_one_holder_of_a_shared_key_opens_every_upload() -> None:
    kept = encrypted("shared key")
    (one, *_) = holders(kept)
    assert_opened(kept, together(kept, one))
    found = colluded(together(kept, one))
    assert (found.keys, found.quorum, found.opened) == (1, 1, ROUNDS * (PHONES - 1))
    assert "opened 6 uploads" in str(found)
    assert colluded(together(kept)).opened == 0


def test_what_a_shared_key_opens_gives_ratings_away() -> None:
    kept = encrypted("shared key")
    (one, *_) = holders(kept)
    guesses = {each.sender: each for each in reconstruct(with_opened(together(kept, one)))}
    assert len(guesses) == PHONES
    for name, guess in guesses.items():
        own = kept.truth.ratings[name]
        np.testing.assert_array_equal(guess.ratings[own.items], own.values, err_msg=name)


@pytest.mark.parametrize(("kind", "quorum"), [("paillier", 2), ("shares", 3)])
def test_a_quorum_of_keys_opens_every_upload_and_fewer_open_none(kind: str, quorum: int) -> None:
    kept = encrypted(kind)
    assert quorum_of(kept.whole) == quorum
    few, enough = (together(kept, *holders(kept)[:count]) for count in (quorum - 1, quorum))
    with pytest.raises(TooFew):
        opened_uploads(few)
    found = colluded(few)
    assert (found.keys, found.quorum, found.opened) == (quorum - 1, quorum, 0)
    assert f"their {quorum - 1} keys, where {quorum} open a sum, opened nothing else" in str(found)
    assert_opened(kept, enough)


def test_fewer_shares_than_a_quorum_are_chance_whatever_one_makes_of_them() -> None:
    kept = encrypted("shares")
    view = together(kept, *holders(kept)[:2])
    guessed, sent = [], []
    for each in opened_uploads(view, fewer=True):
        (true,) = kept.whole.messages(each.kind, round=each.round, sender=each.sender, receiver=SUM)
        guessed.append(each.arrays["gradients"].ravel().astype(np.float64))
        sent.append(true.arrays["gradients"].ravel().astype(np.float64))
    numbers, true_numbers = np.concatenate(guessed), np.concatenate(sent)
    # Uniform below 2^61 - 1, half of them negative, and not related to what was sent.
    size = 6 / np.sqrt(numbers.size)
    assert np.mean(np.abs(numbers)) / 2**60 == pytest.approx(0.5, abs=size)
    assert abs(np.corrcoef(np.sign(numbers), true_numbers)[0, 1]) < size
    zeros = true_numbers == 0
    assert np.mean(np.abs(numbers[zeros])) / 2**60 == pytest.approx(0.5, abs=6 / np.sqrt(zeros.sum()))


def test_it_says_who_holds_no_keys() -> None:
    with pytest.raises(ConfigError, match="coordinator hold no keys of sums"):
        opened_uploads(together(encrypted("paillier")))
    assert quorum_of(captured(biases(SecureSum()), Federation.horizontal(dealt(sparse(30), 3))).whole) is None


# Decoys.

SEEN = range(16, 28)
"""A dozen rounds, when vectors have grown: gradients of decoys are rounded to nothing in the first ones."""


def among_others(ratings: Ratings, count: int) -> Federation:
    """Return a federation in which some users are parties of their own, and all others one together."""
    order = np.random.default_rng(0).permutation(ratings.user_count)
    parties = [Party(name=f"u{user}", ratings=ratings.select(users=[user])) for user in order[:count]]
    others = Party(name="others", ratings=ratings.select(users=np.sort(order[count:])))
    return Federation.horizontal([*parties, others], scale=ratings.scale)


@cache
def crowd() -> Federation:
    shape = Shape(users=100, items=150, ratings=2500, minimum=15, activity=0.3)
    return among_others(make(shape, seed=5).ratings, 8)


def decoys(kind: type[MultiViewMF], aggregate: Any, federation: Federation) -> Captured:
    roles = ["coordinator", *(f"party:{party.name}" for party in federation.parties)]
    recipe = kind(factors=3, rounds=max(SEEN), aggregate=aggregate)
    run = train(recipe, federation, capture=Capture(roles, rounds=SEEN))
    assert run.captured is not None
    return run.captured


def of_single_users(view: View) -> tuple[Shown, ...]:
    return tuple(each for each in shown_items(view) if each.sender != "others")


def test_fresh_decoys_give_the_rated_items_away_after_a_dozen_rounds() -> None:
    kept = decoys(FreshDecoys, PlainSum(), crowd())
    found = rated_sets(of_single_users(together(kept)), kept.truth)
    assert [each.rounds for each in found] == list(range(1, 13))
    assert found[0].precision == pytest.approx(0.5, abs=0.05)  # a decoy for each rating
    assert found[-1].precision > 0.999
    assert found[-1].recall > 0.98
    assert all(after.precision >= before.precision for before, after in pairwise(found))
    assert "After 12 rounds 100.0%" in str(found[-1])


def test_decoys_that_stay_hide_as_much_after_a_dozen_rounds() -> None:
    kept = decoys(MultiViewMF, PlainSum(), crowd())
    found = rated_sets(of_single_users(together(kept)), kept.truth)
    assert found[-1].precision == pytest.approx(0.5, abs=0.05)
    assert found[-1].recall > 0.98


def test_keys_that_open_uploads_show_rated_items_too_and_sums_do_not() -> None:
    kept = decoys(FreshDecoys, SharedSum(needed=2), crowd())
    with pytest.raises(ConfigError, match="saw no single uploads of MultiViewMF, only sums"):
        shown_items(together(kept))
    opened = with_opened(together(kept, *holders(kept)[:2]))
    assert rated_sets(of_single_users(opened), kept.truth)[-1].precision > 0.999


# Real data.


@pytest.mark.slow
def test_rated_items_of_movielens_show_among_fresh_decoys_after_a_dozen_rounds(real_data: Find) -> None:
    ratings = read_ratings(real_data("ml-100k.inter"))
    federation = among_others(ratings, 40)
    for kind, least, most in ((FreshDecoys, 0.99, 1.0), (MultiViewMF, 0.45, 0.55)):
        kept = decoys(kind, PlainSum(), federation)
        last = rated_sets(of_single_users(together(kept)), kept.truth)[-1]
        assert least <= last.precision <= most
        assert last.recall > 0.99
