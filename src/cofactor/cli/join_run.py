"""`cofactor join run` and what goes with it: rehearse, take part, and answer."""

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cofactor.cli.network_text import (
    LogTail,
    Tail,
    agreed,
    alone,
    at_terminal,
    check_engine,
    print_pending,
    say,
)
from cofactor.cli.text import ProgressLine, print_json, print_line
from cofactor.errors import ConfigError, Refused, RunError

if TYPE_CHECKING:
    from cofactor.network.approval import Approval, Pending
    from cofactor.network.site import Site

_LOOK = 0.5
"""Seconds between two looks for plans and progress."""


def take_policy(site: "Site", policy: Path | None) -> None:
    """Make a file the policy of the folder, once it was read without a mistake."""
    from cofactor.network.policy import Policy
    from cofactor.network.toml import read_toml, write_private

    if policy is None:
        Policy.read(site.folder / "policy.toml")
        return
    read_toml(policy)
    Policy.read(policy)
    if policy.resolve() != (site.folder / "policy.toml").resolve():
        write_private(site.folder / "policy.toml", policy.read_text(encoding="utf-8"))


def rehearsed(site: "Site", plan: Path, policy: Path | None, *, as_json: bool) -> None:
    """Show what a proposal would mean here, and exit with 1 if it would be refused."""
    from cofactor.cli.join_text import print_rehearsal, rehearsal_object
    from cofactor.network.policy import Policy
    from cofactor.network.rehearsing import read_proposal, rehearse
    from cofactor.network.toml import read_toml

    if policy is not None:
        read_toml(policy)
    proposal = read_proposal(plan)
    found = rehearse(site, proposal, None if policy is None else Policy.read(policy))
    if as_json:
        print_json(rehearsal_object(proposal, found))
    else:
        print_rehearsal(site, proposal, found)
    if found.refused:
        raise typer.Exit(Refused.exit_code)


def take_part(site: "Site", person: str | None, progress: ProgressLine) -> None:
    """Run the party's process in the foreground, and ask about plans as they come."""
    from cofactor.network.kit_policies import write_site
    from cofactor.network.processes import Client
    from cofactor.network.site_log import LOG

    check_engine()
    if not (site.kit / "startup").is_dir():
        raise ConfigError(
            f"{site.folder} has no kit yet. Install what the coordinator signed: cofactor join install "
            f"{site.folder} SIGNED --fingerprint SHA256:..."
        )
    signal.signal(signal.SIGTERM, _stop)
    # A shell that starts this in the background lets it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tail, log, shown = Tail(progress), LogTail(site.folder / LOG), set[str]()
    for each in site.sessions():
        tail.skip(each)
    with alone(site.folder, "cofactor join run"):
        write_site(site.kit, site.folder)  # the folder may have been moved
        with Client(site.folder) as client:
            say(f"{site.name} takes part. Ctrl-C stops; the same command goes on later.")
            while client.running:
                _look(site, person, tail, shown)
                log.show()
                time.sleep(_LOOK)
    raise RunError(f"the party's process ended. See {site.kit / 'console.txt'} and {site.kit / 'log.txt'}.")


def _look(site: "Site", person: str | None, tail: Tail, shown: set[str]) -> None:
    from cofactor.network.approval import pending

    for each in pending(site):
        if at_terminal():
            try:
                answered(site, each, None, person)
            except Refused as refused:  # somebody else was faster; the party goes on
                say(str(refused))
        elif each.proposal.digest not in shown:
            shown.add(each.proposal.digest)
            print_pending(each)
            say(f"Answer it: cofactor join answer {site.folder} --yes (or --no)")
    for session in site.sessions():
        tail.show(session)


def answered(
    site: "Site", asked: "Pending", yes: bool | None, person: str | None, *, quiet: bool = False
) -> "Approval":
    """Write down what a person says to a plan; ask, if nothing was said yet."""
    from cofactor.network.approval import answer as write_answer

    if not quiet:
        print_pending(asked)
    if yes is None:
        yes = agreed("Take part in this?", "say --yes or --no.")
    said = write_answer(site, asked, yes=yes, who=person)
    if not quiet:
        print_line(f"{said.who} said {'yes' if yes else 'no'}; signed, and kept in {site.approvals}.")
    return said


def _stop(*_: object) -> None:
    raise SystemExit(0)
