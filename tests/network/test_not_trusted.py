"""A coordinator that nobody trusts: what it cannot choose, learn or wear out by proposing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cofactor.federation.declining import WORDS
from cofactor.federation.hidden_sums import KNOWN_KEYS
from cofactor.federation.run import Run
from cofactor.network.assuming import PINNED
from cofactor.network.dealing import DEALER, LOT, DealingPost
from cofactor.network.site import POLICY
from cofactor.privacy.ledger import Ledger
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.sums import SecureSum
from cofactor.recipes.vertical import VerticalMF
from tests.crypto.fixed_primes import fixed_primes
from tests.network.making import (
    NAMES,
    POLICY_TEXT,
    channel_to,
    conducted,
    proposal_of,
    sites,
    training,
    vertical_rows,
    write,
)
from tests.network.test_conducting import die, world
from tests.network.test_seat import BUDGET, PLAIN, Table, table

SHARED = HorizontalMF(factors=2, rounds=1, local_steps=1, aggregate=SharedSum())


# What it cannot choose.


@pytest.mark.parametrize(
    "aggregate",
    [EncryptedSum(recheck=False), SecureSum(dropout=0.4), SharedSum(dropout=0.4, decrypters=4)],
    ids=["not rechecked", "half may be left out", "two sums of four decrypters"],
)
def test_no_sum_that_a_lying_coordinator_could_open_with_less_noise_is_agreed_to(
    aggregate: Any, tmp_path: Path
) -> None:
    known = sites(tmp_path, names=("north", "south", "west", "east", "mid"))
    work = training(replace(SHARED, aggregate=aggregate), budget=BUDGET)
    found = Table(tmp_path, known, proposal_of(known, work), channel_to(known))
    assert found.propose() == "policy: aggregate"
    assert "rest on the coordinator" in found.log()
    (known["south"].folder / POLICY).write_text(POLICY_TEXT + "trusting = true\n")
    assert found.propose(to="south") is None


def test_a_lot_that_does_not_suit_cannot_be_drawn_again_and_again_nor_in_other_sessions(
    tmp_path: Path,
) -> None:
    found = table(tmp_path, SHARED)
    found.conduct_until("DealingPost")
    assert [found.code(DealingPost.of(0, [])) for _ in range(4)] == [None, None, None, "out of order"]
    other = replace(found.proposal, session="e" * 16)
    assert conducted(tmp_path / "again", other, found.channel).outcome == "refused"
    assert "3 dealings of keys were broken off" in found.log()
    # People who have looked into it move the session away.
    found.sessions().rename(tmp_path / "looked into")
    assert conducted(tmp_path / "again", other, found.channel).outcome == "finished"


def test_a_session_that_is_left_after_its_beginning_or_end_costs_a_try_as_well(tmp_path: Path) -> None:
    found = table(tmp_path, SHARED)
    for number in range(4):
        each = replace(found.proposal, session=f"{number}" * 16)
        left = Table(tmp_path / f"{number}", found.known, each, found.channel)
        left.folder.mkdir()
        if number < 3:
            left.conduct_until("Begin", 1)
            assert found.charged() == 0
        else:
            assert conducted(left.folder / "host", each, found.channel).outcome == "refused"
    assert "3 dealings of keys were broken off" in found.log()


@pytest.mark.parametrize(
    ("aggregate", "enough"),
    [(SharedSum(dropout=0.6, needed=3, decrypters=3), 2), (SharedSum(dropout=0.0), 5)],
)
def test_the_fewest_of_whom_a_sum_is_opened_count_as_parties(
    aggregate: Any, enough: int, tmp_path: Path
) -> None:
    known = sites(tmp_path, names=("north", "south", "west", "east", "mid"))
    work = training(replace(SHARED, aggregate=aggregate), budget=BUDGET)
    found = Table(tmp_path, known, proposal_of(known, work), channel_to(known))
    text = POLICY_TEXT + "trusting = true\n"
    for fewest, code in ((enough + 1, "policy: parties"), (enough, None)):
        for site in known.values():
            policy = text.replace("minimum_parties = 2", f"minimum_parties = {fewest}")
            (site.folder / POLICY).write_text(policy)
        assert found.propose() == code


def test_dealings_of_which_something_came_do_not_count(tmp_path: Path) -> None:
    found = table(tmp_path, SHARED, budget=None)
    for number in range(5):
        each = replace(found.proposal, session=f"{number}" * 16)
        assert conducted(tmp_path / f"host-{number}", each, found.channel).outcome == "finished"


def test_a_stricter_policy_holds_for_sessions_that_began_side_by_side(tmp_path: Path) -> None:
    """Each has room when it begins; together they would spend what the ledger has, and the policy has not."""
    found = table(tmp_path)
    first = replace(found.proposal, session="a" * 16)
    assert conducted(tmp_path / "first", first, found.channel).outcome == "finished"
    for site in found.known.values():
        (site.folder / POLICY).write_text(POLICY_TEXT.replace("max_epsilon = 9.0", "max_epsilon = 7.0"))
    both = [
        Table(tmp_path / name, found.known, replace(found.proposal, session=name * 16), found.channel)
        for name in "bc"
    ]
    for each in both:
        each.folder.mkdir()
        each.conduct_until("Begin", 1)
    outcomes = [conducted(each.folder / "host", each.proposal, found.channel) for each in both]
    assert outcomes[0].outcome == "finished"
    assert outcomes[1].outcome == "refused"
    assert WORDS["over budget"] in outcomes[1].words
    assert Ledger.open(tmp_path / "north.csv.ledger").spent().epsilon <= 7.0


# What it cannot learn.


def test_what_the_policy_refuses_is_refused_before_the_file_is_read(tmp_path: Path) -> None:
    found = table(tmp_path, policy=POLICY_TEXT.replace('"HorizontalMF", ', ""))
    for name in NAMES:
        (tmp_path / f"{name}.csv").write_text("no ratings at all")
    assert found.propose() == "policy: recipe"
    assert not list(found.known["north"].sessions())


def test_proposing_one_scale_after_the_other_tells_nothing_of_ratings(tmp_path: Path) -> None:
    found = table(tmp_path)
    codes = []
    for place, high in enumerate((4.0, 4.99, 5.01, 100.0)):
        session = f"{place}" * 16
        work = training(PLAIN, budget=BUDGET, scale=(1.0, high))
        codes.append(found.propose(replace(found.proposal, session=session, work=work), session=session))
    assert codes == ["scale"] * 4
    assert found.propose() is None


def test_how_many_ratings_are_told_does_not_depend_on_who_is_common_to_all(tmp_path: Path) -> None:
    recipe, told = VerticalMF(factors=2, rounds=1), []
    for kept in (40, 1):
        found = world(tmp_path / str(kept), recipe, make=vertical_rows, ids="psi", budget=None)
        for name in NAMES[1:]:
            own = [row for row in vertical_rows(NAMES.index(name)) if int(row[0][1:]) < kept]
            write(found.folder / f"{name}.csv", own)
        assert found.conduct().outcome == "finished"
        facts = json.loads((found.folder / "host" / "agreed.json").read_text())["facts"]
        told.append(json.loads(facts["north"])["ratings"])
    assert told == [len(vertical_rows(0))] * 2


def test_a_plan_says_which_sizes_and_ids_are_told_and_what_it_rests_on(tmp_path: Path) -> None:
    found = table(tmp_path, SHARED)
    assert found.propose() is None
    (approval,) = (found.known["north"].folder / "approvals").glob("*.json")
    plan = json.loads(approval.read_text())["approval"]["plan"]
    assert "The coordinator and all parties see how many users and ratings this party has." in plan["sees"]
    assert PINNED.what in plan["rests_on"]
    assert LOT.what not in plan["rests_on"]  # all three decrypt, and nobody makes keys


# What it cannot wear out.


@pytest.mark.parametrize(
    ("kind", "party"), [("SearchReport", "south"), ("Tell", "north"), ("Tell", "west"), ("Agree", "south")]
)
def test_a_coordinator_that_dies_while_parties_tell_what_they_found_goes_on(
    kind: str, party: str, tmp_path: Path
) -> None:
    found = world(tmp_path, VerticalMF(factors=2, rounds=1), make=vertical_rows, ids="psi", budget=None)
    found.channel.after = found.once(lambda name, head: (name, head.kind) == (party, kind), die)
    found.killed()
    for name in NAMES:
        found.restart(name)
    assert found.conduct().outcome == "finished"


def test_users_that_changed_since_they_were_searched_for_are_not_taken_for_others(tmp_path: Path) -> None:
    policy = POLICY_TEXT + "newer_data = true\n"
    known = sites(tmp_path, make=vertical_rows, policy=policy)
    work = training(VerticalMF(factors=2, rounds=1), ids="psi")
    found = Table(tmp_path, known, proposal_of(known, work), channel_to(known))
    found.conduct_until("Agree")
    write(tmp_path / "north.csv", [("u0-new", 1, 5), *vertical_rows(0)])
    found.restart()
    assert found.propose() == "newer data"


def test_a_party_may_be_called_as_files_are(tmp_path: Path) -> None:
    names = ("common", "keys", "begun")
    known = sites(tmp_path, make=vertical_rows, names=names)
    work = training(VerticalMF(factors=2, rounds=2), ids="psi")
    found = Table(tmp_path, known, proposal_of(known, work), channel_to(known))
    assert conducted(tmp_path / "host", found.proposal, found.channel).outcome == "finished"
    for name in names:
        found.restart(name)
        assert found.propose(to=name) is None


# What the guarantee says of it.


def test_a_guarantee_says_how_keys_became_known_and_who_made_them(tmp_path: Path) -> None:
    with fixed_primes():
        found = table(tmp_path, replace(SHARED, aggregate=EncryptedSum()))
        assert conducted(tmp_path / "host", found.proposal, found.channel).outcome == "finished"
    own = Run.load(found.sessions() / "run")
    for guarantee in (Run.load(tmp_path / "host" / "run").guarantee, own.guarantee):
        assert PINNED in guarantee.assumptions
        assert DEALER in guarantee.assumptions
        assert KNOWN_KEYS not in guarantee.assumptions
        assert guarantee.holds
