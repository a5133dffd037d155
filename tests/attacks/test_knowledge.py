import numpy as np
import pytest

from cofactor.attacks.knowledge import Knowledge, columns_of, values_of
from cofactor.data.codes import Number, Tags
from cofactor.data.coding import Coding
from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError
from tests.attacks.devices import CODING, ITEMS, SCALE, answers, devices, table


def test_ratings_that_can_be_follow_from_the_scale() -> None:
    assert values_of(Scale(0.5, 2, 0.5)) == (0.5, 1.0, 1.5, 2.0)
    assert values_of(Scale(1, 5)) == (1, 2, 3, 4, 5)
    assert values_of(None) == (1,)


@pytest.mark.parametrize("scale", [Scale(0, 0.5), Scale(-3, 3.5), Scale(0, 1000)])
def test_a_scale_without_steps_is_refused(scale: Scale) -> None:
    with pytest.raises(ConfigError, match="needs a scale with steps"):
        values_of(scale)


def test_columns_of_one_question_and_numbers_are_told_apart() -> None:
    coding = Coding.stated(
        {"sex": ("f", "m"), "likes": Tags(("x", "y")), "age": Number(40.0, 10.0), "job": ("p", "q", "r")}
    )
    assert columns_of(coding) == (((0, 1), (5, 6, 7)), (4,))
    assert columns_of(None) == ((), ())
    known = Knowledge.public(SCALE, coding)
    assert known.questions(8) == ((0, 1), (5, 6, 7), (2,), (3,))
    np.testing.assert_allclose(known.shares_of(8), [1 / 2, 1 / 2, 1 / 2, 1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3])


def test_a_population_tells_how_common_everything_is() -> None:
    parties = devices().parties
    known = Knowledge.of_population(
        parties[0].ratings.by_user, ITEMS, SCALE, attributes=answers(), coding=CODING
    )
    row = table()[0]
    rated = row[~np.isnan(row)]
    assert known.common == tuple(float((rated == each).mean()) for each in range(1, 6))
    assert known.rated == pytest.approx(len(rated) / ITEMS)
    np.testing.assert_allclose(known.shares_of(5), answers().mean(axis=0), atol=2e-6)
    assert "own population" in known.source


def test_nothing_is_impossible() -> None:
    known = Knowledge(values=(1, 2), common=(1.0, 0.0))
    assert 0 < known.chances()[1] < 1e-5
    assert known.chances().sum() == pytest.approx(1)


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ConfigError, match="values are empty"):
        Knowledge(values=())
    with pytest.raises(ConfigError, match="2 values, but 1"):
        Knowledge(values=(1, 2), common=(1.0,))
    with pytest.raises(ConfigError, match="2 shares of attributes, of which there are 3"):
        Knowledge(values=(1, 2), shares=(0.5, 0.5)).shares_of(3)
    assert len(Knowledge(values=(1, 2), shares=(0.5, 0.5)).shares_of(0)) == 0
