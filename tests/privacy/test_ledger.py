import json
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.errors import BudgetExceeded, CofactorError, ConfigError, LedgerError, Refused
from cofactor.privacy import accountant, chain
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Bound, Event, Norm
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import Gaussian, Laplace, PoissonBinomial, SampledGaussian
from tests.privacy.making import bound_for

L1 = Bound(size=3.0, norm="l1", unit="user")
L2 = Bound(size=3.0, norm="l2", unit="user")
PURE = Budget(epsilon=2.0, delta=0.0, unit="user")
"""Laplace releases add up exactly: each costs 1 / noise_multiplier."""


def laplace(cost: float, count: int = 1, what: str = "sums") -> Event:
    mechanism = Laplace(noise_multiplier=1 / cost)
    return Event(what=what, by="north", to="coordinator", mechanism=mechanism, bound=L1, count=count)


def begun(path: Path | None = None, **settings: Any) -> Ledger:
    return Ledger.create(path, party="north", fingerprint="data 1", **{"budget": PURE, **settings})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "north.csv.ledger"


@pytest.fixture
def reckonings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that the accountant is asked."""
    asked: list[int] = []
    spent = accountant.spent

    def counting(events: Any, *given: Any, **named: Any) -> accountant.Spent:
        asked.append(1)
        return spent(events, *given, **named)

    monkeypatch.setattr(accountant, "spent", counting)
    return asked


def test_ledger_opened_again_has_spent_the_same(path: Path) -> None:
    ledger = begun(path)
    ledger.spend(laplace(0.5), run="first")
    ledger.spend(laplace(0.25, count=3, what="counts"), run="second")
    again = Ledger.open(path, fingerprint="data 1")
    assert again.spent() == ledger.spent()
    assert again.spent().epsilon == pytest.approx(1.25)
    assert again.left == pytest.approx(0.75)
    assert again.entries == ledger.entries
    assert [entry.run for entry in again.entries] == ["first", "second"]
    assert again.entries[1].event == laplace(0.25, count=3, what="counts")
    assert (again.party, again.budget, again.per) == ("north", PURE, None)
    assert (again.count, again.head) == (3, ledger.head)


def test_budget_can_be_spent_to_the_last_bit_and_not_a_bit_more(path: Path) -> None:
    ledger = begun(path)
    for _ in range(20):
        ledger.spend(laplace(0.1))
    assert ledger.left == pytest.approx(0, abs=1e-12)
    with pytest.raises(BudgetExceeded):
        ledger.spend(laplace(1e-8))
    assert Ledger.open(path).count == 21


def test_refusal_comes_before_anything_is_written(path: Path) -> None:
    ledger = begun(path)
    ledger.spend(laplace(1.5))
    before = path.read_bytes()
    with pytest.raises(BudgetExceeded) as refused:
        ledger.spend(laplace(0.1, count=6, what="item gradients"))
    assert path.read_bytes() == before
    assert str(refused.value) == (
        "item gradients by north (6 times) would bring epsilon to 2.10; the budget is 2.00. "
        "Nothing was released. 5 such releases would fit, or use noise_multiplier >= 12.1."
    )
    ledger.spend(laplace(0.1, count=5))
    assert ledger.left == pytest.approx(0, abs=1e-12)


def test_advice_is_true_for_gaussian_noise() -> None:
    ledger = begun(budget=Budget(epsilon=2.0, delta=1e-6, unit="user"))
    mechanism = Gaussian(noise_multiplier=20.0)
    event = Event(what="sums", by="north", to="coordinator", mechanism=mechanism, bound=L2, count=200)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.spend(event)
    words = str(refused.value).split()
    most, noise = int(words[words.index("such") - 1]), float(words[-1].rstrip("."))
    assert ledger.fits([replace(event, count=most)])
    assert not ledger.fits([replace(event, count=most + 1)])
    assert ledger.fits([replace(event, mechanism=Gaussian(noise_multiplier=noise))])
    assert not ledger.fits([replace(event, mechanism=Gaussian(noise_multiplier=noise * 0.98))])


def test_reserved_releases_are_spent_without_asking_again(reckonings: list[int], path: Path) -> None:
    ledger = begun(path)
    ledger.reserve([laplace(0.1, count=10), laplace(0.05, count=4)])
    assert len(reckonings) == 1
    for round_number in range(10):
        ledger.spend(laplace(0.1, what=f"sums, round {round_number}"))
    ledger.spend(laplace(0.05, count=4))
    assert len(reckonings) == 1
    assert Ledger.open(path).spent().epsilon == pytest.approx(1.2)


def test_reservation_is_used_up_by_spending() -> None:
    ledger = begun()
    ledger.reserve([laplace(1.0, count=2)])
    ledger.spend(laplace(1.0))
    ledger.spend(laplace(1.0))
    with pytest.raises(BudgetExceeded):
        ledger.spend(laplace(1.0))
    assert ledger.spent().epsilon == pytest.approx(2.0)


def test_more_of_an_event_than_was_reserved_is_reckoned_anew() -> None:
    ledger = begun()
    ledger.reserve([laplace(0.5, count=3)])
    with pytest.raises(BudgetExceeded):
        ledger.spend(laplace(0.5, count=5))
    ledger.spend(laplace(0.5, count=4))
    assert ledger.left == pytest.approx(0, abs=1e-12)


def test_reserved_counts_against_other_spending_until_given_up() -> None:
    ledger = begun()
    ledger.reserve([laplace(0.5, count=3)])
    assert ledger.spent().epsilon == 0
    assert not ledger.fits([laplace(0.6)])
    with pytest.raises(BudgetExceeded):
        ledger.spend(laplace(0.6))
    with pytest.raises(BudgetExceeded, match="them would fit"):
        ledger.reserve([laplace(0.3, count=2), laplace(0.1)])
    ledger.spend(laplace(0.4))
    ledger.give_up_reserved()
    ledger.spend(laplace(1.6))


def test_reservation_that_another_process_has_spent_is_noticed(path: Path) -> None:
    ledger = begun(path)
    ledger.reserve([laplace(0.5, count=4)])
    Ledger.open(path).spend(laplace(0.6))
    ledger.spend(laplace(0.5, count=2))
    with pytest.raises(BudgetExceeded):
        ledger.spend(laplace(0.5))
    assert Ledger.open(path).spent().epsilon == pytest.approx(1.6)


def test_schedule_that_does_not_fit_is_refused_as_a_whole() -> None:
    ledger = begun()
    with pytest.raises(
        BudgetExceeded, match=r"these 7 releases.*The first 6 of them would fit, or use 1\.\d+"
    ):
        ledger.reserve([laplace(0.4, count=4), laplace(0.2, count=3)])
    assert ledger.fits([laplace(2.0)])


def test_nothing_can_be_reserved_at_any_time() -> None:
    ledger = begun()
    ledger.spend(laplace(2.0))
    ledger.reserve([])


def test_spent_budget_says_so() -> None:
    ledger = begun()
    ledger.spend(laplace(2.0))
    with pytest.raises(BudgetExceeded, match="The budget is spent"):
        ledger.spend(laplace(1.0))


SPENDER = """
import sys
from cofactor.errors import BudgetExceeded
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import Laplace
bound = Bound(size=3.0, norm="l1", unit="user")
event = Event(what="sums", by="north", to="all", mechanism=Laplace(noise_multiplier=20.0), bound=bound)
ledger, spent = Ledger.open(sys.argv[1]), 0
try:
    for _ in range(100):
        ledger.spend(event, run=sys.argv[2])
        spent += 1
