import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.public_items import PublicItems
from cofactor.data.tag_genome import is_tag_genome, tag_components
from cofactor.errors import ConfigError, DataError

FILMS = np.array([3, 7, 8, 20, 21, 30, 44, 51])
RELEVANCE = np.round(np.random.default_rng(5).random((8, 5)), 3)


def scores(relevance: NDArray[np.float64] = RELEVANCE, *, separator: str = ",", header: bool = True) -> str:
    rows = [
        separator.join((str(film), str(tag + 1), f"{relevance[row, tag]:g}"))
        for row, film in enumerate(FILMS)
        for tag in range(relevance.shape[1])
        if np.isfinite(relevance[row, tag])
    ]
    return "\n".join([*(["movieId,tagId,relevance"] if header else []), *rows]) + "\n"


def genome(folder: Path, text: str | None = None, name: str = "genome-scores.csv") -> Path:
    (folder / name).write_text(scores() if text is None else text)
    return folder / name


def test_components_are_those_of_a_singular_value_decomposition(tmp_path: Path) -> None:
    found = tag_components(genome(tmp_path), 3)
    centred = RELEVANCE - RELEVANCE.mean(axis=0)
    left, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    for at in range(3):
        sign = np.sign(directions[at][np.abs(directions[at]).argmax()])
        np.testing.assert_allclose(found.matrix[:, at], sign * left[:, at] * sizes[at], atol=2e-4)
    np.testing.assert_array_equal(found.ids, FILMS)
    assert found.names == ("tag genome 1", "tag genome 2", "tag genome 3")


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    first, *rows = scores().splitlines()
    mixed = "\n".join([first, *np.random.default_rng(1).permutation(rows).tolist()])
    np.testing.assert_array_equal(
        tag_components(genome(tmp_path, mixed), 2).matrix, tag_components(genome(tmp_path), 2).matrix
    )


def test_a_missing_relevance_is_the_mean_of_its_tag(tmp_path: Path) -> None:
    holey, filled = RELEVANCE.copy(), RELEVANCE.copy()
    holey[2, 4] = np.nan
    filled[2, 4] = np.delete(RELEVANCE[:, 4], 2).mean()
    centred = filled - filled.mean(axis=0)
    found = tag_components(genome(tmp_path, scores(holey)), 5).matrix
    np.testing.assert_allclose(found @ found.T, centred @ centred.T, atol=1e-3)


@pytest.mark.parametrize("packed", ["zip", "gz", "first edition"])
def test_it_is_read_wherever_it_lies(packed: str, tmp_path: Path) -> None:
    usual = tag_components(genome(tmp_path), 2)
    if packed == "zip":
        path = tmp_path / "ml-25m.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("ml-25m/movies.csv", "movieId,title\n3,Heat\n")
            archive.writestr("ml-25m/genome-scores.csv", scores())
    elif packed == "gz":
        path = tmp_path / "genome-scores.csv.gz"
        path.write_bytes(gzip.compress(scores().encode()))
    else:
        path = genome(tmp_path, scores(separator="\t", header=False), "tag_relevance.dat")
    found = tag_components(path, 2)
    np.testing.assert_array_equal(found.matrix, usual.matrix)
    assert packed == "zip" or is_tag_genome(path)


def test_public_items_know_it_by_its_header(tmp_path: Path) -> None:
    wide = np.random.default_rng(2).random((8, 30))
    path = genome(tmp_path, scores(wide), "any-name.csv")
    with pytest.raises(DataError, match=r"8 films and 30 tags have fewer than 20.*Ask for fewer"):
        PublicItems.from_file(path)
    items = PublicItems.of_tag_genome(path, components=4)
    assert items.names == tuple(f"tag genome {number}" for number in range(1, 5))
    assert items.source == "any-name.csv"
    np.testing.assert_allclose(items.rows([999]), 0, atol=1e-4)
    other = genome(
        tmp_path, "movieId,genre\n" + "".join(f"{row},g{row % 2}\n" for row in range(20)), "items.csv"
    )
    assert not is_tag_genome(other)
    assert PublicItems.from_file(other).names == ("genre=g0", "genre=g1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (scores() + "3,1,0.5\n", "two relevances for one tag"),
        (scores() + "3,9,\n", "is missing"),
        (scores() + "3,9,nan\n", "is missing"),
        (scores() + "3,9,high\n", "cannot be read as a tag genome"),
        ("movieId,tagId,relevance\n", r"is missing|cannot be read"),
    ],
)
def test_a_damaged_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        tag_components(genome(tmp_path, text), 2)


def test_a_zip_without_it_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("movies.csv", "movieId,title\n3,Heat\n")
    with pytest.raises(DataError, match=r"holds no tag genome: no genome-scores\.csv"):
        tag_components(tmp_path / "a.zip")
    with pytest.raises(ConfigError, match="components must be at least 1"):
        tag_components(tmp_path / "a.zip", 0)
