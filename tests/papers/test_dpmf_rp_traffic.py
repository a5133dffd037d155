import pytest

from cofactor.papers import dpmf_rp_traffic as traffic
from cofactor.papers.cells import Effort
from cofactor.papers.dpmf_rp_traffic import FORMULA, KEYS, MEASURED, NUMBERS, OURS, Message
from cofactor.papers.results import Row
from cofactor.progress import nobody
from tests.papers.making import material

QUICK = Effort(quick=True)


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return traffic.table1(material(), QUICK, nobody)


@pytest.mark.slow
def test_what_a_device_sends_is_what_is_reckoned_to_a_hundredth(table: list[Row]) -> None:
    lines = {row.line for row in table}
    assert lines == {
        "non-private", "pure SecAgg", "DPMF-RP, m/p = 1", "DPMF-RP, m/p = 2", "DPMF-RP, m/p = 3",
    }  # fmt: skip
    for line in lines - {"non-private"}:
        value = {row.column: row.ours or 0.0 for row in table if row.line == line}
        assert value[MEASURED] == pytest.approx(value[OURS], rel=0.01)
        assert value[MEASURED] == pytest.approx(value[NUMBERS] + value[KEYS])
        assert value[MEASURED] > value[FORMULA]


def test_more_devices_cost_a_device_the_same_for_each_of_them() -> None:
    message = Message(rows=20, factors=3, participants=10, most=1)
    assert message.published == pytest.approx((20 * 3 + 10 * 32) / 8)
    # 32 rows with padding and one number more; 10 fits into 4 bits, and there is a sign.
    assert message.numbers == pytest.approx((32 * 3 + 1) * 5 / 8)
    assert message.keys == 9 * 129 + 1_462
    plain = Message(rows=20, factors=3, participants=10, most=2**30, masked=False)
    assert plain.published == 20 * 3 * 4
    assert plain.keys == 0


@pytest.mark.slow
def test_table_1_says_how_far_the_papers_formula_is(table: list[Row]) -> None:
    found = traffic.findings1(table)
    assert "Computation is not measured" in found[0]
    [told] = found[1:]
    assert "times the paper's formula, and within 0." in told


def test_figure_3_grows_with_factors_and_shrinks_with_projection() -> None:
    rows = traffic.figure3(material(), QUICK, nobody)
    value = {(row.panel, row.line, row.column): row.ours or 0.0 for row in rows}
    assert value["m = 10,000", "m/p = 3", "k = 25"] > 4 * value["m = 10,000", "m/p = 3", "k = 5"]
    by_items = [value["k = 14", f"m/p = {ratio}", "m = 25,000"] for ratio in (1, 2, 3, 5, 10)]
    assert by_items == sorted(by_items, reverse=True)
    found = traffic.findings3(rows)
    assert "Found: with m/p = 3" in found[1]
    assert "about 34% of what no projection takes. It takes 50%" in found[3]
