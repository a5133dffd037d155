"""A coordinator's own folder: who was admitted, and the sessions that were begun.

ca/, server/, submitter/    certificates and kits of the network engine
admitted/                   what was signed for parties
parties.toml                the public identity keys of parties, which anybody may have
sessions/NAME/              what is kept of each piece of work; see `conducting`
"""

import datetime
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cofactor.errors import ConfigError, Refused, RunError
from cofactor.federation.flare import Patience
from cofactor.federation.folder import check_free, write_whole
from cofactor.network import kits
from cofactor.network.conducting import PROPOSAL, RUN
from cofactor.network.enrolling import admitted
from cofactor.network.outcomes import read_outcome
from cofactor.network.patience import read_patience, write_patience
from cofactor.network.proposal import Proposal
from cofactor.network.supervising import FINAL, Waiting, supervise
from cofactor.network.toml import write_private
from cofactor.progress import Listener, nobody


@dataclass(frozen=True, kw_only=True)
class Hosted:
    """A piece of work at the coordinator's: begun, and perhaps finished."""

    host: Path
    folder: Path
    proposal: Proposal

    @classmethod
    def begin(cls, host: Path, proposal: Proposal, patience: Patience) -> "Hosted":
        """Keep a proposal, under its session's name."""
        folder = check_host(host) / "sessions" / proposal.session
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        found = cls(host=host, folder=folder, proposal=proposal)
        if found.ended:
            raise RunError(f"session {proposal.session} has ended already. Propose anew.")
        before = folder / PROPOSAL
        if before.exists() and before.read_text() != proposal.as_json():
            raise Refused(f"session {proposal.session} was begun with another proposal. Propose anew.")
        write_patience(folder, patience)
        write_private(folder / PROPOSAL, proposal.as_json())
        return found

    @classmethod
    def resumed(cls, host: Path, session: str | None = None) -> "Hosted":
        """Return the session to go on with: the named one, or the only one that has not ended.

        A named one may have ended: then there is nothing to do but to copy its run folder.
        """
        known = hosted(host)
        if session is None:
            found = [each for each in known if not each.ended]
        else:
            found = [each for each in known if each.proposal.session.startswith(session)]
        if len(found) == 1:
            return found[0]
        if not found:
            raise RunError(f"{host} has no session to go on with. Begin one: --config job.toml")
        words = ", ".join(each.proposal.session for each in found)
        raise ConfigError(f"it may be one of {len(found)} sessions. Name one with --session: {words}.")

    def wait_for(self, **changes: float) -> None:
        """Wait for answers otherwise from now on: fields of `Patience`."""
        write_patience(self.folder, replace(read_patience(self.folder), **changes))

    @property
    def ended(self) -> bool:
        """Whether it is finished or refused."""
        return self.state in FINAL

    @property
    def state(self) -> str:
        """How it stands, in a word."""
        return str(read_outcome(self.folder).get("outcome", "begun"))

    def run(
        self,
        *,
        fewest: int | None = None,
        waiting: Waiting | None = None,
        listen: Listener = nobody,
        see: Callable[..., Mapping[str, Any]] = supervise,
    ) -> Mapping[str, Any]:
        """See it through to its end, whatever breaks on the way; return how it ended."""
        parties = list(self.proposal.parties)
        return see(
            self.host,
            self.folder,
            parties=parties,
            fewest=fewest or len(parties),
            waiting=waiting,
            listen=listen,
        )

    def copy_to(self, out: Path, *, overwrite: bool) -> None:
        """Put the finished run folder where somebody wants it."""
        made = self.folder / RUN
        if not (made / "run.json").exists():
            raise RunError(f"session {self.proposal.session} is not finished: there is no run folder yet.")
        write_whole(out, lambda draft: _copied(made, draft), overwrite=overwrite)


def check_host(host: Path) -> Path:
    """Refuse a folder that is no coordinator's."""
    if not (host / "ca").is_dir():
        raise ConfigError(
            f"{host} is no coordinator's folder. Make one: cofactor host new {host} --address ADDRESS"
        )
    return host


def hosted(host: Path) -> list[Hosted]:
    """Return all that was begun, oldest first."""
    found = sorted(
        (check_host(host) / "sessions").glob(f"*/{PROPOSAL}"), key=lambda path: path.stat().st_mtime
    )
    return [
        Hosted(host=host, folder=path.parent, proposal=Proposal.from_json(path.read_text())) for path in found
    ]


def certificates(host: Path) -> dict[str, datetime.datetime]:
    """Return when the certificates of the server, of the submitter and of all parties end."""
    own = {name: kits.expires(check_host(host) / name) for name in ("server", "submitter")}
    return own | {name: signed_until(host, name) for name in admitted(host).known}


def renew_own(host: Path, *, days: int = kits.DAYS) -> None:
    """Make new keys and certificates for the coordinator's server and submitter; parties notice nothing."""
    for kind in ("server", "submitter"):
        folder = check_host(host) / "own" / kind
        asked = json.loads((folder / "participant.yaml").read_text())
        signed = folder / "own.signed.zip"
        made = kits._request(folder, asked["participants"][0], asked["name"], again=True)
        kits._approve(host, made, signed, days)
        kits._package(folder, signed, kits.fingerprint(host), host / kind)


def signed_until(host: Path, name: str) -> datetime.datetime:
    """Return when the certificate ends that was last signed for a party."""
    import zipfile

    from cryptography import x509

    path = host / "admitted" / f"{name}.signed.zip"
    try:
        with zipfile.ZipFile(path) as file:
            (pem,) = (file.read(each) for each in file.namelist() if each.endswith(f"{name}.crt"))
        return x509.load_pem_x509_certificate(pem).not_valid_after_utc
    except (OSError, ValueError, zipfile.BadZipFile):
        raise RunError(f"{path} holds no certificate that can be read. Admit {name} again.") from None


def check_out(out: Path, *, overwrite: bool) -> None:
    """Refuse a place for the run folder that cannot be used, before anything begins."""
    check_free(out, overwrite=overwrite)


def _copied(made: Path, draft: Path) -> None:
    shutil.copytree(made, draft, dirs_exist_ok=True)
