"""The tables of a coordinator's `job.toml`: what each kind of work is asked to be."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from cofactor.config import as_table, from_table, one_of, positive, whole
from cofactor.errors import ConfigError, Refused
from cofactor.network.sources import scale_of
from cofactor.network.work import Telling
from cofactor.privacy.budget import UNITS, Adjacency, Budget, Unit

_DELTA = 1e-6


@dataclass(frozen=True, kw_only=True)
class FederationTable:
    """[federation]: who takes part, and what all of them share."""

    parties: tuple[str, ...] = ()
    """In the order of their places; all that were admitted, if left out."""
    split: str | None = None
    scale: str | None = None
    """Lowest and highest rating, as 1:5."""
    implicit: bool = False
    """Rows only tell that something happened, and have no ratings."""
    items: str | None = None
    """Horizontal: union, intersection, or catalogue."""
    catalogue: str | None = None
    """A public table of items, or a .txt with an id in each line: those, and no others, are trained."""
    public_items: str | None = None
    """A table of what is public about items, for recipes that use it."""
    align: str | None = None
    """Vertical: psi, or union."""
    among: str = "leader"
    id_rule: str = "exact"
    ratings_each: int | None = None
    """Devices: about how many ratings one has."""


@dataclass(frozen=True, kw_only=True)
class BudgetTable:
    """[budget]: the most that may be learned."""

    epsilon: float
    delta: float = _DELTA
    """Far less than 1 divided by the number of users."""
    unit: str | None = None
    adjacency: str | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job's tables, read one after the other."""

    config: Path
    tables: dict[str, Any]
    federation: FederationTable
    parties: int

    def training(self) -> dict[str, Any]:
        """Return the table of a training."""
        from cofactor.data.coding import Coding
        from cofactor.federation.splits import Split
        from cofactor.network.training_terms import TrainingWork

        asked = self.federation
        if asked.split is None:
            raise ConfigError(
                f"{self._at('federation')} needs split: horizontal (different users, the same items), "
                "vertical (different items of the same users) or on-device (every party is one user)."
            )
        one_of(get_args(Split), split=asked.split)
        split = cast("Split", asked.split)
        recipe = self._recipe(split)
        coding = self.tables.get("attributes")
        if coding is not None and not isinstance(coding, dict):
            raise ConfigError(f"{self._at('attributes')} must be a table with an entry for each column.")
        work = TrainingWork(
            split=split,
            recipe=recipe,
            budget=self._budget(recipe),
            scale=self._scale(),
            ids=self._ids(split),
            among=cast(Any, asked.among),
            rule=cast(Any, asked.id_rule),
            ratings_each=asked.ratings_each,
            catalogue=self._catalogue(),
            items=self._public_items(),
            attributes=None if coding is None else Coding.of_settings(coding),
        )
        return work.table()

    def survey(self) -> dict[str, Any]:
        """Return the table of a survey."""
        from cofactor.network.survey_terms import SurveyWork
        from cofactor.survey.methods import method_from_table
        from cofactor.survey.question import Question

        self._without_budget_words()
        question = from_table(Question, self.tables["question"], self._at("question"))
        asked = self.tables.get("method")
        if not isinstance(asked, dict) or "epsilon" not in asked:
            raise Refused(
                f"{self._at('method')} must say what an answer may tell: epsilon = 1, or less; and the kind "
                "of method, if you choose it."
            )
        if "kind" in asked:
            method = method_from_table(asked, self._at("method"))
            return SurveyWork(question=question, method=cast(Any, method)).table()
        more = [name for name in asked if name not in ("epsilon", "people")]
        if more:
            raise ConfigError(f"{self._at('method')} has {more[0]!r}, which goes with a kind of method.")
        positive(epsilon=asked["epsilon"])
        whole(people=asked.get("people", 1))
        return SurveyWork.usual(question, float(asked["epsilon"]), asked.get("people", 1)).table()

    def clustering(self) -> dict[str, Any]:
        """Return the table of a clustering."""
        from cofactor.network.cluster_terms import ClusteringWork

        self._without_budget_words()
        asked, table = self.federation, self.tables["clustering"]
        if not isinstance(table, dict):
            raise ConfigError(f"{self._at('clustering')} must be a table of settings.")
        budget = self._stated_budget("user", "empty")
        found = {"align": asked.align or "psi", "among": asked.among, "rule": asked.id_rule}
        twice = [name for name in (*found, "budget") if name in table]
        if twice:
            raise ConfigError(
                f"{self._at('clustering')} has {twice[0]!r}. Say align, among and id_rule in [federation], "
                "and the budget in [budget]."
            )
        whole_table = {**table, **found, "budget": as_table(budget)}
        return from_table(ClusteringWork, whole_table, self._at("clustering")).table()

    def _without_budget_words(self) -> None:
        if "not_private" in self.tables:
            raise ConfigError(f"{self.config.name}: not_private is for trainings. Leave it out.")

    def _recipe(self, split: Any) -> Any:
        from cofactor.recipes.named import recipe_from
        from cofactor.recipes.recommended import USUAL_UNIT, recommended

        usual = recommended(split, cast(Unit, self._unit() or USUAL_UNIT[split]))
        table = self.tables.get("recipe", {})
        if not isinstance(table, dict):
            raise ConfigError(f"{self._at('recipe')} must be a table of settings.")
        return recipe_from({"kind": type(usual).__name__, **table}, self._at("recipe"))

    def _budget(self, recipe: Any) -> Budget | None:
        without = self.tables.get("not_private", False)
        if type(without) is not bool:
            raise ConfigError(f"{self.config.name}: not_private must be true or false.")
        if without and "budget" in self.tables:
            raise ConfigError(f"{self.config.name}: not_private adds no noise. Leave out [budget], or that.")
        if without:
            return None
        unit = self._unit() or recipe.units[0]
        by_value = unit == "rating" and "rating" in getattr(recipe, "takes_weights", ())
        return self._stated_budget(unit, "value" if by_value else "empty")

    def _unit(self) -> str | None:
        """Return who is protected, if [budget] says."""
        table = self.tables.get("budget")
        unit = table.get("unit") if isinstance(table, dict) else None
        if unit is not None:
            one_of(UNITS, unit=unit)
        return unit

    def _stated_budget(self, unit: str, adjacency: str) -> Budget:
        if "budget" not in self.tables:
            raise Refused(
                f"{self.config.name} has no budget: name one, [budget] with epsilon = 1 or less. (A training "
                "may say not_private = true, which parties refuse unless their policies allow it.)"
            )
        asked = from_table(BudgetTable, self.tables["budget"], self._at("budget"))
        return Budget(
            epsilon=asked.epsilon,
            delta=asked.delta,
            unit=cast(Unit, asked.unit or unit),
            adjacency=cast(Adjacency, asked.adjacency or adjacency),
        )

    def _scale(self) -> tuple[float, float] | None:
        asked = self.federation
        if asked.implicit and asked.scale:
            raise ConfigError(f"{self._at('federation')}: implicit rows have no scale. Leave one out.")
        if asked.implicit:
            return None
        scale = scale_of(asked.scale)
        if scale is None:
            raise ConfigError(
                f'{self._at("federation")} needs the scale of ratings, scale = "1:5", or implicit = true for '
                "rows that only tell that something happened."
            )
        return scale.low, scale.high

    def _ids(self, split: str) -> Telling:
        """Return how ids become known: nothing is told that nobody asked for."""
        asked = self.federation
        if split == "vertical":
            if asked.items or asked.catalogue:
                raise ConfigError(
                    f"{self._at('federation')}: in a vertical federation users are shared, not items. Say "
                    'align = "psi", or "union".'
                )
            one_of(("psi", "union"), align=asked.align or "psi")
            return cast(Telling, asked.align or "psi")
        if asked.align:
            raise ConfigError(f'{self._at("federation")}: align goes with split = "vertical".')
        found = asked.items or ("catalogue" if asked.catalogue else None)
        if found is None:
            raise ConfigError(
                f'{self._at("federation")} must say which items: catalogue = "items.csv" (a public list; '
                'nobody tells which it has), items = "intersection" or items = "union" (every party\'s item '
                "ids are told to all)."
            )
        one_of(("union", "intersection", "catalogue"), items=found)
        return cast(Telling, found)

    def _catalogue(self) -> Any:
        from cofactor.data.ids import plain_ids
        from cofactor.data.tables import read_items

        asked = self.federation.catalogue
        if asked is None:
            return None
        path = self._beside(asked)
        return plain_ids(_listed(path) if path.suffix == ".txt" else read_items(path).ids)

    def _public_items(self) -> Any:
        from cofactor.data.public_items import PublicItems
        from cofactor.data.tables import read_items

        asked = self.federation.public_items
        return None if asked is None else PublicItems.of_table(read_items(self._beside(asked)))

    def _beside(self, file: str) -> Path:
        """Return a file that the job names: where the job is, unless it says where."""
        return self.config.parent / file

    def _at(self, table: str) -> str:
        return f"{self.config.name} [{table}]"


def _listed(path: Path) -> list[Any]:
    """Read a list of ids; if all are whole numbers they stay so, as in files of ratings."""
    try:
        found = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({type(error).__name__}).") from None
    if not found or len(set(found)) < len(found):
        raise ConfigError(f"{path}: a catalogue has an item at least, and each of them once.")
    whole_numbers = all(each.isascii() and each.removeprefix("-").isdigit() for each in found)
    return [int(each) for each in found] if whole_numbers else found
