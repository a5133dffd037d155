from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.cluster.clustering import find_clusters
from cofactor.cluster.halves import FindCentres
from cofactor.cluster.lloyd import PrivateLloyd
from cofactor.cluster.local import LSHForest, as_published
from cofactor.cluster.records import Records
from cofactor.cluster.result import Clustering
from cofactor.cluster.simple import IndependentCounts, LocalMemberships
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.tables import SecureTable
from cofactor.errors import BudgetExceeded, ConfigError, RunError
from cofactor.federation.books import released
from cofactor.federation.declining import Declining, code_in, code_of
from cofactor.federation.door import COORDINATOR
from cofactor.federation.drive import drive, farewell
from cofactor.federation.finding import find_common
from cofactor.federation.folder import read_facts
from cofactor.federation.messages import Letter
from cofactor.federation.verify import verify
from cofactor.network.cluster_coordinator import ClusteringAtCoordinator, Finding
from cofactor.network.cluster_party import ClusteringAtParty
from cofactor.network.cluster_terms import ClusteringWork, ClustersFound
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.progress import nobody
from cofactor.randomness import InsecureRandom
from tests.cluster.making import mixture
from tests.network.relaying import (
    SESSION,
    Relay,
    Seated,
    agreed,
    conducted,
    extract_of,
    identities,
    plain,
    proposal_of,
    session_of,
    sitting_of,
)

NAMES = ("bank", "shop", "gym")
POINTS, _ = mixture(180, columns=6)
BUDGET = Budget(epsilon=8.0, delta=1e-6, unit="user")
SIZES = ClusteringWork(clusters=3, budget=BUDGET, method=IndependentCounts(), align="ids")
TABLES = replace(SIZES, method=SecureTable(bits=2048), local_clusters=3)
SEED = 4


def records(folder: Path, name: str) -> Records:
    """Return a party's columns; of the first users some are missing at each party."""
    place = NAMES.index(name)
    file, columns = folder / f"{name}.csv", (f"{name}-a", f"{name}-b")
    if not file.exists():
        folder.mkdir(exist_ok=True)
        own = POINTS[10 * place :, 2 * place : 2 * place + 2]
        lines = [f"u{10 * place + row},{one:.6f},{other:.6f}\n" for row, (one, other) in enumerate(own)]
        file.write_text(f"user,{columns[0]},{columns[1]}\n" + "".join(lines))
    return Records.from_csv(file, id="user", ranges=dict.fromkeys(columns, (-1.0, 1.0)), name=name)


def counted_by(work: ClusteringWork) -> str:
    return type(work.method).__name__


class Table:
    """Parties who sit down as often as they must."""

    def __init__(
        self, folder: Path, work: ClusteringWork = SIZES, names: tuple[str, ...] = NAMES[:2], **settings: Any
    ) -> None:
        self.folder, self.names, self.keys = folder, names, identities(names)
        self.proposal = proposal_of("clustering", work.table(), self.keys, seed=SEED)
        self.settings = {"insecure": 7, **settings}
        self.coordinator = ClusteringAtCoordinator(self.proposal)
        self.seats = {name: self.seat(name) for name in names}

    def seat(self, name: str, **more: Any) -> Seated:
        settings = {**self.settings, **more}
        sitting = sitting_of(self.folder, name, self.proposal, self.keys, split="vertical", **settings)
        return Seated(sitting, ClusteringAtParty(sitting, lambda: records(self.folder, name)))

    def seated(self) -> tuple[Any, Any]:
        """Sit down, and return the terms and facts."""
        terms, facts, _ = agreed(self.seats, self.coordinator)
        for seat in self.seats.values():
            seat.host = seat.work.host(terms, facts, None, None)
        return terms, facts

    def ledger(self, name: str) -> Ledger:
        return Ledger.open(self.folder / f"{name}.csv.ledger")

    def letter(self, round: int, local_clusters: int) -> bytes:
        body = FindCentres(local_clusters=local_clusters)
        return Letter(session=SESSION, round=round, sender=COORDINATOR, body=body).to_bytes()

    def driven(self, folder: Path | None = None) -> Any:
        """Go through all rounds, and return the coordinator's half."""
        half = self.coordinator.begin()
        session = session_of(self.coordinator, self.proposal, folder)
        drive(half, Relay(self.seats), session, self.coordinator.listening(nobody))
        return half


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def in_process(folder: Path, work: ClusteringWork, names: tuple[str, ...], **more: Any) -> Clustering:
    return find_clusters(
        [records(folder, name) for name in names],
        clusters=work.clusters,
        budget=work.budget,
        method=work.method,
        local=work.local,
        local_clusters=work.local_clusters,
        align=work.align,
        among=work.among,
        seed=SEED,
        random=InsecureRandom(7),
        **more,
    )


