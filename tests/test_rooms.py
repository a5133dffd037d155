"""Every import, lazy ones included, against one table of which room may import which."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "cofactor"

BASE = {"errors", "randomness", "config", "progress", "compiled", "chacha", "figures", "svg"}
LOWER = {"data", "factors", "privacy", "crypto", "federation"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "randomness": {"errors", "compiled", "chacha"},
    "config": {"errors"},
    "progress": set(),
    "compiled": set(),
    "chacha": {"errors", "compiled"},
    "figures": set(),
    "svg": set(),
    "__main__": {"cli"},
    "data": BASE,
    "factors": BASE | {"data"},
    "privacy": BASE,
    "crypto": BASE,
    "federation": BASE | {"data", "factors", "privacy", "crypto"},
    "survey": BASE | {"data", "privacy", "federation"},
    "recipes": BASE | LOWER | {"survey"},
    "cluster": BASE | {"data", "privacy", "crypto", "federation", "survey"},
    "network": BASE | LOWER | {"survey", "recipes", "cluster"},
    "evaluate": BASE | {"data", "factors", "federation", "recipes"},
    "attacks": BASE | LOWER | {"survey", "recipes", "cluster", "evaluate"},
    "papers": BASE | LOWER | {"survey", "recipes", "cluster", "evaluate", "attacks"},
    "report": BASE,
    "cli": BASE
    | LOWER
    | {"survey", "recipes", "cluster", "network", "evaluate", "attacks", "papers", "report"},
}
FACE = "__init__"
"""The public face stands above all rooms: it may import any, and only the command line asks its version."""


def room_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported_rooms(code: str) -> Iterator[tuple[int, str]]:
    """Yield (line, room) for each import of cofactor anywhere in a module."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide the room"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [str(arg.value) for arg in node.args if isinstance(arg, ast.Constant)]
        else:
            continue
        for parts in (name.split(".") for name in names):
            if parts[0] == "cofactor":
                known = len(parts) > 1 and parts[1] in MAY_IMPORT
                yield node.lineno, parts[1] if known else FACE


def trespasses(path: Path, code: str) -> list[str]:
    room = room_of(path)
    allowed = MAY_IMPORT[room] | {room} | ({FACE} if room == "cli" else set())
    return [
        f"{path.name}:{line}: {room} may not import {other}"
        for line, other in imported_rooms(code)
        if other not in allowed
    ]


MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_imports_only_what_its_room_may(path: Path) -> None:
    assert trespasses(path, path.read_text()) == []


def test_every_room_is_in_the_table() -> None:
    assert {room_of(path) for path in MODULES} <= set(MAY_IMPORT)


@pytest.mark.parametrize(
    "code",
    [
        "from cofactor.cli import app",
        "import cofactor.cli.app",
        "def f():\n    from cofactor.recipes import train",
        "from cofactor import cli",
        "import cofactor",
        "from importlib import import_module\nimport_module('cofactor.cli')",
    ],
)
def test_trespass_is_noticed_however_it_is_written(code: str) -> None:
    assert trespasses(SOURCE / "data" / "new.py", code)
