"""Ends the processes that carry a mark, once whoever started them is gone. It needs nothing of the package.

    python watching.py MARK    (waits until its standard input is closed)

A job's processes are started by the engine in sessions of their own, so that no signal to a group reaches
them; they inherit the environment, though, and a mark in it.
"""

import os
import signal
import sys
import time

NAME = "COFACTOR_PROCESSES"
"""The variable of the environment that holds the mark."""


def marked(mark: str) -> list[int]:
    """Return the processes that carry a mark."""
    wanted = f"{NAME}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(entry))
        except OSError:
            continue
    return found


def end_all(mark: str, *, sign: signal.Signals = signal.SIGKILL, seconds: float = 10.0) -> bool:
    """Send a signal to all that carry the mark until none is left; say whether that was so in time."""
    until = time.monotonic() + seconds
    while found := marked(mark):
        for process in found:
            try:
                os.kill(process, sign)
            except ProcessLookupError:
                continue
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    end_all(sys.argv[1])
