"""`cofactor host`: what the coordinator types."""

import shutil
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from cofactor.cli import options
from cofactor.cli.host_run import check_admitted, check_fewest, proposed, see_through
from cofactor.cli.network_text import alone, check_engine, compared
from cofactor.cli.outcome import print_next
from cofactor.cli.text import print_facts, print_json, print_line, print_table
from cofactor.errors import ConfigError, RunError, did_you_mean

app = typer.Typer(no_args_is_help=True, help="Coordinate real parties: admit them, propose, and run.")

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The coordinator's own folder.")]
Config = Annotated[
    Path | None, typer.Option(help="TOML: [federation], [recipe], [budget]; or [question]; or [clustering].")
]


@app.command("new")
def new(
    folder: Folder,
    address: Annotated[str, typer.Option(help="The name or number under which parties reach this machine.")],
    port: Annotated[
        int, typer.Option(help="The one TCP port that parties connect to.", min=1, max=65535)
    ] = 8002,
    json: options.Json = False,
) -> None:
    """Make the coordinator's folder: its certificate authority, server and keys."""
    from cofactor.network import kits

    check_engine()
    fingerprint = kits.new_host(folder, address=address, port=port)
    told = {"folder": str(folder), "address": f"{address}:{port}", "fingerprint": fingerprint}
    if json:
        print_json(told)
        return
    print_facts(told)
    print_line("Tell the fingerprint to every party, by telephone: their kits take no other coordinator.")
    print_line(f"Whoever has {folder / 'ca'} can admit anybody: keep a copy where only you can get it.")