except BudgetExceeded:
    print(spent)
"""


def test_two_processes_together_spend_no_more_than_the_budget(path: Path) -> None:
    begun(path)
    words = [sys.executable, "-c", SPENDER, str(path)]
    processes = [subprocess.Popen([*words, name], stdout=subprocess.PIPE, text=True) for name in ("a", "b")]
    spent = [int(process.communicate()[0]) for process in processes]
    assert sum(spent) == 40
    ledger = Ledger.open(path)
    assert ledger.spent().epsilon == pytest.approx(2.0)
    assert sorted(entry.run for entry in ledger.entries) == ["a"] * spent[0] + ["b"] * spent[1]


def test_two_threads_together_spend_no_more_than_the_budget() -> None:
    ledger = begun()
    refused = []

    def spend() -> None:
        for _ in range(30):
            try:
                ledger.spend(laplace(0.1))
            except BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(ledger.entries), len(refused)) == (20, 40)


def test_foreign_data_are_refused(path: Path) -> None:
    begun(path)
    with pytest.raises(LedgerError, match="belongs to other data"):
        Ledger.open(path, fingerprint="data 2")


def test_newer_data_continue_the_ledger_and_what_was_spent_stays(path: Path) -> None:
    ledger = begun(path)
    ledger.spend(laplace(1.5))
    ledger.extended("data 2")
    ledger.extended("data 2")
    again = Ledger.open(path, fingerprint="data 2")
    assert again.spent().epsilon == pytest.approx(1.5)
    assert again.count == 3
    with pytest.raises(LedgerError, match="belongs to other data"):
        Ledger.open(path, fingerprint="data 1")


@dataclass
class Clock:
    """A clock that can be set."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(("per", "same", "later"), [("month", "2026-01-31", "2026-02-01"),
                                                    ("year", "2026-12-31", "2027-01-01")])  # fmt: skip
