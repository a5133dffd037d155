"""What a report shows besides the folder, gathered: what verify says, a survey's spread, a stated policy."""

import json
from pathlib import Path

from cofactor.cli.again import again
from cofactor.cli.promises import promised_lines
from cofactor.cli.verify import examined
from cofactor.errors import DAMAGES, CofactorError, ConfigError
from cofactor.report.beside import Beside, Checked, Groups, Policy, Spread
from cofactor.report.folder import Folder

_OF_GROUP = ("name", "users", "mse", "own_mean", "gain")


def beside_of(folder: Folder, *, verified: bool, policy: Path | None, groups: Path | None = None) -> Beside:
    """Gather all of it; the data are read nowhere."""
    checks = None
    if verified:
        verdict = examined(folder.path)
        checks = tuple(Checked(name=e.name, holds=e.holds, detail=e.detail) for e in verdict.checks)
    broken = checks is not None and not all(each.holds for each in checks)
    return Beside(
        checks=checks,
        # What does not follow from its own answers is not drawn.
        spread=None if broken or folder.kind != "survey" else _spread(folder.path),
        policy=None if policy is None else stated(policy),
        groups=None if groups is None else compared(groups, folder),
        again=_again(folder),
        promised=() if broken else tuple(promised_lines(folder.guarantee)),
    )


def _again(folder: Folder) -> str | None:
    """Return what does it again; None if the folder does not tell: what is wrong is told elsewhere."""
    try:
        return again(folder)
    except (CofactorError, *DAMAGES):
        return None


def stated(path: Path) -> Policy:
    """Read a policy, as parties on a network have them."""
    from cofactor.network.policy import Policy as Stated

    if not path.is_file():
        raise ConfigError(f"--policy: there is no file {path}. Name a policy.toml.")
    return Policy(source=path.name, terms=Stated.read(path).as_table())


def compared(path: Path, folder: Folder) -> Groups:
    """Read errors by group of users, as `cofactor compare --json` prints them, of the same run."""
    remedy = (
        f"Write it with 'cofactor compare {folder.name} FILE ... --user-weights FILE --json > {path.name}'."
    )
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        about, found = (table["session"], table["data"]), table["groups"]
        rows = tuple({name: each[name] for name in _OF_GROUP} for each in found["groups"]) if found else ()
    except OSError as error:
        raise ConfigError(f"--groups: {path} cannot be read ({error.strerror}). {remedy}") from None
    except DAMAGES:
        raise ConfigError(
            f"--groups: {path} is not what 'cofactor compare --json' prints. {remedy}"
        ) from None
    if about != ((folder.together or {}).get("session"), folder.facts["data"]):
        raise ConfigError(f"--groups: {path} is about another run than {folder.name}. {remedy}")
    if not rows:
        raise ConfigError(f"--groups: {path} holds no errors by group of users. {remedy}")
    return Groups(source=path.name, rows=rows)


def _spread(folder: Path) -> Spread | None:
    """Reckon from a survey's tally how its numbers are spread; None if its method only tells a mean."""
    from cofactor.cli.survey_text import Told, as_object
    from cofactor.survey.result import Survey

    told = Told(survey=Survey.load(folder), folder=folder)
    found = as_object(told)
    pairs = {"mean": found["mean"], "deviation": found["deviation"]}
    pairs |= {f"{100 * float(name):g}% lie below": each for name, each in found["quantiles"].items()}
    figures = {name: _pair(each) for name, each in pairs.items() if each is not None}
    gives = found["gives"] != "mean"
    bands = (found["intervals"] if gives else None) or {"low": (), "high": ()}
    return Spread(
        edges=tuple(found["edges"]),
        shares=tuple(found["estimate"]) if gives else (),
        bands=tuple(zip(bands["low"], bands["high"], strict=True)),
        figures=figures,
        warnings=tuple(found["warnings"]),
    )


def _pair(found: dict[str, object]) -> tuple[float, tuple[float, float] | None]:
    ends = found["interval"]
    interval = (float(ends[0]), float(ends[1])) if isinstance(ends, list | tuple) else None
    return float(str(found["value"])), interval
