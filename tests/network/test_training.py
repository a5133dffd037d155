"""Trainings of real parties: the models, the guarantees and the folders are those of one process."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.crypto.lattice import Lattice
from cofactor.data.coding import Coding
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Scale
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.transcript import Transcript
from cofactor.federation.verify import verify
from cofactor.network.conducting import Outcome
from cofactor.network.rehearsing import rehearse
from cofactor.network.site import Site
from cofactor.network.sources import RatingsSource
from cofactor.privacy.accountant import spent
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import EXTRACT, Ledger
from cofactor.randomness import InsecureRandom, Random, own_random
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.together import Training, train_together
from cofactor.recipes.vertical import VerticalMF
from cofactor.recipes.vertical_taste import VerticalTaste
from tests.crypto.fixed_primes import fixed_primes
from tests.network.making import (
    NAMES,
    POLICY_TEXT,
    SESSION,
    SeatChannel,
    channel_to,
    conducted,
    entries,
    proposal_of,
    rows,
    sites,
    training,
    vertical_rows,
)

SCALE = Scale(1, 5)
BUDGET = Budget(epsilon=4.0, delta=1e-5, unit="user")
QUICK = HorizontalMF(factors=3, rounds=2, local_steps=2)
VERTICAL = VerticalMF(factors=3, rounds=2)
CHANCE = InsecureRandom(5)
HERE = Training(seed=7, random=CHANCE)
Rows = Callable[[int], list[tuple[str, int, int]]]


@pytest.fixture(autouse=True, scope="module")
def known_primes() -> Iterator[None]:
    with fixed_primes():
        yield


def trained(
    folder: Path,
    recipe: Any,
    *,
    make: Rows = rows,
    known: Mapping[str, Site] | None = None,
    names: tuple[str, ...] = NAMES,
    **settings: Any,
) -> tuple[dict[str, Site], SeatChannel, Outcome]:
    parties = dict(known or sites(folder, make=make, names=names))
    channel = channel_to(parties, chances(parties) if settings.get("budget") is None else None)
    work = training(recipe, **settings)
    return parties, channel, conducted(folder / "host", proposal_of(parties, work), channel)


def chances(names: Iterable[str]) -> dict[str, Random]:
    """Return each party's own chance, the same as in one process: rounding is by chance, too."""
    return {name: own_random(CHANCE, place) for place, name in enumerate(names)}


def stored(folder: Path) -> Run:
    """Return the coordinator's run."""
    return Run.load(folder / "host" / "run")


def own_run(site: Site) -> Run:
    """Return the run in a party's own folder."""
    return Run.load(site.folder / "sessions" / SESSION / "run")


def parties_here(folder: Path) -> list[Party]:
    return [Party.from_csv(folder / f"{name}.csv", name=name, scale=SCALE) for name in NAMES]


def assert_same(found: Any, expected: Any) -> None:
    assert (found is None) == (expected is None)
    if expected is None:
        return
    np.testing.assert_array_equal(found.user_ids, expected.user_ids)
    np.testing.assert_array_equal(found.item_ids, expected.item_ids)
    np.testing.assert_allclose(found.user_vectors, expected.user_vectors, atol=1e-6)
    np.testing.assert_allclose(found.item_vectors, expected.item_vectors, atol=1e-6)


def some_missing(place: int) -> list[tuple[str, int, int]]:
    """Return ratings of users of whom most, not all, are at every party."""
    return [row for row in vertical_rows(place) if row[0] not in (f"u{place}", f"u{place + 10}")]


def in_own_order(place: int) -> list[tuple[str, int, int]]:
    """Return ratings of the same users, at each party in another order."""
    found = vertical_rows(place)
    return found[40 * place :] + found[: 40 * place]


