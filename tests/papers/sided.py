"""Small ratings with tables of their users and items, as MovieLens has them."""

from pathlib import Path

from cofactor.papers.privmvmf_sides import Sided
from tests.papers.making import material, write

_JOBS, _ZIPS = ("artist", "doctor", "other"), ("02139", "60601", "94107", "73301", "T8H1N")


def write_sides(folder: Path) -> Path:
    """Write ratings, films and users; returns the folder."""
    write(folder)
    rows = [
        f"{user},{15 + (7 * at) % 50},{'FM'[at % 2]},{_JOBS[at % 3]},{_ZIPS[at % 5]}\n"
        for at, user in enumerate(material().ratings.user_ids)
    ]
    (folder / "users.csv").write_text("userId,age,gender,occupation,zip_code\n" + "".join(rows))
    return folder


def write_genome(file: Path, *, without: int = 0) -> Path:
    """Write scores of 24 tags for all films but the first few."""
    films = material().ratings.item_ids[without:].tolist()
    scores = [
        f"{film},{tag},{((film * 31 + tag * 17) % 97) / 97:.3f}\n" for film in films for tag in range(24)
    ]
    file.write_text("movieId,tagId,relevance\n" + "".join(scores))
    return file


def sided(folder: Path) -> Sided:
    [found] = Sided.read_sides(write_sides(folder) / "ratings.csv", ())
    return found
