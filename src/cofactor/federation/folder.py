"""The run folder: written whole or not at all, and all that anybody reads later. See docs/run-folder.md."""

import itertools
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from cofactor.errors import RunError

AUDITS = "audits"
"""Where a run folder keeps what later audits found."""
CAPTURED = "captured-UNSAFE"
"""And where what roles of a simulation saw."""
FORMAT = 3
"""Version of the run folder's layout; docs/run-folder.md describes it."""

_FACTS = ("created", "seconds", "recipe", "seed", "data", "guarantee", "scores")


def write_whole(folder: str | Path, write: Callable[[Path], None], *, overwrite: bool) -> Path:
    """Let `write` fill a folder under another name, and put it in place when it is complete."""
    target = Path(folder).resolve()
    check_free(target, overwrite=overwrite)
    # A name that nobody else has: what is cleared away below is always our own.
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        draft.mkdir(parents=True)
        write(draft)
        _put_in_place(draft, target)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written ({error.strerror}). Name another with --out.") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Path(folder)


def _put_in_place(draft: Path, target: Path) -> None:
    """Swap the finished folder in; what stood there before is removed only afterwards."""
    if not target.exists():
        draft.rename(target)
        return
    old = draft.with_suffix(".old")
    target.rename(old)
    try:
        draft.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that cannot be written or would be lost, before any work is done."""
    target = folder.resolve()
    if target == Path.cwd():
        raise RunError("the run folder cannot be the folder you are in. Name a new one with --out.")
    nearest = next(place for place in (target, *target.parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise RunError(f"{folder} cannot be made: no writing to {nearest}. Name another folder with --out.")
    if nearest != target or not any(target.iterdir()):
        return
    if not (target / "run.json").exists():
        raise RunError(f"{folder} exists and is not a run folder. Name another folder with --out.")
    if not overwrite:
        raise RunError(f"{folder} already holds a run. Name another folder with --out, or add --force.")


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write run.json, last of all: it knows the digests of all other files, and has a seal."""
    sealed = seal({**facts, "files": digests(folder)})
    (folder / "run.json").write_text(json.dumps(sealed, indent=2) + "\n")


def read_facts(folder: str | Path) -> dict[str, Any]:
    """Read a run folder's run.json."""
    path = Path(folder) / "run.json"
    if not path.is_file():
        raise RunError(
            f"{folder} is not a run folder: it has no run.json. Make one with 'cofactor train', 'cofactor "
            "survey' or 'cofactor cluster'."
        )
    try:
        facts: dict[str, Any] = json.loads(path.read_text())
        newer = facts["format"] > FORMAT
        whole = newer or all(name in facts for name in _FACTS)
    except (ValueError, KeyError, TypeError, OSError):
        raise RunError(f"{path}: cannot be read. The folder is damaged; train again.") from None
    if newer:
        raise RunError(
            f"{folder} was written by a newer cofactor (format {facts['format']}). Upgrade cofactor."
        )
    if not whole:
        raise RunError(f"{path}: facts are missing. The folder is damaged; train again.")
    return facts


def digests(folder: Path) -> dict[str, str]:
    """Return the hash of every file of a folder, by its name: all but run.json, and audits of later days."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "run.json")
    names = {str(path.relative_to(folder)): path for path in files if path.parent != folder / AUDITS}
    return {name: sha256(path.read_bytes()).hexdigest() for name, path in names.items()}


def add_audit(folder: str | Path, name: str, facts: Mapping[str, Any]) -> Path:
    """Write what an audit found into a run's folder, beside all that were there before; return the file.

    It is sealed, and says which run it is about.
    """
    sealed = seal({**facts, "run": read_facts(folder).get("seal")})
    place = Path(folder) / AUDITS
    try:
        place.mkdir(exist_ok=True)
        for number in itertools.count(1):
            file = place / f"{name}-{number}.json"
            try:
                with file.open("x") as opened:
                    opened.write(json.dumps(sealed, indent=2, allow_nan=False) + "\n")
            except FileExistsError:
                continue
            return file
    except OSError as error:
        raise RunError(f"{place}: cannot be written ({error.strerror}).") from None
    raise AssertionError


def read_audits(folder: str | Path) -> dict[str, dict[str, Any]]:
    """Return what audits of a run found, by the file's name; refuse what was changed, or is another run's."""
    about, found = read_facts(folder).get("seal"), {}
    numbers: dict[str, int] = {}
    for path in sorted((Path(folder) / AUDITS).glob("*"), key=_by_number):
        name, number = _by_number(path)
        numbers[name] = numbers.get(name, 0) + 1
        if path.suffix != ".json" or not path.is_file() or number != numbers[name]:
            raise RunError(f"{path.parent}: {path.name} is no audit, or one before it is gone.")
        try:
            facts: dict[str, Any] = json.loads(path.read_text())
            whole = seal(facts)["seal"] == facts["seal"]
        except (ValueError, KeyError, TypeError, OSError):
            raise RunError(f"{path}: cannot be read. Audit again.") from None
        if not whole or facts.get("run") != about:
            raise RunError(f"{path} was changed, or is about another run.")
        found[path.stem] = facts
    return found


def _by_number(path: Path) -> tuple[str, int]:
    """Return the name and the number of an audit's file; 0 if it has none."""
    name, _, number = path.stem.rpartition("-")
    return name, int(number) if number.isascii() and number.isdigit() else 0


def seal(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts with a hash over all of them: it shows careless hands, not determined ones."""
    content = {name: value for name, value in facts.items() if name != "seal"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, "seal": sha256(text.encode()).hexdigest()}
