"""What `cofactor join` tells about a party: its keys, what was asked and said, and what was spent."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli.text import GREEN, RED, YELLOW, print_facts, print_line, print_table
from cofactor.errors import CofactorError

if TYPE_CHECKING:
    from cofactor.network.proposal import Proposal
    from cofactor.network.rehearsing import Rehearsal
    from cofactor.network.site import Site


def rehearsal_object(proposal: "Proposal", found: "Rehearsal") -> dict[str, Any]:
    """Return a dry run as one object."""
    return {
        "proposal": proposal.digest,
        "session": proposal.session,
        "plan": asdict(found.planned),
        "refused": [{"code": each.code, "why": str(each)} for each in found.refused],
        "asks": found.asks,
        "sent": 0,
    }


def print_rehearsal(site: "Site", proposal: "Proposal", found: "Rehearsal") -> None:
    """Say what a proposal would mean here."""
    from cofactor.network.approval import lines, plain

    for line in lines(site.name, proposal, found.planned):
        print_line(line)
    for each in found.refused:
        print_line(plain(f"would be refused: {each}"), RED)
    if not found.refused:
        if found.asks:
            print_line("The policy allows it; a person would be asked for a yes.", YELLOW)
        else:
            print_line("The policy accepts it, and nobody would be asked.", GREEN)
    print_line("Nothing was started, and nothing was sent.")


def overview(site: "Site") -> dict[str, Any]:
    """Return all that a party's folder tells, as one object."""
    from cofactor.figures import fingerprint
    from cofactor.network.approval import decisions, pending

    key = site.identity.public
    return {
        "name": site.name,
        "key": key.hex(),
        "fingerprint": fingerprint(key),
        "certificate_ends": _expires(site),
        "policy": site.policy.as_table(),
        "peers": {name: fingerprint(its) for name, its in site.pins.known.items()},
        "waiting": [each.proposal.digest for each in pending(site)],
        "answers": [asdict(each) for each in decisions(site)],
        "sessions": [_session(each) for each in site.sessions()],
        "ledgers": [_ledger(path) for path in _ledgers(site)],
    }


def print_overview(told: dict[str, Any]) -> None:
    """Print it for people."""
    names = ("name", "key", "fingerprint", "certificate_ends")
    print_facts({name: told[name] for name in names})
    print_line(f"accepts {told['policy']['accept']}")
    if told["peers"]:
        print_table(("party", "fingerprint"), list(told["peers"].items()), title="Pinned")
    if told["answers"]:
        rows = [
            (
                each["when"],
                "yes" if each["approved"] else "no",
                each["who"],
                _what(each["plan"]),
                each["session"],
            )
            for each in told["answers"]
        ]
        print_table(("when", "said", "who", "what", "session"), rows, title="Answers")
    if told["sessions"]:
        begun = [
            (each["session"], each["rounds"], "yes" if each["finished"] else "no")
            for each in told["sessions"]
        ]
        print_table(("session", "rounds answered", "finished"), begun, title="Sessions")
    for each in told["ledgers"]:
        print_line(f"{each['ledger']}: {each['told']}")
    for each in told["waiting"]:
        print_line(f"A plan waits for an answer: {each}. Answer it: cofactor join answer", YELLOW)


def _what(plan: dict[str, Any]) -> str:
    epsilon = plan.get("epsilon")
    cost = "no budget" if epsilon is None else f"epsilon {epsilon:.4g}"
    return f"{plan.get('what')}, {cost}"


def _expires(site: "Site") -> str | None:
    from cofactor.network import kits

    return kits.expires(site.kit).date().isoformat() if (site.kit / "startup").is_dir() else None


def _session(folder: Path) -> dict[str, Any]:
    from cofactor.federation.session import told_before

    rounds = {event.step for event in told_before(folder) if event.stage == "round"}
    return {
        "session": folder.name,
        "rounds": len(rounds),
        "finished": (folder / "run" / "run.json").exists(),
        "folder": str(folder),
    }


def _ledgers(site: "Site") -> list[Path]:
    from cofactor.federation.party import ledger_path

    sources = (site.ratings, site.people_source, site.records_source)
    files = dict.fromkeys(site.folder / each.file for each in sources if each is not None)
    return [ledger_path(file) for file in files if ledger_path(file).exists()]


def _ledger(path: Path) -> dict[str, Any]:
    from cofactor.privacy.ledger import Ledger

    try:
        ledger = Ledger.open(path)
    except CofactorError as error:
        return {"ledger": str(path), "told": f"cannot be used: {error}"}
    spent, budget = ledger.spent().epsilon, ledger.budget.epsilon
    told = f"epsilon {spent:.4g} of {budget:g} spent"
    return {"ledger": str(path), "spent": spent, "budget": budget, "told": told}
