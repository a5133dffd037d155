import contextlib
import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cofactor.data.files import read_ratings
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import DataError

Triples = list[tuple[object, object, float]]
TRUE: Triples = [(7, 50, 5.0), (7, 10, 3.0), (9, 50, 1.0)]
STAMPS = [881250949, 891717742, 878887116]


def triples(ratings: Ratings) -> Triples:
    users, items = ratings.user_ids[ratings.users], ratings.item_ids[ratings.items]
    return sorted(zip(users.tolist(), items.tolist(), ratings.values.tolist(), strict=True))


def lines(separator: str, *, times: bool = True) -> str:
    rows = [
        [str(u), str(i), f"{v:g}", *([str(t)] if times else [])]
        for (u, i, v), t in zip(TRUE, STAMPS, strict=True)
    ]
    return "".join(separator.join(row) + "\n" for row in rows)


RECBOLE = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
KNOWN_FORMATS = {
    "u.data": lines("\t"),
    "ratings.dat": lines("::"),
    "ratings.csv": "userId,movieId,rating,timestamp\n" + lines(","),
    "ml-100k.inter": RECBOLE + lines("\t"),
    "libimseti.dat": lines(",", times=False),
    "shop.tsv": "customer id\tproduct\tstars\tdate\n" + lines("\t"),
    "german.csv": "user;item;score\n" + lines(";", times=False),
    "windows.csv": ("userId,movieId,rating,timestamp\n" + lines(",")).replace("\n", "\r\n"),
    "bom.csv": "\ufeffuserId,movieId,rating,timestamp\n" + lines(","),
    "bom.data": "\ufeff" + lines("\t"),
    "quoted.csv": 'user,title,item,rating\n7,"one, two",50,5\n"7","three\nlines",10,3\n9,x,50,1\n',
    "blank.csv": "user,item,rating\n7,50,5\n\n7,10,3\n9,50,1\n\n",
}


@pytest.mark.parametrize("name", KNOWN_FORMATS)
def test_known_formats_are_recognised(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(KNOWN_FORMATS[name].encode())
    ratings = read_ratings(tmp_path / name)
    assert triples(ratings) == sorted(TRUE)
    assert ratings.scale == Scale(1, 5, 2)
    assert ratings.user_ids.dtype == np.int64


@pytest.mark.parametrize("name", ["u.data", "ratings.dat", "ratings.csv", "ml-100k.inter"])
def test_times_are_whole_seconds(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(KNOWN_FORMATS[name])
    times = read_ratings(tmp_path / name).times
    assert times is not None
    assert times.tolist() == STAMPS
    assert times.dtype == np.int64


@pytest.mark.parametrize("name", ["u.data", "ratings.dat", "ratings.csv", "ml-100k.inter"])
def test_gzip_reads_like_the_plain_file(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(KNOWN_FORMATS[name].encode()))
    assert triples(read_ratings(tmp_path / f"{name}.gz")) == sorted(TRUE)


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("ml-100k/u.data", ["ml-100k/u.item", "ml-100k/u1.base", "ml-100k/README", "ml-100k/u.user"]),
        ("ml-1m/ratings.dat", ["ml-1m/movies.dat", "ml-1m/users.dat", "__MACOSX/ml-1m/._ratings.dat"]),
        ("ml-25m/ratings.csv", ["ml-25m/movies.csv", "ml-25m/genome-scores.csv", "ml-25m/tags.csv"]),
        ("ml-100k.inter", ["ml-100k.item", "ml-100k.user"]),
        ("export/shop.csv", ["export/users.csv", "notes.md"]),
    ],
)
def test_zip_member_is_found_by_itself(name: str, others: list[str], tmp_path: Path) -> None:
    text = KNOWN_FORMATS.get(Path(name).name, KNOWN_FORMATS["ratings.csv"])
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for other in others:
            archive.writestr(other, "nothing of use\n")
        archive.writestr(name, text)
    assert triples(read_ratings(tmp_path / "set.zip")) == sorted(TRUE)


def test_parquet_reads_like_text(tmp_path: Path) -> None:
    pl.read_csv(KNOWN_FORMATS["ratings.csv"].encode()).write_parquet(tmp_path / "r.parquet")
    ratings = read_ratings(tmp_path / "r.parquet")
    assert triples(ratings) == sorted(TRUE)
    assert ratings.times is not None
    assert ratings.times.tolist() == STAMPS


