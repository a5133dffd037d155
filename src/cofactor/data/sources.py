"""Where a file's bytes are: plain, in a .gz, or in a .zip whose right member is found by itself."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from cofactor.errors import DataError, did_you_mean

Kind = Literal["ratings", "users", "items"]

USUAL_NAMES: dict[Kind, tuple[str, ...]] = {
    "ratings": ("u.data", "ratings.dat", "ratings.csv", "*.inter", "ratings.*", "*rating*", "*interaction*"),
    "users": ("u.user", "users.dat", "users.csv", "*.user", "users.*", "gender.dat"),
    "items": ("u.item", "movies.dat", "movies.csv", "*.item", "items.*", "movies.*"),
}
"""What files of a kind are called, the surest names first."""

SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".data", ".inter", ".user", ".item", ".parquet")


@dataclass(frozen=True)
class Source:
    """One file's bytes, wherever they came from."""

    label: str
    """What errors call it."""
    name: str
    """Its own name, without .gz."""
    data: Path | bytes
    """Where it lies, or its bytes where it had to be unpacked."""

    def open(self) -> BinaryIO:
        """Open the bytes from the start."""
        return self.data.open("rb") if isinstance(self.data, Path) else io.BytesIO(self.data)

    def head(self, size: int) -> bytes:
        """Return the first bytes."""
        with self.open() as file:
            return file.read(size)

    def lines(self) -> Iterator[bytes]:
        """Yield one line after another, line ends included."""
        with self.open() as file:
            yield from file


def open_source(path: str | Path, kind: Kind, member: str | None = None) -> Source:
    """Find the bytes of a file of ratings, users or items; `member` names a file inside a .zip."""
    place = Path(path)
    _check_readable(place, kind)
    with place.open("rb") as file:
        start = file.read(4)
    if place.suffix.lower() == ".zip" or start == b"PK\x03\x04":
        return _from_zip(place, kind, member)
    if start[:2] == b"\x1f\x8b":
        return Source(str(path), place.name.removesuffix(".gz"), _gunzipped(place))
    return Source(str(path), place.name, place)


def candidates(names: Iterable[str], kind: Kind) -> list[str]:
    """Return the names that most surely hold this kind; several when there is nothing to choose by."""
    files = [name for name in names if _is_data(name)]
    for pattern in USUAL_NAMES[kind]:
        found = [name for name in files if fnmatch(_base(name), pattern)]
        if found:
            return found
    if kind != "ratings":
        return []
    side = {name for other in ("users", "items") for name in candidates(files, other)}
    return [name for name in files if name not in side]


def zip_names(path: Path) -> list[str]:
    """Return the names of the files in a .zip."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    except Exception:  # on a damaged archive zipfile raises almost anything
        raise DataError(f"{path}: not a whole .zip archive. Fetch it again, or unpack it yourself.") from None


def _base(name: str) -> str:
    return PurePosixPath(name).name.lower().removesuffix(".gz")


def _is_data(name: str) -> bool:
    return _base(name).endswith(SUFFIXES) and "__MACOSX" not in name and not _base(name).startswith(".")


def _check_readable(path: Path, kind: Kind) -> None:
    if path.is_dir():
        inside = candidates((file.name for file in sorted(path.iterdir()) if file.is_file()), kind)
        hint = f", such as {path / inside[0]}" if inside else ""
        raise DataError(f"{path} is a folder. Name the file of {kind} in it{hint}.")
    try:
        path.open("rb").close()
    except FileNotFoundError:
        siblings = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"{path}: there is no such file.{did_you_mean(path.name, siblings)}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None


def _gunzipped(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except EOFError:
        raise DataError(f"{path} ends too early: the .gz was cut short on its way. Fetch it again.") from None
    except (gzip.BadGzipFile, zlib.error):
        raise DataError(f"{path}: the .gz is damaged. Fetch it again.") from None


def _from_zip(path: Path, kind: Kind, member: str | None) -> Source:
    name = _chosen_member(path, zip_names(path), kind, member)
    label = f"{path} ({name})"
    try:
        with zipfile.ZipFile(path) as archive:
            data = archive.read(name)
        return Source(label, _base(name), gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except Exception as error:  # damaged, encrypted, or packed by a method that Python lacks
        told = f"{label}: cannot be unpacked ({error}). Fetch it again, or unpack it yourself."
        raise DataError(told) from None


def _chosen_member(path: Path, names: list[str], kind: Kind, member: str | None) -> str:
    if member is not None:
        if member in names:
            return member
        raise DataError(f'{path} holds no "{member}".{did_you_mean(member, names)} {_listed(names)}')
    found = candidates(names, kind)
    if len(found) == 1:
        return found[0]
    if not found:
        raise DataError(f"{path} holds no file of {kind} that could be recognised. {_listed(names)}")
    raise DataError(
        f"{path} holds several files that may be {kind}: {', '.join(found[:6])}. "
        f"Name the right one with --member, such as --member {found[0]}."
    )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return f"It holds {', '.join(names[:6])}{more}." if names else "It is empty."