@pytest.mark.parametrize(
    ("work", "names"),
    [
        (SIZES, NAMES[:2]),
        (TABLES, NAMES),
        (replace(SIZES, align="psi", local=PrivateLloyd()), NAMES),
        (replace(SIZES, align="psi", among="chain", method=LocalMemberships()), NAMES),
    ],
    ids=["sizes", "tables", "psi", "chain"],
)
def test_the_network_finds_what_one_process_finds(
    tmp_path: Path, work: ClusteringWork, names: tuple[str, ...]
) -> None:
    there = Table(tmp_path, work, names)
    conducted(there.seats, there.coordinator, there.proposal, tmp_path / "run")
    found, here = Clustering.load(tmp_path / "run"), in_process(tmp_path / "again", work, names)
    assert found.facts == here.facts
    assert found.facts.users == 180 - 10 * (len(names) - 1)
    for one, other in zip(found.local_centres, here.local_centres, strict=True):
        assert np.array_equal(one, other)
    assert np.allclose(found.table, here.table)
    assert np.allclose(found.centres, here.centres)
    assert found.settings == plain(here.settings)
    assert found.guarantee.epsilon == here.guarantee.epsilon
    assert found.guarantee.releases == here.guarantee.releases
    assert found.together.rounds == here.together.rounds
    assert found.together.alignment == here.together.alignment
    lost = [each.epsilon for each in found.together.parties.values()]
    assert lost == [each.epsilon for each in here.together.parties.values()]
    assert verify(tmp_path / "run", ledgers=[tmp_path / f"{name}.csv.ledger" for name in names]).holds


@pytest.mark.parametrize(
    "work",
    [TABLES, pytest.param(replace(TABLES, method=Sketches(rows=512)), marks=pytest.mark.slow)],
    ids=["tables", "sketches"],
)
def test_every_party_keeps_the_clusters_and_its_own_books(tmp_path: Path, work: ClusteringWork) -> None:
    there = Table(tmp_path, work, NAMES, insecure=None)
    conducted(there.seats, there.coordinator, there.proposal, tmp_path / "run")
    whole = Clustering.load(tmp_path / "run")
    assert whole.guarantee.holds
    assert verify(tmp_path / "run").holds
    assert [each.party for each in whole.together.approvals] == list(NAMES)
    for name in NAMES:
        own = tmp_path / f"{name}-{SESSION}" / "run"
        found = Clustering.load(own)
        assert verify(own).holds, verify(own)
        assert np.array_equal(found.centres, whole.centres)
        assert np.array_equal(found.table, whole.table)
        assert list(found.together.parties) == list(found.together.ledgers) == [name]
        assert found.together.approvals == whole.together.approvals
        assert any("one party's folder" in each for each in found.guarantee.warnings)
        assert found.guarantee.epsilon is not None
        assert found.guarantee.epsilon < BUDGET.epsilon
        assert len(found.assign(records(tmp_path, name))) == len(records(tmp_path, name))


def test_ids_that_are_shown_are_in_the_guarantee_and_so_is_that_the_coordinator_saw_them(
    table: Table,
) -> None:
    conducted(table.seats, table.coordinator, table.proposal, table.folder / "run")
    told = Clustering.load(table.folder / "run").guarantee.does_not_cover
    assert any("All parties showed each other all their ids" in each for each in told)
    assert any("the coordinator passed all ids on" in each for each in told)