def test_renewed_budget_counts_only_its_period(per: str, same: str, later: str, path: Path) -> None:
    clock = Clock(day("2026-01-15"))
    ledger = begun(path, per=per, clock=clock)
    ledger.spend(laplace(1.5))
    clock.now = day(same)
    with pytest.raises(BudgetExceeded, match=f"2.00 for this {per}"):
        ledger.spend(laplace(0.6))
    clock.now = day(later)
    assert ledger.left == 2.0
    ledger.spend(laplace(0.6))
    assert ledger.spent().epsilon == pytest.approx(0.6)
    assert ledger.spent(ever=True).epsilon == pytest.approx(2.1)
    assert Ledger.open(path, clock=clock).spent() == ledger.spent()


def test_clock_set_back_or_forth_frees_nothing(path: Path) -> None:
    clock = Clock(day("2026-03-15"))
    ledger = begun(path, per="month", clock=clock)
    ledger.spend(laplace(1.0))
    clock.now = day("2026-02-15")
    with pytest.raises(BudgetExceeded):
        ledger.spend(laplace(1.5))
    ledger.spend(laplace(1.0))
    clock.now = day("2026-03-20")
    assert ledger.spent().epsilon == pytest.approx(2.0)
    assert ledger.entries[-1].time == day("2026-03-15")


def test_reservation_is_reckoned_anew_when_the_clock_is_set_back(path: Path) -> None:
    clock = Clock(day("2026-01-15"))
    ledger = begun(path, per="month", clock=clock)
    ledger.spend(laplace(1.5))
    clock.now = day("2026-02-15")
    ledger.reserve([laplace(1.0)])
    clock.now = day("2026-01-20")
    with pytest.raises(BudgetExceeded):
        ledger.spend(laplace(1.0))


def test_entry_cut_off_by_a_crash_is_dropped_only_when_asked_for_and_noted(path: Path) -> None:
    ledger = begun(path)
    ledger.spend(laplace(0.5))
    kept = path.read_bytes()
    ledger.spend(laplace(0.5))
    torn = path.read_bytes()[len(kept) : -20]
    path.write_bytes(kept + torn)
    with pytest.raises(LedgerError, match=r"line 3: was not completely written.*--recover"):
        Ledger.open(path)
    assert path.read_bytes() == kept + torn
    again = Ledger.open(path, recover=True)
    assert again.spent().epsilon == pytest.approx(0.5)
    assert [entry.dropped for entry in again.entries] == [None, len(torn)]
    assert Ledger.open(path, recover=True).head == again.head, "nothing to recover, nothing to note"


def test_entry_that_lacks_only_its_line_end_stays_charged(path: Path) -> None:
    begun(path).spend(laplace(0.5))
    path.write_bytes(path.read_bytes()[:-1])
    assert Ledger.open(path, recover=True).spent().epsilon == pytest.approx(0.5)


