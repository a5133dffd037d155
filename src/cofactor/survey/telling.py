"""What a survey's result says of privacy, and of who took part."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import cast

from cofactor.config import as_table
from cofactor.federation.books import released
from cofactor.federation.run import PartyFacts, Together
from cofactor.federation.splits import Split
from cofactor.federation.transcript import Transcript
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.events import Event
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.ledger import Ledger
from cofactor.survey.answering import kept_by
from cofactor.survey.method import Method

_EACH_ANOTHER = Assumption(
    what="every number is another person's",
    met="where a table has a column of ids, nobody is in it twice; otherwise that is taken on trust from "
    "whoever holds the numbers",
)


def split_of(people: Collection[int]) -> Split:
    """Return how holders of so many people's numbers relate."""
    return "on-device" if all(count == 1 for count in people) else "horizontal"


def guarantee_of(method: Method, events: Sequence[Event], people: int, doubts: Sequence[str]) -> Guarantee:
    """Return what is promised to everybody who has answered."""
    found = Guarantee.of(
        events,
        kept_by(method),
        against=("the aggregator", "everyone who sees a person's answer"),
        covers=("Every answer by itself, and whatever is made of the answers.",),
        does_not_cover=(
            "Who is asked, who answers, what is asked and between which numbers: public.",
            "What holders of several people's numbers see themselves: the numbers are theirs.",
        ),
        assumptions=(_EACH_ANOTHER,),
        shared_units=False,
        units=people,
    )
    return replace(found, warnings=(*found.warnings, *doubts))


def together_of(
    method: Method, transcript: Transcript, people: Mapping[str, int], ledgers: Mapping[str, Ledger]
) -> Together:
    """Return who took part; what somebody lost whose ledger is not at hand is not known."""
    sent, session = transcript.bytes_by_sender(), transcript.session
    parties = {
        name: PartyFacts(
            users=count,
            items=0,
            ratings=0,
            bytes_sent=sent[name],
            epsilon=_lost(method, ledgers.get(name), session),
        )
        for name, count in people.items()
    }
    return Together(
        split=cast(Split, transcript.split),
        session=session,
        simulated=False,
        budget=as_table(kept_by(method)),
        parties=parties,
        rounds=1,
        traffic=transcript.total_bytes,
        transcript=transcript.content(),
        ledgers={name: ledger.content() for name, ledger in ledgers.items()},
    )


def _lost(method: Method, ledger: Ledger | None, session: str) -> float | None:
    if ledger is None:
        return None
    return method.epsilon if released(ledger, session) else 0.0
