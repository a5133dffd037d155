"""`cofactor report RUN --live`: the page of a training while it goes on, for this machine alone."""

import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cofactor.cli.report_beside import beside_of, stated
from cofactor.cli.text import print_json, print_line
from cofactor.report.folder import Folder
from cofactor.report.live_server import served
from cofactor.report.page import page

_WAY = (
    '<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0; url={}"><title>cofactor</title>\n'
)


def watch(run: Path, *, port: int, policy: Path | None, verified: bool, opened: bool, as_json: bool) -> None:
    """Serve the page until Ctrl-C."""
    if policy is not None:
        stated(policy)  # it is needed when all is done: whoever misspells it should hear of it now

    def finished(folder: Path, script: str) -> str:
        found = Folder.read(folder)
        return page(found, beside_of(found, verified=verified, policy=policy), script=script)

    # A shell that starts this in the background lets it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with served(run, finished, port=port) as address, _way(address, opened=opened):
        if as_json:
            print_json({"run": str(run), "address": address})
        else:
            print_line(f"{run} is watched at {address}")
            print_line("Ctrl-C ends this page, and not the training. Whoever has the address can stop that.")
        sys.stdout.flush()  # it may be a program that waits for the address
        while True:
            time.sleep(3600)


@contextmanager
def _way(address: str, *, opened: bool) -> Iterator[None]:
    """Open a browser, if wanted, by a file that only its owner reads: others see what programs are given."""
    if not opened:
        yield
        return
    import webbrowser

    with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="cofactor-") as file:
        file.write(_WAY.format(address))
        file.flush()
        if not webbrowser.open(Path(file.name).as_uri()):
            told = "There is no browser to open it with. Open the address in one."
            print(told, file=sys.stderr)  # what is printed may be JSON
        yield
