"""What a party is told of a clustering before it agrees: how many bytes it sends, and who sees what."""

from cofactor.cluster.planning import Plan
from cofactor.cluster.simple import LocalMemberships
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.tables import SecureTable
from cofactor.network.cluster_terms import ClusteringWork
from cofactor.network.searching import search_tells

_HEAD_BYTES, _SUM_BYTES = 200, 3_000
"""The heads of a round's letters; and, in a secure sum, keys, shares of keys and signatures."""
_COLLUDING = "If other parties tell the coordinator what they know, users of this one lose more than epsilon."


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
    shown = (
        "All ids of this party are shown to the coordinator and to all parties. Epsilon does not cover them.",
    )
    alone = () if work.method.alone(plan.facts) else (_COLLUDING,)
    return (
        "The coordinator and all parties see what this party's columns are called, and between which numbers "
        "they lie.",
        f"The coordinator and all parties see {plan.facts.local_clusters} local centres of this party, with "
        "all of their noise in them.",
        *work.method.promise(plan.facts).covers,
        *alone,
        *(search_tells(plan.facts.parties, work.among) if work.align == "psi" else shown),
    )