def few_in_common(place: int) -> list[tuple[str, int, int]]:
    """Return ratings of users of whom at each party only some are at all, and rate otherwise."""
    common = [(user, item, 5) for user, item, _ in vertical_rows(place) if int(user[1:]) < 15]
    return common + [(f"{user}-{place}", item, 1) for user, item, _ in vertical_rows(place)]


def of_own_items(place: int) -> list[tuple[str, int, int]]:
    """Return ratings of items of which each party lacks one, that the others have."""
    return [row for row in rows(place) if row[1] != place + 1]


@pytest.mark.parametrize(
    ("recipe", "make", "ids"),
    [
        (QUICK, of_own_items, "union"),
        (replace(QUICK, aggregate=SecureSum(dropout=0.0)), rows, "union"),
        (VERTICAL, some_missing, "union"),
        (VERTICAL, in_own_order, "psi"),
        (replace(VERTICAL, learning_rate=0.05), few_in_common, "psi"),
        (SecureALS(factors=2, aggregate=PlainSum()), rows, "union"),
        (SharedBiases(aggregate=PlainSum()), rows, "union"),
        (VerticalTaste(aggregate=PlainSum()), some_missing, "union"),
    ],
    ids=["horizontal", "secure sum", "vertical", "psi", "few in common", "als", "biases", "taste"],
)
def test_without_noise_parties_train_what_one_process_trains(
    recipe: Any, make: Rows, ids: str, tmp_path: Path
) -> None:
    split = "vertical" if make in (some_missing, in_own_order, few_in_common) else "horizontal"
    known, _, outcome = trained(tmp_path, recipe, make=make, ids=ids, split=split)
    assert outcome.outcome == "finished", outcome
    there = parties_here(tmp_path)
    together = (
        Federation.horizontal(there, scale=SCALE)
        if split == "horizontal"
        else Federation.vertical(there, scale=SCALE, align="psi" if ids == "psi" else "union")
    )
    expected = train_together(recipe, together, None, HERE)
    found = stored(tmp_path)
    if ids == "psi" and expected.model is not None:
        # Who the users in common are is nothing that the coordinator knows.
        assert found.model is not None
        np.testing.assert_array_equal(found.model.user_ids, np.arange(together.facts.user_count))
        np.testing.assert_allclose(found.model.item_vectors, expected.model.item_vectors, atol=1e-6)
        assert found.model.mean == pytest.approx(expected.model.mean)
    else:
        assert_same(found.model, expected.model)
    assert found.homes == {}
    for name, site in known.items():
        own = own_run(site)
        assert tuple(own.homes) == (name,)
        assert_same(own.homes[name], expected.homes[name])
    assert found.together is not None
    assert (found.together.alignment is not None) == (ids == "psi")
    assert not found.guarantee.holds


def test_with_noise_and_secure_sums_every_byte_is_written_down_and_all_folders_hold(tmp_path: Path) -> None:
    recipe = replace(QUICK, aggregate=SecureSum(dropout=0.0))
    known, channel, outcome = trained(tmp_path, recipe, budget=BUDGET)
    assert outcome.outcome == "finished", outcome
    run = stored(tmp_path)
    assert run.together is not None
    assert run.together.traffic == channel.bytes
    assert Transcript.open(tmp_path / "host" / "transcript.jsonl").total_bytes == channel.bytes
    own = [Transcript.open(s.folder / "sessions" / SESSION / "transcript.jsonl") for s in known.values()]
    assert sum(each.total_bytes for each in own) == channel.bytes
    costs = []
    for name, site in known.items():
        folder = site.folder / "sessions" / SESSION / "run"
        ledger = tmp_path / f"{name}.csv.ledger"
        verdict = verify(folder, ledgers=[ledger])
        assert verdict.holds, verdict
        assert verify(tmp_path / "host" / "run", ledgers=[ledger]).holds
        assert {run for run, _ in entries(site)} == {SESSION}
        events = [event for _, event in entries(site)]
        costs.append(spent(events, BUDGET.delta, unit="user", adjacency="empty").epsilon)
    assert run.guarantee.holds
    assert run.guarantee.epsilon is not None
    # Every user is at one party only.
    assert run.guarantee.epsilon == pytest.approx(max(costs), rel=1e-9)


