"""What attacks find on real ratings: python -m benchmarks.attack_figures FOLDER, with FOLDER/ml-100k.inter.

Membership from the published model and from rounds, differencing against HDPMF's noise, the combination of
both rounds of published two-round noise, decoys that are drawn anew, and what one dishonest user can move.
Reconstruction is `cofactor reproduce privmvmf table3`; canaries are `benchmarks.audit_table`.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import cofactor as cf
from cofactor.attacks.collusion_decoys import FreshDecoys, rated_sets, shown_items
from cofactor.attacks.differencing import differenced, scored
from cofactor.attacks.differencing_two_rounds import measured, published
from cofactor.attacks.differencing_uploads import PublishedUploads
from cofactor.attacks.membership import membership
from cofactor.attacks.membership_figures import told_apart
from cofactor.attacks.poisoning import Poisoner, poisoned
from cofactor.federation.view import Captured
from cofactor.privacy.evidence import mu_of
from cofactor.privacy.two_rounds import TwoRounds
from cofactor.randomness import SecureRandom

ONE = cf.Budget(epsilon=1.0, delta=1e-6, unit="user")
EIGHT = replace(ONE, epsilon=8.0)
EPOCHS = (1, 4, 12, 26, 62, 101)
SEED = 1


def dealt(ratings: cf.Ratings, parties: int) -> cf.Federation:
    parts = cf.partition.horizontal(ratings, parties, seed=SEED)
    return cf.Federation.horizontal([cf.Party(name=f"p{at}", ratings=part) for at, part in enumerate(parts)])


def single(ratings: cf.Ratings, count: int, *, weighed: bool = False) -> cf.Federation:
    """Return some users as parties of their own, and all others together as one."""
    order = np.random.default_rng(0).permutation(ratings.user_count)
    parties = [cf.Party(name=f"u{user}", ratings=ratings.select(users=[user])) for user in order[:count]]
    parties.append(cf.Party(name="others", ratings=ratings.select(users=np.sort(order[count:]))))
    found = cf.Federation.horizontal(parties, scale=ratings.scale)
    if not weighed:
        return found
    users, items = cf.Weights.drawn(cf.HDPMF_USERS, seed=0), cf.Weights.drawn(cf.HDPMF_ITEMS, seed=1)
    return found.with_weights(users, items)


def captured(run: cf.Run) -> Captured:
    assert run.captured is not None
    return run.captured


def members(ratings: cf.Ratings) -> None:
    chosen = np.random.default_rng(0).random(ratings.user_count) < 0.5
    learn = ratings.select(users=chosen)
    print("\nMembership from the published model, half of all users in: AUC (95% interval)")
    for name, recipe in {
        "SecureALS": cf.SecureALS(home=cf.UsersOnly()),
        "HorizontalMF": cf.HorizontalMF(home=cf.UsersOnly()),
    }.items():
        for budget in (None, ONE):
            model = cf.train(recipe, dealt(learn, 4), budget=budget, seed=SEED).model
            assert model is not None
            found = told_apart(membership(model, ratings), chosen)
            words = "no budget" if budget is None else f"epsilon {budget.epsilon:g}"
            print(f"  {name}, {words}: {found.auc:.2f} ({found.auc_low:.2f} to {found.auc_high:.2f})")
    model = cf.train(cf.Pooled(model=cf.ALS()), learn, seed=SEED).model
    assert model is not None
    print(f"  Pooled ALS: {told_apart(membership(model, ratings), chosen).auc:.2f}")


def differences(ratings: cf.Ratings) -> None:
    print(
        "\nDifferencing, 60 users of HDPMF's algorithm 1, 5 epochs: ratings exact, users all exact, a guess"
    )
    federation = single(ratings, 60, weighed=True)
    assert federation.weights is not None
    for noise in ("fixed", "fresh"):
        capture = cf.Capture("coordinator", rounds=EPOCHS)
        kept = captured(cf.train(PublishedUploads(noise=noise), federation, seed=SEED, capture=capture))
        found = differenced(kept.view("coordinator"), item_weights=federation.weights.items, starts=3)
        score = scored(found, kept.truth)
        print(f"  noise {noise}: {score.accuracy:.3f}, {score.exact_users:.3f}, {score.trivial:.3f}")
    kept = captured(cf.train(cf.HDPMF(), single(ratings, 60), budget=ONE, capture="coordinator"))
    score = scored(differenced(kept.view("coordinator"), starts=3), kept.truth)
    print(f"  mended, epsilon 1: {score.accuracy:.3f}, {score.exact_users:.3f}, {score.trivial:.3f}")


def two_rounds(_: cf.Ratings) -> None:
    print(
        "\nNoise that is corrected in a second round, 1,000 users of whom none drops out, epsilon 1 claimed"
    )
    sigma = 1 / mu_of(1.0, 1e-6)
    for omega in (0.01, 0.3):
        watch = published(TwoRounds(users=1000, omega=omega), sigma, 1000, SecureRandom())
        print(f"  omega {omega:g}: {measured(watch, sigma=sigma, step=1.0)}")


def decoys(ratings: cf.Ratings) -> None:
    print("\nDecoys of 60 users over 12 rounds: precision of what stays in every round")
    for name, kind in {"drawn anew": FreshDecoys, "drawn once": cf.MultiViewMF}.items():
        recipe = kind(rounds=12, aggregate=cf.PlainSum())
        kept = captured(cf.train(recipe, single(ratings, 60), seed=SEED, capture="coordinator"))
        seen = [each for each in shown_items(kept.view("coordinator")) if each.sender != "others"]
        found = rated_sets(seen, kept.truth)
        print(
            f"  {name}: "
            + ", ".join(f"{each.rounds}: {each.precision:.3f}" for each in found[::3] + found[-1:])
        )


def poison(ratings: cf.Ratings) -> None:
    print("\nOne of five parties praises an item that 27 users rated, epsilon 8: its predicted rating")
    counts = np.bincount(ratings.items, minlength=ratings.item_count)
    item = ratings.item_ids[np.argmin(np.abs(counts - 27))]
    federation = dealt(ratings, 5)
    for recipe in (cf.SecureALS(home=cf.UsersOnly()), cf.HorizontalMF(local_steps=1, home=cf.UsersOnly())):
        for name, by in {
            "one user": Poisoner(party="p0"),
            "ten users": Poisoner(party="p0", users=10),
            "a party that lies": Poisoner(party="p0", boost=float("inf")),
        }.items():
            recipe = replace(recipe, aggregate=cf.SecureSum())
            found = poisoned(recipe, federation, item=item, by=by, budget=EIGHT)
            most = found.most_of_bound or 0.0
            told = f"{found.rating_before:.2f} to {found.rating_after:.2f}, sums {most:.2f} of the bound"
            print(f"  {type(recipe).__name__}, {name}: {told}")


if __name__ == "__main__":
    data = cf.read_ratings(Path(sys.argv[1]) / "ml-100k.inter")
    for part in (members, differences, two_rounds, decoys, poison):
        part(data)
