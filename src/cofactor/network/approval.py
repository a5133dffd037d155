"""The party decides: what keeps its limits is shown to a person, whose yes is signed and kept for ever.

The process that is asked by the coordinator has no terminal. It writes down what is asked, and waits; the
person's process (`cofactor join`) shows it, and writes down the answer:

    approvals/DIGEST.pending.json    what is asked
    approvals/DIGEST.json            yes, signed by the party's identity
    approvals/DIGEST.refused.json    no, signed as well
    approvals/DIGEST.policy.json     yes by a policy that asks nobody, signed as well
    approvals/DIGEST.opened          the session was begun: if its folder is lost, it is not begun again

DIGEST is the proposal's hash. A session that is taken up again has the same, and is not asked about twice;
any change to a proposal makes another.
"""

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from cofactor.crypto.keys import verified
from cofactor.errors import CofactorError, ConfigError, Refused
from cofactor.federation.approvals import How
from cofactor.federation.declining import Declining
from cofactor.figures import fingerprint
from cofactor.network.proposal import Proposal
from cofactor.network.site import Site, os_user
from cofactor.network.toml import write_once, write_private
from cofactor.network.work import Planned

_POLL = 0.25
"""Seconds between two looks for an answer."""
_CONTEXT = b"cofactor: an approval\n"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONGEST = 300
_PENDING, _REFUSED, _POLICY = ".pending", ".refused", ".policy"


@dataclass(frozen=True, kw_only=True)
class Approval:
    """Who said yes or no to what, and when."""

    party: str
    proposal: str
    """The proposal's hash."""
    session: str
    approved: bool
    how: How
    who: str
    """The person, as the operating system or --as says; or the policy file."""
    when: str
    policy: str
    """The hash of the policy that held then."""
    plan: dict[str, Any] = field(repr=False)
    """What was shown."""

    def signed_text(self) -> bytes:
        """Return what is signed."""
        return _CONTEXT + json.dumps(asdict(self), sort_keys=True).encode()


@dataclass(frozen=True, kw_only=True)
class Pending:
    """What waits for a person."""

    proposal: Proposal
    plan: dict[str, Any] = field(repr=False)
    lines: tuple[str, ...]
    until: float
    """When it stops waiting, in seconds since 1970."""