def test_lost_entries_are_noticed_by_what_a_run_has_kept(path: Path) -> None:
    ledger = begun(path)
    ledger.spend(laplace(0.5))
    count, head = ledger.count, ledger.head
    ledger.spend(laplace(0.5))
    Ledger.open(path).check_kept(count, head)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(LedgerError, match="lost entries"):
        Ledger.open(path).check_kept(count, head)


@dataclass(frozen=True, kw_only=True)
class Homemade:
    """A mechanism that the ledger could write but not read again."""

    norm: Norm = "l1"
    exact: bool = True

    def check(self, bound: Bound) -> None:
        pass

    def scaled(self, factor: float) -> Self:  # noqa: ARG002
        return self


def test_event_that_could_not_be_read_again_is_not_written(path: Path) -> None:
    ledger = begun(path)
    before = path.read_bytes()
    event = Event(what="sums", by="north", to="all", mechanism=Homemade(), bound=L1)
    for ask in (ledger.spend, lambda unreadable: ledger.reserve([unreadable])):
        with pytest.raises(ConfigError, match="Homemade"):
            ask(event)
    assert path.read_bytes() == before


def test_numbers_from_numpy_are_written_as_plain_ones(path: Path) -> None:
    event = replace(laplace(float(np.float32(0.1))), count=np.int64(3), dimension=np.int32(5))  # type: ignore[arg-type]
    begun(path).spend(event)
    assert Ledger.open(path).entries[0].event == event


