from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from cofactor.papers.dpmf_rp_findings import Panel
from cofactor.papers.results import Row
from cofactor.papers.thesis22_claims import FAILS, HOLDS, OPEN, Claim, compared, told
from cofactor.papers.thesis22_data import BETA, FARES, INCOME
from cofactor.papers.thesis22_figures import EPSILONS, FINEST, OWN, SHAPES, epsilon_column, panel_of
from cofactor.papers.thesis22_findings import (
    BARS,
    findings2,
    findings3,
    findings4,
    findings5,
    findings6,
    findings7,
    findings_table,
)
from cofactor.papers.thesis22_methods import (
    ADMM,
    BINNED,
    EM,
    EMS,
    FEW_BINS,
    HAAR,
    HH,
    KS,
    MANY_BINS,
    MEAN,
    NARROW,
    PIECEWISE,
    QUANTILES,
    ROUNDING,
    SOME_BINS,
    WASSERSTEIN,
)
from cofactor.papers.thesis22_rows import Repeated


def row(
    line: str, ours: float, error: float | None = 0.01, column: str = "epsilon 1", panel: str = "p"
) -> Repeated:
    low, high, repeats = (None, None, 1) if error is None else (ours - error, ours + error, 20)
    return Repeated(line=line, panel=panel, column=column, ours=ours, low=low, high=high, repeats=repeats)


def panel(values: Mapping[str, Sequence[float]], error: float | None = 0.01, name: str = "p") -> Panel:
    """Rows of lines, one number for each epsilon."""
    return Panel(
        name,
        [
            row(line, value, error, epsilon_column(epsilon), name)
            for line, own in values.items()
            for epsilon, value in zip(EPSILONS, own, strict=False)
        ],
    )


def sentence(found: Sequence[str], *words: str) -> str:
    """The only finding with all of these words."""
    (own,) = [one for one in found if all(word in one for word in words)]
    return own


def test_errors_differ_only_beyond_what_chance_does() -> None:
    # Standard errors of 0.3 and 0.4 are 0.5 together; Student's limit with 19 degrees of freedom is 3.447.
    assert compared(row("a", 1.0, 0.3), row("b", 2.72, 0.4)) == OPEN
    assert compared(row("a", 1.0, 0.3), row("b", 2.73, 0.4)) == HOLDS
    assert compared(row("a", 2.73, 0.3), row("b", 1.0, 0.4)) == FAILS


def test_few_repeats_must_differ_by_more() -> None:
    # With one degree of freedom the limit is 235.8.
    first, second = (replace(row("a", ours), repeats=2) for ours in (1.0, 4.3))
    assert compared(first, second) == OPEN
    assert compared(first, replace(second, ours=4.4)) == HOLDS


def test_a_factor_widens_the_noise_too() -> None:
    assert compared(row("a", 1.0, 0.1), row("b", 13.5, 0.0), times=10) == HOLDS
    assert compared(row("a", 1.0, 0.1), row("b", 13.4, 0.0), times=10) == OPEN


@pytest.mark.parametrize("no_higher", [False, True])
def test_a_single_repeat_settles_nothing(no_higher: bool) -> None:
    claim = Claim(says="a is lower", lines=("a",), than=("b",), no_higher=no_higher)
    (found,) = claim.found(panel({"a": [1.0], "b": [100.0]}, error=None))
    assert found == "p: the thesis says that a is lower. Not settled: 0 of 1 points; within the noise at 1."


def test_one_contrary_point_is_enough_against_what_is_said_of_all_cases_and_is_named() -> None:
    shown = panel({"a": [1.0, 1.0, 3.0], "b": [2.0, 2.0, 2.0]})
    always, mostly = (Claim(says="so", lines=("a",), than=("b",), most=most) for most in (False, True))
    contrary = "2 of 3 points; the contrary at 1, most at epsilon 1.5 (a 3.00000; b 2.00000)."
    assert always.found(shown) == [f"p: the thesis says that so. Not confirmed: {contrary}"]
    assert mostly.found(shown) == [f"p: the thesis says that so. Confirmed: {contrary}"]


def test_what_is_seen_at_half_of_the_points_or_fewer_is_not_settled() -> None:
    shown = panel({"a": [1.0, 2.0], "b": [2.0, 2.0]})
    claim = Claim(says="so", lines=("a",), than=("b",))
    assert "Not settled: 1 of 2 points; within the noise at 1" in claim.found(shown)[0]


