from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.cluster.clustering import find_clusters
from cofactor.cluster.method import NOWHERE
from cofactor.cluster.records import Records
from cofactor.cluster.result import Clustering
from cofactor.cluster.simple import IndependentCounts
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.tables import SecureTable
from cofactor.errors import BudgetExceeded, ConfigError, LedgerError, Refused, RunError, UnknownId
from cofactor.federation.channel import Failures
from cofactor.federation.run import Run
from cofactor.federation.verify import verify
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import InsecureRandom
from tests.cluster.making import budget, mixture, parties, records

POINTS, CENTRES = mixture(4000)
TABLE = SecureTable(bits=2048)
USUAL: dict[str, Any] = {"clusters": 3, "budget": budget(4.0), "align": "ids", "seed": 1}


def found(holders: list[Records] | None = None, **more: Any) -> Clustering:
    return find_clusters(holders or parties(POINTS), **{**USUAL, "method": Sketches(), **more})


@pytest.fixture(scope="module")
def sketched() -> Clustering:
    return found()


@pytest.fixture(scope="module")
def counted() -> Clustering:
    return found(parties(POINTS[:600]), method=TABLE, budget=budget(10.0))


def matched(clustering: Clustering) -> float:
    """Return how far the true centres are from the nearest that was found, at most."""
    return float(np.abs(clustering.scaled[:, None] - CENTRES).max(axis=2).min(axis=0).max())


@pytest.mark.slow
def test_clear_clusters_are_found_with_sketches(sketched: Clustering) -> None:
    assert matched(sketched) < 0.2
    assert sketched.sizes.sum() == pytest.approx(4000, abs=250)


def test_clear_clusters_are_found_under_encryption(counted: Clustering) -> None:
    assert matched(counted) < 0.3
    assert counted.sizes.sum() == pytest.approx(600, abs=30)


@pytest.mark.parametrize("name", ["sketched", "counted"])
def test_the_guarantee_is_that_of_the_budget_and_holds(name: str, request: pytest.FixtureRequest) -> None:
    clustering = request.getfixturevalue(name)
    guarantee = clustering.guarantee
    assert guarantee.holds
    assert guarantee.budget_epsilon is not None
    assert 0.95 * guarantee.budget_epsilon < guarantee.epsilon <= guarantee.budget_epsilon
    assert guarantee.by == ("party 0", "party 1")
    assert "a user's columns are in the data" in str(guarantee)


def test_what_parties_lose_if_all_others_collude_is_told_only_where_it_is_known(
    sketched: Clustering, counted: Clustering
) -> None:
    assert [each.epsilon for each in sketched.together.parties.values()] == [None, None]
    for each in counted.together.parties.values():
        assert each.epsilon is not None
        assert 1.0 < each.epsilon < 10.0


def test_how_users_were_found_is_in_the_guarantee() -> None:
    told = found(parties(POINTS[:300]), align="psi", method=IndependentCounts()).guarantee.does_not_cover
    assert any(each.startswith("Who is a user of all parties: private set intersection") for each in told)


@pytest.mark.parametrize(
    "method",
    [SecureTable(bits=2048, colluding=0.0), pytest.param(Sketches(), marks=pytest.mark.slow)],
    ids=["under encryption", "sketches"],
)
def test_three_parties_with_unequal_columns_cluster_together(method: Any, tmp_path: Path) -> None:
    points, centres = mixture(1000, columns=6)
    holders = parties(points, (1, 3, 2))
    clustering = found(holders, method=method, budget=budget(10.0), local_clusters=3)
    assert clustering.scaled.shape == (3, 6)
    assert verify(clustering.save(tmp_path / "run")).holds
    gap = np.abs(clustering.scaled[:, None] - centres).max(axis=2).min(axis=0).max()
    assert gap < 0.6  # of 1.2 between centres


