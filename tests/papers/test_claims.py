import pytest

from cofactor.papers.claims import Claim, Line, against_baselines
from cofactor.papers.results import ANY_EPSILON, Baseline, Row

LEFT, RIGHT = Line(line="left", panel="per-user"), Line(line="right", panel="per-user")


def row(line: Line, column: str, ours: float | None, epsilon: float | None = None) -> Row:
    return Row(line=line.line, panel=line.panel, column=column, ours=ours, epsilon=epsilon)


def found(*pairs: tuple[float, float], alike: bool = False) -> str:
    rows = [
        row(line, str(at), value)
        for at, pair in enumerate(pairs)
        for line, value in zip((LEFT, RIGHT), pair, strict=True)
    ]
    return Claim(says="left is lower", lower=LEFT, than=RIGHT, alike=alike).found(rows)


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        (((0.9, 1.0), (0.8, 1.0)), "Found at all 2 points (differences -0.200 to -0.100)."),
        (((0.9, 1.0), (1.1, 1.0)), "Found at 1 of 2 points (differences -0.100 to +0.100)."),
        (((1.0, 0.9), (1.1, 1.0)), "Not found at any of 2 points (differences +0.100 to +0.100)."),
        (((0.9, 1.0),), "Found (difference -0.100)."),
        (((0.9988, 1.0),), "Not found (difference -0.001)."),
        (((0.997, 1.0),), "Found (difference -0.003)."),
    ],
)
def test_a_claim_is_found_where_the_error_is_lower_by_more_than_chance(
    pairs: tuple[tuple[float, float], ...], verdict: str
) -> None:
    assert found(*pairs) == f"per-user: the paper says that left is lower. {verdict}"


def test_no_significant_difference_is_one_below_a_hundredth() -> None:
    assert "Found at all 2 points" in found((1.009, 1.0), (0.991, 1.0), alike=True)
    assert "Found at 1 of 2 points" in found((1.011, 1.0), (0.991, 1.0), alike=True)


def test_lines_are_compared_only_where_both_have_a_number() -> None:
    rows = [row(LEFT, "a", 1.0), row(LEFT, "b", None), row(RIGHT, "b", 2.0)]
    claim = Claim(says="left is lower", lower=LEFT, than=RIGHT)
    assert claim.found(rows).endswith("Not measured here.")


def test_a_level_without_noise_is_compared_with_every_column() -> None:
    rows = [row(LEFT, "a", 1.0), row(LEFT, "b", 3.0), row(RIGHT, ANY_EPSILON, 2.0)]
    claim = Claim(says="left is lower", lower=LEFT, than=RIGHT)
    assert "Found at 1 of 2 points" in claim.found(rows)


def test_a_level_may_be_the_lower_one_of_every_column() -> None:
    rows = [row(RIGHT, "a", 1.0), row(RIGHT, "b", 3.0), row(LEFT, ANY_EPSILON, 2.0)]
    claim = Claim(says="left is lower", lower=LEFT, than=RIGHT)
    assert "Found at 1 of 2 points (differences -1.000 to +1.000)." in claim.found(rows)


def test_two_levels_are_one_point() -> None:
    rows = [row(LEFT, ANY_EPSILON, 1.0), row(RIGHT, ANY_EPSILON, 2.0)]
    assert (
        Claim(says="left is lower", lower=LEFT, than=RIGHT).found(rows).endswith("Found (difference -1.000).")
    )


@pytest.mark.parametrize(("ours", "holds"), [(1.1, True), (0.999, True), (0.997, False)])
def test_what_does_not_help_is_not_lower(ours: float, holds: bool) -> None:
    rows = [row(LEFT, "a", ours), row(RIGHT, "a", 1.0)]
    claim = Claim(says="left does not help", lower=LEFT, than=RIGHT, no_lower=True)
    assert ("Not found" not in claim.found(rows)) is holds


def test_a_claim_about_several_lines_counts_the_points_of_all() -> None:
    other = Line(line="other", panel="per-user")
    rows = [row(LEFT, "a", 1.0), row(other, "a", 3.0), row(RIGHT, "a", 2.0)]
    claim = Claim(says="both are lower", lower=LEFT, also=(other,), than=RIGHT)
    assert "Found at 1 of 2 points" in claim.found(rows)


def test_the_best_private_row_is_held_against_simple_models() -> None:
    rows = [row(LEFT, "a", 1.1, 1.0), row(LEFT, "b", 1.05, 10.0), row(RIGHT, "no noise", 0.5)]
    baselines = {"global_mean": Baseline(ours=1.2), "bias": Baseline(ours=0.8)}
    assert against_baselines(rows, baselines) == [
        "per-user: the lowest private error is 1.050 (left, b); lower than the global mean (1.200); not "
        "lower than biases (0.800)."
    ]


def test_what_costs_more_than_its_column_says_is_not_taken_for_private() -> None:
    local = Row(line="local", panel="per-user", column="a", ours=0.7, epsilon=9.0, epsilon_label=1.0)
    sentences = against_baselines([row(LEFT, "a", 1.1, 1.0), local], {"bias": Baseline(ours=0.8)})
    assert sentences == [
        "per-user: the lowest private error is 1.100 (left, a); not lower than biases (0.800)."
    ]


def test_what_parties_keep_at_home_is_not_taken_for_private() -> None:
    kept = Row(line="home", panel="per-user", column="a", ours=0.7, epsilon=1.0, at_home=True)
    sentences = against_baselines([row(LEFT, "a", 1.1, 1.0), kept], {"bias": Baseline(ours=0.8)})
    assert sentences == [
        "per-user: the lowest private error is 1.100 (left, a); not lower than biases (0.800)."
    ]


def test_a_panel_without_private_rows_is_not_held_against_anything() -> None:
    assert against_baselines([row(RIGHT, "no noise", 0.5)], {"bias": Baseline(ours=0.8)}) == []
