"""Fetching one file over HTTP: to a .part first, resumed where possible, under its name only when right."""

import errno
import hashlib
import http.client
import math
import urllib.error
import urllib.request
import zipfile
from http import HTTPStatus
from pathlib import Path

from cofactor.errors import DownloadError
from cofactor.progress import Listener, Progress

_BLOCK = 1 << 20
_TIMEOUT = 30.0


def fetch(url: str, target: Path, *, md5: str | None, progress: Listener) -> Path:
    """Bring a file here and check it; a file that is already here and right is not fetched again.

    A broken download leaves a .part file, and the next call goes on from there. Without a checksum the
    publisher may have changed the file in the meantime, so it then starts over.
    """
    if target.exists() and _is_right(target, md5):
        return target
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if md5 is None:
            part.unlink(missing_ok=True)
        _download(url, part, progress)
        _keep_if_right(url, part, target, md5)
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and _is_local(error):
            told = f"cannot write to {target.parent} ({error.strerror}). Choose another folder, or make room."
            raise DownloadError(told) from None
        raise DownloadError(f"{url}: {_reason(error)}. {_by_hand(url, target)}") from None
    return target


def _is_right(path: Path, md5: str | None) -> bool:
    if md5 is None:
        return zipfile.is_zipfile(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest() == md5


def _download(url: str, part: Path, progress: Listener) -> None:
    have = part.stat().st_size if part.exists() else 0
    try:
        answer = _ask(url, have)
    except urllib.error.HTTPError as error:
        error.close()
        if have and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # The part is whole, or something else: the checksum will tell.
        raise
    with answer:
        resumed = answer.status == HTTPStatus.PARTIAL_CONTENT
        _receive(answer, part, have if resumed else 0, progress)


def _ask(url: str, have: int) -> http.client.HTTPResponse:
    headers = {"User-Agent": "cofactor"} | ({"Range": f"bytes={have}-"} if have else {})
    request = urllib.request.Request(url, headers=headers)
    answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=_TIMEOUT)
    return answer


def _receive(answer: http.client.HTTPResponse, part: Path, start: int, progress: Listener) -> None:
    have, total = start, None if answer.length is None else start + answer.length
    with part.open("ab" if start else "wb") as file:
        while block := answer.read(_BLOCK):
            file.write(block)
            have += len(block)
            progress(Progress("download", _megabytes(have), _megabytes(total or have), "MB"))
    if total is not None and have != total:
        raise http.client.IncompleteRead(b"", total - have)


def _megabytes(size: int) -> int:
    return math.ceil(size / 1_000_000)


def _keep_if_right(url: str, part: Path, target: Path, md5: str | None) -> None:
    if not _is_right(part, md5):
        part.unlink()
        what = "is no .zip archive" if md5 is None else f"does not have the md5 checksum {md5}"
        raise DownloadError(f"{url}: what came {what} and was removed. Try again. {_by_hand(url, target)}")
    part.replace(target)


def _is_local(error: OSError) -> bool:
    """Tell trouble with our disk from trouble with the network, which is an OSError too."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
    return full or (error.filename is not None and not isinstance(error, urllib.error.URLError))


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return f"the server cannot be reached ({error.reason})"
    return "the connection broke off; run the same again to go on from there"


def _by_hand(url: str, target: Path) -> str:
    return f"Or download it by hand from {url} into {target.parent}."