def test_with_a_private_search_nobody_shows_an_id(tmp_path: Path) -> None:
    there = Table(tmp_path, replace(SIZES, align="psi"))
    assert all(seat.work.showing() is None for seat in there.seats.values())
    conducted(there.seats, there.coordinator, there.proposal, tmp_path / "run")
    told = Clustering.load(tmp_path / "run").guarantee.does_not_cover
    assert not any("passed all ids on" in each for each in told)
    assert any("private set intersection told each" in each for each in told)


def test_what_leaves_a_party_in_the_end_tells_of_this_session_only(table: Table) -> None:
    before = in_process(
        table.folder,
        replace(SIZES, budget=replace(BUDGET, epsilon=1.0)),
        NAMES[:2],
        ledger_budget=replace(BUDGET, epsilon=9.0),
    )
    conducted(table.seats, table.coordinator, table.proposal, table.folder / "run")
    copy = Ledger.from_bytes(extract_of(table.seats["bank"]))
    assert {entry.run for entry in copy.entries} == {SESSION}
    assert {entry.run for entry in table.ledger("bank").entries} == {SESSION, before.together.session}


def test_planning_tells_what_it_costs_and_writes_nothing(table: Table) -> None:
    records(table.folder, "bank")
    files = sorted(table.folder.rglob("*"))
    found = table.seats["bank"].work.planned()
    assert (found.kind, found.what, found.epsilon, found.delta) == (
        "clustering",
        "IndependentCounts",
        8.0,
        1e-6,
    )
    assert (found.rounds, found.aggregate, found.telling) == (2, "PlainSum", "intersection")
    assert found.in_all is not None
    assert 3.0 < found.in_all < 8.0
    words = " ".join(found.sees)
    assert "All ids of this party are shown to the coordinator and to all parties" in words
    assert "local centres of this party, with all of their noise" in words
    assert sorted(table.folder.rglob("*")) == files


def test_planning_says_if_others_who_collude_break_the_promise(tmp_path: Path) -> None:
    sketched = Table(tmp_path, replace(SIZES, method=Sketches()), NAMES).seats["bank"].work.planned()
    counted = Table(tmp_path, replace(TABLES, align="psi"), NAMES).seats["bank"].work.planned()
    broken = "If other parties tell the coordinator what they know"
    assert any(each.startswith(broken) for each in sketched.sees)
    assert not any(each.startswith(broken) for each in counted.sees)
    assert (counted.aggregate, counted.telling) == ("SecureSum", "psi")
    assert any("bank, which leads the search, learns" in each for each in counted.sees)


@pytest.mark.parametrize(
    "work",
    [SIZES, TABLES, pytest.param(replace(SIZES, method=LocalMemberships()), marks=pytest.mark.slow)],
    ids=counted_by,
)
def test_about_as_much_is_charged_and_sent_as_was_planned(tmp_path: Path, work: ClusteringWork) -> None:
    there = Table(tmp_path, work, NAMES)
    planned = {name: seat.work.planned() for name, seat in there.seats.items()}
    conducted(there.seats, there.coordinator, there.proposal, tmp_path / "run")
    sent = read_facts(tmp_path / "run")["together"]["parties"]
    for name, plan in planned.items():
        assert there.ledger(name).spent().epsilon == pytest.approx(plan.in_all, rel=0.05)
        assert plan.traffic / 2 < sent[name]["bytes_sent"] < plan.traffic * 2


def other_range(terms: Any, facts: Any) -> None:
    facts["shop"]["ranges"][0] = terms["told"]["shop"]["ranges"][0] = [1.0, -1.0]


def other_own(terms: Any, facts: Any) -> None:
    for place in (terms["told"], facts):
        place["bank"]["ranges"][0] = [-2.0, 2.0]


def other_users(terms: Any, facts: Any) -> None:
    terms["facts"]["users"] = 10


def other_clusters(terms: Any, facts: Any) -> None:
    terms["facts"]["local_clusters"] += 1


def other_column(terms: Any, facts: Any) -> None:
    facts["shop"]["columns"] = ["shop-a"]


