"""The coordinator's end of everything: agree with all parties, drive the rounds, and write the run folder.

What it needs to go on after a crash lies in its own folder, before the next question is asked:

proposal.json   what is proposed
common.json     how users in common were found
agreed.json     what parties told and signed, and the terms
keys.bin        the public part of keys of encrypted sums
transcript.jsonl, events.jsonl, coordinator.npz
outcome.json    how it ended: "finished", "refused", or "paused", which is no end
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from cofactor.errors import CofactorError, Refused, RunError
from cofactor.federation.approvals import Approved
from cofactor.federation.channel import Answers, Channel
from cofactor.federation.declining import WORDS
from cofactor.federation.drive import Round, Session, drive, farewell, rounds_had
from cofactor.federation.halves import Coordinator
from cofactor.federation.host import Host
from cofactor.federation.session import alone_in, seconds_in_rounds, tell, told_before
from cofactor.federation.transcript import Transcript
from cofactor.network.agreeing import Agreeing, Missing
from cofactor.network.outcomes import OUTCOME, PAUSE, write_outcome
from cofactor.network.proposal import Proposal
from cofactor.network.work import AtCoordinator
from cofactor.network.works import at_coordinator
from cofactor.progress import Listener, Progress, nobody

_FINAL = tuple(WORDS[code] for code in ("over budget", "not planned", "ledger", "other terms"))
"""What no waiting changes."""
PROPOSAL, RUN = "proposal.json", "run"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How it ended, or why it rests."""

    outcome: Literal["finished", "refused", "paused"]
    words: str = ""
    missing: tuple[str, ...] = ()
    """Whom it waits for, where it rests."""


class Paused(Exception):
    """It rests after a finished round, because somebody asked for that."""


def conduct(folder: Path, channel: Channel, listen: Listener = nobody) -> Outcome:
    """Do the work that the folder's proposal says, or go on with it; write down how it ended.

    The run folder is `run` in the folder. Whoever wants it to rest after the next round makes a file `pause`.
    """
    with alone_in(folder):
        (folder / OUTCOME).unlink(missing_ok=True)
        try:
            _conducted(folder, channel, listen)
            found = Outcome(outcome="finished")
        except Paused:
            found = Outcome(outcome="paused", words="as was asked for")
        except Missing as missing:
            found = Outcome(outcome="paused", words=str(missing), missing=missing.parties)
        except CofactorError as error:
            found = Outcome(outcome="refused", words=str(error))
        write_outcome(folder, **asdict(found))
    return found


def _conducted(folder: Path, channel: Channel, listen: Listener) -> None:
    proposal = Proposal.from_json((folder / PROPOSAL).read_text())
    channel = _All(channel, tuple(proposal.parties))
    work = at_coordinator(proposal)
    transcript = _transcript(folder, proposal)
    agreeing = Agreeing(folder, proposal, work, channel, transcript)
    agreed = agreeing.agree()
    session = Session(
        name=proposal.session,
        kinds=work.messages,
        transcript=transcript,
        folder=folder,
        summing=work.summing(agreed.decryption),
        forgiving=True,
        may_stop=proposal.kind == "training",
    )
    coordinator = work.begin()
    _drive(work, coordinator, _WithRoles(channel, work.roles(session)), session, listen)
    # It goes out inside another letter, which is noted as it is sent.
    unsent = replace(session, transcript=Transcript.create(None, session=session.name))
    last = farewell(coordinator, unsent, channel.parties, rounds_had(coordinator, session))
    ledgers = agreeing.finish(last)
    _save(work, folder / RUN, session, coordinator, ledgers, agreed.approvals)


def _drive(
    work: AtCoordinator, coordinator: Coordinator, channel: Channel, session: Session, listen: Listener
) -> None:
    """Run the rounds that are left; too few answers are no end, if whoever is missing may come back."""
    folder, silent = session.folder, dict[str, str]()
    assert folder is not None

    def note(event: Progress) -> None:
        tell(folder, event)
        listen(event)

    telling = work.listening(note, seconds_in_rounds(told_before(folder)))

    def done(round: Round) -> None:
        silent.clear()
        telling(round)
        if (folder / PAUSE).exists() and round.number < round.of:
            (folder / PAUSE).unlink(missing_ok=True)
            raise Paused

    try:
        drive(coordinator, _Watched(channel, silent), session, done)
    except Refused as refused:
        _check_final(silent)
        if silent:
            raise Missing(str(refused), tuple(silent)) from None
        raise


def _check_final(silent: Mapping[str, str]) -> None:
    """Refuse where somebody did not answer for a reason that no waiting changes."""
    final = [f"{party} {why}" for party, why in silent.items() if why in _FINAL]
    if final:
        raise Refused(f"{'; '.join(final)}.")


def _save(
    work: AtCoordinator,
    place: Path,
    session: Session,
    coordinator: Coordinator,
    ledgers: Mapping[str, bytes],
    approvals: tuple[Approved, ...],
) -> None:
    if not (place / "run.json").exists():
        work.save(place, session, coordinator, ledgers, approvals)


def _transcript(folder: Path, proposal: Proposal) -> Transcript:
    path = folder / "transcript.jsonl"
    if not path.exists():
        if (folder / "coordinator.npz").exists():
            raise RunError(f"{path} is gone. Begin a new session.")
        Transcript.create(path, session=proposal.session, split=proposal.split)
    return Transcript.open(path, recover=True)


class _All:
    """A channel to all parties of a proposal, of whom some may not be connected."""

    def __init__(self, channel: Channel, parties: tuple[str, ...]) -> None:
        self._channel, self.parties = channel, parties

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        """Ask those who are connected."""
        there = {party: data for party, data in letters.items() if party in self._channel.parties}
        gone = {party: "is not connected" for party in letters if party not in there}
        found = self._channel.ask(round, there, step) if there else Answers(by_party={})
        return Answers(by_party=found.by_party, missing={**found.missing, **gone}, lost=found.lost)


class _WithRoles:
    """A channel beside which those who hold no ratings are asked here."""

    def __init__(self, channel: Channel, roles: Mapping[str, Host]) -> None:
        self._channel, self._roles = channel, roles
        self.parties = tuple(channel.parties)

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        """Ask whoever is asked."""
        here = {name: self._roles[name].handle(data) for name, data in letters.items() if name in self._roles}
        there = {name: data for name, data in letters.items() if name not in self._roles}
        if not there:
            return Answers(by_party=here)
        found = self._channel.ask(round, there, step)
        return Answers(by_party={**here, **found.by_party}, missing=found.missing, lost=found.lost)


class _Watched:
    """A channel that remembers who was silent since the last finished round."""

    def __init__(self, channel: Channel, silent: dict[str, str]) -> None:
        self._channel, self._silent = channel, silent
        self.parties = tuple(channel.parties)

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        """Ask, and remember; a round that nobody answers is not over, and is asked again later."""
        found = self._channel.ask(round, letters, step)
        self._silent.update(found.missing)
        if not found.by_party and not found.lost:
            _check_final(found.missing)
            raise Missing(f"round {round}: nobody answered.", tuple(found.missing))
        return found
