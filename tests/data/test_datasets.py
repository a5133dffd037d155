import hashlib
import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cofactor.data import datasets
from cofactor.data.download import fetch
from cofactor.errors import DataError, DownloadError
from cofactor.progress import Progress, nobody


def small_zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("ml/ratings.csv", "userId,movieId,rating\n1,2,3\n1,3,4\n")
    return buffer.getvalue()


CONTENT = bytes(range(256)) * 12_000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Publisher:
    """A real server on this machine whose faults the test chooses."""

    def __init__(self) -> None:
        self.content = CONTENT
        self.ranges = True
        self.cut_after: int | None = None
        self.status: int | None = None
        self.asked: list[str | None] = []
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        wanted = handler.headers.get("Range")
        self.asked.append(wanted)
        if self.status is not None:
            handler.send_error(self.status)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.ranges else 0
        if start >= len(self.content):
            handler.send_error(416)
            return
        body = self.content[start:]
        handler.send_response(206 if start else 200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: self.cut_after])

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    server = Publisher()
    yield server
    server.stop()


def fetched(publisher: Publisher, folder: Path, md5: str | None = MD5) -> Path:
    return fetch(publisher.base + "set.zip", folder / "set.zip", md5=md5, progress=nobody)


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_download_arrives_whole_and_alone(publisher: Publisher, tmp_path: Path) -> None:
    path = fetched(publisher, tmp_path / "new" / "folder")
    assert path.read_bytes() == CONTENT
    assert files(path.parent) == ["set.zip"]


def test_second_call_uses_the_file_that_is_there(publisher: Publisher, tmp_path: Path) -> None:
    fetched(publisher, tmp_path)
    fetched(publisher, tmp_path)
    assert publisher.asked == [None]


def test_wrong_file_under_the_final_name_is_replaced(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "set.zip").write_bytes(b"half of it")
    assert fetched(publisher, tmp_path).read_bytes() == CONTENT


def test_broken_connection_is_resumed_by_the_next_call(publisher: Publisher, tmp_path: Path) -> None:
    publisher.cut_after = 2_000_000
    with pytest.raises(DownloadError, match="the connection broke off; run the same again"):
        fetched(publisher, tmp_path)
    assert files(tmp_path) == ["set.zip.part"]
    have = (tmp_path / "set.zip.part").stat().st_size
    publisher.cut_after = None
    assert fetched(publisher, tmp_path).read_bytes() == CONTENT
    assert publisher.asked == [None, f"bytes={have}-"]
    assert files(tmp_path) == ["set.zip"]


def test_server_that_ignores_ranges_starts_over(publisher: Publisher, tmp_path: Path) -> None:
    publisher.ranges = False
    (tmp_path / "set.zip.part").write_bytes(CONTENT[:1000])
    assert fetched(publisher, tmp_path).read_bytes() == CONTENT