@pytest.mark.parametrize("name", ["sketched", "counted"])
def test_the_folder_bears_out_what_it_says(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    clustering = request.getfixturevalue(name)
    folder = clustering.save(tmp_path / "run")
    verdict = verify(folder)
    assert [check for check in verdict.checks if not check.holds] == []
    again = Clustering.load(folder)
    np.testing.assert_allclose(again.centres, clustering.centres)
    np.testing.assert_allclose(again.sizes, clustering.sizes)
    assert (again.columns, again.facts) == (clustering.columns, clustering.facts)
    assert again.guarantee == clustering.guarantee


def test_a_folder_whose_centres_were_changed_is_refused(sketched: Clustering, tmp_path: Path) -> None:
    folder = sketched.save(tmp_path / "run")
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text.replace(f"{sketched.centres[0, 0]}", "0.123"))
    with pytest.raises(RunError, match="do not follow from what was released"):
        Clustering.load(folder)


def test_centres_that_k_means_would_not_find_are_refused(sketched: Clustering) -> None:
    sketched.check()
    with pytest.raises(RunError, match="do not follow from what was released"):
        replace(sketched, scaled=sketched.scaled + 0.03).check()


def test_joint_releases_must_stand_in_all_ledgers(sketched: Clustering, tmp_path: Path) -> None:
    told = dict(sketched.together.ledgers)
    told["party 1"] = b"\n".join(told["party 1"].splitlines()[:-1]) + b"\n"
    folder = replace(sketched, together=replace(sketched.together, ledgers=told)).save(tmp_path / "run")
    failed = {check.name: check.detail for check in verify(folder).checks if not check.holds}
    assert "not the same in all of their ledgers" in failed["releases"]


def test_a_folder_with_a_changed_file_is_refused(sketched: Clustering, tmp_path: Path) -> None:
    folder = sketched.save(tmp_path / "run")
    (folder / "clusters.npz").write_bytes(b"nothing")
    with pytest.raises(RunError, match="files were changed"):
        Clustering.load(folder)


def test_a_training_is_not_read_from_a_clustering(sketched: Clustering, tmp_path: Path) -> None:
    folder = sketched.save(tmp_path / "run")
    with pytest.raises(RunError, match="holds a clustering, and no model"):
        Run.load(folder)


def test_insecure_noise_shows(sketched: Clustering) -> None:
    clustering = found(random=InsecureRandom(3))
    assert sketched.guarantee.holds
    assert not clustering.guarantee.holds


def test_repeatable_noise_finds_the_same_local_centres() -> None:
    one, other = (found(random=InsecureRandom(3)) for _ in range(2))
    for own, again in zip(one.local_centres, other.local_centres, strict=True):
        np.testing.assert_array_equal(own, again)


def test_users_are_matched_by_their_ids_whatever_their_order() -> None:
    first, second = parties(POINTS)
    shuffled = np.random.default_rng(5).permutation(4000)
    turned = replace(second, ids=tuple(second.ids[row] for row in shuffled), values=second.values[shuffled])
    assert matched(found([first, turned])) < 0.2


def test_users_of_one_party_only_are_left_out() -> None:
    first, second = parties(POINTS)
    fewer = replace(second, ids=second.ids[:3000], values=second.values[:3000])
    clustering = found([first, fewer])
    assert clustering.facts.users == 3000
    assert clustering.together.alignment is not None
    assert clustering.together.alignment.users == (4000, 3000)


def test_who_lacks_a_number_is_in_no_cluster() -> None:
    first, second = parties(POINTS)
    values = second.values.copy()
    values[:1000, 0] = np.nan
    clustering = found([first, replace(second, values=values)])
    assert matched(clustering) < 0.35


def test_ranges_that_were_read_off_the_data_break_the_promise() -> None:
    first, second = parties(POINTS)
    unstated = Records(name="party 1", ids=second.ids, columns=second.columns, values=second.values)
    guarantee = found([first, unstated]).guarantee
    assert not guarantee.holds
    assert any("were read off the data of party 1" in each for each in guarantee.why_not)


