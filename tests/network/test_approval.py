import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cofactor.crypto.keys import Identity
from cofactor.errors import Refused
from cofactor.federation.declining import Declining
from cofactor.network import approval
from cofactor.network.approval import Approval, approve
from cofactor.network.proposal import Proposal
from cofactor.network.site import Site
from cofactor.network.work import Planned
from tests.network.test_policy import PLANNED

LIMITS = """accept = "within limits"
max_epsilon = 2
max_epsilon_per_run = 1
recipes = ["HorizontalMF"]
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.create(tmp_path / "north")


@pytest.fixture
def proposal(site: Site) -> Proposal:
    keys = {"north": site.identity.public, "south": b"\1" * 32, "west": b"\2" * 32}
    return Proposal(
        kind="training",
        session="ab" * 8,
        version="1",
        parties={name: key.hex() for name, key in keys.items()},
        work={"rounds": 20},
    )


def policy(site: Site, text: str) -> None:
    (site.folder / "policy.toml").write_text(text)


def answered(site: Site, proposal: Proposal, planned: Planned = PLANNED, *, yes: bool) -> Approval:
    """Let somebody answer in a thread as soon as something waits, while the party's process asks."""

    def person() -> None:
        until = time.monotonic() + 20
        while not (waiting := approval.pending(site)):
            assert time.monotonic() < until
            time.sleep(0.01)
        approval.answer(site, waiting[0], yes=yes, who="Ada")

    thread = threading.Thread(target=person)
    thread.start()
    try:
        return approve(site, proposal, planned, sleep=lambda _: time.sleep(0.01))
    finally:
        thread.join()


def names(site: Site) -> set[str]:
    return {path.name.partition(".")[2] for path in site.approvals.iterdir()}


def test_a_yes_is_signed_and_kept_with_who_when_and_what(site: Site, proposal: Proposal) -> None:
    said = answered(site, proposal, yes=True)
    assert (said.who, said.how, said.proposal) == ("Ada", "by hand", proposal.digest)
    assert said.policy == site.policy.digest
    assert said.plan["epsilon"] == 1.0
    assert approval.decisions(site) == [said]
    assert names(site) == {"json"}


def test_a_no_is_kept_as_well_and_stays(site: Site, proposal: Proposal) -> None:
    with pytest.raises(Declining, match="Ada said no") as refused:
        answered(site, proposal, yes=False)
    assert refused.value.code == "not approved"
    policy(site, LIMITS)
    with pytest.raises(Declining, match="Ada said no"):
        approve(site, proposal, PLANNED)
    assert names(site) == {"refused.json"}


def never(_: float) -> None:
    raise AssertionError("asked again")


def test_a_session_that_is_taken_up_again_is_not_asked_about_twice(site: Site, proposal: Proposal) -> None:
    first = answered(site, proposal, yes=True)
    assert approve(site, proposal, PLANNED, sleep=never) == first


@pytest.mark.parametrize("change", ["work", "seed", "parties", "session"])
def test_any_change_to_a_proposal_is_asked_about_again(site: Site, proposal: Proposal, change: str) -> None:
    answered(site, proposal, yes=True)
    other = {
        "work": replace(proposal, work={"rounds": 21}),
        "seed": replace(proposal, seed=1),
        "parties": replace(proposal, parties=dict(reversed(list(proposal.parties.items())))),
        "session": replace(proposal, session="cd" * 8),
    }[change]
    with pytest.raises(AssertionError, match="asked again"):
        approve(site, other, PLANNED, sleep=never)


def test_an_older_yes_does_not_outlive_a_stricter_policy(site: Site, proposal: Proposal) -> None:
    answered(site, proposal, yes=True)
    policy(site, "max_epsilon_per_run = 0.5\n")
    with pytest.raises(Declining) as refused:
        approve(site, proposal, PLANNED, sleep=never)
    assert refused.value.code == "policy: epsilon of a run"


def test_no_person_is_asked_about_what_a_limit_refuses(site: Site, proposal: Proposal) -> None:
    with pytest.raises(Declining):
        approve(site, proposal, replace(PLANNED, telling="union"), sleep=never)
    assert approval.pending(site) == []