def test_parquet_with_whole_float_ids_and_dates_reads(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": [1.0, 2.0], "item": ["a", "b"], "rating": [1, 2]})
    frame = frame.with_columns(date=pl.Series(["2001-01-01", "2001-01-02"]).str.to_date())
    frame.write_parquet(tmp_path / "r.parquet")
    ratings = read_ratings(tmp_path / "r.parquet")
    assert ratings.user_ids.tolist() == [1, 2]
    assert ratings.times is not None
    assert ratings.times.tolist() == [978307200, 978393600]


def test_columns_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("who,what,user,how\n7,50,x,5\n7,10,y,3\n9,50,z,1\n")
    ratings = read_ratings(tmp_path / "a.csv", user="who", item="what", rating="how")
    assert triples(ratings) == sorted(TRUE)


def test_file_without_ratings_is_implicit(tmp_path: Path) -> None:
    (tmp_path / "plays.csv").write_text("user,track_id\n7,50\n9,10\n")
    ratings = read_ratings(tmp_path / "plays.csv")
    assert ratings.implicit
    assert ratings.values.tolist() == [1, 1]


def test_two_columns_without_header_are_implicit(tmp_path: Path) -> None:
    (tmp_path / "plays.tsv").write_text("7\t50\n9\t10\n")
    assert read_ratings(tmp_path / "plays.tsv").implicit


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["3", "10"], [3, 10]),
        (["-3", "10"], [-3, 10]),
        (["u3", "10"], ["10", "u3"]),
        (["003", "10"], ["003", "10"]),
        (["3.5", "10"], ["10", "3.5"]),
        (["99999999999999999999", "10"], ["10", "99999999999999999999"]),
        (["naïve", "ßtraße"], ["naïve", "ßtraße"]),
    ],
)
def test_ids_are_integers_only_when_all_are_whole_numbers(
    ids: list[str], expected: list[object], tmp_path: Path
) -> None:
    rows = "".join(f"{one},1,{k + 1}\n" for k, one in enumerate(ids))
    (tmp_path / "a.csv").write_text("user,item,rating\n" + rows, encoding="utf-8")
    assert read_ratings(tmp_path / "a.csv").user_ids.tolist() == expected


def test_text_ids_far_down_the_file_make_all_ids_text(tmp_path: Path) -> None:
    rows = "".join(f"{k},{k % 7},{k % 5}\n" for k in range(5_000)) + "last,1,2\n"
    (tmp_path / "a.csv").write_text("user,item,rating\n" + rows)
    ratings = read_ratings(tmp_path / "a.csv")
    assert ratings.user_ids.dtype.kind == "U"
    assert ratings.user_count == 5_001
    assert ratings.item_ids.tolist() == list(range(7))


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("881250949", 881250949),
        ("881250949.7", 881250949),
        ("2001-09-09", 999993600),
        ("2001-09-09T01:46:40", 1_000_000_000),
        ("2001-09-09 01:46:40", 1_000_000_000),
        ("2001-09-09T01:46:40Z", 1_000_000_000),
    ],
)
def test_times_may_be_seconds_or_dates(stamp: str, seconds: int, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"user,item,rating,time\n1,1,1,{stamp}\n1,2,2,{stamp}\n")
    times = read_ratings(tmp_path / "a.csv").times
    assert times is not None
    assert times.tolist() == [seconds, seconds]