def test_all_lines_must_be_lower_than_all_others_unless_the_best_will_do() -> None:
    shown = panel({"a": [1.0], "b": [3.0], "c": [2.0], "d": [4.0]})
    worst = Claim(says="so", lines=("a", "b"), than=("c", "d"))
    best = Claim(says="so", lines=("a", "b"), than=("c", "d"), best=True)
    assert [point.outcome for point in worst.points(shown)] == [FAILS]
    assert [point.outcome for point in best.points(shown)] == [HOLDS]


def test_lines_that_are_not_higher_within_the_noise_are_enough_where_that_is_said() -> None:
    shown = panel({"a": [2.0, 2.1], "b": [2.0, 2.0]})
    claim = Claim(says="so", lines=("a",), than=("b",), no_higher=True)
    assert [point.outcome for point in claim.points(shown)] == [HOLDS, FAILS]


def test_nothing_is_said_of_lines_that_were_not_measured() -> None:
    assert Claim(says="so", lines=("a",), than=("z",)).found(panel({"a": [1.0]})) == []


def test_words_say_which_column_where_the_line_is_the_same() -> None:
    claim = Claim(says="so", lines=("a",), than=("b",))
    (point,) = claim.points(panel({"a": [3.0], "b": [2.0]}))
    assert str(point) == "epsilon 0.5 (a 3.00000; b 2.00000)"
    assert "Not confirmed: 0 of 1 points; the contrary at 1" in told("p", "so", [point])


SMOOTH_ERRORS = {
    EMS: [1.0] * 5,
    EM: [2.0] * 5,
    ADMM: [3.0] * 5,
    FEW_BINS: [4.0, 4.0, 4.0, 4.0, 6.0],
    SOME_BINS: [5.0] * 5,
    MANY_BINS: [6.0] * 5,
}


def test_figure_2_confirms_the_order_of_the_thesis_where_it_is_that() -> None:
    shown = panel(SMOOTH_ERRORS, name=panel_of(BETA, WASSERSTEIN))
    found = findings2(shown.rows)
    for words in (
        "EMS performs best",
        "EMS is better than HH-ADMM",
        "EM follows",
        "HH-ADMM comes before",
        "best number of bins",
    ):
        assert "Confirmed: 5 of 5 points." in sentence(found, words)
    assert "Confirmed: 1 of 1 points." in sentence(found, "fewer bins are better")
    assert "Confirmed: 1 of 1 points." in sentence(found, "more bins become better")


def test_figure_2_finds_binning_before_the_tree() -> None:
    swapped = SMOOTH_ERRORS | {ADMM: [4.5] * 5, FEW_BINS: [3.5] * 5}
    found = findings2(panel(swapped, name=panel_of(BETA, WASSERSTEIN)).rows)
    assert "Not confirmed: 0 of 5 points; the contrary at 5" in sentence(found, "HH-ADMM comes before")
    assert "Not confirmed: 0 of 1 points" in sentence(found, "more bins become better")


def test_figure_2_tells_whether_trees_are_better_on_spiky_data() -> None:
    shown = panel(SMOOTH_ERRORS | {ADMM: [0.5] * 5}, name=panel_of(INCOME, KS))
    contrary = panel(SMOOTH_ERRORS, name=panel_of(FARES, KS))
    for other in ("EM on", "EMS on"):
        assert "Confirmed: 5 of 5" in sentence(findings2(shown.rows), f"HH-ADMM performs better than {other}")
        assert "Not confirmed" in sentence(findings2(contrary.rows), f"HH-ADMM performs better than {other}")


def test_our_own_bars_are_met_or_missed_by_the_figures_own_numbers() -> None:
    name = panel_of(BETA, WASSERSTEIN)
    met = panel({EMS: list(BARS.values())}, error=0.001, name=name)
    assert sentence(findings2(met.rows), "we demand").endswith("0.0023 at epsilon 2.5. Met.")
    missed = panel({EMS: [0.0125, 0.0061, 0.004, 0.0027, 0.0023]}, error=0.001, name=name)
    assert sentence(findings2(missed.rows), "we demand").endswith("Not met at epsilon 1.")