def test_the_coordinators_folder_holds_no_model_of_a_party_and_no_more_of_its_ledger_than_the_session(
    tmp_path: Path,
) -> None:
    known = sites(tmp_path)
    _, _, first = trained(tmp_path, QUICK, known=known, budget=replace(BUDGET, epsilon=1.0))
    assert first.outcome == "finished", first
    proposal = proposal_of(known, training(QUICK, budget=BUDGET), session="f" * 16)
    channel = channel_to(known)
    outcome = conducted(tmp_path / "second", proposal, channel)
    assert outcome.outcome == "finished", outcome
    folder = tmp_path / "second" / "run"
    assert not [path for path in folder.rglob("*") if "home" in path.name]
    for name, site in known.items():
        copy = Ledger.open(folder / "ledgers" / f"{name}.ledger")
        assert copy.fingerprint == EXTRACT
        assert {entry.run for entry in copy.entries} == {"f" * 16}
        assert {run for run, _ in entries(site)} == {SESSION, "f" * 16}
        live = Ledger.open(tmp_path / f"{name}.csv.ledger")
        assert live.fingerprint.encode() not in (folder / "ledgers" / f"{name}.ledger").read_bytes()
        assert live.budget.epsilon == 9.0
        assert copy.budget.epsilon == BUDGET.epsilon
    assert verify(folder).holds


def test_of_an_intersection_only_items_that_all_have_are_trained_and_counts_tell_nothing_of_the_rest(
    tmp_path: Path,
) -> None:
    known, channel, outcome = trained(tmp_path, QUICK, make=of_own_items, ids="intersection", budget=BUDGET)
    assert outcome.outcome == "finished", outcome
    model = stored(tmp_path).model
    assert model is not None
    np.testing.assert_array_equal(np.sort(model.item_ids), np.arange(4, 13))
    told = json.loads((tmp_path / "host" / "agreed.json").read_text())["facts"]
    for place, name in enumerate(known):
        assert json.loads(told[name])["ratings"] == len(of_own_items(place))
    assert verify(tmp_path / "host" / "run").holds
    assert any("all ids were told" in line for line in stored(tmp_path).guarantee.does_not_cover)
    assert channel.bytes > 0


def test_with_a_catalogue_no_id_of_a_party_leaves_it_and_what_it_lacks_stays_out_in_silence(
    tmp_path: Path,
) -> None:
    catalogue = np.arange(3, 10)
    known, channel, outcome = trained(tmp_path, QUICK, ids="catalogue", catalogue=catalogue, budget=BUDGET)
    assert outcome.outcome == "finished", outcome
    model = stored(tmp_path).model
    assert model is not None
    np.testing.assert_array_equal(model.item_ids, catalogue)
    told = [answer for _, head, answer in channel.answers if head.kind in ("Accepted", "Told")]
    for answer in told[: len(known)]:
        assert b'"shown":"null"' in answer
    facts = json.loads((tmp_path / "host" / "agreed.json").read_text())["facts"]
    # How many ratings are of these items would tell of each item, one proposal after the other.
    assert {json.loads(text)["ratings"] for text in facts.values()} == {len(rows(0))}


@pytest.mark.parametrize(
    ("aggregate", "budget"),
    [
        (SharedSum(), BUDGET),
        (EncryptedSum(), BUDGET),
        (EncryptedSum(scheme=Lattice()), None),
    ],
    ids=["shares", "paillier", "lattice"],
)
def test_sums_that_decrypters_open_are_the_same_as_masked_ones(
    aggregate: Any, budget: Budget | None, tmp_path: Path
) -> None:
    recipe = HorizontalMF(factors=2, rounds=2, local_steps=1)
    known, _, outcome = trained(tmp_path, replace(recipe, aggregate=aggregate), budget=budget)
    assert outcome.outcome == "finished", outcome
    assert verify(tmp_path / "host" / "run").holds
    for site in known.values():
        assert verify(site.folder / "sessions" / SESSION / "run").holds
    if budget is None:
        there = Federation.horizontal(parties_here(tmp_path), scale=SCALE)
        masked = replace(recipe, aggregate=SecureSum(dropout=0.0))
        assert_same(stored(tmp_path).model, train_together(masked, there, None, HERE).model)


