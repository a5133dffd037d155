import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cofactor.errors import ConfigError
from cofactor.federation.declining import WORDS, Declining
from cofactor.network.policy import TEMPLATE, Policy
from cofactor.network.work import Planned

PLANNED = Planned(
    kind="training",
    what="HorizontalMF",
    epsilon=1.0,
    delta=1e-6,
    unit="user",
    in_all=1.5,
    parties=("north", "south", "west"),
    aggregate="SecureSum",
    telling="catalogue",
    rounds=20,
    traffic=120_000,
)
LIMITED = Policy(
    accept="within limits", max_epsilon=2.0, max_epsilon_per_run=1.0, recipes=("HorizontalMF", "SquareWave")
)


def test_what_keeps_all_limits_is_let_through() -> None:
    LIMITED.check(PLANNED)
    Policy().check(PLANNED)


BEYOND: list[tuple[dict[str, Any], str]] = [
    ({"kind": "survey"}, "policy: kind"),
    ({"what": "SharedBiases"}, "policy: recipe"),
    ({"epsilon": 1.01}, "policy: epsilon of a run"),
    ({"epsilon": math.nan}, "policy: epsilon of a run"),
    ({"epsilon": -1.0}, "policy: epsilon of a run"),
    ({"delta": 1e-3}, "policy: epsilon of a run"),
    ({"adjacency": "value"}, "policy: epsilon of a run"),
    ({"in_all": 2.1}, "policy: epsilon in all"),
    ({"in_all": None}, "policy: epsilon in all"),
    ({"in_all": math.inf}, "policy: epsilon in all"),
    ({"epsilon": None, "in_all": None}, "policy: no budget"),
    ({"parties": ("north", "south")}, "policy: parties"),
    ({"parties": ("north", "south", "south")}, "policy: parties"),
    ({"aggregate": "IdealSum"}, "policy: aggregate"),
    ({"on_trust": ("it tells all the same",)}, "policy: aggregate"),
    ({"telling": "union"}, "policy: ids"),
    ({"telling": "psi"}, "policy: ids"),
]


@pytest.mark.parametrize(("change", "code"), BEYOND, ids=lambda each: str(each))
def test_each_limit_refuses_what_lies_beyond_it(change: dict[str, Any], code: str) -> None:
    assert code in WORDS
    with pytest.raises(Declining) as refused:
        LIMITED.check(replace(PLANNED, **change))
    assert refused.value.code == code
    assert refused.value.exit_code == 1


def test_a_unit_that_is_not_allowed_is_refused() -> None:
    with pytest.raises(Declining, match="units"):
        Policy(units=("user",)).check(replace(PLANNED, unit="rating"))


def test_an_epsilon_that_only_rounding_brings_above_its_limit_is_let_through() -> None:
    LIMITED.check(replace(PLANNED, epsilon=1.0 + 1e-12, in_all=2.0 + 1e-12))


def test_work_without_a_budget_needs_a_word_in_the_policy() -> None:
    Policy(without_budget=True).check(replace(PLANNED, epsilon=None, in_all=None))


def test_a_promise_may_rest_on_the_coordinator_if_the_policy_says_so() -> None:
    replace(LIMITED, trusting=True).check(replace(PLANNED, on_trust=("it tells all the same",)))


def test_a_list_of_no_recipes_allows_none() -> None:
    with pytest.raises(Declining):
        Policy(recipes=()).check(PLANNED)


def test_without_a_file_a_person_is_asked_and_no_ids_are_told(tmp_path: Path) -> None:
    policy = Policy.read(tmp_path / "policy.toml")
    assert policy.accept == "by hand"
    assert not {"union", "intersection", "psi"} & set(policy.telling)
    assert not policy.without_budget


def test_the_file_that_new_parties_get_says_what_holds_without_it(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(TEMPLATE)
    assert Policy.read(path) == Policy()


def test_the_lines_that_the_new_file_only_suggests_are_good_ones(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    suggestions = ("# max_epsilon", "# max_epsilon_per_run", "# recipes")
    suggested = [line.removeprefix("# ") for line in TEMPLATE.splitlines() if line.startswith(suggestions)]
    path.write_text('accept = "within limits"\n' + "\n".join(suggested))
    assert Policy.read(path).max_epsilon == 4.0


MISTAKES = [
    ("max_epsilom = 2", r'policy\.toml has "max_epsilom".*Did you mean "max_epsilon"'),
    ('accept = "always"', "accept must be one of by hand, within limits"),
    ('accept = "within limits"', "name max_epsilon, max_epsilon_per_run, recipes"),
    ("max_epsilon = 0", "max_epsilon must be greater than 0"),
    ("max_delta = 1", "max_delta must lie between 0 and 1"),
    ('recipes = ["HorizontalMV"]', 'Did you mean "HorizontalMF"'),
    ('recipes = "HorizontalMF"', "recipes must be a list"),
    ('kinds = ["surveys"]', 'Did you mean "survey"'),
    ('aggregates = ["SecureSums"]', 'Did you mean "SecureSum"'),
    ('aggregates = ["IdealSum"]', "aggregates may hold"),
    ('telling = ["all"]', "telling may hold union, intersection"),
    ("minimum_parties = 0", "minimum_parties must be at least 1"),
    ("without_budget = 1", "without_budget must be a true or false"),
    ("accept =", "not valid TOML"),
]


@pytest.mark.parametrize(("line", "words"), MISTAKES)
def test_a_mistake_in_the_file_is_told_with_what_to_do(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(line + "\n")
    with pytest.raises(ConfigError, match=words):
        Policy.read(path)


def test_the_hash_of_a_policy_changes_with_it_and_only_with_it() -> None:
    assert Policy().digest == Policy().digest
    assert Policy().digest != Policy(max_epsilon=1.0).digest
