"""`Seat`: a party's end of everything. Bytes come in, bytes go out, and no error ever does.

It reads proposals and lets the party decide; it works the terms out for itself and compares; it makes room in
the ledger; and then it hands each round to the recipe's own end of the wire. What it must remember to go on
after a crash lies in the party's own folder before it answers.
"""

import threading
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from cofactor.errors import ConfigError, RunError
from cofactor.federation.declining import Declining, code_of, declined
from cofactor.federation.door import COORDINATOR
from cofactor.federation.messages import Heading, Letter, heading
from cofactor.network.approval import Approval, approve, note_opened
from cofactor.network.letters import ROUND_0, Propose
from cofactor.network.proposal import Proposal
from cofactor.network.seated import Seated
from cofactor.network.site import Site
from cofactor.network.site_log import SiteLog
from cofactor.network.work import AtParty, Planned, Sitting
from cofactor.network.works import at_party
from cofactor.randomness import Random, SecureRandom

_SECURE = SecureRandom()
_WAIT = 2.0
"""Seconds in which a decision may still come before the coordinator is told to ask again."""
_MOST = 16
"""Plans that may wait for a person at the same time."""


class Seat:
    """A party, whoever asks."""

    def __init__(self, site: Site, *, random: Random = _SECURE) -> None:
        """Take a party's folder; `random` is its own chance, secure unless a test says otherwise."""
        self._site, self._random = site, random
        self._log = SiteLog(site.folder)
        self._guard = threading.RLock()
        self._seated: dict[str, Seated] = {}
        self._deciding: dict[str, _Decision] = {}
        self._closed = False

    def handle(self, data: bytes) -> bytes:
        """Answer, or say by a code why not."""
        head = None
        try:
            head = heading(data)
            if head.sender != COORDINATOR:
                raise Declining("out of order", "a letter that does not come from the coordinator.")
            return self._answer(head, data)
        except Exception as error:  # no error, and no word of one, crosses the party's boundary
            code = "unreadable" if head is None else code_of(error)
            if code != "waiting":  # which is said again and again
                self._log.note(error, code, head)
            session, round = ("", 0) if head is None else (head.session, head.round)
            return declined(code, session=session, round=round, sender=self._site.name)

    def close(self) -> None:
        """Let other processes of this party have its sessions: this one answers nothing more."""
        with self._guard:
            self._closed = True
            for seated in self._seated.values():
                seated.close()
            self._log.close()

    def _answer(self, head: Heading, data: bytes) -> bytes:
        if head.round == 0:
            with self._guard:
                if self._closed:
                    raise Declining("unknown session", "this process has ended its part.")
                return self._agreeing(_opened(data), data)
        seated = self._seated.get(head.session)
        if seated is None:
            raise Declining("unknown session", "a round of a session that nothing is known of.")
        return seated.round(head, data)

    def _agreeing(self, letter: Letter, data: bytes) -> bytes:
        """Take one step before the first round, or after the last one."""
        body = letter.body
        if isinstance(body, Propose):
            self._propose(letter.session, body)
        seated = self._seated.get(letter.session)
        if seated is None:
            raise Declining("unknown session", "a step of a session that nothing is known of.")
        return seated.step(body, data)

    def _propose(self, session: str, body: Propose) -> None:
        """Let the party decide; only then there is a seat for this session."""
        try:
            proposal = Proposal.from_json(body.proposal)
        except ConfigError as error:
            raise Declining("unreadable", str(error)) from None
        if proposal.session != session:
            raise Declining("out of order", "a proposal of another session than its letter's.")
        before = self._seated.get(session)
        if before is not None:
            if before.proposal.digest != proposal.digest:
                raise Declining("other terms", "another proposal under the name of a session that has begun.")
            return  # asked again: nothing has changed
        decision = self._decision(proposal)
        if not decision.made(_WAIT):
            raise Declining("waiting", "a person has not decided yet.")
        del self._deciding[proposal.digest]
        self._seated[session] = Seated(*decision.result())

    def _decision(self, proposal: Proposal) -> "_Decision":
        """Return the decision about a proposal that is being made; few can be at the same time."""
        if proposal.digest not in self._deciding:
            self._deciding = {name: each for name, each in self._deciding.items() if not each.made(0)}
            if len(self._deciding) >= _MOST:
                raise Declining("not approved", "too many plans wait for a person.")
            self._deciding[proposal.digest] = _Decision(self._decide, proposal)
        return self._deciding[proposal.digest]

    def _decide(self, proposal: Proposal) -> "Judged":
        """Judge a proposal: versions, keys, policy, and a person if the policy says so."""
        site = self._site
        if proposal.version != version("cofactor"):
            raise Declining(
                "version", f"the coordinator has cofactor {proposal.version}, and this is another version."
            )
        site.pins.check(proposal, site.name, site.identity.public)
        sitting = Sitting(
            name=site.name,
            proposal=proposal,
            identity=site.identity,
            folder=site.session_folder(proposal.session),
            random=self._random,
            most=site.policy.max_epsilon,
            max_delta=site.policy.max_delta,
            newer_data=site.policy.newer_data,
        )
        work = at_party(sitting, site)
        site.policy.check_asked(work.asked())
        planned = work.planned()
        said = approve(site, proposal, planned)
        note_opened(site, proposal)
        return sitting, work, planned, said


Judged = tuple[Sitting, AtParty, Planned, Approval]
"""What a party has agreed to."""


class _Decision:
    """A decision that may take a person's time: it is made in a thread, and asked for again and again."""

    def __init__(self, decide: Callable[[Proposal], Judged], proposal: Proposal) -> None:
        self._judged: Judged | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(decide, proposal), daemon=True)
        self._thread.start()

    def made(self, patience: float) -> bool:
        self._thread.join(patience)
        return not self._thread.is_alive()

    def result(self) -> Judged:
        if self._error is not None:
            raise self._error
        assert self._judged is not None
        return self._judged

    def _run(self, decide: Callable[[Proposal], Judged], proposal: Proposal) -> None:
        try:
            self._judged = decide(proposal)
        except Exception as error:  # it is raised again where it was asked for
            self._error = error


def _opened(data: bytes) -> Letter:
    try:
        return Letter.from_bytes(data, ROUND_0)
    except RunError as error:
        raise Declining("unreadable", str(error)) from None


def open_seat(folder: str | Path) -> Seat:
    """Open a party's folder, and be ready for whatever is asked."""
    return Seat(Site.open(folder))
