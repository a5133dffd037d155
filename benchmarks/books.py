"""Do everybody's books agree after a training among real parties?

What each party's ledger holds of the session, what its own transcript says that it answered, what the
coordinator's folder says that it charged, and what the guarantee promises, which is reckoned anew.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from benchmarks.real_parties import RealParties
from cofactor.federation.books import released
from cofactor.federation.labels import round_of
from cofactor.federation.run import Run
from cofactor.federation.transcript import Transcript
from cofactor.federation.verify import verify
from cofactor.network.hosting import Hosted
from cofactor.privacy.accountant import spent
from cofactor.privacy.events import Event
from cofactor.privacy.ledger import Ledger


def compared(
    federation: RealParties, hosted: Hosted, files: Mapping[str, Path]
) -> tuple[list[str], list[str]]:
    """Return what the books say, a line each, and which of the lines tell that something is wrong."""
    lines, wrong = list[str](), list[str]()

    def say(line: str, right: bool) -> None:
        lines.append(f"{line}: {'right' if right else 'WRONG'}")
        wrong.extend(lines[-1:] if not right else [])

    everything = {}
    for name, file in files.items():
        own = everything[name] = _charged(file.with_name(file.name + ".ledger"), hosted)
        rounds = Counter(round_of(event) for event in own)
        answered = _answered(federation, hosted, name)
        say(f"{name}: {len(rounds)} rounds charged, none twice", max(rounds.values()) == 1)
        say(f"{name}: {len(answered)} rounds answered, all of them charged", answered <= set(rounds))
        copy = hosted.folder / "run" / "ledgers" / f"{name}.ledger"
        say(f"{name}: the coordinator was told all charges", _charged(copy, hosted) == own)
        say(f"{name}: verify of its own folder", verify(_own(federation, hosted, name) / "run").holds)
    ledgers = [file.with_name(file.name + ".ledger") for file in files.values()]
    say("verify of the coordinator's folder", verify(hosted.folder / "run", ledgers=ledgers).holds)
    promised, again = _promised(hosted, everything)
    say(f"epsilon promised {promised:.9g}, reckoned anew {again:.9g}", abs(promised - again) <= 1e-9 * again)
    return lines, wrong


def _charged(ledger: Path, hosted: Hosted) -> list[Event]:
    return released(Ledger.open(ledger), hosted.proposal.session)


def _own(federation: RealParties, hosted: Hosted, name: str) -> Path:
    return federation.folder / name / "sessions" / hosted.proposal.session


def _answered(federation: RealParties, hosted: Hosted, name: str) -> set[int]:
    sent = Transcript.open(_own(federation, hosted, name) / "transcript.jsonl", recover=True).sent
    return {each.round for each in sent if each.sender == name and each.round}


def _promised(hosted: Hosted, events: Mapping[str, list[Event]]) -> tuple[float, float]:
    """Return the guarantee's epsilon, and that of whoever lost most: parties have users of their own."""
    guarantee = Run.load(hosted.folder / "run").guarantee
    if not guarantee.holds or guarantee.epsilon is None:
        return float("nan"), 0.0
    budget = hosted.proposal.work["budget"]
    costs = [
        spent(own, budget["delta"], unit=budget["unit"], adjacency=budget["adjacency"]).epsilon
        for own in events.values()
    ]
    return guarantee.epsilon, max(costs)
