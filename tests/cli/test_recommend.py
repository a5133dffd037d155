"""How recommendations are printed: in order of what, and beside which rating."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make
from cofactor.factors.baselines import Popularity, UserItemBias
from cofactor.factors.choosing import Choice
from cofactor.factors.model import Factors
from cofactor.federation.run import DataFacts, Run
from tests.conftest import Command


@pytest.fixture
def ratings() -> Ratings:
    return make(Shape(users=30, items=25, ratings=300, minimum=5), seed=2).ratings


def saved(model: Factors, ratings: Ratings, folder: Path) -> Path:
    Run(model=model, recipe={}, seed=0, data=DataFacts.of(ratings), created="today", seconds=0.0).save(folder)
    return folder


def choosing(model: Factors, ratings: Ratings) -> Factors:
    kinds = np.random.default_rng(0).normal(size=(ratings.item_count, 2))
    return replace(model, choice=Choice.from_counts(ratings.by_item.sizes, 0.5, kinds))


def header(out: str) -> list[str]:
    return next(line.split() for line in out.splitlines() if "title" in line.split())


def test_chosen_items_are_printed_with_score_and_rating_and_told_how(
    ratings: Ratings, tmp_path: Path, cofactor: Command
) -> None:
    model = choosing(UserItemBias().fit(ratings), ratings)
    run = saved(model, ratings, tmp_path / "run")
    user = ratings.user_ids[0].item()
    done = cofactor("recommend", run, "--user", user, "-n", 3)
    assert done.code == 0, done.err
    assert header(done.out) == ["item", "title", "score", "rating"]
    assert "In order of the score" in done.out
    [one] = cofactor("recommend", run, "--user", user, "-n", 3, "--json").json["recommendations"]
    wanted = [vars(best) for best in model.recommend(user, 3)]
    assert one["items"] == wanted
    assert all(best["rating"] != best["score"] for best in wanted)


def test_new_user_is_told_how_items_were_chosen_for_her(
    ratings: Ratings, tmp_path: Path, cofactor: Command
) -> None:
    run = saved(choosing(UserItemBias().fit(ratings), ratings), ratings, tmp_path / "run")
    done = cofactor("recommend", run, "--rate", f"{ratings.item_ids[3]}=4", "-n", 3)
    assert done.code == 0, done.err
    assert header(done.out) == ["item", "title", "score", "rating"]
    assert "In order of the score" in done.out


@pytest.mark.parametrize(("baseline", "column"), [(UserItemBias(), "rating"), (Popularity(), "score")])
def test_one_number_is_printed_where_there_is_but_one(
    baseline: UserItemBias | Popularity, column: str, ratings: Ratings, tmp_path: Path, cofactor: Command
) -> None:
    run = saved(baseline.fit(ratings), ratings, tmp_path / "run")
    done = cofactor("recommend", run, "--user", ratings.user_ids[0].item())
    assert done.code == 0, done.err
    assert header(done.out) == ["item", "title", column]
    assert "In order of the score" not in done.out


def test_nothing_is_explained_where_nothing_is_left(
    ratings: Ratings, tmp_path: Path, cofactor: Command
) -> None:
    one = Ratings.from_rows([0, 0], [0, 1], [3, 4], user_ids=np.arange(1), item_ids=np.arange(2))
    run = saved(choosing(Popularity().fit(one), one), one, tmp_path / "run")
    done = cofactor("recommend", run, "--user", 0)
    assert "every item has been rated already" in done.out
    assert "In order of the score" not in done.out
