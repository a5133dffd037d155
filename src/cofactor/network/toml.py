"""Settings that people edit by hand: read with errors that name the file, written so that they read well."""

import os
import secrets
import tomllib
from collections.abc import Mapping
from json import dumps
from pathlib import Path
from typing import Any

from cofactor.errors import ConfigError

_OTHER_LETTERS = {letter: f"\\u{letter:04x}" for letter in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""Those that JSON leaves as they are, and TOML or a terminal does not."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}.") from None


def toml(table: Mapping[str, Any], where: str = "") -> str:
    """Return a table as TOML: plain values first, then the tables in it; None is left out."""
    plain = {name: value for name, value in table.items() if not isinstance(value, Mapping)}
    lines = [f"{_key(name)} = {_value(value)}\n" for name, value in plain.items() if value is not None]
    head = f"[{where}]\n" if where and (lines or len(plain) == len(table)) else ""
    inner = [
        toml(value, f"{where}.{_key(name)}" if where else _key(name))
        for name, value in table.items()
        if isinstance(value, Mapping)
    ]
    return "\n".join(part for part in (head + "".join(lines), *inner) if part)


def write_private(path: Path, text: str) -> None:
    """Put a file in place whole, for its owner's eyes only: whoever reads meanwhile sees the old one."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        _write_new(draft, text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_once(path: Path, text: str) -> bool:
    """Put a file in place whole, unless one is there: then nothing changes, and the answer is no."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        _write_new(draft, text)
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def _write_new(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _value(name)


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str | Path):
        return dumps(str(value), ensure_ascii=False).translate(_OTHER_LETTERS)
    return dumps(value)
