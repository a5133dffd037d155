import json
import tomllib
from dataclasses import dataclass, field
from typing import Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.config import as_table, fraction, from_table, not_negative, one_of, positive, whole
from cofactor.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Plain:
    threads: int = 1


@dataclass(frozen=True, kw_only=True)
class Secure:
    threshold: float = 0.5
    rounds: tuple[int, ...] = (1, 2)
    inner: Plain = field(default_factory=Plain)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    factors: int = 20
    rate: float = 0.1
    biases: bool = True
    name: str = "mine"
    limit: int | None = None
    either: int | float = 1
    aggregate: Plain | Secure = field(default_factory=Plain)
    fallback: Optional[Secure] = None  # noqa: UP045

    def __post_init__(self) -> None:
        whole(factors=self.factors)


@dataclass(frozen=True, kw_only=True)
class Needy:
    users: int
    items: int


@dataclass(frozen=True, kw_only=True)
class Worded:
    unit: Literal["user", "rating"] = "user"
    norm: Literal["l1", "l2"] | None = None

    def __post_init__(self) -> None:
        one_of(("user", "rating"), unit=self.unit)


@dataclass(frozen=True, kw_only=True)
class ForgetsNone:
    limit: int | None = 5


plains = st.builds(Plain, threads=st.integers(1, 99))
secures = st.builds(
    Secure, threshold=st.floats(0, 1), rounds=st.lists(st.integers(0, 9)).map(tuple), inner=plains
)
recipes = st.builds(
    Recipe,
    factors=st.integers(1, 1000),
    rate=st.floats(allow_nan=False, allow_infinity=False),
    biases=st.booleans(),
    name=st.text(),
    limit=st.none() | st.integers(),
    either=st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    aggregate=plains | secures,
    fallback=st.none() | secures,
)


def read(text: str) -> Recipe:
    return from_table(Recipe, tomllib.loads(text), "train.toml")


@given(recipes)
def test_settings_survive_the_way_through_json(recipe: Recipe) -> None:
    assert from_table(Recipe, json.loads(json.dumps(as_table(recipe))), "recipe") == recipe


def test_table_names_each_class_and_leaves_none_out() -> None:
    table = as_table(Recipe(aggregate=Secure()))
    assert table["kind"] == "Recipe"
    assert table["aggregate"] == {
        "kind": "Secure", "threshold": 0.5, "rounds": (1, 2), "inner": {"kind": "Plain", "threads": 1},
    }  # fmt: skip
    assert "limit" not in table


def test_none_where_the_default_is_another_value_cannot_be_lost_silently() -> None:
    with pytest.raises(AssertionError, match="limit may be None"):
        as_table(ForgetsNone(limit=None))


def test_toml_is_read_into_nested_settings() -> None:
    text = 'factors = 5\nrate = 1\n[aggregate]\nkind = "Secure"\nrounds = [3]\n[fallback]\nthreshold = 1'
    recipe = read(text)
    assert recipe == Recipe(
        factors=5, rate=1.0, aggregate=Secure(rounds=(3,)), fallback=Secure(threshold=1.0)
    )
    assert isinstance(recipe.rate, float)


def test_whole_number_stays_whole_where_both_kinds_are_allowed() -> None:
    assert isinstance(read("either = 3").either, int)


def test_union_at_the_top_chooses_by_kind() -> None:
    chosen: Plain | Secure = from_table(Plain | Secure, {"kind": "Secure", "threshold": 0.25}, "it")
    assert chosen == Secure(threshold=0.25)


