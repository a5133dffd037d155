"""What a party says that does not answer: a code of a closed list, and nothing else."""

import pytest

from cofactor.errors import (
    BudgetExceeded,
    CofactorError,
    ConfigError,
    DataError,
    LedgerError,
    ProtocolError,
    Refused,
    RunError,
    TooFew,
    UnknownId,
)
from cofactor.federation.declining import (
    WORDS,
    Declined,
    Declining,
    answers_from,
    code_in,
    code_of,
    declined,
)
from cofactor.federation.door import RoundLost
from cofactor.federation.messages import Letter
from cofactor.network.letters import Begun

SECRET = "user 4711 gave item 12 the rating 3"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RoundLost(SECRET), "lost"),
        (TooFew(SECRET), "too few"),
        (ProtocolError(SECRET), "out of order"),
        (BudgetExceeded(SECRET), "over budget"),
        (Refused(SECRET), "not planned"),
        (LedgerError(SECRET), "ledger"),
        (DataError(SECRET), "no data"),
        (RunError(SECRET), "out of order"),
        (ModuleNotFoundError(SECRET), "missing extra"),
        (ConfigError(SECRET), "failed"),
        (UnknownId(SECRET), "failed"),
        (CofactorError(SECRET), "failed"),
        (ValueError(SECRET), "failed"),
        (MemoryError(), "failed"),
        (Declining("scale", SECRET), "scale"),
        (Declining(SECRET, SECRET), "failed"),
    ],
)
def test_every_error_has_a_code_and_no_word_of_it_goes_out(error: Exception, code: str) -> None:
    assert code_of(error) == code
    letter = declined(code_of(error), session="s", round=3, sender="north")
    assert b"user 4711" not in letter
    assert code_in(letter) == code


def test_a_code_that_is_not_in_the_list_goes_out_and_comes_in_as_failed() -> None:
    assert code_in(declined(SECRET, session="s", round=0, sender="north")) == "failed"
    forged = Letter(session="s", round=0, sender="north", body=Declined(code=SECRET)).to_bytes()
    assert code_in(forged) == "failed"
    (words,) = answers_from({"north": forged}).missing.values()
    assert words == WORDS["failed"]


def test_what_is_no_refusal_has_no_code() -> None:
    assert code_in(b"") is None
    assert code_in(Letter(session="s", round=0, sender="north", body=Begun()).to_bytes()) is None


def test_answers_refusals_and_silence_are_told_apart() -> None:
    answer = Letter(session="s", round=2, sender="east", body=Begun()).to_bytes()
    found = answers_from(
        {
            "north": declined("lost", session="s", round=2, sender="north"),
            "south": declined("over budget", session="s", round=2, sender="south"),
            "west": "was not reached",
            "east": answer,
        }
    )
    assert found.by_party == {"east": answer}
    assert found.lost == {"north"}
    assert found.missing == {
        "north": WORDS["lost"],
        "south": WORDS["over budget"],
        "west": "was not reached",
    }


def test_words_follow_a_partys_name_and_no_two_codes_share_them() -> None:
    assert len(set(WORDS.values())) == len(WORDS)
    assert all(words[0].islower() and not words.endswith(".") for words in WORDS.values())