def test_range_queries_are_held_against_hierarchies() -> None:
    shown = panel(SMOOTH_ERRORS | {HH: [7.0] * 5, HAAR: [0.5] * 5}, name=panel_of(BETA, NARROW))
    found = findings3(shown.rows)
    assert "Not confirmed" in sentence(found, "EMS outperforms HH and HaarHRR")
    assert "HaarHRR 0.50000" in sentence(found, "EMS outperforms HH and HaarHRR")
    assert "Not confirmed" in sentence(found, "significantly better than HH and HaarHRR")


def test_means_are_compared_at_the_smallest_and_the_largest_epsilon() -> None:
    means = {EMS: [1.0] * 5, ROUNDING: [1.0, 2.0, 3.0, 4.0, 5.0], PIECEWISE: [2.0] * 5}
    found = findings4(panel(means, name=panel_of(BETA, MEAN)).rows)
    assert "Confirmed: 1 of 1" in sentence(found, "SR is better than PM")
    assert "Confirmed: 1 of 1" in sentence(found, "PM is better than SR")
    assert "Confirmed: 5 of 5" in sentence(found, "comparable to the better of SR and PM")


def test_orders_of_magnitude_are_ten_times() -> None:
    for large, verdict in ((31.0, "Confirmed"), (29.0, "Not confirmed")):
        shown = panel(SMOOTH_ERRORS | {FEW_BINS: [large] * 5}, name=panel_of(INCOME, QUANTILES))
        assert verdict in sentence(findings4(shown.rows), "orders of magnitude")


def test_waves_are_compared_at_every_b_and_neighbouring_ratios_with_each_other() -> None:
    falling = {line: [1.0 + number] * 3 for number, line in enumerate(SHAPES)}
    found = findings5(panel(falling, name="beta: Wasserstein distance").rows)
    assert "Confirmed: 3 of 3 points." in sentence(found, "the square wave has the lowest errors")
    assert "Confirmed: 3 of 3 points." in sentence(found, "better than the triangle")
    assert "Confirmed: 15 of 15 points." in sentence(found, "as the ratio falls")
    rising = {line: [9.0 - number] * 3 for number, line in enumerate(SHAPES)}
    found = findings5(panel(rising, name="beta: Wasserstein distance").rows)
    assert all("Not confirmed" in one for one in found)


@pytest.mark.parametrize(
    ("settled", "verdict"), [(1.0, "Confirmed"), (1.2, "Not confirmed"), (1.1, "Not settled")]
)
def test_the_b_that_epsilon_settles_may_be_a_tenth_worse_than_the_best(settled: float, verdict: str) -> None:
    rows = [
        row("beta", value, 0.01, column, "epsilon 1")
        for column, value in (("0.1", 2.0), ("0.25", 1.0), ("*0.256", settled), ("0.38", 3.0))
    ]
    (found,) = findings6(rows)
    assert f"{verdict}: " in found
    if verdict == "Not confirmed":
        assert "beta (*0.256 1.20000; 0.25 1.00000)" in found


def test_the_b_that_epsilon_settles_is_compared_with_the_others_not_with_itself() -> None:
    rows = [row("beta", 1.0, 0.05, "0.25", "epsilon 1"), row("beta", 0.7, 0.05, "*0.256", "epsilon 1")]
    (found,) = findings6(rows)
    assert "Confirmed: 1 of 1" in found
    assert found.endswith("It has 0.70 to 0.70 times the error of the best other.")


def test_the_best_number_of_buckets_is_told_by_either_yardstick() -> None:
    values = {"256 buckets": [1.0] * 5, "512 buckets": [2.0] * 5, "1,024 buckets": [3.0] * 5}
    for measure in (OWN, FINEST):
        assert "Confirmed" in sentence(findings7(panel(values, name=panel_of(BETA, measure)).rows), "256")
        other = findings7(panel(values, name=panel_of(FARES, measure)).rows)
        assert "Not confirmed" in sentence(other, "1,024 buckets are best")


def test_a_table_that_differs_from_the_thesis_is_told() -> None:
    same = Row(line="a", panel="p", column="b", ours=1.0, paper=1.0)
    other = Row(line="a", panel="p", column="c", ours=None, paper=1.0)
    assert findings_table([same])[0].endswith("all 1 places as in the thesis.")
    assert findings_table([same, other])[0].endswith("not: a, c.")


def test_every_line_that_is_spoken_of_is_a_method() -> None:
    assert len({EMS, EM, ADMM, *BINNED, HH, HAAR, ROUNDING, PIECEWISE}) == 10
