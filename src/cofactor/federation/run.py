"""`Run`: the immutable result of training, and what its folder holds."""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cofactor.config import as_table, from_table
from cofactor.data.ids import Id
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, RunError, UnknownId
from cofactor.factors.model import Factors, Recommendation
from cofactor.federation.approvals import Approved, approvals_from
from cofactor.federation.captured import read_captured, write_captured
from cofactor.federation.finding import Alignment
from cofactor.federation.folder import CAPTURED, FORMAT, read_facts, write_facts, write_whole
from cofactor.federation.splits import Split
from cofactor.federation.view import Captured
from cofactor.privacy.guarantee import Guarantee
from cofactor.progress import Progress

NOT_PRIVATE = Guarantee.nothing("Not private: the ratings were pooled in one place and no noise was added.")


@dataclass(frozen=True)
class DataFacts:
    """The size of what a run was trained on."""

    users: int
    items: int
    ratings: int
    scale: str

    @classmethod
    def of(cls, ratings: Ratings) -> "DataFacts":
        """Count the ratings."""
        scale = "implicit" if ratings.scale is None else str(ratings.scale)
        return cls(ratings.user_count, ratings.item_count, len(ratings), scale)


@dataclass(frozen=True, kw_only=True)
class PartyFacts:
    """One party of a run, in public numbers."""

    users: int
    items: int
    ratings: int
    bytes_sent: int = 0
    epsilon: float | None = None
    """What its own releases cost: what it loses even if the coordinator and all other parties collude."""


