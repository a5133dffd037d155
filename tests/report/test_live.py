"""The server of the page that watches a training: who reaches it, who may stop what, and what is sent."""

import io
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from http.client import HTTPConnection
from pathlib import Path
from socketserver import BaseServer

import pytest

from cofactor.errors import ConfigError
from cofactor.report import live_server
from cofactor.report.live import Live
from cofactor.report.live_server import served
from tests.report.watching import SECONDS, Asking, Facts, Making, no_page, until

EVIL = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BaseServer.serve_forever, "__defaults__", (0.02,))
    monkeypatch.setattr("cofactor.report.live._PAUSE", 0.05)


@pytest.fixture
def making(tmp_path: Path) -> Making:
    """A training after three of its rounds."""
    return Making(tmp_path / "private").begin().rounds(3)


@pytest.fixture
def asking(making: Making) -> Iterator[Asking]:
    with served(making.run, no_page) as address:
        yield Asking(address)


def test_whoever_has_the_address_gets_the_page(asking: Asking) -> None:
    answer, text = asking.ask(asking.home)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "<h1>private</h1>" in text
    assert "Stop after this round" in text


def test_nobody_gets_anything_without_the_token(asking: Asking) -> None:
    token = asking.home.strip("/")
    assert len(token) >= 43  # 256 bits
    wrong = ("", token[:-1], token + "A", token.swapcase(), "%C3%A9", "%00")
    for each in wrong:
        for what in ("", "events", "stop"):
            assert asking.status(f"/{each}/{what}") == 404
            assert asking.status(f"/{each}/{what}", "POST", Origin=asking.origin) == 404
    for path in ("/", "/events", "/favicon.ico", f"/{token}", f"/x/{token}/", f"/{token}/x"):
        assert asking.status(path) == 404


def test_every_page_has_a_token_of_its_own(making: Making, asking: Asking) -> None:
    with served(making.run, no_page) as address:
        other = Asking(address)
        assert other.home != asking.home
        assert other.status(asking.home) == 404


@pytest.mark.parametrize("what", ["", "events", "stop"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_other_name_can_be_bound_to_it(what: str, method: str, making: Making, asking: Asking) -> None:
    own = f"127.0.0.1:{asking.port}"
    wrong = [
        "evil.example",
        f"evil.example:{asking.port}",
        f"localhost:{asking.port}",
        "127.0.0.1",
        "",
        "null",
    ]
    wrong += [f"127.0.0.1:{asking.port}.evil.example", f"127.0.0.1:{asking.port + 1}", f"[::1]:{asking.port}"]
    for host in (*wrong, [own, "evil.example"], ["evil.example", own], [own, own], []):
        answer, text = asking.ask(asking.home + what, method, Host=host, Origin=asking.origin)
        assert (answer.status, text) == (421, "This page has another address."), host
    assert not (making.place / "stop").exists()


def test_only_the_page_itself_may_stop_a_training(making: Making, asking: Asking) -> None:
    own, stop = asking.origin, f"{asking.home}stop"
    wrong = [
        "null",
        "http://evil.example",
        f"http://localhost:{asking.port}",
        f"https://127.0.0.1:{asking.port}",
    ]
    wrong += [f"http://127.0.0.1:{asking.port + 1}", f"{own}.evil.example", f"{own}/", own.upper(), ""]
    for origin in (*wrong, [own, "http://evil.example"], [own, own], []):
        assert asking.status(stop, "POST", Origin=origin) == 403, origin
    assert asking.status(stop, "POST", Origin="null", Referer=asking.address) == 403
    assert not (making.place / "stop").exists()
    answer, text = asking.ask(stop, "POST", Origin=own)
    assert (answer.status, text) == (200, "It ends after this round.")
    assert (making.place / "stop").exists()


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_but_a_post_changes_anything(method: str, making: Making, asking: Asking) -> None:
    assert asking.status(f"{asking.home}stop", method, Origin=asking.origin) in (404, 501)
    for what in ("", "stop/", "stop?", "STOP", "events"):
        assert asking.status(asking.home + what, "POST", Origin=asking.origin) == 404
    assert not (making.place / "stop").exists()


def test_what_cannot_be_stopped_is_said_and_left_alone(tmp_path: Path) -> None:
    with served(tmp_path / "nothing", no_page) as address:
        asking = Asking(address)
        answer, text = asking.ask(f"{asking.home}stop", "POST", Origin=asking.origin)
    assert (answer.status, text) == (409, "There is no training that could end.")
    assert list(tmp_path.iterdir()) == []


def test_it_listens_on_this_machine_alone(asking: Asking) -> None:
    listening = [
        line.split()[1:4]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    port = f":{asking.port:04X}"
    assert [at for at, _, state in listening if at.endswith(port) and state == "0A"] == [f"0100007F{port}"]
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", asking.port), 5):
        pass


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("GET", "x"), ("POST", "stop"), ("BREW", "")])
def test_every_answer_tells_a_browser_to_keep_it_to_itself(method: str, path: str, asking: Asking) -> None:
    answer, text = asking.ask(asking.home + path, method)
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Server"] == "cofactor "
    assert not [name for name in answer.headers if name.startswith("Access-Control")]
    assert asking.home.strip("/") not in text


def test_the_page_may_run_nothing_but_its_own_script(asking: Asking) -> None:
    text = asking.ask(asking.home)[1]
    allowed = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)[0].replace("&#39;", "'")
    assert "default-src 'none'" in allowed
    assert re.search(r"script-src 'sha256-[^']+'$", allowed)
    assert "unsafe" not in allowed


