"""What each group of users is promised, before and after a training: of groups only, never of users."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cofactor.privacy.personal import PersonalBudget


def promised(guarantee: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return by group of users what a stored guarantee promises at least; nothing if all have the same."""
    if not guarantee.get("personal"):
        return []
    from cofactor.privacy.guarantee import Guarantee

    read = Guarantee.from_json(guarantee)
    assert read.personal is not None
    return [
        {
            "name": group.name,
            "low": group.low,
            "high": group.high,
            "epsilon": read.for_group(group.name).epsilon,
        }
        for group in read.personal.groups
    ]


def promised_lines(guarantee: Mapping[str, Any]) -> list[str]:
    """Say by group of users what a stored guarantee promises at least."""
    from cofactor.figures import rounded_up

    return [
        f"{group['name']} users (weights {ranged(group['low'], group['high'])}): "
        + (
            "nothing proved"
            if group["epsilon"] is None
            else f"epsilon at most {rounded_up(group['epsilon'])}"
        )
        for group in promised(guarantee)
    ]


def planned(budget: "PersonalBudget") -> list[dict[str, Any]]:
    """Return by group of users what a budget promises, and with which chance they take part if sampled."""
    from cofactor.privacy.weights import taking_part

    found: list[dict[str, Any]] = []
    for group in budget.users.groups:
        ends = np.array([group.low, group.high])
        most, chances = budget.epsilon * ends, None
        if budget.mechanism == "sampling":
            most = np.minimum(most, budget.sampled_at)
            chances = taking_part(ends, budget.epsilon, budget.sampled_at).tolist()
        words = {"name": group.name, "low": group.low, "high": group.high}
        found.append(words | {"epsilon": most.tolist(), "taking_part": chances})
    return found


def planned_lines(budget: "PersonalBudget") -> list[str]:
    """Say by group of users what a budget promises."""
    from cofactor.figures import rounded_up

    lines = []
    for group in planned(budget):
        low, high = (rounded_up(each) for each in group["epsilon"])
        line = f"{group['name']} users (weights {ranged(group['low'], group['high'])}): epsilon "
        line += high if low == high else f"{low} to {high}"
        if group["taking_part"] is not None:
            chances = [f"{chance:.0%}" for chance in group["taking_part"]]
            line += f", taking part with a chance of {' to '.join(dict.fromkeys(chances))}"
        lines.append(line)
    if budget.unit == "rating" and lines:
        lines.append("that is for items of weight 1; those of others are promised less, by their weight")
    return lines


def ranged(low: float, high: float) -> str:
    """Write from where to where."""
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