def test_centres_are_told_in_the_columns_own_units() -> None:
    first, second = parties(POINTS)
    wide = Records(
        name="party 1",
        ids=second.ids,
        columns=second.columns,
        values=50 + 50 * second.values,
        ranges=dict.fromkeys(second.columns, (0.0, 100.0)),
    )
    clustering = found([first, wide])
    np.testing.assert_allclose(clustering.centres[:, 2:], 50 + 50 * clustering.scaled[:, 2:])
    np.testing.assert_allclose(clustering.centres[:, :2], clustering.scaled[:, :2])


def test_columns_of_the_same_name_are_told_apart() -> None:
    first, second = parties(POINTS)
    same = replace(second, columns=first.columns, ranges=first.ranges)
    assert found([first, same]).columns == (
        "party 0/party0-0",
        "party 0/party0-1",
        "party 1/party0-0",
        "party 1/party0-1",
    )


def test_a_party_assigns_its_own_users(sketched: Clustering) -> None:
    first, second = parties(POINTS)
    nearest = np.square(POINTS[:, None] - sketched.scaled)
    np.testing.assert_array_equal(sketched.assign(first), nearest[:, :, :2].sum(axis=2).argmin(axis=1))
    np.testing.assert_array_equal(sketched.assign(second), nearest[:, :, 2:].sum(axis=2).argmin(axis=1))


def test_a_party_assigns_by_the_ranges_of_the_run_whatever_its_file_says_now(sketched: Clustering) -> None:
    first = parties(POINTS)[0]
    other = first.with_ranges(dict.fromkeys(first.columns, (-9.0, 3.0)))
    np.testing.assert_array_equal(sketched.assign(other), sketched.assign(first))


def test_who_lacks_a_number_is_assigned_nowhere(sketched: Clustering) -> None:
    values = POINTS[:5, :2].copy()
    values[2, 1] = np.nan
    labels = sketched.assign(records(values))
    assert (labels == NOWHERE).tolist() == [False, False, True, False, False]


def test_strangers_cannot_assign(sketched: Clustering) -> None:
    with pytest.raises(UnknownId, match="there is no party 'stranger'"):
        sketched.assign(records(POINTS[:, :2], name="stranger"))
    with pytest.raises(ConfigError, match="Give the same, in that order"):
        sketched.assign(records(POINTS[:, :1]))


def test_whoever_is_missing_ends_it_and_what_was_charged_stays() -> None:
    with pytest.raises(RunError, match="round 3: party 1 did not answer"):
        found(failures=Failures(lost=frozenset({("party 1", 3)})))


def test_tables_are_not_opened_without_everybody() -> None:
    gone = Failures(absent=frozenset({("party 1", 4)}))
    with pytest.raises(Refused, match="party 1 did not answer"):
        found(parties(POINTS[:50]), method=TABLE, failures=gone)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"clusters": 0}, "clusters"),
        ({"clusters": 5000}, "5,000 clusters of 4,000 users"),
        ({"clusters": 1}, "at least 2"),
        ({"local_clusters": 0}, "local_clusters"),
        ({"local_clusters": 1}, "fewer combinations"),
        ({"method": "sketch"}, "a way to count"),
        ({"local": "lloyd"}, "a way to count"),
        ({"budget": 1.0}, "budget must be a Budget"),
    ],
)
def test_settings_that_make_no_sense_are_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        found(**change)


def test_parties_are_two_or_more_with_names_and_files_of_their_own(tmp_path: Path) -> None:
    first, second = parties(POINTS)
    for wrong in ([first], {"bank": first, "shop": second}, ["bank.csv", "shop.csv"]):
        with pytest.raises(ConfigError, match="two parties or more"):
            find_clusters(wrong, **USUAL)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="2 parties are called 'party 0'"):
        found([first, replace(second, name="party 0")])
    file = tmp_path / "both.csv"
    with pytest.raises(ConfigError, match="the same file"):
        found([replace(each, file=file) for each in (first, second)])


def test_a_party_that_allows_less_is_heard() -> None:
    first, second = parties(POINTS)
    strict = replace(second, budget=budget(1.0))
    with pytest.raises(BudgetExceeded, match="party 1 allows epsilon 1"):
        found([first, strict])
    assert found([first, strict], budget=budget(1.0)).guarantee.holds
    with pytest.raises(BudgetExceeded, match="party 1 allows epsilon 1"):
        found([first, replace(second, budget=budget(1.0, delta=1e-9))], budget=budget(1.0))


