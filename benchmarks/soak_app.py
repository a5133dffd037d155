"""A coordinator that takes its time, so that a crash may come at any moment of a round."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from cofactor.federation.channel import Answers, Channel
from cofactor.network.apps import CoordinatorApp

SLOW = "slow.json"


class SlowCoordinator(CoordinatorApp):
    """Waits before each question as long as `slow.json` in the run's folder says."""

    def conduct(self, folder: Path, channel: Channel) -> None:
        """Conduct as all do, only slowly."""
        super().conduct(folder, _Slow(channel, float(json.loads((folder / SLOW).read_text()))))


class _Slow:
    def __init__(self, channel: Channel, seconds: float) -> None:
        self._channel, self._seconds, self.parties = channel, seconds, channel.parties

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        """Wait, and ask."""
        time.sleep(self._seconds if round else 0.0)
        return self._channel.ask(round, letters, step)