@dataclass(frozen=True, kw_only=True)
class Together:
    """What a run of several parties keeps besides its models."""

    split: Split
    session: str
    """The name under which the ledgers know it."""
    simulated: bool
    """Whether one file was dealt out to make-believe parties."""
    budget: Mapping[str, Any] | None
    parties: Mapping[str, PartyFacts]
    rounds: int
    """How many there were."""
    traffic: int
    """Bytes of all messages, both ways."""
    roles: tuple[str, ...] = ()
    """Who else took part and holds no ratings, such as an item server."""
    transcript: bytes = field(default=b"", repr=False)
    """The file: who saw what."""
    ledgers: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """By party, a copy of its ledger as it was when the run ended."""
    surveys: Mapping[str, str] = field(default_factory=dict)
    """Surveys that settings came from, and that count as well: by session, what was asked."""
    alignment: Alignment | None = None
    """How users in common were found; None where ids are public."""
    planned_rounds: int | None = None
    """How many rounds there were to be, if it was ended before that."""
    approvals: tuple[Approved, ...] = ()
    """What real parties signed before they took part; none where one process played all."""

    @property
    def ended_early(self) -> tuple[int, int] | None:
        """How many rounds there were, and how many were planned, if it was ended before the last one."""
        return None if self.planned_rounds is None else (self.rounds, self.planned_rounds)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What training produced: models, how they were made, and what may be said about them."""

    model: Factors | None
    """What everyone may see. None where nothing was meant for others."""
    recipe: Mapping[str, Any]
    """The recipe's settings as a table: what `cofactor.config.from_table` reads."""
    seed: int
    data: DataFacts
    created: str
    """When training began, in UTC."""
    seconds: float
    """How long training took, without measuring; of attempts that were cut off, finished rounds count."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Where the time went: seconds by what was done, in order; those of training add up to `seconds`."""
    events: tuple[Progress, ...] = field(default=(), repr=False)
    scores: Mapping[str, Any] = field(default_factory=dict)
    """Errors by name, each with its interval, if they were measured."""
    guarantee: Guarantee = NOT_PRIVATE
    """What is promised about privacy; a pooled run promises nothing."""
    homes: Mapping[str, Factors] = field(default_factory=dict)
    """By party, the model that it uses itself and never shows: LOCAL. Here only because one process played
    all parties."""
    together: Together | None = None
    """Who took part and what was sent; None where there was one party only."""
    captured: Captured | None = field(default=None, repr=False)
    """What some roles of a simulation saw, messages included, and what is true. UNSAFE to share."""

    @property
    def rounds(self) -> tuple[Progress, ...]:
        """What each round told, in public numbers."""
        return tuple(event for event in self.events if event.stage == "round")

    def with_scores(self, scores: Mapping[str, Any], seconds: float = 0.0) -> "Run":
        """Return the same run with measured scores beside it, and a phase that says how long that took."""
        phases = {**self.phases, **({"measuring": seconds} if seconds else {})}
        return replace(self, scores=dict(scores), phases=phases)

    def with_titles(self, titles: Mapping[Id, str]) -> "Run":
        """Return the same run with titles for its items; without any titles it stays as it is."""
        if not titles:
            return self
        model = None if self.model is None else self.model.with_titles(titles)
        homes = {party: home.with_titles(titles) for party, home in self.homes.items()}
        return replace(self, model=model, homes=homes)

    def model_of(self, user: Id, party: str | None = None) -> Factors:
        """Return the model that serves a user: her party's own, if there are such, else the common one."""
        if not self.homes:
            if self.model is None:
                raise RunError("this run kept no model. Train again.")
            return self.model
        if party is not None:
            if party not in self.homes:
                raise UnknownId(f"there is no party {party!r}. There are {', '.join(self.homes)}.")
            return self.homes[party]
        knowing = [name for name, home in self.homes.items() if home.knows(user)]
        if len(knowing) > 1:
            raise UnknownId(
                f"user {user!r} is at {len(knowing)} parties ({', '.join(knowing[:5])}). Name one: party=..."
            )
        if not knowing:
            raise UnknownId(f"there is no user {user!r} at any of the parties {', '.join(self.homes)}.")
        return self.homes[knowing[0]]

    def recommend(self, user: Id, n: int = 10, *, party: str | None = None) -> list[Recommendation]:
        """Return the n best items for a user, from the model that serves her."""
        return self.model_of(user, party).recommend(user, n)

    def recommend_for_attributes(self, attributes: Mapping[str, Any], n: int = 10) -> list[Recommendation]:
        """Return the n best items for somebody who has rated nothing, from the common model."""
        if self.model is None:
            raise RunError("this run kept no model for new users. Train again.")
        return self.model.recommend_for_attributes(attributes, n)

    def facts(self) -> dict[str, Any]:
        """Return everything but models, events, transcript and ledgers, as the folder's run.json holds it."""
        return {
            "format": FORMAT,
            "created": self.created,
            "seconds": round(self.seconds, 3),
            "phases": [{"name": name, "seconds": round(seconds, 3)} for name, seconds in self.phases.items()],
            "recipe": dict(self.recipe),
            "seed": self.seed,
            "data": asdict(self.data),
            "guarantee": self.guarantee.as_json(),
            "scores": dict(self.scores),
            "together": None if self.together is None else together_as_json(self.together),
            "captured": [] if self.captured is None else list(self.captured.whole.roles),
            "versions": versions(),
        }

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run folder whole or not at all; an existing one is kept unless told otherwise."""
        return write_whole(folder, self._write, overwrite=overwrite)

    def _write(self, folder: Path) -> None:
        if self.model is not None:
            self.model.save(folder / "model.npz")
        lines = [json.dumps(asdict(event)) + "\n" for event in self.events]
        (folder / "events.jsonl").write_text("".join(lines))
        for party, home in self.homes.items():
            (folder / "homes").mkdir(exist_ok=True)
            home.save(folder / "homes" / f"{party}.npz")
        if self.together is not None:
            write_together(self.together, folder)
        if self.captured is not None:
            write_captured(self.captured, folder / CAPTURED)
        write_facts(folder, self.facts())

    @classmethod
    def load(cls, folder: str | Path) -> "Run":
        """Read a run folder."""
        facts, place = read_facts(folder), Path(folder)
        for kind in ("survey", "clustering"):
            if kind in facts:
                raise RunError(
                    f"{folder} holds a {kind}, and no model. Look at it with 'cofactor show {folder}'."
                )
        try:
            lines = (place / "events.jsonl").read_text().splitlines()
            model = place / "model.npz"
            together = facts.get("together")
            published = Factors.load(model) if model.exists() or not together else None
            unsafe = place / CAPTURED
            return cls(
                model=published,
                recipe=facts["recipe"],
                seed=facts["seed"],
                data=DataFacts(**facts["data"]),
                created=facts["created"],
                seconds=facts["seconds"],
                phases={each["name"]: float(each["seconds"]) for each in facts.get("phases", ())},
                events=tuple(Progress(**json.loads(line)) for line in lines),
                scores=facts["scores"],
                guarantee=Guarantee.from_json(facts["guarantee"]),
                homes={path.stem: Factors.load(path) for path in sorted((place / "homes").glob("*.npz"))},
                together=None if not together else together_from_json(together, place),
                captured=read_captured(unsafe, published) if unsafe.exists() else None,
            )
        except (KeyError, TypeError, ValueError, OSError, ConfigError) as error:
            why = f"{type(error).__name__}: {error}"
            raise RunError(f"{folder}: the run folder is damaged ({why}). Train again.") from None


def versions() -> dict[str, str]:
    """Return the versions of what made a run."""
    return {name: version(name) for name in ("cofactor", "numpy", "numba")} | {
        "python": platform.python_version()
    }


def write_together(together: Together, folder: Path) -> None:
    """Write the transcript and the copies of ledgers into a run folder."""
    (folder / "transcript.jsonl").write_bytes(together.transcript)
    (folder / "ledgers").mkdir()
    for party, ledger in together.ledgers.items():
        (folder / "ledgers" / f"{party}.ledger").write_bytes(ledger)


def together_as_json(together: Together) -> dict[str, Any]:
    """Return what run.json holds about who took part."""
    return {
        "split": together.split,
        "session": together.session,
        "simulated": together.simulated,
        "budget": None if together.budget is None else dict(together.budget),
        "parties": {name: asdict(facts) for name, facts in together.parties.items()},
        "rounds": together.rounds,
        "planned_rounds": together.planned_rounds or together.rounds,
        "bytes": together.traffic,
        "roles": list(together.roles),
        "surveys": dict(together.surveys),
        "approvals": [asdict(each) for each in together.approvals],
        "alignment": None if together.alignment is None else as_table(together.alignment),
        "sha256": {
            "transcript": sha256(together.transcript).hexdigest(),
            "ledgers": {name: sha256(content).hexdigest() for name, content in together.ledgers.items()},
        },
    }


def together_from_json(table: Mapping[str, Any], folder: Path) -> Together:
    """Read what `together_as_json` and `write_together` wrote."""
    return Together(
        split=table["split"],
        session=table["session"],
        simulated=table["simulated"],
        budget=table["budget"],
        parties={name: PartyFacts(**facts) for name, facts in table["parties"].items()},
        rounds=table["rounds"],
        planned_rounds=_if_more(table.get("planned_rounds"), table["rounds"]),
        traffic=table["bytes"],
        roles=tuple(table.get("roles", ())),
        surveys=dict(table.get("surveys", {})),
        alignment=_alignment_of(table.get("alignment")),
        approvals=approvals_from(table.get("approvals", ())),
        transcript=(folder / "transcript.jsonl").read_bytes(),
        ledgers={path.stem: path.read_bytes() for path in sorted((folder / "ledgers").glob("*.ledger"))},
    )


def _if_more(planned: int | None, rounds: int) -> int | None:
    return planned if planned is not None and planned > rounds else None


def _alignment_of(table: Mapping[str, Any] | None) -> Alignment | None:
    return None if table is None else from_table(Alignment, table, "alignment")