def test_within_limits_nobody_is_asked_and_the_policy_signs(site: Site, proposal: Proposal) -> None:
    policy(site, LIMITS)
    said = approve(site, proposal, PLANNED, sleep=never)
    assert (said.who, said.how) == ("policy.toml", "by policy")
    assert approve(site, proposal, PLANNED, sleep=never) == said


def test_a_yes_by_policy_is_none_once_a_person_is_to_be_asked(site: Site, proposal: Proposal) -> None:
    policy(site, LIMITS)
    approve(site, proposal, PLANNED, sleep=never)
    policy(site, "")
    with pytest.raises(AssertionError, match="asked again"):
        approve(site, proposal, PLANNED, sleep=never)


def test_nobody_who_answers_in_time_is_a_no_that_can_be_asked_again(site: Site, proposal: Proposal) -> None:
    policy(site, "patience = 0.05\n")
    with pytest.raises(Declining, match="nobody answered") as refused:
        approve(site, proposal, PLANNED)
    assert refused.value.code == "not approved"
    assert names(site) == set()


def test_a_yes_that_was_changed_by_hand_is_none(site: Site, proposal: Proposal) -> None:
    answered(site, proposal, yes=True)
    path = site.approvals / f"{proposal.digest}.json"
    table = json.loads(path.read_text())
    table["approval"]["plan"]["epsilon"] = 9.0
    path.write_text(json.dumps(table))
    with pytest.raises(Declining, match="not signed"):
        approve(site, proposal, PLANNED, sleep=never)


def test_a_yes_with_another_identity_is_none(site: Site, proposal: Proposal, tmp_path: Path) -> None:
    answered(site, proposal, yes=True)
    (site.folder / "identity.pem").unlink()
    Identity.generate().save(site.folder / "identity.pem")
    with pytest.raises(Declining, match="not signed"):
        approve(site, proposal, PLANNED, sleep=never)


def test_a_yes_to_one_plan_under_the_name_of_another_is_none(site: Site, proposal: Proposal) -> None:
    answered(site, proposal, yes=True)
    other = replace(proposal, seed=1)
    (site.approvals / f"{proposal.digest}.json").rename(site.approvals / f"{other.digest}.json")
    with pytest.raises(Declining, match="something else"):
        approve(site, other, PLANNED, sleep=never)


def test_a_no_under_the_name_of_a_yes_is_none(site: Site, proposal: Proposal) -> None:
    with pytest.raises(Declining):
        answered(site, proposal, yes=False)
    (site.approvals / f"{proposal.digest}.refused.json").rename(site.approvals / f"{proposal.digest}.json")
    with pytest.raises(Declining, match="something else"):
        approve(site, proposal, PLANNED, sleep=never)


def test_what_was_answered_is_not_answered_again(site: Site, proposal: Proposal) -> None:
    waiting: list[approval.Pending] = []

    def look(_: float) -> None:
        waiting.extend(approval.pending(site))
        approval.answer(site, waiting[0], yes=True)

    approve(site, proposal, PLANNED, sleep=look)
    with pytest.raises(Refused, match="answered already"):
        approval.answer(site, waiting[0], yes=False)


def test_a_plan_shows_cost_partners_keys_and_who_sees_what(site: Site, proposal: Proposal) -> None:
    planned = replace(PLANNED, sees=("the coordinator sees the sum",), most_ratings=50)
    told = "\n".join(approval.lines(site.name, proposal, planned))
    for words in ("HorizontalMF", "20 rounds", "epsilon 1", "1.5 with all", "south, west", "at most 50"):
        assert words in told
    assert "sees: the coordinator sees the sum" in told
    assert proposal.digest in told
    assert "NO BUDGET" in "\n".join(approval.lines("north", proposal, replace(planned, epsilon=None)))


def test_nothing_that_a_terminal_would_obey_is_shown(site: Site, proposal: Proposal) -> None:
    evil = replace(PLANNED, what="x\x1b[2J\r\n[red]y[/]\u202e\x9b31m", sees=("a" * 5000,))
    shown: list[str] = []

    def look(_: float) -> None:
        (waiting,) = approval.pending(site)
        shown.extend(waiting.lines)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        approve(site, proposal, evil, sleep=look)
    assert all(line.isprintable() and len(line) < 400 for line in shown)
    assert approval.pending(site) == []
