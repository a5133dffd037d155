"""Who sees what: a row for each kind of message, a column for each role, and how it was protected."""

from collections.abc import Iterable, Sequence

from cofactor.report import names
from cofactor.report.exchange import COORDINATOR, PARTIES, SUM, Exchange
from cofactor.report.folder import Folder, Release
from cofactor.report.markup import Content, Markup, element, section, table

NOTHING = "nothing"
_WORDS = {
    "nothing": "sees nothing of it",
    "masked": "sees numbers under masks, which tell nothing but the sum of all",
    "encrypted": "sees ciphertexts, and has no key",
    "keys": "sees pieces of keys, and no ratings",
    "noisy": "sees numbers with noise: in the ledger",
    "public": "sees what is public anyway",
    "plain": "sees it as it is",
}
"""What a cell says, the least telling first."""
_MOST_NAMED = 4


def sight(folder: Folder) -> Markup:
    """Draw the grid: the coordinator, the parties, and other roles, which hold no ratings."""
    exchanges = folder.exchanges
    if not exchanges:
        return Markup()
    columns = (COORDINATOR, PARTIES, *(folder.together or {}).get("roles", ()))
    rows: list[tuple[Content, ...]] = [
        ("Ratings, and each party's own model", "at home", *(_cell(NOTHING) for _ in columns), "")
    ]
    for each in _together(exchanges):
        rows.append(
            (
                _named(each, folder.releases),
                f"{each.sender} → {_receiver(each.receiver)}",
                *(_cell(seen_by(role, each)) for role in columns),
                f"{each.messages:,}",
            )
        )
    summed = {each.protection for each in exchanges if each.receiver == SUM or _hidden(each.protection)}
    if summed:
        opened = _cell(_made_of(summed))
        rows.append(
            (
                "The sum of all answers",
                "opened",
                *(opened if role == COORDINATOR else _cell(NOTHING) for role in columns),
                "",
            )
        )
    heads = ("message", "way", *columns, "messages")
    grid = table(
        heads, rows, caption="Who saw which message, and how it was protected", numeric=(len(heads) - 1,)
    )
    shown = {seen_by(role, each) for each in exchanges for role in columns} | {NOTHING}
    legend = [element("li", _cell(word), " ", meaning) for word, meaning in _WORDS.items() if word in shown]
    return section(
        "sight",
        "Who sees what",
        grid,
        element("ul", *legend, class_="legend"),
        lead="Drawn from the transcript, which has a sealed line for every message of the run.",
    )


def _named(each: Exchange, releases: Sequence[Release]) -> str:
    """Return what a message is called, and what in it is in the ledger."""
    if each.sender != PARTIES or "noise" not in each.protection:
        return names.message(each.kind, each.protection)
    kind, (first, last) = names.spaced(each.kind), each.rounds
    held = dict.fromkeys(
        release.what for release in releases if release.round and first <= release.round <= last
    )
    shown = [*list(held)[:_MOST_NAMED], *(["and more"] if len(held) > _MOST_NAMED else [])]
    return f"{kind}: {', '.join(shown)}" if shown else kind


def seen_by(role: str, each: Exchange) -> str:
    """Return how much a role saw of messages: what a cell says.

    Whoever passes a message on sees what it looks like outside; what is inside is for its receiver.
    """
    if each.receiver == SUM:
        return NOTHING
    if role not in (each.sender, each.receiver) and not (role == COORDINATOR and _relayed(each)):
        return NOTHING
    if role == each.sender and role != PARTIES:
        return _made_of(each.after) if _derived(each) else "public" if _public(each) else NOTHING
    if role == PARTIES and each.sender == PARTIES:
        return NOTHING  # of each other's, unless it is passed on to them
    if _derived(each):
        return _made_of(each.after)
    return _protected(each.protection, role)


def _protected(protection: str, role: str) -> str:
    """Return what a protection leaves to be seen for whom it was sent to."""
    if protection == "between parties":
        return "encrypted" if role == COORDINATOR else "keys"
    if protection == "sealed for other parties":
        return "encrypted" if role == COORDINATOR else "keys"
    if protection.endswith("masked"):
        return "masked"
    if protection.endswith(("encrypted", "a part in opening the sum")):
        return "encrypted"
    if protection == "shares of keys":
        return "keys"
    if protection == "noise":
        return "noisy"
    if protection in ("public", "agreed beforehand"):
        return "public"
    return "plain"


def _made_of(protections: Iterable[str]) -> str:
    """Return what is seen of numbers made of messages that were protected so, all of them opened."""
    inside = {protection.partition(",")[0] for protection in protections}
    seen = {"noisy" if "noise" in word else _protected(word, PARTIES) for word in inside}
    return next((word for word in ("plain", "noisy") if word in seen), "public")


def _hidden(protection: str) -> bool:
    return protection.endswith(("masked", "encrypted", "SIMULATION"))


def _derived(each: Exchange) -> bool:
    """Say whether it was made of what had been sent before, if anything had."""
    return each.protection == "released before"


def _public(each: Exchange) -> bool:
    return each.protection in ("public", "agreed beforehand")


def _relayed(each: Exchange) -> bool:
    """Say whether the coordinator passed it on."""
    return each.protection in ("between parties", "sealed for other parties")


def _together(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Put rounds together: what is said before the first one comes first."""
    return sorted(exchanges, key=lambda each: (each.rounds[0] > 0, each.rounds[0]))


def _receiver(role: str) -> str:
    return "nobody by itself" if role == SUM else role


def _cell(word: str) -> Markup:
    kind = "encrypted" if word == "keys" else word
    return element("span", word, class_=f"saw {kind}")
