"""Small ratings with categories, and a folder that holds them as a user would have them."""

from pathlib import Path

from cofactor.data.synthetic import Shape, make
from cofactor.papers.material import Material

GENRES = ("Drama", "Comedy", "War")


SMALL = Shape(users=60, items=40, ratings=1_200, minimum=10)


def material(shape: Shape = SMALL) -> Material:
    ratings = make(shape, seed=1).ratings
    return Material(
        name="small",
        ratings=ratings,
        categories=tuple((GENRES[number % 3],) for number in range(ratings.item_count)),
    )


def write(folder: Path, *, ratings: str = "ratings.csv", shape: Shape = SMALL) -> Path:
    """Write ratings and a table of films; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    own = material(shape).ratings
    rows = zip(own.users, own.items, own.values, strict=True)
    lines = [f"{own.user_ids[u]},{own.item_ids[i]},{value:g}\n" for u, i, value in rows]
    (folder / ratings).write_text("userId,movieId,rating\n" + "".join(lines))
    films = [f"{item},Film {item},{GENRES[k % 3]}|Noir\n" for k, item in enumerate(own.item_ids)]
    (folder / "movies.csv").write_text("movieId,title,genres\n" + "".join(films))
    return folder
