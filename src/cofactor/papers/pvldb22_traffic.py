"""Li et al. (PVLDB 2022), Figure 2: how much is sent, read off the transcripts of small trainings."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.data.ratings import Ratings, Scale
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.transcript import Transcript
from cofactor.papers.cells import Effort
from cofactor.papers.material import Material
from cofactor.papers.results import Row
from cofactor.progress import Listener, Progress
from cofactor.recipes.clipping import EmbeddingClipping
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.shared_vectors import Shared, Vectors
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF

ONE_WAY, BOTH_WAYS = "one way", "both ways"
ML_10M = (69_878, 10_677)
"""Users and items, as Figure 2 states them."""
_SCALE = Scale(0.5, 5.0, 0.5)

_VERTICAL, _HORIZONTAL, _LOCAL = "VFL-SGDMF", "HFL-SGDMF", "LFL-SGDMF"
_PAPER = {(_VERTICAL, ONE_WAY): 5.6, (_HORIZONTAL, BOTH_WAYS): 1.7, (_LOCAL, BOTH_WAYS): 1.7}
_NOTES = {
    (_VERTICAL, ONE_WAY): "n p numbers of 32 bits: the paper's 5.6 is one way",
    (_HORIZONTAL, BOTH_WAYS): "m p numbers of 32 bits and back: the paper's 1.7 is both ways (or 64 bits)",
    (_LOCAL, ONE_WAY): "a party of one user",
    (_LOCAL, BOTH_WAYS): "a party of one user; the paper's 1.7 + 1.7 adds a second round, and more for masks",
}


def figure2(material: Material, effort: Effort, progress: Listener) -> list[Row]:  # noqa: ARG001
    """Measure at the shape of MovieLens 10M, which the paper shows, and at that of the data at hand."""
    shapes = dict.fromkeys((ML_10M, (material.ratings.user_count, material.ratings.item_count)))
    rows = []
    for number, (users, items) in enumerate(shapes, 1):
        panel = f"{users:,} users and {items:,} items"
        for line, (up, down) in _traffic(users, items).items():
            known = (users, items) == ML_10M
            rows += [
                Row(
                    line=line,
                    panel=panel,
                    column=column,
                    ours=count / 1e6,
                    paper=_PAPER.get((line, column)) if known else None,
                    note=_NOTES.get((line, column), "") if known else "",
                )
                for column, count in ((ONE_WAY, up), (BOTH_WAYS, up + down))
            ]
        progress(Progress("shapes", number, len(shapes), panel))
    return rows


def findings2(rows: Sequence[Row]) -> list[str]:
    """Say which of our numbers the paper's are."""
    found = {(row.line, row.column): row for row in rows if row.panel.startswith(f"{ML_10M[0]:,}")}
    up, back = found[_VERTICAL, ONE_WAY].ours, found[_HORIZONTAL, BOTH_WAYS].ours
    once = found[_HORIZONTAL, ONE_WAY].ours
    return [
        f"The paper says 5.6 MB for each synchronisation of VFL-SGDMF on MovieLens 10M. A message is "
        f"{up:.2f} MB one way: the user vectors, 20 numbers of 32 bits each.",
        f"The paper says 1.7 MB for HFL-SGDMF. A message is {once:.3f} MB one way: the item vectors. The "
        f"paper's number is both ways ({back:.2f} MB), or one way in 64 bits; counted alike, VFL-SGDMF would "
        f"be {2 * (up or 0):.1f} MB.",
    ]


def _traffic(users: int, items: int) -> dict[str, tuple[int, int]]:
    """Return bytes up and down for one party in one round.

    There are hardly any ratings, few users where their vectors stay at home, and no noise: how long a message
    is does not depend on them.
    """
    settings: dict[str, Any] = {
        "factors": 20, "rounds": 1, "local_steps": 1, "sampling": 0.01, "centre": 3.5,
        "clipping": EmbeddingClipping(), "learning_rate": 1e-6, "most_ratings": 10,
    }  # fmt: skip
    half = items // 2
    vertical = Federation.vertical([_party("a", users, half), _party("b", users, items - half)])
    shared, single = (
        Federation.horizontal([_party("a", count, items), _party("b", count, items)]) for count in (10, 1)
    )
    horizontally = HorizontalMF(**settings, users="pretrained", home=UsersOnly())
    return {
        _VERTICAL: _bytes(train(VerticalMF(**settings), vertical)),
        _HORIZONTAL: _bytes(train(horizontally, shared)),
        _LOCAL: _bytes(train(horizontally, single)),
    }


def _party(name: str, users: int, items: int) -> Party:
    ratings = Ratings.from_rows(
        np.zeros(1, np.int32),
        np.zeros(1, np.int32),
        np.full(1, 3.5, np.float32),
        user_ids=np.arange(users),
        item_ids=np.arange(items),
        scale=_SCALE,
    )
    return Party(name=name, ratings=ratings)


def _bytes(run: Run) -> tuple[int, int]:
    """Read off the transcript what one party sent, and got, in the round of the steps."""
    assert run.together is not None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "transcript.jsonl"
        file.write_bytes(run.together.transcript)
        sent = Transcript.open(file).sent
    down = next(each for each in sent if each.kind == Shared.__name__)
    up = next(each for each in sent if each.kind == Vectors.__name__ and each.round == down.round)
    return up.bytes, down.bytes
