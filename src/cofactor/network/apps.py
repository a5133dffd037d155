"""The two classes that a job names. They take no arguments: whoever submits a job can tell them nothing.

Which folder a site uses stands in that site's own kit. Only processes of NVIDIA FLARE load this module.
"""

import logging
import threading
import traceback
from pathlib import Path
from typing import Any, Protocol

from nvflare.collab import CollabCallError, collab
from nvflare.collab.api.exceptions import RunAborted

from cofactor.errors import Refused, RunError
from cofactor.federation.channel import Channel
from cofactor.federation.declining import declined
from cofactor.federation.flare import Ended, FlareChannel
from cofactor.network.alone import AloneInKit
from cofactor.network.kit_policies import read_site
from cofactor.network.outcomes import write_outcome
from cofactor.network.patience import read_patience

_LOG = logging.getLogger(__name__)


class PartyEnd(Protocol):
    """What answers letters, for a party."""

    def handle(self, data: bytes) -> bytes:
        """Answer."""

    def close(self) -> None:
        """Let the party's folder go."""


class CollabWire:
    """Calls over the proxies of a job."""

    def __init__(self, proxies: dict[str, Any]) -> None:
        """Take a proxy for each party."""
        self._proxies = proxies

    def send(self, party: str, data: bytes, seconds: float) -> bytes:
        """Bring bytes to a party, and return its answer."""
        answer: bytes = self._call(party, seconds, "handle", data)
        return answer

    def ping(self, party: str, seconds: float) -> None:
        """Return once the party has shown that it lives."""
        self._call(party, seconds, "ping")

    def _call(self, party: str, seconds: float, name: str, *data: bytes) -> Any:
        try:
            return getattr(self._proxies[party](timeout=seconds), name)(*data)
        except RunAborted:
            raise Ended("the job was ended. The supervisor begins another.") from None
        except CollabCallError as error:
            if isinstance(error.cause, TimeoutError):
                raise TimeoutError from None
            raise ConnectionError from None


class CoordinatorApp:
    """The coordinator's end: it conducts the run whose folder the server's own kit names."""

    @collab.main  # type: ignore[untyped-decorator]
    def run(self) -> None:
        """Conduct until the run is finished, refused or paused; its outcome is in a file of its own."""
        site = read_site(_kit())
        proxies = {str(proxy.name): proxy for proxy in collab.clients}
        channel = FlareChannel(CollabWire(proxies), sorted(proxies), patience=read_patience(site))
        try:
            self.conduct(site, channel)
        except Ended:
            write_outcome(site, "interrupted")
        except Exception as error:
            write_outcome(site, "failed", words=str(error))
            raise
        finally:
            channel.close()

    def conduct(self, folder: Path, channel: Channel) -> None:
        """Conduct the run of a folder."""
        from cofactor.network.conducting import conduct

        conduct(folder, channel)


class PartyApp:
    """A party's end: it opens the seat in the folder that the party's own kit names."""

    def __init__(self) -> None:
        """Wait for the job to begin."""
        self._end: PartyEnd | None = None
        self._one_by_one = threading.Lock()
        self._alone = AloneInKit()

    @collab.init  # type: ignore[untyped-decorator]
    def begin(self) -> None:
        """Open the party's own folder. If that fails, the party declines whatever is asked."""
        try:
            self._alone.take(_kit())
            self._end = self.open(read_site(_kit()))
        except Exception as error:
            _note("the party's folder cannot be used", error)

    @collab.final  # type: ignore[untyped-decorator]
    def end(self) -> None:
        """Let the party's folder go: the next job may begin before this process has ended."""
        with self._one_by_one:
            if self._end is not None:
                self._end.close()
            self._end = None
            self._alone.give_back()

    @collab.publish  # type: ignore[untyped-decorator]
    def handle(self, data: bytes) -> bytes:
        """Answer a letter; whatever goes wrong stays here, in the log."""
        try:
            # Any site of the job may call: only the coordinator is listened to.
            if collab.caller != "server":
                raise Refused("another party called, in place of the coordinator.")
            with self._one_by_one:
                if self._end is None:
                    raise RunError("the party's folder could not be opened; see above.")
                return self._end.handle(data)
        except BaseException as error:
            _note("a letter was not answered", error)
            return declined("failed", session="", round=0, sender="")

    @collab.publish  # type: ignore[untyped-decorator]
    def ping(self) -> None:
        """Show a sign of life."""

    def open(self, site: Path) -> PartyEnd:
        """Return what answers letters, for a party's own folder."""
        from cofactor.network.seat import open_seat

        return open_seat(site)


def _kit() -> Path:
    """Return the kit that this process was started with."""
    return Path(collab.workspace.get_site_config_dir()).parent


def _note(what: str, error: BaseException) -> None:
    """Log where an error arose and of which kind it is; its words may quote data, and stay out of the log."""
    places = "".join(traceback.format_tb(error.__traceback__))
    _LOG.error("%s: %s at\n%s", what, type(error).__name__, places)