def no_list(terms: Any, facts: Any) -> None:
    facts["shop"] = ["shop-a"]


def nobody_else(terms: Any, facts: Any) -> None:
    del facts["shop"]


@pytest.mark.parametrize(
    "change", [other_range, other_own, other_users, other_clusters, other_column, no_list, nobody_else]
)
def test_terms_that_do_not_follow_from_what_was_told_are_refused(
    table: Table, change: Callable[[Any, Any], None]
) -> None:
    terms, facts, _ = agreed(table.seats, table.coordinator)
    change(terms, facts)
    with pytest.raises(Declining) as refused:
        table.seats["bank"].work.host(terms, facts, None, None)
    assert refused.value.code == "other terms"
    assert not (table.folder / "bank.csv.ledger").exists()


def test_ids_that_a_party_did_not_show_are_refused(table: Table) -> None:
    bank, shop = (table.seats[name].work.showing() for name in ("bank", "shop"))
    assert bank is not None
    assert shop is not None
    for shown in ({"bank": bank[:-1], "shop": shop}, {"bank": bank}, {"shop": shop, "bank": bank}):
        with pytest.raises(Declining) as refused:
            table.seats["bank"].work.shown(shown)
        assert refused.value.code == "other terms"


def test_a_search_that_found_others_than_the_partys_own_users_is_refused(tmp_path: Path) -> None:
    there = Table(tmp_path, replace(SIZES, align="psi"))
    bank, shop = (there.seats[name].work for name in ("bank", "shop"))
    own = {"bank": bank.ids(), "shop": shop.ids()}
    common = find_common({name: ids for name, ids in own.items() if ids is not None})
    rows, ids, told = common.rows["bank"], common.ids, common.alignment
    wrong = [
        (rows[::-1], ids, told),
        (rows[:-1], ids[:-1], told),
        (np.append(rows, rows[0]), np.append(ids, ids[0]), replace(told, common=171)),
        (rows, ids, replace(told, common=169)),
        (rows, ids, replace(told, how="ids")),
        (rows, ids, replace(told, rule="folded")),
        (rows, ids, replace(told, among="chain")),
        (rows, ids, replace(told, users=(170, 170))),
        (rows, ids, replace(told, parties=("shop", "bank"))),
    ]
    for each in wrong:
        with pytest.raises(Declining) as refused:
            bank.found(*each)
        assert refused.value.code == "other terms"
    bank.found(rows, ids, told)


def test_nothing_begins_before_users_in_common_are_known(table: Table) -> None:
    terms, facts, _ = agreed(table.seats, table.coordinator)
    with pytest.raises(Declining) as refused:
        table.seat("bank").work.host(terms, facts, None, None)
    assert refused.value.code == "out of order"


def test_a_ledger_without_room_refuses_before_anybody_is_ready(table: Table) -> None:
    in_process(table.folder, replace(SIZES, budget=replace(BUDGET, epsilon=1.0)), NAMES[:2])
    before = len(table.ledger("bank").entries)
    terms, facts, _ = agreed(table.seats, table.coordinator)
    with pytest.raises(BudgetExceeded) as refused:
        table.seats["bank"].work.host(terms, facts, None, None)
    assert code_of(refused.value) == "over budget"
    assert len(table.ledger("bank").entries) == before


def test_a_policy_limits_what_all_runs_cost_and_begins_new_ledgers(table: Table) -> None:
    terms, facts, _ = agreed(table.seats, table.coordinator)
    for most, code in ((2.0, "policy: epsilon in all"), (9.0, None)):
        seats = {**table.seats, "bank": table.seat("bank", most=most)}
        agreed(seats, table.coordinator)
        if code is None:
            seats["bank"].work.host(terms, facts, None, None)
            assert table.ledger("bank").budget == replace(BUDGET, epsilon=9.0)
        else:
            with pytest.raises(Declining) as refused:
                seats["bank"].work.host(terms, facts, None, None)
            assert refused.value.code == code
            assert not (table.folder / "bank.csv.ledger").exists()