def filed(tmp_path: Path, widths: tuple[int, ...] = (2, 2)) -> list[Records]:
    holders = []
    for each in parties(POINTS, widths):
        file = tmp_path / f"{each.name.replace(' ', '-')}.csv"
        file.write_text("\n".join(each.ids))
        holders.append(replace(each, file=file, fingerprint=f"sha256:{each.name}"))
    return holders


def test_ledgers_beside_files_are_charged_and_refuse_what_is_too_much(tmp_path: Path) -> None:
    holders = filed(tmp_path)
    found(holders)
    assert all(each.ledger_path is not None and each.ledger_path.exists() for each in holders)
    with pytest.raises(BudgetExceeded, match="Nothing was released"):
        found(holders)


def test_a_party_begins_its_ledger_with_its_own_part(tmp_path: Path) -> None:
    """A user of all parties loses what all ledgers hold: were each begun with all, she could lose more."""
    holders = filed(tmp_path, widths=(1, 1, 1, 1))
    found(holders, method=IndependentCounts(), budget=budget(1.0))
    for each in holders:
        assert each.ledger_path is not None
        assert Ledger.open(each.ledger_path).budget.epsilon < 0.5
    with pytest.raises(BudgetExceeded, match="which users they have in common, and nothing else"):
        found(holders, method=IndependentCounts(), budget=budget(1.0))


def test_a_party_that_allows_less_begins_its_ledger_with_that(tmp_path: Path) -> None:
    first, second = filed(tmp_path)
    found([first, replace(second, budget=budget(5.0))], ledger_budget=budget(9.0))
    paths = [each.ledger_path for each in (first, second)]
    assert [Ledger.open(path).budget.epsilon for path in paths if path] == [9.0, 5.0]


def test_a_ledger_that_counts_otherwise_is_not_begun(tmp_path: Path) -> None:
    other = Budget(epsilon=9.0, delta=1e-6, unit="rating")
    with pytest.raises(ConfigError, match="does not count what a clustering"):
        found(filed(tmp_path), ledger_budget=other)


@pytest.mark.parametrize("name", ["coordinator", "the sum of all answers"])
def test_no_party_is_called_as_those_who_add_up_are(name: str) -> None:
    first, second = parties(POINTS)
    with pytest.raises(ConfigError, match="no party may be called"):
        found([replace(first, name=name), second])


def test_a_larger_ledger_pays_for_several(tmp_path: Path) -> None:
    holders = filed(tmp_path)
    for _ in range(2):
        found(holders, ledger_budget=budget(10.0))


def test_a_budget_that_is_too_small_begins_no_ledger(tmp_path: Path) -> None:
    holders = filed(tmp_path)
    with pytest.raises(BudgetExceeded, match=r"may spend 0\.1 in all"):
        found(holders, ledger_budget=budget(0.1))
    assert [each for each in holders if each.ledger_path and each.ledger_path.exists()] == []


def test_a_refusal_leaves_no_new_ledger_behind(tmp_path: Path) -> None:
    first, second = filed(tmp_path)
    found([first, replace(second, name="other", file=None)])
    with pytest.raises(BudgetExceeded):
        found([second, first])
    assert second.ledger_path is not None
    assert not second.ledger_path.exists()


def test_a_ledger_of_other_terms_is_refused(tmp_path: Path) -> None:
    holders = filed(tmp_path)
    found(holders, ledger_budget=budget(10.0))
    other = Budget(epsilon=1.0, delta=1e-6, unit="user", adjacency="replace")
    with pytest.raises(LedgerError):
        found(holders, budget=other)


def test_nothing_of_a_user_is_in_the_folder(sketched: Clustering, tmp_path: Path) -> None:
    folder = sketched.save(tmp_path / "run")
    for file in folder.rglob("*"):
        if file.is_file():
            assert b"u1234" not in file.read_bytes()