def test_where_one_key_opens_every_upload_no_budget_is_charged(tmp_path: Path) -> None:
    recipe = replace(QUICK, local_steps=1, aggregate=EncryptedSum(scheme=Lattice()))
    known, _, outcome = trained(tmp_path, recipe, budget=BUDGET)
    assert outcome.outcome == "refused"
    assert "asks for another kind of sum" in outcome.words
    assert not any(entries(site) for site in known.values())


def one_user(place: int) -> list[tuple[str, int, int]]:
    return rows(place, users=1, each=4)


DEVICES = ("d0", "d1", "d2", "d3")


def test_devices_train_on_a_catalogue_and_tell_nothing_of_what_they_rated(tmp_path: Path) -> None:
    recipe = OnDeviceMF(factors=2, rounds=2, aggregate=SecureSum(dropout=0.0))
    known, channel, outcome = trained(
        tmp_path,
        recipe,
        make=one_user,
        names=DEVICES,
        ids="catalogue",
        catalogue=np.arange(1, 11),
        ratings_each=5,
        budget=BUDGET,
    )
    assert outcome.outcome == "finished", outcome
    assert verify(tmp_path / "host" / "run").holds
    facts = json.loads((tmp_path / "host" / "agreed.json").read_text())["facts"]
    assert len(set(facts.values())) == 1
    assert set(stored(tmp_path).together.parties) == set(known)  # type: ignore[union-attr]
    assert channel.parties == DEVICES


def test_a_party_of_many_users_is_no_device(tmp_path: Path) -> None:
    known, _, outcome = trained(
        tmp_path,
        OnDeviceMF(factors=2, rounds=1, aggregate=PlainSum()),
        ids="catalogue",
        catalogue=np.arange(1, 13),
        ratings_each=5,
        budget=BUDGET,
    )
    assert outcome.outcome == "refused"
    assert "has no data that can be used" in outcome.words
    assert not any(entries(site) for site in known.values())


def with_attributes(folder: Path) -> dict[str, Site]:
    """Give every party a table of its users' attributes."""
    found = {}
    for place, (name, site) in enumerate(sites(folder).items()):
        chance = np.random.default_rng(place)
        lines = [f"u{place}-{user},{'fm'[chance.integers(2)]}" for user in range(30)]
        table = folder / f"{name}-users.csv"
        table.write_text("\n".join(["user,sex", *lines]) + "\n")
        assert site.ratings is not None
        found[name] = site.bringing(RatingsSource(file=site.ratings.file, scale="1:5", attributes=str(table)))
    return found


@pytest.mark.parametrize("attributes", [False, True])
def test_views_of_public_items_and_private_attributes_are_trained_with_the_coordinators_item_server(
    attributes: bool, tmp_path: Path
) -> None:
    numbers = np.random.default_rng(7).normal(0, 1, (12, 3))
    items = PublicItems.of_numbers(np.arange(1, 13), numbers, source="a test")
    coding = Coding.stated({"sex": ("f", "m")}) if attributes else None
    known, _, outcome = trained(
        tmp_path,
        MultiViewMF(factors=2, rounds=2, aggregate=SecureSum(dropout=0.0)),
        known=with_attributes(tmp_path) if attributes else sites(tmp_path),
        split="horizontal",
        items=items,
        attributes=coding,
        budget=BUDGET,
    )
    assert outcome.outcome == "finished", outcome
    run = stored(tmp_path)
    assert run.together is not None
    assert run.together.roles
    verdict = verify(tmp_path / "host" / "run")
    assert verdict.holds, verdict
    senders = {sent.sender for sent in Transcript.open(tmp_path / "host" / "transcript.jsonl").sent}
    assert senders >= {*run.together.roles, *known}