def test_records_that_allow_less_are_not_clustered(table: Table) -> None:
    strict = replace(records(table.folder, "bank"), budget=replace(BUDGET, epsilon=1.0))
    with pytest.raises(Declining) as refused:
        ClusteringAtParty(table.seats["bank"].sitting, lambda: strict).planned()
    assert refused.value.code == "policy: epsilon of a run"


def test_one_more_round_or_another_question_is_refused_and_charges_nothing(table: Table) -> None:
    terms, _ = table.seated()
    bank, wanted = table.seats["bank"], terms["facts"]["local_clusters"]
    assert code_in(bank.handle(table.letter(1, wanted + 1))) is not None
    assert not released(table.ledger("bank"), SESSION)
    table.driven()
    charged = released(table.ledger("bank"), SESSION)
    for round in (1, 2, 3, 4):
        assert code_in(bank.handle(table.letter(round, wanted))) is not None or round == 2
    assert released(table.ledger("bank"), SESSION) == charged


def test_a_party_that_was_restarted_is_lost_and_charged_once(table: Table) -> None:
    terms, facts = table.seated()
    wanted = terms["facts"]["local_clusters"]
    assert code_in(table.seats["bank"].handle(table.letter(1, wanted))) is None
    charged = released(table.ledger("bank"), SESSION)
    assert charged
    again = table.seat("bank")
    assert code_in(again.handle(table.letter(1, wanted))) == "unknown session"
    agreed({**table.seats, "bank": again}, table.coordinator)
    with pytest.raises(Declining, match="Begin a new session") as refused:
        again.work.host(terms, facts, None, None)
    assert refused.value.code == "lost"
    assert released(table.ledger("bank"), SESSION) == charged


@pytest.mark.parametrize("work", [SIZES, TABLES], ids=counted_by)
def test_a_party_that_was_restarted_after_the_last_round_finishes_and_answers_no_round(
    tmp_path: Path, work: ClusteringWork
) -> None:
    there = Table(tmp_path, work)
    terms, facts = there.seated()
    half, session = there.driven(), session_of(there.coordinator, there.proposal)
    again, charged = there.seat("bank"), released(there.ledger("bank"), SESSION)
    agreed({**there.seats, "bank": again}, there.coordinator)
    again.host = again.work.host(terms, facts, None, None)
    for round in range(1, half.rounds + 2):
        code = code_in(again.handle(there.letter(round, terms["facts"]["local_clusters"])))
        assert code in ("lost", "out of order")
    assert released(there.ledger("bank"), SESSION) == charged
    again.work.finish(again.host, farewell(half, session, there.names), ())
    assert np.array_equal(Clustering.load(again.sitting.folder / "run").scaled, half.found.scaled)
    assert Ledger.from_bytes(extract_of(again)).count == 1 + len(charged)


def test_a_party_that_was_restarted_before_the_first_round_takes_part(table: Table) -> None:
    terms, facts = table.seated()
    again = table.seat("bank")
    table.seats["bank"] = again
    agreed(table.seats, table.coordinator)
    again.host = again.work.host(terms, facts, None, None)
    table.driven()


def test_without_one_party_there_are_no_clusters_and_the_error_names_it(table: Table) -> None:
    table.seated()
    half, session = table.coordinator.begin(), session_of(table.coordinator, table.proposal)
    with pytest.raises(RunError, match="shop did not answer, and nobody else has those columns"):
        drive(half, Relay(table.seats, away=frozenset({"shop"})), session, lambda _: None)


def test_a_coordinator_that_was_restarted_between_rounds_begins_anew(table: Table) -> None:
    table.seated()
    kept = table.folder / "kept"
    kept.mkdir()
    half, session = table.coordinator.begin(), session_of(table.coordinator, table.proposal, kept)

    def stop(_: object) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        drive(half, Relay(table.seats), session, stop)
    with pytest.raises(RunError, match="Begin a new session"):
        table.driven(kept)


def test_a_coordinator_that_was_restarted_after_the_last_round_tells_what_was_found(table: Table) -> None:
    table.seated()
    kept = table.folder / "kept"
    kept.mkdir()
    first = table.driven(kept)
    again = table.driven(kept)
    assert isinstance(again, Finding)
    for name, array in first.found.arrays.items():
        assert np.array_equal(again.found.arrays[name], array)


