import zipfile
from pathlib import Path

import pytest

from cofactor.data.synthetic import Shape
from cofactor.errors import DataError
from cofactor.papers.material import Material
from tests.papers.making import write


def test_a_file_of_ratings_is_named_after_itself(tmp_path: Path) -> None:
    found = Material.read(write(tmp_path / "any", ratings="mine.ratings.csv") / "mine.ratings.csv")
    assert found.name == "mine"
    assert len(found.ratings) == 1_200


def test_an_unpacked_set_is_found_with_the_categories_of_its_items(tmp_path: Path) -> None:
    write(tmp_path / "ml-1m")
    found = Material.read(tmp_path)
    assert found.name == "ml-1m"
    assert found.categories is not None
    assert len(found.categories) == found.ratings.item_count
    assert set(found.categories) == {("Drama", "Noir"), ("Comedy", "Noir"), ("War", "Noir")}


def test_a_zip_is_found_too_and_the_papers_own_sets_come_first(tmp_path: Path) -> None:
    write(tmp_path / "ml-1m")
    folder = write(tmp_path / "aside")
    with zipfile.ZipFile(tmp_path / "ml-10m.zip", "w") as archive:
        for name in ("ratings.csv", "movies.csv"):
            archive.write(folder / name, f"ml-10M100K/{name}")
    assert Material.read(tmp_path).name == "ml-10m"
    (tmp_path / "ml-10m.zip").unlink()
    write(tmp_path / "ml-10M100K")
    assert Material.read(tmp_path).name == "ml-10m"


def test_a_folder_may_itself_be_the_data(tmp_path: Path) -> None:
    found = Material.read(write(tmp_path / "ours"))
    assert found.name == "ours"
    assert found.categories is not None


def test_ratings_without_a_table_of_items_have_no_categories(tmp_path: Path) -> None:
    (write(tmp_path / "ours") / "movies.csv").unlink()
    assert Material.read(tmp_path / "ours").categories is None


def test_libimseti_keeps_users_and_profiles_with_twenty_ratings_among_each_other(tmp_path: Path) -> None:
    write(tmp_path / "libimseti", shape=Shape(users=90, items=60, ratings=2_700, minimum=10))
    found = Material.read(tmp_path)
    assert found.name == "libimseti"
    assert 0 < len(found.ratings) < 2_700
    assert found.ratings.by_user.sizes.min() >= 20
    assert found.ratings.by_item.sizes.min() >= 20


def test_a_folder_without_known_data_says_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds none of ml-10m, .*cofactor data get ml-1m.*grouplens"):
        Material.read(tmp_path)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such folder"):
        Material.read(tmp_path / "nowhere")


def test_ratings_without_values_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text("user,item\n" + "".join(f"{k},{k % 3}\n" for k in range(9)))
    with pytest.raises(DataError, match="no ratings with values"):
        Material.read(tmp_path)
