"""What a proposal would mean for a party, before anything is started or sent."""

import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from cofactor.errors import CofactorError, RunError
from cofactor.federation.declining import Declining
from cofactor.network.policy import Policy
from cofactor.network.proposal import Proposal
from cofactor.network.site import Site
from cofactor.network.work import Planned, Sitting
from cofactor.randomness import SecureRandom


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What is asked, and what this party would say."""

    planned: Planned
    refused: tuple[Declining, ...]
    """Every reason for which it would say no without asking anybody."""
    asks: bool
    """Whether a person would be asked."""


def rehearse(site: Site, proposal: Proposal, policy: Policy | None = None) -> Rehearsal:
    """Work out what is asked, with the party's own file, and hold it against its policy. Writes nothing."""
    from cofactor.network.works import at_party

    policy = policy or site.policy
    with tempfile.TemporaryDirectory() as folder:
        sitting = Sitting(
            name=site.name,
            proposal=proposal,
            identity=site.identity,
            folder=Path(folder),
            random=SecureRandom(),
            most=policy.max_epsilon,
            newer_data=policy.newer_data,
        )
        planned = at_party(sitting, site).planned()
    reasons = (_version(proposal), _keys(site, proposal), *policy.refusals(planned))
    return Rehearsal(
        planned=planned,
        refused=tuple(each for each in reasons if each is not None),
        asks=policy.accept == "by hand",
    )


def read_proposal(path: Path) -> Proposal:
    """Read a proposal that a coordinator has sent beforehand."""
    try:
        return Proposal.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror}).") from None
    except (UnicodeDecodeError, CofactorError) as error:
        raise RunError(f"{path}: no proposal that can be read ({error}).") from None


def _version(proposal: Proposal) -> Declining | None:
    own = version("cofactor")
    if proposal.version == own:
        return None
    return Declining(
        "version",
        f"this is cofactor {own}, and the coordinator has another version. Bring all to one version.",
    )


def _keys(site: Site, proposal: Proposal) -> Declining | None:
    try:
        site.pins.check(proposal, site.name, site.identity.public)
    except Declining as refused:
        return refused
    return None
