"""`verify`: does a run folder bear out what it promises? Its ledgers and its transcript are reckoned anew.

What can be found out this way is that somebody changed a part of the folder. Whoever writes all of it anew,
with seals to match, is found out by the ledgers that lie beside the data, and by nothing in the folder.
"""

import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cofactor.config import from_table
from cofactor.errors import DAMAGES, CofactorError, LedgerError, PrivacyWarning, RunError
from cofactor.federation.approvals import approvals_from, check_approvals
from cofactor.federation.books import all_released, released
from cofactor.federation.door import COORDINATOR
from cofactor.federation.folder import AUDITS, CAPTURED, digests, read_audits, read_facts, seal
from cofactor.federation.labels import round_of
from cofactor.federation.splits import shared_units
from cofactor.federation.summing import ENCRYPTED, MASKED, OPENS, PROTECTIONS, SIMULATION, SumStep
from cofactor.federation.transcript import AGREED, Sent, Transcript
from cofactor.figures import number_of, rounded_up
from cofactor.privacy.budget import Budget
from cofactor.privacy.chain import TornLine
from cofactor.privacy.events import Event
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.ledger import EXTRACT, PLANNED, Ledger
from cofactor.privacy.personal import worst_of

_CLOSE = 1e-6
"""Relative difference of two epsilons that are the same but for the libraries that reckoned them."""
_DAMAGES = (*DAMAGES, OSError)
"""What reading a damaged folder can raise."""
_APPROVED = 3
"""The first layout of run.json whose folders keep how real parties agreed."""
_RECKONED = ("delta", "unit", "adjacency", "budget_epsilon", "releases", "secure_noise")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    holds: bool
    detail: str
    """A sentence: what was found, or what is wrong."""


@dataclass(frozen=True)
class Verdict:
    """All that was looked at."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether everything is as the folder says. It may say that nothing is promised."""
        return all(check.holds for check in self.checks)


def verify(folder: str | Path, *, ledgers: Iterable[str | Path] = ()) -> Verdict:
    """Check a run folder; `ledgers` are those beside the data, which must still hold what the run's do."""
    facts = read_facts(folder)
    if not facts.get("together"):
        return Verdict((_check("promise", partial(_nothing_promised, facts)),))
    run = _Stored(Path(folder), facts)
    checks = [
        *(_check(f"ledger of {party}", partial(run.ledger_is_whole, party)) for party in run.parties),
        _check("transcript", run.transcript_is_whole),
        _check("answers", run.answers_are_charged),
        _check("releases", run.releases_are_told),
        _check("guarantee", run.guarantee_is_borne_out),
        _check("files", run.files_are_whole),
        *([_check("approvals", run.approvals_are_signed)] if run.agreed else []),
        *([_check("audits", run.audits_are_whole)] if (Path(folder) / AUDITS).exists() else []),
        *(_check(f"{path}", partial(run.kept_in, Path(path))) for path in ledgers),
    ]
    return Verdict(tuple(checks))