@app.command("admit")
def admit(
    folder: Folder,
    request: Annotated[Path, typer.Argument(metavar="REQUEST", help="What a party sent: NAME.request.zip.")],
    fingerprint: Annotated[
        str | None, typer.Option(help="The party's, as its people told you; asked for, if left out.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="The party was admitted before, and renews its certificate.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="With --again: the party lost its identity, and has a new one.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Where to write NAME.signed.zip; here, if left out.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Sign a party's request, once its fingerprint was compared with the people there."""
    from cofactor.figures import fingerprint as of_key
    from cofactor.network import enrolling, kits
    from cofactor.network.hosting import check_host

    check_host(folder)
    if not request.is_file():
        raise ConfigError(f"{request} is not there. A party makes it: cofactor join new")
    asked = enrolling.read_enrolment(request)
    compared(asked.name, of_key(asked.key), fingerprint)
    signed = enrolling.admit(folder, asked, again=again, replace=replace)
    place = out or Path(f"{asked.name}.signed.zip")
    shutil.copyfile(signed, place)
    told = {
        "party": asked.name,
        "organisation": asked.organisation,
        "fingerprint": of_key(asked.key),
        "signed": str(place),
        "coordinator": kits.fingerprint(folder),
    }
    if json:
        print_json(told)
        return
    print_facts(told)
    print_line(f"Send {place} back, and when all are admitted {folder / enrolling.PARTIES} to every party.")


@app.command("propose")
def propose(
    folder: Folder,
    config: Config = None,
    out: Annotated[Path, typer.Option(help="Where to write the proposal.")] = Path("plan.json"),
    json: options.Json = False,
) -> None:
    """Write a proposal that parties can look at beforehand. Starts and sends nothing."""
    proposal = proposed(folder, config)
    if out.exists():
        raise ConfigError(f"{out} is there already. Name another file with --out.")
    out.write_text(proposal.as_json(), encoding="utf-8")
    told = {
        "proposal": str(out),
        "kind": proposal.kind,
        "parties": ", ".join(proposal.parties),
        "session": proposal.session,
        "hash": proposal.digest,
    }
    if json:
        print_json(told)
        return
    print_facts(told)
    print_line(f"Parties look at it with: cofactor join run FOLDER ... --dry-run --plan {out.name}")
    print_line(f"Next: cofactor host run {folder} --plan {out}")


@app.command("run")
def run(
    folder: Folder,
    config: Config = None,
    plan: Annotated[Path | None, typer.Option(help="What 'cofactor host propose' wrote.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a session that was stopped, and has not ended.")
    ] = False,
    session: Annotated[str | None, typer.Option(help="With --resume: which, if there are several.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/<time> if left out.")] = None,
    fewest: Annotated[
        int | None,
        typer.Option(help="How many parties must be there to go on; all, if left out. All must agree first."),
    ] = None,
    deadline: Annotated[
        float | None, typer.Option(help="Seconds that a party has for an answer: 600, or as it began.")
    ] = None,
    ping: Annotated[
        float | None,
        typer.Option(
            help="Seconds without a sign of life after which a party is given up: 10, or as before."
        ),
    ] = None,
    patience: Annotated[float, typer.Option(help="Seconds to wait for parties to come.")] = 86_400.0,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Start the server, wait for parties, and see the work through, whatever breaks on the way."""
    from cofactor.federation.flare import Patience
    from cofactor.network.hosting import Hosted, check_host, check_out
    from cofactor.network.rehearsing import read_proposal
    from cofactor.network.supervising import Waiting

    if sum((config is not None, plan is not None, resume)) != 1:
        raise ConfigError("name one: --config job.toml, --plan plan.json, or --resume.")
    if session is not None and not resume:
        raise ConfigError("--session goes with --resume.")
    check_host(folder)
    place = out or Path("runs") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    check_out(place, overwrite=force)
    given = {"deadline": deadline, "ping_patience": ping}
    said = {name: each for name, each in given.items() if each is not None}
    with alone(folder, "cofactor host run"):
        if resume:
            work = Hosted.resumed(folder, session)
            check_fewest(fewest, work.proposal)
            work.wait_for(**said)
        else:
            proposal = proposed(folder, config) if plan is None else read_proposal(plan)
            check_admitted(folder, proposal)
            check_fewest(fewest, proposal)
            work = Hosted.begin(folder, proposal, Patience(**said))
        see_through(work, fewest, Waiting(come=patience), quiet=quiet or json)
    work.copy_to(place, overwrite=force)
    if json:
        print_json({"run": str(place), "session": work.proposal.session, "outcome": "finished"})
        return
    print_line(f"Saved in {place}.")
    print_next("verify", place)


@app.command("renew")
def renew(folder: Folder, json: options.Json = False) -> None:
    """Make new keys and certificates for the coordinator's own server. Stop the server first."""
    from cofactor.network.hosting import certificates, renew_own

    renew_own(folder)
    ends = certificates(folder)["server"].date().isoformat()
    if json:
        print_json({"expires": ends})
        return
    print_line(
        f"The server's new certificate ends on {ends}. Its fingerprint, which parties know, is as before."
    )


@app.command("revoke")
def revoke(
    folder: Folder,
    name: Annotated[str, typer.Argument(metavar="PARTY", help="Who is let in no more.")],
    json: options.Json = False,
) -> None:
    """Let a party in no more. Its name is never given again."""
    from cofactor.network import kits
    from cofactor.network.enrolling import admitted
    from cofactor.network.hosting import check_host

    known = admitted(check_host(folder)).known
    if name not in known:
        raise ConfigError(f"{folder} never admitted {name!r}.{did_you_mean(name, known)}")
    kits.revoke(folder, name)
    at_once = _shut_out(folder, name)
    if json:
        print_json({"revoked": list(kits.revoked(folder)), "running_server_told": at_once})
        return
    when = "at once" if at_once else "when the server starts again; none answered now"
    print_line(f"{name} is let in no more: {when}. Leave it out of job.toml.")


@app.command("show")
def show(folder: Folder, json: options.Json = False) -> None:
    """Tell who was admitted, when certificates end, and what was run."""
    from cofactor.figures import fingerprint
    from cofactor.network import kits
    from cofactor.network.enrolling import admitted
    from cofactor.network.hosting import certificates, check_host, hosted

    ends, gone = certificates(check_host(folder)), kits.revoked(folder)
    told: dict[str, Any] = {
        "fingerprint": kits.fingerprint(folder),
        "certificates": {name: end.date().isoformat() for name, end in ends.items()},
        "parties": {
            name: {"fingerprint": fingerprint(key), "revoked": name in gone}
            for name, key in admitted(folder).known.items()
        },
        "sessions": {each.proposal.session: each.state for each in hosted(folder)},
    }
    if json:
        print_json(told)
        return
    print_facts({"coordinator": told["fingerprint"]})
    rows = [
        (name, told["certificates"][name], "revoked" if its["revoked"] else "admitted", its["fingerprint"])
        for name, its in told["parties"].items()
    ]
    own = [(name, told["certificates"][name], "own", "") for name in ("server", "submitter")]
    print_table(("who", "certificate ends", "", "fingerprint"), [*own, *rows])
    if told["sessions"]:
        print_table(("session", "state"), list(told["sessions"].items()))


def _shut_out(folder: Path, name: str) -> bool:
    """Tell a server that runs; say whether one did."""
    from cofactor.network.jobs import Submitter

    try:
        with Submitter(folder, seconds=5) as session:
            session.shut_out(name)
    except RunError:
        return False
    return True
