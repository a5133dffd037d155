"""Small files of ratings, dealt out to parties that have a file each."""

from pathlib import Path

from cofactor.data import partition
from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make

RATINGS = make(Shape(users=60, items=40, ratings=1_200, minimum=8), seed=4).ratings
SHOPS = ("north", "south", "west")
SERVICES = ("books", "films", "music")


def text(ratings: Ratings) -> str:
    rows = zip(ratings.users, ratings.items, ratings.values, strict=True)
    lines = [f"u{ratings.user_ids[u]},i{ratings.item_ids[i]},{value:g}\n" for u, i, value in rows]
    return "user,item,rating\n" + "".join(lines)


FILES = {
    "all.csv": text(RATINGS),
    **{f"{n}.csv": text(p) for n, p in zip(SHOPS, partition.horizontal(RATINGS, 3), strict=True)},
    **{f"{n}.csv": text(p) for n, p in zip(SERVICES, partition.vertical(RATINGS, 3), strict=True)},
    "table.csv": "item,title,genre\n" + "".join(f"i{k},Film {k},g{k % 3}\n" for k in range(1, 41)),
}


def write(folder: Path) -> Path:
    for name, content in FILES.items():
        (folder / name).write_text(content)
    return folder
