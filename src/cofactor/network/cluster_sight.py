"""What a party is told of a clustering before it agrees: how many bytes it sends, and who sees what."""

from cofactor.cluster.planning import Plan
from cofactor.cluster.simple import LocalMemberships
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.tables import SecureTable
from cofactor.network.cluster_terms import ClusteringWork

_HEAD_BYTES, _SUM_BYTES = 200, 3_000
"""The heads of a round's letters; and, in a secure sum, keys, shares of keys and signatures."""
_COLLUDING = "If other parties tell the coordinator what they know, users of this one lose more than epsilon."

_AMONG = {
    "leader": "{first}, which leads the search, learns which of its users each other party has.",
    "chain": "Each party learns in the search which of its users all parties before it have.",
}
"""What a search among more than two parties tells besides."""


def traffic_of(plan: Plan, place: int) -> int:
    """Return about how many bytes a party sends."""
    facts, method = plan.facts, plan.method
    cells, width = facts.local_clusters, facts.widths[place]
    sent = _HEAD_BYTES * plan.rounds + 8 * cells * width
    if isinstance(method, SecureTable):
        layout, last = method.layout(facts), len(facts.parties) - 1
        offers = layout.offer_bytes if place < last else 0
        return sent + offers + place * layout.answer_bytes + _SUM_BYTES
    if isinstance(method, Sketches):
        return sent + (len(facts.parties) - 1) * method.rows * cells
    return sent + (8 * facts.users if isinstance(method, LocalMemberships) else 8 * cells)


def sentences_of(work: ClusteringWork, plan: Plan) -> tuple[str, ...]:
    """Say who sees what."""
    ids = {
        "psi": "Private set intersection tells all parties which of their users all have, and how many users "
        "each has; the coordinator learns how many. Epsilon does not cover it.",
        "ids": "All ids of this party are shown to the coordinator and to all parties. Epsilon does not "
        "cover them.",
    }
    alone = () if work.method.alone(plan.facts) else (_COLLUDING,)
    parties = plan.facts.parties
    more = (_AMONG[work.among].format(first=parties[0]),) if work.align == "psi" and len(parties) > 2 else ()
    return (
        "The coordinator and all parties see what this party's columns are called, and between which numbers "
        "they lie.",
        f"The coordinator and all parties see {plan.facts.local_clusters} local centres of this party, with "
        "all of their noise in them.",
        *work.method.promise(plan.facts).covers,
        *alone,
        ids[work.align],
        *more,
    )