def test_a_party_without_the_attributes_that_are_asked_for_declines(tmp_path: Path) -> None:
    known, _, outcome = trained(
        tmp_path,
        MultiViewMF(factors=2, rounds=1, aggregate=SecureSum(dropout=0.0)),
        split="horizontal",
        attributes=Coding.stated({"sex": ("f", "m")}),
        budget=BUDGET,
    )
    assert outcome.outcome == "refused"
    assert "has no data that can be used" in outcome.words
    assert not any(entries(site) for site in known.values())


def test_a_ledger_of_a_larger_budget_does_not_lift_the_policys_limit(tmp_path: Path) -> None:
    known = sites(tmp_path)
    _, _, first = trained(tmp_path, QUICK, known=known, budget=replace(BUDGET, epsilon=8.0))
    assert first.outcome == "finished"
    for site in known.values():
        text = POLICY_TEXT.replace("max_epsilon = 9.0", "max_epsilon = 8.5")
        (site.folder / "policy.toml").write_text(text)
    before = {name: entries(site) for name, site in known.items()}
    proposal = proposal_of(known, training(QUICK, budget=replace(BUDGET, epsilon=3.0)), session="f" * 16)
    outcome = conducted(tmp_path / "second", proposal, channel_to(known))
    assert outcome.outcome == "refused"
    assert "allows less epsilon for all runs together" in outcome.words
    assert {name: entries(site) for name, site in known.items()} == before


def test_a_ledger_without_room_refuses_before_the_first_round_whatever_the_policy_allows(
    tmp_path: Path,
) -> None:
    known = sites(tmp_path, policy=POLICY_TEXT.replace("max_epsilon = 9.0", "max_epsilon = 4.5"))
    _, _, first = trained(tmp_path, QUICK, known=known, budget=BUDGET)
    assert first.outcome == "finished"
    for site in known.values():
        (site.folder / "policy.toml").write_text(POLICY_TEXT)
    before = {name: entries(site) for name, site in known.items()}
    proposal = proposal_of(known, training(QUICK, budget=BUDGET), session="f" * 16)
    channel = channel_to(known)
    outcome = conducted(tmp_path / "second", proposal, channel)
    assert outcome.outcome == "refused"
    assert "its ledger has no room for that" in outcome.words
    assert {name: entries(site) for name, site in known.items()} == before
    assert {round for round, _ in channel.kinds} == {0}


@pytest.mark.parametrize(
    ("recipe", "make"),
    [
        (QUICK, rows),
        (replace(QUICK, rounds=6, aggregate=SecureSum(dropout=0.0)), rows),
        (SecureALS(factors=2), rows),
        (VERTICAL, vertical_rows),
    ],
    ids=["plain", "secure sum", "als", "vertical"],
)
def test_a_party_sends_about_as_much_as_the_plan_says(recipe: Any, make: Rows, tmp_path: Path) -> None:
    vertical = make is vertical_rows
    budget = Budget(epsilon=4.0, delta=1e-5, unit="rating") if vertical else BUDGET
    split = "vertical" if vertical else "horizontal"
    work = training(recipe, budget=budget, split=split)
    known = sites(tmp_path, make=make)
    proposal = proposal_of(known, work)
    said = rehearse(known["north"], proposal).planned.traffic
    assert conducted(tmp_path / "host", proposal, channel_to(known)).outcome == "finished"
    lines = Transcript.open(known["north"].session_folder(SESSION) / "transcript.jsonl")
    assert 0.7 < said / lines.bytes_by_sender()["north"] < 1.4
