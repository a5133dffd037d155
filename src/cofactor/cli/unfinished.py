"""A training that was stopped: where it is kept, how it goes on, and when it is cleared away."""

import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cofactor.cli.typed import typed
from cofactor.errors import CofactorError, RunError

SUFFIX = ".unfinished"


@dataclass(frozen=True)
class Unfinished:
    """The folder beside a run folder in which a training keeps what it needs to go on."""

    run: Path

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.run.with_name(self.run.name + SUFFIX)

    @property
    def surveys(self) -> Path:
        """Where surveys lie that were asked before the training."""
        return self.folder / "surveys"

    @property
    def exists(self) -> bool:
        """Whether there is a training to go on with."""
        return (self.folder / "session.json").exists() or self.surveys.exists()

    def check(self, *, resume: bool, force: bool) -> None:
        """Refuse to lose a training that was not finished, or to go on with one that is not there."""
        if resume and not self.exists:
            others = sorted(str(each) for each in self.folder.parent.glob(f"*{SUFFIX}"))
            kept = f" There are {', '.join(others)}." if others else ""
            raise RunError(
                f"there is nothing to resume: no {self.folder}.{kept} Name the run folder with --out as it "
                "was named before, or train without --resume."
            )
        if self.folder.exists() and not self._is_ours:
            raise RunError(f"{self.folder} is in the way. Move it, or name another folder with --out.")
        if self.exists and not resume and not force:
            raise RunError(
                f"{self.folder} holds a training that was not finished. Add --resume to go on with it, or "
                "--force to discard it; what it has spent stays spent."
            )

    @contextmanager
    def kept(self, *, resume: bool) -> Iterator[Path]:
        """Yield the folder; if training stops, say how it goes on, and clear away what holds nothing."""
        made_runs = not self.folder.parent.exists()
        if not resume:
            self.remove()
        try:
            yield self.folder
        except BaseException as error:
            refused = resume and isinstance(error, CofactorError)
            trained = any(self.folder.glob("*.npz"))
            if trained and not refused:
                print(f"What was done is kept. Go on with: {resuming(self.run)}", file=sys.stderr)
            elif self.surveys.exists() and not trained:
                self._keep_surveys()
                print(f"Surveys need not be asked again. Go on with: {resuming(self.run)}", file=sys.stderr)
            elif not resume:
                self.remove()
                if made_runs:
                    with suppress(OSError):  # it may never have been made, or hold something by now
                        self.folder.parent.rmdir()
            raise

    def remove(self) -> None:
        """Clear the folder away, if it is a training's and nobody works in it."""
        from cofactor.federation.session import alone_in

        if self._is_ours:
            with alone_in(self.folder):
                shutil.rmtree(self.folder)

    def _keep_surveys(self) -> None:
        """Forget a training that released nothing: it may go on with other settings."""
        from cofactor.federation.session import alone_in

        with alone_in(self.folder):
            for path in self.folder.iterdir():
                if path.is_file() and path.name != "session.lock":
                    path.unlink()

    @property
    def _is_ours(self) -> bool:
        if not self.folder.is_dir():
            return False
        return self.exists or {path.name for path in self.folder.iterdir()} <= {"session.lock"}


def resuming(run: Path) -> str:
    """Return the command that goes on with the one that was typed."""
    words = typed()
    if not any(word.partition("=")[0] == "--out" for word in words):
        words += ["--out", str(run)]
    return shlex.join(words if "--resume" in words else [*words, "--resume"])