def test_duplicates_can_be_merged(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,rating\n1,1,1\n1,1,5\n2,1,3\n")
    assert read_ratings(tmp_path / "a.csv", duplicates="last").values.tolist() == [5, 3]
    assert read_ratings(tmp_path / "a.csv", duplicates="mean").values.tolist() == [3, 3]


HEAD = "user,item,stars\n"
BAD_FILES: list[tuple[str, str | bytes, str]] = [
    ("word.csv", HEAD + "1,1,4\n2,1,five\n",
     "word.csv, row 3, column \"stars\": cannot read 'five' as a number. Fix the row, or name "
     "another column with --rating."),
    ("colon.dat", "1::1::4::9\n1::2::x::9\n", "row 2, column \"rating\": cannot read 'x' as a number"),
    ("after.csv", HEAD + "1,1,4\n\n\n2,1,five\n", "row 5, column"),
    ("quoted.csv", 'user,note,item,stars\n1,"a\nb",1,4\n2,c,1,five\n', "row 4, column"),
    ("nan.csv", HEAD + "1,1,4\n2,1,NaN\n", "row 3, column \"stars\": 'NaN' is not a finite number"),
    ("inf.csv", HEAD + "1,1,inf\n2,1,1\n", "row 2, column \"stars\": 'inf' is not a finite number"),
    ("gap.csv", HEAD + "1,1,4\n2,,3\n", 'row 3, column "item": the value is missing'),
    ("gaps.csv", HEAD + "1,1,4\n,,\n", 'row 3, column "user": the value is missing'),
    ("no-rating.csv", HEAD + "1,1,4\n2,1,\n", 'row 3, column "stars": the value is missing'),
    ("short.csv", HEAD + "1,1,4\n2,1\n", "row 3: 2 fields where there are 3 columns"),
    ("long.csv", HEAD + "1,1,4\n2,1,3,9\n", "row 3: 4 fields where there are 3 columns"),
    ("late.csv", HEAD + "".join(f"{k},1,4\n" for k in range(9_000)) + "x,1,four\n", "row 9002, column"),
    ("time.csv", "user,item,stars,date\n1,1,1,yesterday\n1,2,2,today\n", "cannot read 'yesterday' as a time"),
    ("mixed.csv", "user,item,stars,date\n1,1,1,2001-01-01\n1,2,2,soon\n",
     'row 3, column "date": cannot read'),
    ("empty.csv", "", "empty.csv is empty"),
    ("blank.csv", "\n \n", "is empty"),
    ("header.csv", HEAD, "has a header but no ratings"),
    ("first.csv", "\n" + HEAD + "1,1,4\n", "the first line is empty"),
    ("one.csv", "user\n1\n", "a single column"),
    ("utf16.csv", (HEAD + "1,1,4\n").encode("utf-16"), "UTF-16. Save it as UTF-8"),
    ("latin.csv", (HEAD + "1,1,4\nJosé,1,3\n").encode("latin-1"), "row 3: byte 0xe9 is not UTF-8"),
    ("latin-late.csv", (HEAD + "a,1,4\n" * 1 + "".join(f"u{k},1,3\n" for k in range(4_000)) + "José,1,3\n")
     .encode("latin-1"), "row 4003: byte 0xe9 is not UTF-8"),
    ("twice.csv", HEAD + "1,1,4\n2,1,3\n1,1,5\n", "rows 2 and 4: user 1 rated item 1 more than once"),
    ("same.csv", HEAD + "1,1,5\n2,1,5\n", "same.csv: every rating is 5"),
    ("cut.csv.gz", gzip.compress(HEAD.encode() * 999)[:-20], "cut.csv.gz ends too early"),
    ("bad.csv.gz", b"\x1f\x8b" + b"nonsense" * 9, "the .gz is damaged"),
    ("bad.zip", b"PK\x03\x04 nonsense", "not a whole .zip archive"),
    ("none.zip", b"", "not a whole .zip archive"),
    ("bad.parquet", b"PAR1 nonsense", "the parquet file is damaged"),
    ("who.csv", "name,film,mark\na,b,1\n",
     'none of the columns looks like the users. Name the right one with --user. '
     'Its columns: "name", "film", "mark".'),
    ("what.csv", "user,thing,mark\na,b,1\n", "none of the columns looks like the items"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES, ids=[name for name, _, _ in BAD_FILES])
def test_bad_file_is_reported_with_place_and_remedy(
    name: str, content: str | bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError) as caught:
        read_ratings(tmp_path / name)
    assert message in str(caught.value)
    assert name in str(caught.value)


def test_value_outside_a_stated_scale_is_reported_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEAD + "1,1,4\n2,1,7\n")
    with pytest.raises(DataError, match='row 3, column "stars": 7 lies outside the scale 1 to 5'):
        read_ratings(tmp_path / "a.csv", scale=Scale(1, 5))


@pytest.mark.parametrize("rating", ["a", None])
def test_bad_parquet_row_is_reported(rating: str | None, tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 1], "rating": ["3", rating]})
    frame.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r'a\.parquet, row 2, column "rating"'):
        read_ratings(tmp_path / "a.parquet")


def test_parquet_without_rows_holds_no_ratings(tmp_path: Path) -> None:
    pl.DataFrame(schema={"user": pl.Int64, "item": pl.Int64}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="holds no ratings"):
        read_ratings(tmp_path / "a.parquet")


def test_missing_column_names_the_nearest_and_all_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEAD + "1,1,4\n")
    with pytest.raises(
        DataError, match=r'no column "star"\. Did you mean "stars"\? Its columns: "user", "item"'
    ):
        read_ratings(tmp_path / "a.csv", rating="star")