@pytest.mark.parametrize(
    "mechanism",
    [
        Gaussian(noise_multiplier=1.1),
        SampledGaussian(noise_multiplier=0.7, sampling=0.01),
        Laplace(noise_multiplier=1 / 3),
        PoissonBinomial(trials=4, theta=0.01, participants=100),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_every_event_comes_back_as_it_was(mechanism: Any, path: Path) -> None:
    bound = bound_for(mechanism, size=1.5)
    event = Event(
        what="ünïcode ☃", by="", to="x 'y'", mechanism=mechanism, bound=bound, slack=1e-12, secure=False
    )
    loose = Budget(epsilon=9.0, delta=0.009, unit="user")
    ledger = begun(path, budget=loose)
    ledger.spend(event)
    assert Ledger.open(path).entries[0].event == event


def test_reserving_nothing_does_not_renew_what_others_have_spent_since(path: Path) -> None:
    one = begun(path)
    room = one.budget.epsilon
    one.reserve([laplace(room)])
    Ledger.open(path).spend(laplace(room), run="somebody else")
    one.reserve([])
    with pytest.raises(BudgetExceeded):
        one.spend(laplace(room))


def test_refusal_by_the_accountant_writes_nothing(path: Path) -> None:
    ledger = begun(path)
    before = path.read_bytes()
    other = replace(laplace(0.1), bound=Bound(size=1.0, norm="l1", unit="rating"))
    with pytest.raises(Refused, match="proves nothing for each user"):
        ledger.spend(other)
    assert path.read_bytes() == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
EVENT_NAMES = ("mechanism", "bound", "count", "dimension", "slack", "secure", "what", "new")
NAMES = ("time", "run", "event", "fingerprint", "dropped", "party", "budget", "per", "format")
TIMES = st.sampled_from(["2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00", "0001-01-01T00:00:00+23:59"])


def forged(place: Path, facts: list[dict[str, Any]]) -> Path:
    """Write lines with good seals and whatever content."""
    head, lines = chain.NOTHING_BEFORE, []
    for number, each in enumerate(facts, 1):
        lines.append(chain._sealed(each, number, head))
        head = json.loads(lines[-1])["hash"]
    place.write_bytes(b"".join(lines))
    return place


def good_facts() -> list[dict[str, Any]]:
    ledger = begun(clock=Clock(day("2025-12-31")))
    ledger.spend(laplace(0.5), run="r")
    return [dict(link.facts) for link in ledger._chain.links]


@given(line=st.sampled_from([0, 1]), name=st.sampled_from(NAMES), value=JSON | TIMES)
def test_well_sealed_nonsense_is_a_ledger_error(
    line: int, name: str, value: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    facts = good_facts()
    facts[line] |= {name: value}
    place = forged(tmp_path_factory.getbasetemp() / "forged.ledger", facts)
    with suppress(LedgerError):
        Ledger.open(place)


@given(name=st.sampled_from(EVENT_NAMES), value=JSON)
def test_well_sealed_nonsense_in_an_event_is_a_ledger_error(
    name: str, value: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    facts = good_facts()
    facts[1]["event"] = {**facts[1]["event"], name: value}
    place = forged(tmp_path_factory.getbasetemp() / "forged.ledger", facts)
    with suppress(LedgerError):
        Ledger.open(place)


@pytest.mark.parametrize("number", [10**400, -1, True, "1", [1]], ids=lambda number: str(number)[:5])
@pytest.mark.parametrize(
    ("line", "table", "name"),
    [
        (0, "budget", "epsilon"),
        (1, "event", "count"),
        (1, "mechanism", "noise_multiplier"),
        (1, "bound", "size"),
    ],
)
def test_well_sealed_numbers_that_make_no_sense_are_a_ledger_error(
    line: int, table: str, name: str, number: object, path: Path
) -> None:
    facts = json.loads(json.dumps(good_facts()))
    place = facts[line]["event"][table] if table in ("mechanism", "bound") else facts[line][table]
    place[name] = number
    with pytest.raises(LedgerError, match=f"line {line + 1}"):
        Ledger.open(forged(path, facts))


def test_entry_of_an_unknown_kind_stops_every_later_call(path: Path) -> None:
    facts = good_facts()
    ledger = Ledger.open(forged(path, facts))
    forged(path, [*facts, {"time": "2026-01-01T00:00:00+00:00", "surprise": 1}])
    for _ in range(2):
        with pytest.raises(LedgerError, match="line 3: is no entry"):
            ledger.spend(laplace(0.1))


def test_entry_dated_before_the_one_above_is_refused(path: Path) -> None:
    facts = good_facts()
    with pytest.raises(LedgerError, match="line 2: is dated before"):
        Ledger.open(forged(path, [facts[0], {**facts[1], "time": "2025-12-30T00:00:00+00:00"}]))


def test_warning_about_a_large_budget_is_given_once(path: Path) -> None:
    with pytest.warns(UserWarning, match="next to nothing"):
        large = Budget(epsilon=11.0, delta=1e-6, unit="user")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        begun(path, budget=large)
        assert Ledger.open(path).budget == large


MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: begun(per="week"), "per must be one of month, year, got 'week'"),
    (lambda: Ledger.create(None, party="", fingerprint="x", budget=PURE), "party must be a text"),
    (lambda: Ledger.create(None, party="a", fingerprint="", budget=PURE), "fingerprint must be a text"),
    (lambda: begun().extended(3), "fingerprint must be a text, and not empty"),  # type: ignore[arg-type]
    (lambda: begun().spend((1, 2)), "spend takes an Event"),  # type: ignore[arg-type]
    (lambda: begun().extended(""), "fingerprint must be a text, and not empty"),
    (lambda: begun(Path("no/such/folder/a.ledger")), "cannot be made"),
    (lambda: Ledger.open("nosuch.ledger"), "cannot be opened"),
]


@pytest.mark.parametrize(("call", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_mistake_gets_a_clear_message(call: Callable[[], object], message: str) -> None:
    with pytest.raises(CofactorError, match=message):
        call()


def test_content_is_a_copy_that_opens_and_is_kept_in_the_original(path: Path, tmp_path: Path) -> None:
    ledger = begun(path)
    ledger.spend(laplace(0.5), run="first")
    copy = tmp_path / "copy.ledger"
    copy.write_bytes(ledger.content())
    assert copy.read_bytes() == path.read_bytes()
    ledger.spend(laplace(0.5), run="second")
    stored = Ledger.open(copy)
    assert [entry.run for entry in stored.entries] == ["first"]
    ledger.check_kept(stored.count, stored.head)
    with pytest.raises(LedgerError, match="has lost entries"):
        stored.check_kept(ledger.count, ledger.head)


def test_content_of_a_ledger_in_memory_is_that_of_its_file(path: Path) -> None:
    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    contents = []
    for place in (path, None):
        ledger = begun(place, clock=clock)
        ledger.spend(laplace(0.5), run="first")
        contents.append(ledger.content())
    assert contents[0] == contents[1] == path.read_bytes()
