import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cofactor.report.exchange import COORDINATOR, PARTIES, SUM, Exchange
from cofactor.report.folder import Folder, Release
from cofactor.report.sight import seen_by, sight
from tests.report.making import told


def sent(
    protection: str,
    sender: str = PARTIES,
    receiver: str = COORDINATOR,
    kind: str = "Vectors",
    after: tuple[str, ...] = (),
) -> Exchange:
    return Exchange(
        kind=kind,
        sender=sender,
        receiver=receiver,
        protection=protection,
        messages=3,
        bytes=10,
        rounds=(1, 3),
        after=frozenset(after),
    )


@pytest.mark.parametrize(
    ("protection", "seen"),
    [
        ("noise", "noisy"),
        ("nothing", "plain"),
        ("public", "public"),
        ("agreed beforehand", "public"),
        ("a share of noise", "plain"),
        ("a share of noise, SIMULATION", "plain"),
        ("a share of noise, masked", "masked"),
        ("nothing, masked", "masked"),
        ("a share of noise, encrypted", "encrypted"),
        ("nothing, encrypted", "encrypted"),
        ("a part in opening the sum", "encrypted"),
        ("sealed for other parties", "encrypted"),
        ("between parties", "encrypted"),
        ("shares of keys", "keys"),
        ("a word of tomorrow", "plain"),
    ],
)
def test_each_protection_says_what_the_coordinator_saw(protection: str, seen: str) -> None:
    assert seen_by(COORDINATOR, sent(protection)) == seen


def test_parties_do_not_see_what_others_send_to_the_coordinator() -> None:
    assert seen_by(PARTIES, sent("nothing")) == "nothing"


def test_parties_see_what_is_passed_on_to_them_as_it_is_inside() -> None:
    assert seen_by(PARTIES, sent("sealed for other parties", COORDINATOR, PARTIES)) == "keys"


def test_whoever_sends_what_is_public_sees_it() -> None:
    assert seen_by(COORDINATOR, sent("public", COORDINATOR, PARTIES)) == "public"


@pytest.mark.parametrize(
    ("after", "seen"),
    [
        ((), "public"),
        (("public", "shares of keys", "agreed beforehand"), "public"),
        (("noise",), "noisy"),
        (("a share of noise, masked", "public"), "noisy"),
        (("a share of noise, SIMULATION",), "noisy"),
        (("nothing",), "plain"),
        (("noise", "nothing, masked"), "plain"),
        (("nothing, SIMULATION",), "plain"),
        (("a word of tomorrow",), "plain"),
    ],
)
def test_what_is_made_of_answers_is_as_telling_as_they_were(after: tuple[str, ...], seen: str) -> None:
    question = sent("released before", COORDINATOR, PARTIES, after=after)
    assert [seen_by(role, question) for role in (COORDINATOR, PARTIES)] == [seen, seen]


def test_a_role_sees_its_own_messages_and_no_others() -> None:
    own = sent("public", "item server", COORDINATOR)
    assert seen_by("item server", own) == "public"
    assert seen_by(COORDINATOR, own) == "public"
    assert seen_by("item server", sent("nothing")) == "nothing"


def test_a_simulated_sum_is_seen_by_nobody() -> None:
    ideal = sent("a share of noise, SIMULATION", PARTIES, SUM)
    assert [seen_by(role, ideal) for role in (COORDINATOR, PARTIES)] == ["nothing", "nothing"]


def cells(*exchanges: Exchange, **more: Any) -> list[list[str]]:
    """Return the text of the grid's cells, row by row."""
    folder = replace(told(), exchanges=exchanges, **more)
    body = str(sight(folder)).partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall("<tr>(.*?)</tr>", body)
    ]


def test_the_grid_begins_with_what_nobody_sees() -> None:
    assert cells(sent("noise"))[0] == [
        "Ratings, and each party&#39;s own model",
        "at home",
        "nothing",
        "nothing",
        "",
    ]


def test_a_hidden_sum_has_a_row_for_what_is_opened() -> None:
    hidden = cells(sent("a share of noise, masked"))
    assert hidden[-1] == ["The sum of all answers", "opened", "noisy", "nothing", ""]
    assert len(cells(sent("noise"))) == 2


@pytest.mark.parametrize("protection", ["nothing, masked", "nothing, encrypted", "nothing, SIMULATION"])
def test_a_hidden_sum_without_noise_is_opened_as_it_is(protection: str) -> None:
    receiver = SUM if protection.endswith("SIMULATION") else COORDINATOR
    assert cells(sent(protection, receiver=receiver))[-1][2] == "plain"


def seen_in(folder: Path) -> dict[str, tuple[str, str]]:
    """Return what the coordinator and the parties saw in a run that was really made, by row."""
    folder_read = Folder.read(folder)
    return {
        row[0].partition(":")[0]: (row[2], row[3])
        for row in cells(*folder_read.exchanges, facts=folder_read.facts)
    }


def test_nothing_is_called_noisy_where_there_was_no_noise(made: Callable[[str], Path]) -> None:
    assert {word for row in seen_in(made("plain")).values() for word in row} == {"nothing", "public", "plain"}


def test_a_question_tells_nothing_before_anybody_answered(made: Callable[[str], Path]) -> None:
    assert seen_in(made("survey"))["Asking"] == ("public", "public")
    private = seen_in(made("private"))
    assert {"noisy"} < {word for row in private.values() for word in row}


def test_roles_have_columns_of_their_own() -> None:
    together = {**told().facts["together"], "roles": ["item server"]}
    facts = {**told().facts, "together": together}
    grid = cells(sent("noise"), sent("public", "item server", kind="Items"), facts=facts)
    assert [row[2:5] for row in grid[1:]] == [
        ["noisy", "nothing", "nothing"],
        ["public", "nothing", "public"],
    ]


def test_noisy_messages_are_named_after_what_the_ledger_has_of_their_rounds() -> None:
    release = Release(
        what="item vectors",
        round=2,
        by="north",
        mechanism={},
        bound={},
        dimension=1,
        count=1,
        secure=True,
        joint=False,
    )
    grid = cells(sent("noise"), releases=(release, replace(release, what="later", round=9)))
    assert grid[1][0] == "Vectors: item vectors"


def test_what_is_agreed_beforehand_comes_first() -> None:
    before = replace(sent("agreed beforehand", kind="Terms"), rounds=(0, 0))
    assert [row[0] for row in cells(sent("noise"), before)[1:]] == ["Terms", "Vectors"]


def test_only_words_that_occur_are_explained() -> None:
    written = str(sight(replace(told(), exchanges=(sent("noise"),))))
    assert "sees numbers with noise" in written
    assert "sees it as it is" not in written


def test_a_pooled_run_has_no_grid() -> None:
    assert not sight(told(together=None))