def test_folder_names_the_file_to_give(tmp_path: Path) -> None:
    (tmp_path / "ratings.dat").write_text(lines("::"))
    with pytest.raises(
        DataError, match=r"is a folder\. Name the file of ratings in it, such as .*ratings\.dat"
    ):
        read_ratings(tmp_path)


def test_missing_file_suggests_a_neighbour(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text(HEAD)
    with pytest.raises(DataError, match=r'there is no such file\. Did you mean "ratings\.csv"\?'):
        read_ratings(tmp_path / "rating.csv")
    with pytest.raises(DataError, match="there is no such file"):
        read_ratings(tmp_path / "nowhere" / "rating.csv")


def write_zip(path: Path, **members: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_", "."), text)


def test_zip_with_several_candidates_asks_which(tmp_path: Path) -> None:
    text = KNOWN_FORMATS["ratings.csv"]
    write_zip(tmp_path / "a.zip", north_csv=text, south_csv=text)
    with pytest.raises(
        DataError, match=r"several files that may be ratings: north\.csv, south\.csv.*--member north"
    ):
        read_ratings(tmp_path / "a.zip")
    assert triples(read_ratings(tmp_path / "a.zip", member="south.csv")) == sorted(TRUE)


def test_zip_without_the_wanted_member_says_what_it_holds(tmp_path: Path) -> None:
    write_zip(tmp_path / "a.zip", README="words")
    with pytest.raises(DataError, match=r"no file of ratings that could be recognised\. It holds README"):
        read_ratings(tmp_path / "a.zip")
    with pytest.raises(DataError, match=r'holds no "READNE"\. Did you mean "README"'):
        read_ratings(tmp_path / "a.zip", member="READNE")


def test_zip_with_a_damaged_member_is_reported(tmp_path: Path) -> None:
    write_zip(tmp_path / "a.zip", ratings_csv=KNOWN_FORMATS["ratings.csv"])
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[60] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(DataError, match=r"a\.zip \(ratings\.csv\): cannot be unpacked"):
        read_ratings(tmp_path / "a.zip")


names = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=6)
ids = st.one_of(st.integers(-(2**40), 2**40).map(str), names.filter(lambda name: name == name.strip()))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rated=st.dictionaries(
        st.tuples(ids, ids), st.integers(1, 10).map(lambda half: half / 2), min_size=2, max_size=20
    )
)
def test_whatever_csv_writes_is_read_back(rated: dict[tuple[str, str], float], tmp_path: Path) -> None:
    pairs, values = list(rated), list(rated.values())
    table = {"user": [u for u, _ in pairs], "item": [i for _, i in pairs], "rating": values}
    pl.DataFrame(table).write_csv(tmp_path / "a.csv", quote_style="non_numeric")
    ratings = read_ratings(tmp_path / "a.csv", scale=Scale(0.5, 5))
    found = {(str(u), str(i)): value for u, i, value in triples(ratings)}
    assert found == rated


def packed(kind: str, folder: Path) -> bytes:
    """A good file of a kind, as bytes."""
    text = KNOWN_FORMATS["ratings.csv"]
    if kind == "gz":
        return gzip.compress(text.encode())
    if kind == "zip":
        write_zip(folder / "good.zip", ratings_csv=text)
        return (folder / "good.zip").read_bytes()
    if kind == "parquet":
        pl.read_csv(text.encode()).write_parquet(folder / "good.parquet")
        return (folder / "good.parquet").read_bytes()
    return KNOWN_FORMATS["ratings.dat" if kind == "dat" else "ratings.csv"].encode()