def test_whole_part_is_kept_without_fetching_it_again(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "set.zip.part").write_bytes(CONTENT)
    assert fetched(publisher, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("part", [b"", b"stale part of another version"])
def test_wrong_content_is_removed(part: bytes, publisher: Publisher, tmp_path: Path) -> None:
    publisher.content = b"<html>please log in to the hotel's network</html>"
    (tmp_path / "set.zip.part").write_bytes(part)
    with pytest.raises(DownloadError, match=r"md5 checksum .* removed\. Try again"):
        fetched(publisher, tmp_path)
    assert files(tmp_path) == []


def test_without_a_checksum_a_part_is_never_resumed(publisher: Publisher, tmp_path: Path) -> None:
    publisher.content = small_zip()
    (tmp_path / "set.zip.part").write_bytes(b"of last year")
    assert fetched(publisher, tmp_path, md5=None).read_bytes() == publisher.content
    assert publisher.asked == [None]


def test_without_a_checksum_it_must_at_least_be_a_zip(publisher: Publisher, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"is no \.zip archive"):
        fetched(publisher, tmp_path, md5=None)
    assert files(tmp_path) == []


@pytest.mark.parametrize("status", [404, 503])
def test_server_error_says_what_to_do(status: int, publisher: Publisher, tmp_path: Path) -> None:
    publisher.status = status
    with pytest.raises(
        DownloadError, match=rf"answered {status} .* by hand from {publisher.base}set\.zip into"
    ):
        fetched(publisher, tmp_path)
    assert files(tmp_path) == []


def test_offline_says_what_to_do(tmp_path: Path) -> None:
    gone = Publisher()
    gone.stop()
    with pytest.raises(DownloadError, match=r"cannot be reached .* Or download it by hand from") as caught:
        fetched(gone, tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert caught.value.exit_code == 1


def test_folder_that_cannot_be_made_is_told_from_the_network(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadError, match=r"cannot write to .*Choose another folder"):
        fetched(publisher, tmp_path / "file" / "below")


def test_progress_counts_up_to_the_whole(publisher: Publisher, tmp_path: Path) -> None:
    heard: list[Progress] = []
    fetch(publisher.base + "a.zip", tmp_path / "a.zip", md5=MD5, progress=heard.append)
    steps = [event.step for event in heard]
    assert steps == sorted(steps)
    assert heard[-1].step == heard[-1].steps == 4


def test_get_fetches_by_name_into_the_folder(publisher: Publisher, tmp_path: Path) -> None:
    publisher.content = small_zip()
    path = datasets.get("ml-latest-small", tmp_path, base=publisher.base)
    assert path == tmp_path / "ml-latest-small.zip"
    assert datasets.info(path).ratings == 2


def test_get_refuses_what_is_not_the_published_file(publisher: Publisher, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="c4d9eecfca2ab87c1945afe126590906"):
        datasets.get("ML-1M", tmp_path, base=publisher.base)
    assert files(tmp_path) == []


@pytest.mark.parametrize("name", ["yelp", "douban", "libimseti"])
def test_sets_that_may_not_be_fetched_say_how_to_get_them(name: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=rf"{name} may not be fetched for you.*http"):
        datasets.get(name, tmp_path)
    assert datasets.how_to_get(name).startswith(name)


def test_unknown_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'no data set "ml-2m"\. Did you mean "ml-'):
        datasets.get("ml-2m", tmp_path)


def test_catalogue_is_complete() -> None:
    known = datasets.known()
    names = [one.name for one in known]
    assert len(set(names)) == len(names)
    assert {"ml-100k", "ml-1m", "ml-10m", "ml-20m", "ml-25m", "ml-32m"} <= set(names)
    for one in known:
        assert one.holds
        assert one.licence
        assert (one.url is None) == bool(one.by_hand)
        assert one.url is None or one.url == f"{datasets.GROUPLENS}{one.name}.zip"
    assert all(one.md5 and len(one.md5) == 32 for one in known if one.url and "latest" not in one.name)


def test_info_says_what_a_file_holds(tmp_path: Path) -> None:
    (tmp_path / "ratings.dat").write_text("1::10::3::0\n1::20::5::86400\n2::10::3::5\n")
    (tmp_path / "movies.dat").write_text("10::Babe (1995)::Comedy\n")
    summary = datasets.info(tmp_path / "ratings.dat")
    assert summary == datasets.Summary(
        format="text separated by double colons, without a header",
        ratings=3,
        users=2,
        items=2,
        scale="3 to 5 in steps of 2",
        density=0.75,
        ratings_per_user=(1, 1, 1, 2, 2),
        first_time="1970-01-01",
        last_time="1970-01-02",
        user_table=None,
        item_table="title, genres",
    )


def test_info_of_implicit_duplicates_counts_pairs_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item\nx,1\nx,1\ny,1\n")
    summary = datasets.info(tmp_path / "a.csv")
    assert (summary.ratings, summary.scale, summary.first_time) == (2, "implicit", None)


@pytest.mark.slow
def test_checksum_of_the_catalogue_is_that_of_the_real_file(real_data: Callable[[str], Path]) -> None:
    digest = hashlib.md5(real_data("ml-1m.zip").read_bytes()).hexdigest()
    assert datasets.find("ml-1m").md5 == digest