MISTAKES: list[tuple[str, str]] = [
    ("factor = 5", 'train.toml has "factor". Did you mean "factors"?'),
    ("zzz = 5", 'train.toml has "zzz". Known: factors, rate'),
    ("[aggregate]\nkind = 'Secure'\ntreshold = 1", '.aggregate has "treshold". Did you mean "threshold"?'),
    ("[aggregate]\nkind = 'Secured'", "one of Plain, Secure, got 'Secured'. Did you mean \"Secure\"?"),
    ("[aggregate]\nthreads = 2", "train.toml.aggregate: kind must be one of Plain, Secure, got None."),
    ("[aggregate]\nkind = ['Plain']", "kind must be one of Plain, Secure, got ['Plain']"),
    ("kind = 'Recipee'", "kind must be one of Recipe, got 'Recipee'. Did you mean \"Recipe\"?"),
    ("factors = 2.5", "train.toml.factors must be a whole number, got 2.5."),
    ("factors = '5'", "train.toml.factors must be a whole number, got '5'."),
    ("factors = true", "train.toml.factors must be a whole number, got True."),
    ("factors = 0", "train.toml: factors must be at least 1, got 0."),
    ("rate = 'fast'", "train.toml.rate must be a number, got 'fast'."),
    ("biases = 1", "train.toml.biases must be a true or false, got 1."),
    ("limit = 'none'", "train.toml.limit must be a whole number, got 'none'."),
    ("name = 3", "train.toml.name must be a text, got 3."),
    ("aggregate = 'secure'", "must be a table with kind Plain or table with kind Secure, got 'secure'."),
    ("[factors]\nn = 1", "train.toml.factors must be a whole number, got a table."),
    ("[fallback.rounds]\nn = 1", "train.toml.fallback.rounds must be a list, got a table."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[text for text, _ in MISTAKES])
def test_mistake_in_a_file_is_named_with_its_place_and_remedy(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert message in str(caught.value)


def test_words_are_read_as_words_and_checked_by_their_settings() -> None:
    assert from_table(Worded, as_table(Worded(unit="rating", norm="l1")), "w") == Worded(
        unit="rating", norm="l1"
    )
    with pytest.raises(ConfigError, match=r'^w: unit must be one of .* Did you mean "rating"'):
        from_table(Worded, {"unit": "ratings"}, "w")
    with pytest.raises(ConfigError, match=r"w\.unit must be a text, got 3"):
        from_table(Worded, {"unit": 3}, "w")


def test_missing_settings_are_named() -> None:
    with pytest.raises(ConfigError, match=r"shape\.toml needs items: Needy has no default"):
        from_table(Needy, {"users": 3}, "shape.toml")


def test_what_is_not_a_table_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[recipe\] must be a table of settings, got 3"):
        from_table(Recipe, tomllib.loads("recipe = 3")["recipe"], "[recipe]")


@pytest.mark.parametrize("value", [0, -1, 0.0, -0.5, float("nan"), float("inf"), "5", True])
def test_positive_refuses_with_the_settings_name(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"^factors must be"):
        positive(rounds=3, factors=value)


@pytest.mark.parametrize("value", [-1e-9, float("nan"), float("inf"), "0", None])
def test_not_negative_refuses_with_the_settings_name(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"^noise must be"):
        not_negative(skew=0.0, noise=value)


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.1, 1.1, float("nan"), "0.5"])
def test_fraction_refuses_both_ends(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"^test must"):
        fraction(train=0.5, test=value)


def test_good_numbers_pass() -> None:
    positive(factors=1, rate=1e-300, limit=None)
    not_negative(skew=0, noise=0.0)
    fraction(test=1e-9, train=1 - 1e-9)


def test_unknown_word_is_refused_with_the_nearest_one() -> None:
    one_of(("sgd", "als"), model="als")
    with pytest.raises(ConfigError, match=r'model must be one of sgd, als, got .* Did you mean "sgd"'):
        one_of(("sgd", "als"), model="sdg")


@dataclass(frozen=True, kw_only=True)
class Planned:
    rounds: tuple[Plain, ...] | None = None
    words: tuple[str, ...] = ()
    data: tuple[float, ...] = field(default=(), metadata={"table": False})


@pytest.mark.parametrize("rounds", [None, (), (Plain(),), (Plain(threads=2), Plain(threads=3))])
def test_lists_of_settings_go_into_a_table_and_back(rounds: tuple[Plain, ...] | None) -> None:
    planned = Planned(rounds=rounds, words=("a", "b"))
    table = json.loads(json.dumps(as_table(planned)))
    assert from_table(Planned, table, "plan") == planned


def test_data_beside_settings_stay_out_of_tables() -> None:
    table = as_table(Planned(data=(1.0, 2.0)))
    assert "data" not in table
    assert from_table(Planned, table, "plan") == Planned()
    with pytest.raises(ConfigError, match='plan has "data"'):
        from_table(Planned, {**table, "data": [3.0]}, "plan")


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        ([{"threads": 1}, {"treads": 2}], r'plan\.rounds\[1\] has "treads".*Did you mean "threads"'),
        ([{"threads": "two"}], r"plan\.rounds\[0\]\.threads must be a whole number"),
        ([{"kind": "Secure"}], r"plan\.rounds\[0\]: kind must be one of Plain"),
        ({"threads": 1}, r"plan\.rounds must be"),
    ],
)
def test_mistake_in_a_list_of_settings_is_named_with_its_place(rounds: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_table(Planned, {"rounds": rounds}, "plan")