def test_a_party_that_does_not_say_what_it_charged_is_named(table: Table) -> None:
    table.seated()
    half, session = table.driven(), session_of(table.coordinator, table.proposal)
    ledgers = {name: extract_of(seat) for name, seat in table.seats.items()}
    with pytest.raises(RunError, match="shop did not say what was charged"):
        table.coordinator.save(table.folder / "run", session, half, {**ledgers, "shop": b""}, ())
    with pytest.raises(RunError, match="shop sent a ledger that is not its own"):
        table.coordinator.save(table.folder / "run", session, half, {**ledgers, "shop": ledgers["bank"]}, ())


@pytest.mark.parametrize("name", ["local", "table", "scaled"])
def test_a_last_letter_that_cannot_be_true_is_refused(table: Table, name: str) -> None:
    table.seated()
    half, session = table.driven(), session_of(table.coordinator, table.proposal)
    good, bank = half.last(), table.seats["bank"]
    assert isinstance(good, ClustersFound)
    assert bank.host is not None
    array = good.arrays[name]
    for bad in (array[:-1], array * np.nan, -array - 1):
        body = replace(good, **{name: bad})
        data = Letter(session=SESSION, round=half.rounds + 1, sender=COORDINATOR, body=body).to_bytes()
        with pytest.raises(RunError):
            bank.work.finish(bank.host, data, ())
    assert not (bank.sitting.folder / "run").exists()
    bank.work.finish(bank.host, farewell(half, session, table.names), ())


@pytest.mark.parametrize(
    "work",
    [
        SIZES,
        TABLES,
        replace(SIZES, method=SecureTable(colluding=0.4), among="chain", align="psi"),
        replace(SIZES, method=Sketches(), local=PrivateLloyd()),
        replace(SIZES, method=LocalMemberships(), local=as_published(), rule="folded"),
        ClusteringWork(clusters=4, budget=BUDGET),
    ],
    ids=counted_by,
)
def test_every_clustering_is_read_back_from_its_table(work: ClusteringWork) -> None:
    assert ClusteringWork.of(plain(work.table())) == work


def test_what_is_usual_is_as_in_one_process() -> None:
    work = ClusteringWork(clusters=4, budget=BUDGET)
    assert (work.method, work.local, work.align) == (SecureTable(), LSHForest(), "psi")


def test_a_proposal_that_cannot_be_read_is_declined(table: Table) -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {**SIZES.table(), "columns": ["income"]},
        {**SIZES.table(), "align": "none"},
        {**SIZES.table(), "budget": {"epsilon": 1.0, "delta": 0.0, "unit": "user"}},
    ]
    for work in wrong:
        proposal = proposal_of("clustering", work, table.keys)
        sitting = replace(table.seats["bank"].sitting, proposal=proposal)
        with pytest.raises(Declining) as refused:
            ClusteringAtParty(sitting, lambda: records(table.folder, "bank"))
        assert refused.value.code == "unreadable"
        with pytest.raises(ConfigError):
            ClusteringAtCoordinator(proposal)


def test_more_clusters_than_users_are_declined_without_a_word_about_the_data(table: Table) -> None:
    proposal = proposal_of("clustering", replace(SIZES, clusters=5000).table(), table.keys)
    sitting = replace(table.seats["bank"].sitting, proposal=proposal)
    with pytest.raises(Declining) as refused:
        ClusteringAtParty(sitting, lambda: records(table.folder, "bank")).planned()
    assert refused.value.code == "no data"


def test_a_proposal_with_another_key_for_the_party_is_declined(table: Table) -> None:
    terms, facts, _ = agreed(table.seats, table.coordinator)
    seat = table.seat("bank")
    other = ClusteringAtParty(
        replace(seat.sitting, identity=table.keys["shop"]), lambda: records(table.folder, "bank")
    )
    with pytest.raises(Declining) as refused:
        other.host(terms, facts, None, None)
    assert refused.value.code == "unknown keys"