def _check(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except TornLine:  # whose words are for whoever can still mend it
        return Check(name, False, "It is cut off: its last line is not whole.")
    except CofactorError as error:
        return Check(name, False, str(error))
    except _DAMAGES as error:
        return Check(name, False, f"The folder is damaged ({type(error).__name__}: {error}).")


def _nothing_promised(facts: Mapping[str, Any]) -> str:
    if Guarantee.from_json(facts["guarantee"]).epsilon is not None:
        raise RunError("The run promises privacy, and has neither ledgers nor a transcript to show for it.")
    return "Nothing was promised, so there is nothing to check."


class _Stored:
    """What a run of several parties has stored."""

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        self._folder = folder
        self._facts = facts
        self._together: Mapping[str, Any] = facts["together"]
        if not isinstance(self._together, Mapping) or not isinstance(self._together.get("parties"), Mapping):
            raise RunError(f"{folder}: the run folder is damaged (together). Train again.")
        self.parties: tuple[str, ...] = tuple(self._together["parties"])

    def files_are_whole(self) -> str:
        """Check that no file was changed, added or lost since the run was saved."""
        if seal(self._facts)["seal"] != self._facts.get("seal"):
            raise RunError("run.json was changed after it was written.")
        told, found = self._facts["files"], digests(self._folder)
        removed = not (self._folder / CAPTURED).exists()
        for name in sorted({*told, *found}):
            if removed and Path(name).parts[0] == CAPTURED:
                continue  # as its own README asks for
            if told.get(name) != found.get(name):
                raise RunError(f"{name} was changed, added or lost after the run was saved.")
        return f"run.json and {number_of(len(found), 'file')} are as they were saved."

    @property
    def agreed(self) -> bool:
        """Whether parties agreed on a network before the first round."""
        try:
            said = any(sent.protection == AGREED for sent in self._transcript.sent)
        except (CofactorError, *_DAMAGES):
            said = False  # another check tells what is wrong with the transcript
        return said or bool(self._together.get("approvals"))

    def approvals_are_signed(self) -> str:
        """Check that all parties signed that they take part, in the same."""
        approvals = approvals_from(self._together.get("approvals") or ())
        if not approvals and self._facts["format"] < _APPROVED:
            return f"Folders of format {self._facts['format']} keep no approvals: ask the parties for theirs."
        if not approvals:
            raise RunError("Real parties agreed beforehand, and none of their approvals is here.")
        return check_approvals(approvals, self.parties, self._session)

    def audits_are_whole(self) -> str:
        """Check that what later audits found was not changed."""
        audits = read_audits(self._folder)
        alarms = {name: facts for name, facts in audits.items() if facts.get("verdict") == "alarm"}
        sure = [name for name, facts in alarms.items() if not _chance(facts, len(audits))]
        if sure:
            raise RunError(f"An audit says that the promise was not kept: {', '.join(sure)}.")
        told = "none with an alarm" if not alarms else f"{len(alarms):,} with an alarm that chance explains"
        return f"Audits of the run: {len(audits):,}, {told}."

    def ledger_is_whole(self, party: str) -> str:
        """Check the copy of a party's ledger: its seals, and that it is the one that the run stored."""
        path = self._ledger_path(party)
        if self._budget is None:
            if path.exists():
                raise RunError("There is a ledger, and the run had no budget.")
            return "There was no budget, so there is no ledger."
        if not path.is_file():
            raise RunError(f"{path.name} is missing.")
        _check_digest(path, self._together["sha256"]["ledgers"].get(party))
        ledger = self._ledger(party)
        own = released(ledger, self._session)
        if ledger.fingerprint == PLANNED:
            return f"{party} was not heard of in the end: all that was planned is counted in place of it."
        rounds = {round_of(event) for event in own}
        entries, where = number_of(len(own), "entry", "entries"), number_of(len(rounds), "round")
        return f"Its seals are whole; of this run it has {entries} in {where}."

    def transcript_is_whole(self) -> str:
        """Check the transcript: its seals, its session, and its sizes."""
        path = self._folder / "transcript.jsonl"
        if not path.is_file():
            raise RunError(f"{path.name} is missing.")
        _check_digest(path, self._together["sha256"]["transcript"])
        if self._transcript.session != self._session:
            raise RunError("It tells of another session.")
        if self._transcript.split != self._together["split"]:
            raise RunError("It tells of parties that relate otherwise than run.json says.")
        told = {party: self._together["parties"][party]["bytes_sent"] for party in self.parties}
        sent = self._transcript.bytes_by_sender()
        found = {party: sent[party] for party in self.parties}
        if found != told or self._transcript.total_bytes != self._together["bytes"]:
            raise RunError("Its messages have other sizes in all than run.json tells.")
        count, size = len(self._transcript.sent), self._transcript.total_bytes
        return f"Its seals are whole; {number_of(count, 'message')}, {number_of(size, 'byte')}."

    def answers_are_charged(self) -> str:
        """Check that whatever left a party was protected, charged in its round, and never made twice."""
        self._check_agreement()
        answers = [sent for sent in self._transcript.sent if sent.sender != COORDINATOR and sent.round]
        charged = {
            (party, round_of(event))
            for party, ledger in self._ledgers.items()
            for event in released(ledger, self._session)
        }
        digests: dict[tuple[str, int, str, str], str] = {}
        for sent in answers:
            where = f"{sent.sender}, round {sent.round}"
            self._check_answer(
                sent, (sent.sender, sent.round) in charged or sent.sender in self._planned, where
            )
            # A secure sum takes several messages of a party; what protects them tells them apart.
            which = sent.sender, sent.round, sent.kind, sent.protection
            # A decrypter may be asked for several parts of a sum that it opens.
            if digests.setdefault(which, sent.digest) != sent.digest and sent.protection != OPENS:
                raise RunError(f"{where}: two different answers left the party.")
        answered = {(sender, round) for sender, round, *_ in digests}
        unseen = len({each for each in charged if each[0] not in self._planned} - answered)
        beside = f" {unseen:,} more were charged and never arrived." if unseen else ""
        left = number_of(len(answered), "answer")
        return f"{left} left the parties, each in its round as it should be.{beside}"

    def _check_agreement(self) -> None:
        """Check that what parties on a network said before the first round is called what it is."""
        for sent in self._transcript.sent:
            if sent.round == 0 and sent.protection != AGREED:
                raise RunError(f"{sent.sender}, round 0: there was no such party or round.")
            if sent.round != 0 and sent.protection == AGREED:
                raise RunError(f"{sent.sender}, round {sent.round}: nothing is agreed on in a round.")

    def _check_answer(self, sent: Sent, charged: bool, where: str) -> None:
        role = sent.sender in self._together.get("roles", ())
        if not (role or sent.sender in self.parties) or not 1 <= sent.round <= self._together["rounds"]:
            raise RunError(f"{where}: there was no such party or round.")
        if role and sent.protection != "public":
            raise RunError(f"{where}: it holds no ratings, and sent something that is not public.")
        protection, _, hidden = sent.protection.partition(", ")
        if hidden not in ("", MASKED, ENCRYPTED, SIMULATION) or protection not in PROTECTIONS:
            raise RunError(f"{where}: nobody knows what {sent.protection!r} protects.")
        if protection == OPENS and (sent.kind != SumStep.__name__ or hidden):
            raise RunError(f"{where}: something else than a decrypter's part passes for one.")
        if protection in ("noise", "a share of noise") and not charged:
            raise RunError(f"{where}: an answer left, and the party's ledger knows nothing of it.")
        if protection == "nothing" and self._budget is not None:
            raise RunError(f"{where}: an answer left without any protection.")
        if protection == "a share of noise" and not hidden:
            raise RunError(f"{where}: {sent.receiver} saw an answer that had only a share of the noise.")
        if protection == "a share of noise" and hidden == SIMULATION and self._promises:
            raise RunError(f"{where}: only a simulation hid an answer, and the run promises privacy.")

    @property
    def _planned(self) -> set[str]:
        """Parties that were not heard of in the end: all that was planned is counted, whatever the rounds."""
        return {party for party, ledger in self._ledgers.items() if ledger.fingerprint == PLANNED}

    @property
    def _promises(self) -> bool:
        return Guarantee.from_json(self._facts["guarantee"]).holds

    def releases_are_told(self) -> str:
        """Check each party's releases: their rounds, their maker, and the loss that run.json tells."""
        if self._budget is None:
            return "There was no budget, so nothing was released with noise."
        for party, ledger in self._ledgers.items():
            own = released(ledger, self._session)
            rounds = set() if party in self._planned else {round_of(event) or 0 for event in own}
            own += released(ledger, *self._surveys)
            if any(event.by != party for event in own) or any(each not in self._rounds for each in rounds):
                raise RunError(
                    f"{party}: its ledger has releases of others, or of rounds that there were not."
                )
            told, least = self._together["parties"][party]["epsilon"], self._cost(own)
            if told is not None and not told >= least * (1 - _CLOSE):  # what is no number is not, either
                raise RunError(f"{party} loses at least epsilon {least:.4g}, and run.json says {told:.4g}.")
        twice = (len(self._ledgers) - 1) * self._checked_joint()
        counts = [
            sum(event.count for event in released(each, self._session)) for each in self._ledgers.values()
        ]
        least, most = min(counts), max(counts)
        each = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        return f"{number_of(sum(counts) - twice, 'release')}, {each} for each party."

    def _checked_joint(self) -> int:
        """Check that what parties released together stands in the ledgers of all; return how much it is."""
        joint = []
        for ledger in self._ledgers.values():
            own: Counter[Event] = Counter()
            for event in released(ledger, self._session):
                own[event.once()] += event.count if event.joint else 0
            joint.append(+own)
        if any(own != joint[0] for own in joint):
            raise RunError("What the parties released together is not the same in all of their ledgers.")
        return joint[0].total() if joint else 0

    def guarantee_is_borne_out(self) -> str:
        """Check that the ledgers add up to what is promised, and that the promise is what is written."""
        stored = Guarantee.from_json(self._facts["guarantee"])
        words = self._compared_words(stored)
        if self._budget is None:
            if stored.epsilon is not None:
                raise RunError("The run had no budget, and promises privacy all the same.")
            return "Nothing was promised."
        events = all_released(self._ledgers, self._session, *self._surveys)
        apart = shared_units(self._together["split"], self._budget.unit)
        found = Guarantee.of(events, self._budget, shared_units=apart)
        differs = [name for name in _RECKONED if getattr(found, name) != getattr(stored, name)]
        if differs or set(found.by) != set(stored.by):
            raise RunError(f"The ledgers do not bear out {', '.join(differs) or 'by'} of the guarantee.")
        if not _same(found.epsilon, stored.epsilon):
            raise RunError(
                f"The ledgers add up to epsilon {found.epsilon}; the guarantee says {stored.epsilon}."
            )
        if not _same(found.replaced_odds, stored.replaced_odds):
            raise RunError("The ledgers do not bear out replaced_odds of the guarantee.")
        self._check_personal(stored)
        assert found.epsilon is not None
        return f"The ledgers add up to epsilon {rounded_up(found.epsilon, 4)}, as the guarantee says.{words}"

    def _check_personal(self, stored: Guarantee) -> None:
        """Check that what smaller weights are promised follows from what was released, too."""
        assert self._budget is not None
        told = stored.personal
        if (None if told is None else told.mechanism) != self._budget.personal:
            raise RunError("The guarantee and the budget differ in who is promised more privacy.")
        if told is None:
            return
        sampled = self._budget.epsilon if self._budget.personal == "sampling" else None
        events = worst_of(all_released(self._ledgers, self._session), self._budget)
        promised = self._budget.of_weight_1
        if told.events != events or (told.threshold, told.epsilon) != (sampled, promised):
            raise RunError("The ledgers do not bear out what the guarantee says of smaller weights.")

    def _compared_words(self, stored: Guarantee) -> str:
        """Compare the whole text, which only the version that wrote it writes in the same words."""
        written_by = self._facts.get("versions", {}).get("cofactor")
        if written_by != version("cofactor"):
            return f" Its words are those of cofactor {written_by}: nobody compared them with its numbers."
        if json.loads(json.dumps(stored.as_json())) != self._facts["guarantee"]:
            raise RunError("The guarantee's words do not say what its numbers say.")
        return ""

    def kept_in(self, path: Path) -> str:
        """Check that a ledger beside the data still holds all that a copy of the run's holds."""
        live = Ledger.open(path)
        for party, copy in self._ledgers.items():
            own = released(copy, self._session)
            known = bool(own) or live.party == party
            if copy.fingerprint == EXTRACT and known and released(live, self._session) == own:
                return f"It holds all that {party} says it charged in this run, and no more of it."
            try:
                live.check_kept(copy.count, copy.head)
            except LedgerError:
                continue
            return f"It holds all that {party}'s copy holds, and {live.count - copy.count:,} entries more."
        raise RunError("It has lost entries that this run remembers, or belongs to none of its parties.")

    @property
    def _session(self) -> str:
        return str(self._together["session"])

    @property
    def _surveys(self) -> tuple[str, ...]:
        return tuple(self._together.get("surveys", {}))

    @property
    def _rounds(self) -> range:
        return range(1, int(self._together["rounds"]) + 1)

    @cached_property
    def _budget(self) -> Budget | None:
        table = self._together["budget"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            return None if table is None else from_table(Budget, table, "budget")

    @cached_property
    def _ledgers(self) -> dict[str, Ledger]:
        if self._budget is None:
            return {}
        return {party: self._ledger(party) for party in self.parties}

    @cache  # noqa: B019 - reading takes its time, and this object lives no longer than the check
    def _ledger(self, party: str) -> Ledger:
        return Ledger.open(self._ledger_path(party))

    @cached_property
    def _transcript(self) -> Transcript:
        return Transcript.open(self._folder / "transcript.jsonl")

    def _ledger_path(self, party: str) -> Path:
        return self._folder / "ledgers" / f"{party}.ledger"

    def _cost(self, events: Any) -> float:
        from cofactor.privacy.accountant import spent  # it takes a second to load

        budget = self._budget
        assert budget is not None
        return spent(events, budget.delta, unit=budget.unit, adjacency=budget.adjacency).epsilon


def _check_digest(path: Path, wanted: object) -> None:
    if sha256(path.read_bytes()).hexdigest() != wanted:
        raise RunError(f"{path.name} is not the file that the run stored.")


def _chance(facts: Mapping[str, Any], audits: int) -> bool:
    """Say whether one of so many audits may have found this in an honest run."""
    p_value = facts["figures"].get("p-value of the promise")
    return p_value is not None and p_value * audits > 1 - facts["confidence"]


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_CLOSE)