def approve(
    site: Site,
    proposal: Proposal,
    planned: Planned,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> Approval:
    """Return the party's yes to a proposal, old or new; without one raise `Declining`.

    The policy's limits are checked each time, so that an older yes does not outlive a stricter policy.
    """
    policy = site.policy
    policy.check(planned)
    said = decision(site, proposal.digest)
    if said is not None:
        return _accepted(said)
    if policy.accept == "within limits":
        return _by_policy(site, proposal, planned)
    _ask(site, proposal, planned, until=clock() + policy.patience)
    try:
        while (found := decision(site, proposal.digest)) is None:
            if clock() > _until(site, proposal.digest):
                raise Declining("not approved", f"nobody answered within {policy.patience:g} seconds.")
            sleep(_POLL)
        return _accepted(found)
    finally:
        _path(site, proposal.digest, _PENDING).unlink(missing_ok=True)


def note_opened(site: Site, proposal: Proposal) -> None:
    """Write down that a yes is about to be used; a session whose folder was lost is not begun again by it."""
    mark = site.approvals / f"{proposal.digest}.opened"
    folder = site.session_folder(proposal.session)
    if mark.exists() and not folder.exists():
        raise Declining("unknown session", f"{folder} is gone: what had left by then is not known any more.")
    folder.mkdir(mode=0o700, exist_ok=True)
    write_once(mark, "")


def pending(site: Site) -> list[Pending]:
    """Return what waits for an answer, and can still get one; what cannot be read is left out."""
    found = []
    for path in sorted(site.approvals.glob("*.pending.json")):
        try:
            table = json.loads(path.read_text())
            one = Pending(
                proposal=Proposal.from_json(table["proposal"]),
                plan=dict(table["plan"]),
                lines=tuple(map(plain, table["lines"])),
                until=float(table["until"]),
            )
        except (OSError, ValueError, KeyError, TypeError, CofactorError):
            continue
        digest = one.proposal.digest
        waits = path == _path(site, digest, _PENDING) and one.until > time.time()
        if waits and decision(site, digest) is None:
            found.append(one)
    return found


def answer(site: Site, asked: Pending, *, yes: bool, who: str | None = None) -> Approval:
    """Write down what a person says to what waits; once said, it stays."""
    if decision(site, asked.proposal.digest) is not None:
        raise Refused("that was answered already. 'cofactor join show' lists what was said.")
    person = plain(who) if who else os_user()
    said = _new(site, asked.proposal, asked.plan, approved=yes, how="by hand", who=person)
    if not write_once(_path(site, said.proposal, "" if yes else _REFUSED), _signed(site, said)):
        raise Refused("somebody else answered in this moment.")
    return said


def decision(site: Site, digest: str) -> Approval | None:
    """Return what a person said to a proposal; None if nobody said anything. Its signature must be right."""
    # A no is found first, should two people have said different things.
    refused, approved = _path(site, digest, _REFUSED), _path(site, digest)
    return _read(site, refused, digest) or _read(site, approved, digest)


def decisions(site: Site) -> list[Approval]:
    """Return all that was ever said, oldest first."""
    paths = [path for path in site.approvals.glob("*.json") if ".pending." not in path.name]
    public = site.identity.public
    return sorted((read_approval(path, public) for path in paths), key=lambda each: each.when)


def read_approval(path: Path, public: bytes) -> Approval:
    """Read an approval; refuse one that this party did not sign."""
    try:
        table = json.loads(path.read_text())
        approval = Approval(**table["approval"])
        signature = bytes.fromhex(table["signature"])
        whole = all(
            isinstance(getattr(approval, each.name), each.type if isinstance(each.type, type) else object)
            for each in fields(Approval)
        )
        true = whole and verified(public, approval.signed_text(), signature)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        true = False
    if not true or approval.how not in get_args(How):
        raise Declining(
            "not approved",
            f"{path} is not signed by this party's identity, or was changed. Find out by whom; then move it "
            "away, and the plan is asked about again.",
        )
    return approval


def planned_table(planned: Planned) -> dict[str, Any]:
    """Return a plan as a table for JSON, with all words fit for a terminal."""
    return {name: _plain_value(value) for name, value in asdict(planned).items()}


def lines(site_name: str, proposal: Proposal, planned: Planned) -> tuple[str, ...]:
    """Say what is asked, for people: what, what it costs, with whom, who sees what."""
    if planned.epsilon is None:
        cost = "NO BUDGET: nothing is promised to anybody"
    else:
        in_all = "" if planned.in_all is None else f"; {planned.in_all:.4g} with all that was spent before"
        weaker = " (values only: who rated what is not hidden)" if planned.adjacency == "value" else ""
        each = f"for each {planned.unit}{weaker}{in_all}"
        cost = f"epsilon {planned.epsilon:.4g}, delta {planned.delta:.3g} {each}"
    cap = "" if planned.most_ratings is None else f", at most {planned.most_ratings:,} ratings of each user"
    others = [name for name in planned.parties if name != site_name]
    keys = [
        f"key of {name}: {fingerprint(proposal.roster[name])}"
        for name in planned.parties
        if name in proposal.roster
    ]
    found = (
        f"{planned.kind}: {planned.what}, {planned.rounds:,} rounds{cap}",
        f"costs: {cost}",
        f"with: {', '.join(others) or 'nobody'}",
        f"sums: {planned.aggregate}; ids: {_TELLING.get(planned.telling, planned.telling)}",
        f"sends: about {planned.traffic:,} bytes",
        *(f"sees: {each}" for each in planned.sees),
        *(f"rests on: {each}" for each in planned.rests_on),
        *keys,
        f"session {proposal.session}, proposal {proposal.digest}",
    )
    return tuple(map(plain, found))


_TELLING = {
    "union": "every party's ids are told to all",
    "intersection": "every party's ids are told, and only common ones are used",
    "catalogue": "a public list is used, and no party's ids are told",
    "psi": "users in common are found by private set intersection",
    "nothing": "none are told",
}


def plain(text: object, longest: int = _LONGEST) -> str:
    """Return a text without anything that a terminal would obey, on one line, and not too long."""
    letters = "".join(each if each.isprintable() else "?" for each in " ".join(str(text).split()))
    return letters if len(letters) <= longest else f"{letters[:longest]}..."


def _plain_value(value: object) -> object:
    if isinstance(value, tuple | list):
        return [_plain_value(each) for each in value]
    return plain(value) if isinstance(value, str) else value


def _ask(site: Site, proposal: Proposal, planned: Planned, *, until: float) -> None:
    asked = {
        "proposal": proposal.as_json(),
        "plan": planned_table(planned),
        "lines": lines(site.name, proposal, planned),
        "until": until,
    }
    write_private(_path(site, proposal.digest, _PENDING), json.dumps(asked, indent=2))


def _until(site: Site, digest: str) -> float:
    """Return how long the question stands; whoever took it away wants no answer."""
    try:
        return float(json.loads(_path(site, digest, _PENDING).read_text())["until"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def _by_policy(site: Site, proposal: Proposal, planned: Planned) -> Approval:
    path = _path(site, proposal.digest, _POLICY)
    known = _read(site, path, proposal.digest)
    if known is not None:
        return known
    plan = planned_table(planned)
    approval = _new(site, proposal, plan, approved=True, how="by policy", who="policy.toml")
    write_once(path, _signed(site, approval))
    return approval


def _new(
    site: Site, proposal: Proposal, plan: dict[str, Any], *, approved: bool, how: How, who: str
) -> Approval:
    return Approval(
        party=site.name,
        proposal=proposal.digest,
        session=proposal.session,
        approved=approved,
        how=how,
        who=who,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        policy=site.policy.digest,
        plan=plan,
    )


def _signed(site: Site, approval: Approval) -> str:
    signature = site.identity.sign(approval.signed_text())
    return json.dumps({"approval": asdict(approval), "signature": signature.hex()}, indent=2) + "\n"


def _read(site: Site, path: Path, digest: str) -> Approval | None:
    if not path.exists():
        return None
    found = read_approval(path, site.identity.public)
    how: How = "by policy" if path == _path(site, digest, _POLICY) else "by hand"
    approved = path != _path(site, digest, _REFUSED)
    if (found.proposal, found.party, found.approved, found.how) != (digest, site.name, approved, how):
        raise Declining("not approved", f"{path} is about something else. Find out who put it there.")
    return found


def _accepted(found: Approval) -> Approval:
    if not found.approved:
        raise Declining("not approved", f"{found.who} said no, on {found.when}.")
    return found


def _path(site: Site, digest: str, ending: str = "") -> Path:
    if not _DIGEST.fullmatch(digest):
        raise ConfigError("a proposal's hash has 64 hexadecimal digits.")
    return site.approvals / f"{digest}{ending}.json"
