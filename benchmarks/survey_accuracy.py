"""How far surveys are off: with and without smoothing, by how many are asked, and before a training.

    python -m benchmarks.survey_accuracy [RATINGS ...]

Numbers are drawn from Beta(5, 2), or from two peaks, of which one is narrow. Errors are in hundredths of the
range, and each is the mean of twenty surveys; beside them stands what one knows who asks nobody, and guesses
an even spread. Of files of ratings, what five surveys say of the cap and of
the mean stands beside what is true, which nobody would know; and the test MSE of OnDeviceMF, three splits,
whose cap and centre are its own choice, or come from two surveys, of an eighth of the budget each, beside
that of users who send nothing and predict their own mean.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cofactor.data.files import read_ratings
from cofactor.data.ratings import Ratings
from cofactor.errors import Refused
from cofactor.evaluate.compare import compare
from cofactor.evaluate.rating_errors import Errors
from cofactor.federation.federation import Federation
from cofactor.federation.run import Run
from cofactor.privacy.budget import Budget
from cofactor.randomness import Seeds
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.train import train
from cofactor.survey.asking import ask
from cofactor.survey.before_training import choose_cap, rating_histogram
from cofactor.survey.method import Floats, simulated
from cofactor.survey.metrics import wasserstein
from cofactor.survey.people import People
from cofactor.survey.question import Question
from cofactor.survey.waves import SquareWave

BUCKETS = (16, 32, 64, 128, 256, 512, 1024)
PEOPLE = (1_000, 10_000, 100_000)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
CROWDS = (100, 1_000, 10_000, 100_000)
BEFORE = (0.2, 0.5, 1.0, 4.0)
REPEATS, SURVEYS = 20, 5
"""Surveys that a cell is the mean of; and those before a training, which are listed."""
BUDGETS, SPLITS, PART = (1.0, 4.0), 3, 0.125
"""Epsilons of trainings, how many splits, and which part of the budget each survey has."""

Drawn = Callable[[np.random.Generator, int], Floats]


def main() -> None:
    for name, drawn in DATA.items():
        smoothing(name, drawn)
    for name, drawn in DATA.items():
        enough(name, drawn)
    for path in sys.argv[1:]:
        before_training(Path(path))
        worth(Path(path))


def beta(chance: np.random.Generator, people: int) -> Floats:
    return chance.beta(5, 2, people)


def two_peaks(chance: np.random.Generator, people: int) -> Floats:
    """Return seven of ten about 0.28, and three about 0.55 and close together."""
    low, high = chance.normal(0.28, 0.07, people), chance.normal(0.55, 0.02, people)
    return np.clip(np.where(chance.random(people) < 0.7, low, high), 0.0, 1.0)


DATA: dict[str, Drawn] = {"Beta(5, 2)": beta, "two peaks": two_peaks}


def smoothing(name: str, drawn: Drawn) -> None:
    """Print the Wasserstein distance of EMS and of EM, whole numbers in so many buckets."""
    heading(f"{name}, epsilon 1, Wasserstein distance: with smoothing / without", _counts(PEOPLE), "buckets")
    for buckets in BUCKETS:
        cells = [[_distance(drawn, people, buckets, smooth) for smooth in (True, False)] for people in PEOPLE]
        row(f"{buckets:,}", [f"{with_it:.2f} / {without:.2f}" for with_it, without in cells])
    values = drawn(Seeds(0).generator("numbers"), CROWDS[-1])
    truth = np.histogram(values, BUCKETS[-1], (0.0, 1.0))[0] / len(values)
    even = 100 * wasserstein(truth, np.full(BUCKETS[-1], 1 / BUCKETS[-1]))
    row("nobody asked", [f"{even:.2f}"] * len(PEOPLE))


def _distance(drawn: Drawn, people: int, buckets: int, smooth: bool) -> float:
    method = SquareWave(epsilon=1.0, buckets=buckets, discrete=True, smoothing=smooth)
    found = []
    for repeat in range(REPEATS):
        values = drawn(Seeds(repeat).generator("numbers"), people)
        truth = np.histogram(values, buckets, (0.0, 1.0))[0] / people
        found.append(wasserstein(truth, simulated(method, values)))
    return 100 * float(np.mean(found))


def enough(name: str, drawn: Drawn) -> None:
    """Print how far median, upper quartile and mean are off, by how many are asked and at which epsilon."""
    question = Question(name="number", low=0, high=1)
    heading(f"{name}, error of median / quartile / mean", _counts(CROWDS), "epsilon")
    for epsilon in EPSILONS:
        cells = [_errors(question, drawn, people, epsilon) for people in CROWDS]
        row(f"{epsilon:g}", [" / ".join(f"{error:.2g}" for error in errors) for errors in cells])
    values = drawn(Seeds(0).generator("numbers"), CROWDS[-1])
    even = 100 * np.abs(np.array([0.5, 0.75, 0.5]) - [*np.quantile(values, (0.5, 0.75)), values.mean()])
    row("nobody asked", [" / ".join(f"{error:.2g}" for error in even)] * len(CROWDS))


def _errors(question: Question, drawn: Drawn, people: int, epsilon: float) -> Floats:
    found = []
    for repeat in range(REPEATS):
        values = drawn(Seeds(repeat).generator("numbers"), people)
        told = ask(People(values=values), question, epsilon=epsilon).distribution
        assert told is not None
        estimate = np.array([told.quantile(0.5), told.quantile(0.75), told.mean])
        found.append(np.abs(estimate - [*np.quantile(values, (0.5, 0.75)), values.mean()]))
    return np.asarray(100 * np.mean(found, axis=0))


def before_training(path: Path) -> None:
    """Print what surveys would choose, and what is true."""
    ratings = read_ratings(path)
    assert ratings.scale is not None
    phones = Federation.on_device(ratings, scale=ratings.scale)
    sizes = np.diff(ratings.by_user.ptr)
    cap, mean = np.quantile(sizes, 0.75), _mean_of_means(ratings, sizes)
    heading(
        f"{path.name}, {ratings.user_count:,} users: three of four have at most {cap:.0f} ratings; mean of "
        f"the users' means {mean:.2f}",
        ["cap", "mean"],
        "epsilon",
    )
    for epsilon in BEFORE:
        caps = sorted(choose_cap(phones, epsilon).most_ratings for _ in range(SURVEYS))
        means = sorted(rating_histogram(phones, epsilon).mean for _ in range(SURVEYS))
        row(f"{epsilon:g}", [", ".join(map(str, caps)), ", ".join(f"{each:.2f}" for each in means)])


def _mean_of_means(ratings: Ratings, sizes: Floats) -> float:
    own = np.bincount(ratings.by_user.members(), ratings.by_user.values, len(sizes))
    return float(np.mean(own[sizes > 0] / sizes[sizes > 0]))


def worth(path: Path) -> None:
    """Print how well devices predict, with settings from surveys and with those the recipe chooses itself."""
    ratings = read_ratings(path)
    assert ratings.scale is not None
    phones = Federation.on_device(ratings, scale=ratings.scale)
    heading(f"{path.name}, test MSE by split", ["own mean", "no surveys", "two surveys"], "epsilon")
    for epsilon in BUDGETS:
        budget = Budget(epsilon=epsilon, delta=1e-6, unit="user")
        cells: list[list[str]] = [[], [], []]
        for seed in range(SPLITS):
            learn, test = phones.split(0.1, seed=seed)
            cells[0].append(f"{_own_mean(learn.parties[0].ratings, test.parties[0].ratings):.3f}")
            plain = train(OnDeviceMF(), learn, budget=budget, seed=seed)
            cells[1].append(f"{_error(plain, learn, test):.3f}")
            cells[2].append(_surveyed(learn, test, budget, seed))
        row(f"{epsilon:g}", [", ".join(cell) for cell in cells])


def _surveyed(learn: Federation, test: Federation, budget: Budget, seed: int) -> str:
    try:
        cap = choose_cap(learn, PART * budget.epsilon, budget=budget)
        mean = rating_histogram(learn, PART * budget.epsilon, budget=budget)
    except Refused:
        return "refused"
    recipe = OnDeviceMF(most_ratings=cap.most_ratings, centre=mean.mean)
    asked = train(recipe, learn, budget=budget, seed=seed, surveys=[cap.survey, mean])
    return f"{_error(asked, learn, test):.3f}"


def _own_mean(learn: Ratings, test: Ratings) -> float:
    """Return the MSE of users who predict their own mean: nothing is sent."""
    sizes = np.diff(learn.by_user.ptr)
    own = np.bincount(learn.by_user.members(), learn.by_user.values, len(sizes)) / np.maximum(sizes, 1)
    return float(np.mean((test.by_user.values - own[test.by_user.members()]) ** 2))


def _error(run: Run, learn: Federation, test: Federation) -> float:
    found = compare(run, learn, test).scores["private"]
    assert isinstance(found, Errors)
    return float(found.mse.value)


def _counts(people: tuple[int, ...]) -> list[str]:
    return [f"{each:,} people" for each in people]


def heading(title: str, columns: list[str], first: str) -> None:
    print(f"\n{title}\n\n| {first} | {' | '.join(columns)} |\n|---:|{'---|' * len(columns)}", flush=True)


def row(name: str, cells: list[str]) -> None:
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
