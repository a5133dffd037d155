"""Ledgers beside the parties' files, and room for a whole schedule before it begins."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cofactor.errors import BudgetExceeded, ConfigError, LedgerError
from cofactor.federation.books import all_released, open_ledger, own_budget, released, reserve
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party, fingerprint
from cofactor.federation.sealing import sealed
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import Laplace
from cofactor.privacy.schedule import Release, Schedule
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from tests.federation.making import BUDGET, ItemSums, on_disk, parties, trained

PURE = Budget(epsilon=2.0, delta=0.0, unit="user")
"""Laplace releases add up exactly: each costs 1 / noise_multiplier."""
BOUND = Bound(size=1.0, norm="l1", unit="user")


@pytest.fixture
def party(tmp_path: Path) -> Party:
    return on_disk(tmp_path, 1)[0]


def release(what: str = "sums", *, cost: float = 0.25, **settings: Any) -> Release:
    return Release(
        what=what, mechanism=Laplace(noise_multiplier=1 / cost), bound=BOUND, dimension=3, **settings
    )


def schedule(*releases: Release, rounds: int = 4, **settings: Any) -> Schedule:
    return Schedule(releases=releases or (release(),), rounds=rounds, **settings)


def spend(ledger: Ledger, of: Release, round: int, run: str = "s") -> None:
    event = Event(
        what=f"{of.what}, round {round}",
        by=ledger.party,
        to="coordinator",
        mechanism=of.mechanism,
        bound=of.bound,
        dimension=of.dimension,
    )
    ledger.spend(event, run=run)


def test_ledger_is_begun_beside_the_file_and_continued(party: Party) -> None:
    assert party.ledger_path is not None
    first = open_ledger(party, PURE, None)
    assert party.ledger_path.exists()
    assert party.ledger_path is not None
    told = sealed(party.fingerprint, party.ledger_path)
    assert (first.party, first.fingerprint, first.budget) == (party.name, told, PURE)
    spend(first, release(), 1)
    again = open_ledger(party, Budget(epsilon=1.0, delta=0.0, unit="user"), None)
    assert len(again.entries) == 1
    assert again.budget == PURE


def test_party_without_a_file_keeps_its_ledger_with_the_run(tmp_path: Path) -> None:
    (north,) = parties(1)
    open_ledger(north, PURE, tmp_path)
    assert (tmp_path / "north.ledger").exists()
    assert open_ledger(north, PURE, None).count == 1


def test_ledger_of_a_file_that_changed_is_refused_or_goes_on_with_newer_data(party: Party) -> None:
    assert party.file is not None
    spend(open_ledger(party, PURE, None), release(), 1)
    party.file.write_text(party.file.read_text() + "99,1,5\n")
    grown = Party.from_csv(party.file)
    with pytest.raises(LedgerError, match=r"belongs to other data.*--newer-data"):
        open_ledger(grown, PURE, None)
    ledger = open_ledger(grown, PURE, None, newer_data=True)
    assert party.ledger_path is not None
    assert ledger.fingerprint == sealed(fingerprint(party.file), party.ledger_path)
    assert ledger.spent().epsilon == pytest.approx(0.25)
    assert open_ledger(grown, PURE, None).count == ledger.count


@pytest.mark.parametrize(
    "other",
    [
        Budget(epsilon=2.0, delta=0.0, unit="rating"),
        Budget(epsilon=2.0, delta=0.0, unit="user", adjacency="replace"),
    ],
    ids=["unit", "adjacency"],
)
def test_ledger_in_other_terms_is_refused(other: Budget, party: Party) -> None:
    open_ledger(party, PURE, None)
    with pytest.raises(LedgerError, match="Use a recipe and a --unit that the ledger knows"):
        open_ledger(party, other, None)


def test_line_that_a_crash_cut_off_is_dropped(party: Party) -> None:
    ledger = open_ledger(party, PURE, None)
    spend(ledger, release(), 1)
    spend(ledger, release(), 2)
    assert party.ledger_path is not None
    whole = party.ledger_path.read_bytes()
    party.ledger_path.write_bytes(whole[:-9])
    mended = open_ledger(party, PURE, None)
    assert [entry.dropped is not None for entry in mended.entries] == [False, True]
    assert len(released(mended, "s")) == 1


def test_changed_ledger_is_not_mended(party: Party) -> None:
    spend(open_ledger(party, PURE, None), release(), 1)
    assert party.ledger_path is not None
    party.ledger_path.write_bytes(party.ledger_path.read_bytes().replace(b"round 1", b"round 2"))
    with pytest.raises(LedgerError, match="was changed"):
        open_ledger(party, PURE, None)


def begun() -> Ledger:
    return Ledger.create(None, party="north", fingerprint="data", budget=PURE)


def fits(ledger: Ledger, count: int) -> bool:
    return ledger.fits([schedule(rounds=count).events()[0]])


def test_schedule_that_does_not_fit_is_refused_before_anything_is_released() -> None:
    ledger = begun()
    with pytest.raises(BudgetExceeded, match="Nothing was released"):
        reserve(ledger, schedule(rounds=9), "s")
    reserve(ledger, schedule(rounds=8), "s")
    assert not ledger.entries


def test_party_reserves_its_own_releases_only() -> None:
    ledger = begun()
    reserve(ledger, schedule(rounds=8, parties=5, shared_units=True), "s")
    assert not fits(ledger, 1)


def test_what_was_charged_before_a_restart_is_not_reserved_again() -> None:
    ledger = begun()
    for round in (1, 2, 3):
        spend(ledger, release(), round)
    reserve(ledger, schedule(rounds=8), "s")
    assert not fits(ledger, 1)
    ledger.give_up_reserved()
    reserve(ledger, schedule(rounds=6), "s")
    assert fits(ledger, 2)
    assert not fits(ledger, 3)


def test_what_other_sessions_charged_is_no_part_of_this_one() -> None:
    ledger = begun()
    spend(ledger, release(), 1, run="other")
    with pytest.raises(BudgetExceeded):
        reserve(ledger, schedule(rounds=8), "s")


def test_releases_that_are_alike_are_counted_one_by_one() -> None:
    ledger = begun()
    twins = schedule(release("users"), release("items"), rounds=4)
    for round in (1, 2):
        for each in twins.releases:
            spend(ledger, each, round)
    reserve(ledger, twins, "s")
    # Four of eight are charged; the other four are reserved, so that nothing else fits.
    assert not fits(ledger, 1)


def test_release_of_some_rounds_is_reserved_for_these() -> None:
    ledger = begun()
    reserve(ledger, schedule(release(rounds=1), release("more", cost=0.25), rounds=4), "s")
    assert fits(ledger, 3)
    assert not fits(ledger, 4)


def test_reserved_releases_are_spent_without_the_accountant(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = begun()
    reserve(ledger, schedule(), "s")
    monkeypatch.setattr(Ledger, "_within", lambda *_: 1 / 0)
    for round in range(1, 5):
        spend(ledger, release(), round)


def test_all_that_parties_released_in_a_session_is_found() -> None:
    one, two = begun(), begun()
    spend(one, release(), 1)
    spend(one, release(), 1, run="other")
    spend(two, release(), 1)
    spend(two, release(), 2)
    assert len(all_released({"a": one, "b": two}, "s")) == 3


def small(epsilon: float = 1.0, **changes: object) -> Budget:
    return replace(BUDGET, **{"epsilon": epsilon, **changes})  # type: ignore[arg-type]


def test_party_may_ask_for_more_privacy_and_for_nothing_else() -> None:
    (north,) = parties(1)
    assert own_budget(north, BUDGET) == BUDGET
    assert own_budget(replace(north, budget=small()), BUDGET) == small()
    for own in (small(5.0), small(1.0, delta=1e-5)):
        with pytest.raises(ConfigError, match="is larger than the run's"):
            own_budget(replace(north, budget=own), BUDGET)
    for own in (small(unit="rating"), small(adjacency="replace")):
        with pytest.raises(ConfigError, match="north: its budget is for"):
            own_budget(replace(north, budget=own), BUDGET)


@pytest.mark.parametrize("aggregate", [PlainSum(), IdealSum(), SecureSum()], ids=["plain", "ideal", "secure"])
def test_party_with_a_smaller_budget_loses_less(aggregate: Any) -> None:
    strict, *others = parties(3)
    federation = Federation.horizontal([replace(strict, budget=small(0.5)), *others])
    run = trained(ItemSums(aggregate=aggregate), federation)
    assert run.together is not None
    losses = {name: facts.epsilon for name, facts in run.together.parties.items()}
    assert losses["north"] is not None
    assert losses["south"] is not None
    assert losses["north"] < losses["south"]
    assert run.guarantee.epsilon is not None
    assert 3.9 < run.guarantee.epsilon <= 4.0


def test_ledger_beside_the_file_counts_over_runs(tmp_path: Path) -> None:
    train: Callable[[], object] = lambda: trained(federation=Federation.horizontal(on_disk(tmp_path)))  # noqa: E731
    train()
    with pytest.raises(BudgetExceeded, match="Nothing was released"):
        train()
    for name in ("north", "south"):
        assert len(Ledger.open(tmp_path / f"{name}.csv.ledger").entries) == 3
