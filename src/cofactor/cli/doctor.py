"""`cofactor doctor`: is this machine ready?"""

import os
import platform
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer

from cofactor.cli import options
from cofactor.cli.text import print_json, print_table

PACKAGES = ("numpy", "numba", "scipy", "dp-accounting", "cryptography", "polars", "typer", "rich")
EXTRAS = {
    "gmpy2": ("gmpy2", "for encrypted sums, and clustering", "he"),
    "tenseal": ("tenseal", "for encrypted sums", "he"),
    "scikit-learn": ("sklearn", "for clustering", "cluster"),
    "openmined.psi": ("private_set_intersection", "to find users in common", "psi"),
    "nvflare": ("nvflare", "for parties on a network", "net"),
}
"""By package that only some commands need: what it is imported as, for what, and in which extra it is."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    what: str
    fine: bool
    found: str
    remedy: str = ""


def doctor(json: options.Json = False) -> None:
    """Check this machine: Python, packages, threads, compilation, disk. Exit code 1 if something is wrong."""
    packages = [*map(_package, PACKAGES), *map(_extra, EXTRAS)]
    checks = [_python(), *packages, _threads(), _compiling(), _writable()]
    if json:
        print_json({"checks": [asdict(check) for check in checks]})
    else:
        rows = [("ok" if c.fine else "WRONG", c.what, c.found, c.remedy) for c in checks]
        print_table(("", "check", "found", "what to do"), rows)
    raise typer.Exit(0 if all(check.fine for check in checks) else 1)


def _python() -> Check:
    fine = sys.version_info >= (3, 11)
    return Check("python", fine, platform.python_version(), "" if fine else "install Python 3.11 or newer")


def _package(name: str) -> Check:
    try:
        return Check(name, True, version(name))
    except PackageNotFoundError:
        return Check(name, False, "missing", f"pip install {name}")


def _extra(name: str) -> Check:
    """Load a package: one that is there but broken would fail in the middle of a training."""
    module, use, extra = EXTRAS[name]
    try:
        found = version(name)
    except PackageNotFoundError:
        return Check(
            name,
            True,
            "not installed",
            f"{use}: pip install {name} (or, in a clone, pip install '.[{extra}]')",
        )
    try:
        import_module(module)
    except Exception:  # a broken package may raise anything
        return Check(name, False, f"{found}, cannot be loaded", f"pip install --force-reinstall {name}")
    return Check(name, True, found)


def _threads() -> Check:
    return Check("threads", True, f"{len(os.sched_getaffinity(0))}")


def _compiling() -> Check:
    """Compile a kernel, or load its machine code, and run it."""
    import numpy as np

    from cofactor.compiled import kept_on_disk
    from cofactor.data import grouping

    ones = np.ones(2, np.float32)
    grouped = grouping.group(np.array([1, 0], np.int32), np.zeros(2, np.int32), ones, None, 2)
    if grouped.ptr.tolist() != [0, 1, 2]:
        return Check("compiled kernels", False, "wrong result", "reinstall numba")
    if kept_on_disk(grouping._grouped_order):
        return Check("compiled kernels", True, "work")
    remedy = "for faster starts set NUMBA_CACHE_DIR to a folder that can be written to"
    return Check("compiled kernels", True, "work, but cannot be kept", remedy)


def _writable() -> Check:
    try:
        with tempfile.TemporaryDirectory(dir=Path.cwd()):
            return Check("this folder", True, "can be written to")
    except OSError as error:
        return Check("this folder", False, str(error.strerror), "run cofactor where you may write")