def test_the_token_is_written_nowhere(making: Making) -> None:
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(said), served(making.run, no_page) as address:
        asking = Asking(address)
        asking.status(asking.home)
        asking.status(asking.home, Host="evil.example")
        asking.status(f"{asking.home}x")
        asking.status(f"{asking.home}stop", "POST")
        asking.status(asking.home, "BREW")
        with asking.watching() as news:
            news()
        with socket.create_connection(("127.0.0.1", asking.port), SECONDS) as gone:
            gone.sendall(f"GET {asking.home} HTTP/9\r\n\r\n".encode())
            assert asking.home.strip("/").encode() not in gone.recv(10_000)
    assert said.getvalue() == ""
    token = asking.home.strip("/")
    assert not [path for path in making.place.iterdir() if token in path.read_text()]


def test_news_come_when_events_grow(making: Making, asking: Asking) -> None:
    with asking.watching() as news:
        first = news()
        assert (first["page"], first["state"], first["stoppable"]) == ("underway", "training", True)
        assert "Round 3 of 20" in first["head"]
        making.round(4)
        assert any("Round 4 of 20" in news()["head"] for _ in range(3))
        (making.place / "stop").touch()
        last = news()
        assert (last["state"], last["stoppable"]) == ("stopping", False)


def test_news_of_a_finished_run_let_the_page_load_anew(making: Making, asking: Asking) -> None:
    with asking.watching() as news:
        assert news()["page"] == "underway"
        (making.place / "session.json").unlink()
        making.run.mkdir()
        (making.run / "run.json").write_text("{}")
        while not (which := str(news()["page"])).startswith("finished "):
            pass
    page = asking.ask(asking.home)[1]
    assert "<title>private</title>" in page
    assert f'const PAGE = "{which}";' in page


def test_damaged_files_are_shown_and_watched_further(making: Making) -> None:
    making.write("no message\n", "transcript.jsonl")
    with served(making.run, no_page) as address, Asking(address).watching() as news:
        found = news()
        assert (found["state"], found["stoppable"]) == ("damaged", False)
        assert "the run folder is damaged" in found["head"]
        (making.place / "transcript.jsonl").unlink()
        making.name = "f" * 16
        making.begin()
        until(lambda: news()["state"] == "training")


