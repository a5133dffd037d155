"""Li, Ding, Zhang, Li, Zhou: Federated Matrix Factorization with Privacy Guarantee. PVLDB 15(4), 2022."""

from collections.abc import Callable, Sequence

from cofactor.papers import pvldb22_devices as devices
from cofactor.papers import pvldb22_horizontal as horizontal
from cofactor.papers import pvldb22_traffic as traffic
from cofactor.papers import pvldb22_vertical as vertical
from cofactor.papers.cells import Cell, Effort, measured
from cofactor.papers.claims import Claim
from cofactor.papers.figure import Figure
from cofactor.papers.material import Material
from cofactor.papers.reference import baselines
from cofactor.papers.results import Row
from cofactor.progress import Listener

_READING = (
    "Behind a number stands half of its 95% interval. Columns name budgets, delta 1e-06; what the accountant "
    "proves is never more, unless a note says so."
)


def _errors(
    title: str,
    cells: Callable[[Material, Effort], list[Cell]],
    claims: Callable[[], list[Claim]],
    more: Callable[[Sequence[Row]], list[str]] = lambda _: [],
) -> Figure:
    """Return a figure of errors; `more` says what no claim of the paper is about."""

    def rows(material: Material, effort: Effort, progress: Listener) -> list[Row]:
        return measured(material, cells(material, effort), effort, progress)

    def findings(found: Sequence[Row]) -> list[str]:
        return [*(claim.found(found) for claim in claims()), *more(found)]

    return Figure(
        title=title, measure="MSE", rows=rows, findings=findings, baselines=baselines, reading=_READING
    )


FIGURES = {
    "figure2": Figure(
        title="Bytes of each synchronisation", measure="MB", rows=traffic.figure2, findings=traffic.findings2
    ),
    "figure4": _errors("Embedding clipping and gradient clipping", vertical.figure4, vertical.claims4),
    "figure5": _errors("VFL-SGDMF, DP-SGLD and ObjPertb", vertical.figure5, vertical.claims5),
    "figure6": _errors("Split by category and at random", vertical.figure6, vertical.claims6),
    "figure7": _errors("Items split among 2, 5 and 10 parties", vertical.figure7, vertical.claims7),
    "figure8": _errors("Pretrain-U and train-both", horizontal.figure8, horizontal.claims8),
    "figure9": _errors("Users split among 10 and 40 parties", horizontal.figure9, horizontal.claims9),
    "figure10": _errors("Devices that drop out", devices.figure10, devices.claims10, devices.ours),
    "figure10-tenfold": _errors("Ten times as many devices", devices.tenfold, list, devices.ours_tenfold),
    "figure11": _errors("Items split among 1 and 18 parties", vertical.figure11, vertical.claims11),
}
"""What can be made again, by its name in the paper."""