@pytest.mark.parametrize("kind", ["csv", "dat", "gz", "zip", "parquet"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_give_ratings_or_a_clear_error(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    content = bytearray(packed(kind, tmp_path))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / f"damaged.{kind}"
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    with contextlib.suppress(DataError):
        assert len(read_ratings(path, duplicates="last")) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ratings", "users", "items"),
    [("ml-1m.zip", 1_000_209, 6_040, 3_706), ("ml-100k.inter", 100_000, 943, 1_682)],
)
def test_real_files_have_their_published_counts(
    name: str, ratings: int, users: int, items: int, real_data: Callable[[str], Path]
) -> None:
    read = read_ratings(real_data(name))
    assert (len(read), read.user_count, read.item_count) == (ratings, users, items)
    assert read.scale == Scale(1, 5, 1)


def test_parquet_rows_whose_id_is_no_number_are_reported_not_dropped(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": [1.0, float("nan"), 2.0], "item": [1, 2, 3], "rating": [3, 4, 5]})
    frame.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r'a\.parquet, row 2, column "user": the value is missing'):
        read_ratings(tmp_path / "a.parquet")


@pytest.mark.parametrize("odd", [1.5, 1e300])
def test_float_ids_that_are_not_whole_stay_apart(odd: float, tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": [1.0, odd, 2.0], "item": [1, 2, 3], "rating": [3, 4, 5]})
    frame.write_parquet(tmp_path / "a.parquet")
    assert read_ratings(tmp_path / "a.parquet").user_count == 3


def test_head_of_a_file_is_cut_at_a_whole_line(tmp_path: Path) -> None:
    rows = "".join(f"ж{k},{k % 97},{k % 5 + 1}\n" for k in range(3_000))
    for extra in range(4):
        (tmp_path / "a.csv").write_text("user,item,rating\n" + "x" * extra + rows)
        assert len(read_ratings(tmp_path / "a.csv")) == 3_000


def test_times_that_turn_to_fractions_late_are_still_numbers(tmp_path: Path) -> None:
    rows = "".join(f"{k},{k % 97},{k % 5 + 1},{1000 + k}\n" for k in range(3_000))
    (tmp_path / "a.csv").write_text("user,item,rating,time\n" + rows + "3000,1,1,5000.7\n")
    times = read_ratings(tmp_path / "a.csv").times
    assert times is not None
    assert times[-1] == 5000


def test_what_macos_leaves_in_a_zip_is_overlooked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("data/ratings.csv", KNOWN_FORMATS["ratings.csv"])
        archive.writestr("__MACOSX/data/._ratings.csv", b"\0\5\26\7")
        archive.writestr("__MACOSX/data/ratings.csv", b"\0\5\26\7")
    assert triples(read_ratings(tmp_path / "a.zip")) == sorted(TRUE)


@pytest.mark.parametrize("late", ["007", "+7", '"007"'])
def test_padded_id_far_down_the_file_is_not_another_users(late: str, tmp_path: Path) -> None:
    rows = "".join(f"{k},{k % 97},{k % 5 + 1}\n" for k in range(3_000))
    (tmp_path / "a.csv").write_text("user,item,rating\n" + rows + f"{late},98,1\n")
    ratings = read_ratings(tmp_path / "a.csv")
    assert ratings.user_count == 3_001
    assert late.strip('"') in ratings.user_ids


@pytest.mark.parametrize("name", ["Rating (1-5)", "review_score", "Book-Rating", "My Stars"])
def test_columns_that_are_called_like_ratings_are_ratings(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"user,item,{name}\n1,1,5\n2,1,3\n")
    assert read_ratings(tmp_path / "a.csv").values.tolist() == [5, 3]


def test_implicit_leaves_numbers_alone_when_told_to(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,price\n1,1,5\n2,1,3\n")
    with pytest.raises(DataError, match=r'numbers in "price".*--implicit'):
        read_ratings(tmp_path / "a.csv")
    assert read_ratings(tmp_path / "a.csv", implicit=True).implicit
    pl.read_csv(tmp_path / "a.csv").write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r'numbers in "price"'):
        read_ratings(tmp_path / "a.parquet")


def test_index_column_without_a_name_is_no_rating(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",user,item\n0,1,1\n1,2,1\n")
    assert read_ratings(tmp_path / "a.csv").implicit


def test_semicolons_separate_where_commas_stand_in_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1;10;4,5\n2;10;3,5\n")
    with pytest.raises(DataError, match=r"row 1.*'4,5' as a number. Write decimals with a point"):
        read_ratings(tmp_path / "a.csv")


def test_spaces_around_ids_and_ratings_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,rating\nann , i1, 5 \nann, i2 ,3\nbob,i1,4\n")
    assert triples(read_ratings(tmp_path / "a.csv")) == [("ann", "i1", 5), ("ann", "i2", 3), ("bob", "i1", 4)]


def test_gzipped_member_of_a_zip_is_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("ratings.csv.gz", gzip.compress(KNOWN_FORMATS["ratings.csv"].encode()))
    assert triples(read_ratings(tmp_path / "a.zip")) == sorted(TRUE)


def test_parquet_ids_beyond_64_bits_become_text(tmp_path: Path) -> None:
    ids = pl.Series("user", [2**63 + 5, 2], pl.UInt64)
    pl.DataFrame([ids, pl.Series("item", [1, 2]), pl.Series("rating", [3, 4])]).write_parquet(
        tmp_path / "a.parquet"
    )
    assert set(read_ratings(tmp_path / "a.parquet").user_ids.tolist()) == {"9223372036854775813", "2"}