def test_only_released_numbers_are_sent(making: Making, asking: Asking) -> None:
    secret: Facts = {"signal_to_noise": 0.123987, "clipped": 0.456987, "rmse": 0.789987}
    making.tell("simulation", 3, note="a secret mean of 3.21987", numbers=secret)
    making.round(4, **secret, mean=0.147987)
    making.tell("local", 4, note="at home 3.21987", numbers={"mse": 0.654987, "epsilon": 0.321987})
    making.write(json.dumps({"stage": "scores", "private": {"mse": 0.258987}}) + "\n")
    with asking.watching() as news:
        found = news()
        while "Round 4 of 20" not in found["head"]:
            found = news()
    sent = json.dumps(found) + asking.ask(asking.home)[1]
    assert not re.search(r"\d{3}987", sent)
    assert not re.search("secret|at home|signal|clipped|rmse|mse", sent)
    assert "Epsilon 1.78 of 4" in sent


def test_no_name_becomes_a_part_of_the_page(tmp_path: Path) -> None:
    making = Making(tmp_path / EVIL.replace("/", "_"), parties=(EVIL, "\"&'>"))
    with served(making.begin().rounds(2).run, no_page) as address, Asking(address).watching() as news:
        found = news()
        page = Asking(address).ask(Asking(address).home)[1]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in found["body"]
    for text in (found["head"], found["body"]):
        assert "<script" not in text
    assert page.count("<script") == 1


def test_one_page_too_many_is_turned_away_until_another_is_closed(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cofactor.report.live._ALIVE", 0.1)
    connections = [asking.watching() for _ in range(live_server._MOST_PAGES)]
    news = [each.__enter__() for each in connections]
    assert all(each()["page"] == "underway" for each in news)
    answer, text = asking.ask(f"{asking.home}events")
    assert (answer.status, text) == (503, "Too many pages watch already.")
    assert asking.status(asking.home) == 200
    connections.pop().__exit__(None, None, None)

    def free() -> bool:
        with closing(HTTPConnection("127.0.0.1", asking.port, timeout=SECONDS)) as connection:
            connection.request("GET", f"{asking.home}events")
            return connection.getresponse().status == 200

    until(free)
    for each in connections:
        each.__exit__(None, None, None)


def test_one_question_too_many_is_turned_away_whatever_else_this_process_does(
    making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_server, "_MOST_AT_ONCE", 2)  # fewer than there are threads here already
    with served(making.run, no_page) as address:
        asking = Asking(address)
        silent = [socket.create_connection(("127.0.0.1", asking.port)) for _ in range(2)]
        with pytest.raises(ConnectionError):
            asking.status(asking.home)
        for each in silent:
            each.close()

        def answered() -> bool:
            try:
                return asking.status(asking.home) == 200
            except ConnectionError:
                return False

        until(answered)


def test_a_place_that_is_taken_is_named(making: Making, asking: Asking) -> None:
    with (
        pytest.raises(ConfigError, match=f"--port {asking.port}: 127.0.0.1 cannot be listened on"),
        served(making.run, no_page, port=asking.port),
    ):
        pass
    assert asking.status(asking.home) == 200


def test_the_server_is_gone_when_it_is_left(making: Making) -> None:
    with served(making.run, no_page) as address:
        asking = Asking(address)
        with asking.watching() as news:
            news()
    with pytest.raises(ConnectionRefusedError):
        asking.status(asking.home)
    until(lambda: all("serve_forever" not in each.name for each in threading.enumerate()))


def test_the_page_of_a_finished_run_is_made_once_for_all(making: Making) -> None:
    made: list[Path] = []

    def finished(folder: Path, script: str) -> str:
        made.append(folder)
        return no_page(folder, script)

    (making.place / "session.json").unlink()
    making.run.mkdir()
    (making.run / "run.json").write_text("{}")
    live = Live(making.run, finished)
    assert live.page() == live.page()
    assert made == [making.run]
    (making.run / "audits").mkdir()
    (making.run / "audits" / "first.json").write_text("{}")
    live.page()
    assert len(made) == 2
