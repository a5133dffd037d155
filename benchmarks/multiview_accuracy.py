"""MultiViewMF on MovieLens 1M, with and without a budget, beside what sends nothing and what we recommend.

    python -m benchmarks.multiview_accuracy FOLDER

FOLDER holds ml-1m.zip. A fifth of each user's ratings is held back; one split, one draw of noise and decoys,
which cannot be repeated: third decimals differ from run to run.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import cofactor as cf
from cofactor.data.codes import Groups, Region
from cofactor.factors.model import Factors

BUDGET = cf.Budget(epsilon=4, delta=1e-6, unit="user")
CODING = cf.Coding.stated({"age": Groups((18, 25, 35, 45, 50, 56)), "gender": ("F", "M"), "zip": Region()})
RECIPES = {
    "MultiViewMF(unrated=ObsOnly())": cf.MultiViewMF(unrated=cf.ObsOnly()),
    "MultiViewMF()": cf.MultiViewMF(),
    "MultiViewMF(unrated=InclUnc())": cf.MultiViewMF(unrated=cf.InclUnc()),
}


def main() -> None:
    (folder,) = sys.argv[1:]
    file = Path(folder) / "ml-1m.zip"
    learn, test = cf.split.by_fraction(cf.read_ratings(file), test=0.2, seed=7)
    print(f"{'':48s}  rmse   precision@10  ndcg over the user's own test items")
    for words, model in models(file, learn):
        found = cf.measure(model, learn, test).as_dict()
        rmse = f"{found['rmse']:.3f}" if "rmse" in found else "     "
        lists = f"{found['precision']:.3f}         {found['ndcg_over_tested']:.3f}"
        print(f"{words:48s}  {rmse}  {lists}", flush=True)


def models(file: Path, learn: cf.Ratings) -> Iterator[tuple[str, Factors]]:
    """Fit all that is compared."""
    phones = cf.Federation.on_device(learn, scale=cf.Scale(1, 5))
    phones = phones.with_user_attributes(cf.UserAttributes.from_file(file, coding=CODING))
    phones = phones.with_public_items(cf.PublicItems.coded(cf.read_items(file)))
    yield "user's own mean", cf.UserMean().fit(learn)
    yield "popularity", cf.Popularity().fit(learn)
    for words, recipe in RECIPES.items():
        yield words, cf.train(recipe, phones, seed=7).homes["devices"]
    for words, private in (*RECIPES.items(), ("SecureALS()", cf.SecureALS())):
        run = cf.train(private, phones, budget=BUDGET, seed=7)
        yield f"{words}, epsilon {BUDGET.epsilon:g}", run.homes["devices"]


if __name__ == "__main__":
    main()
