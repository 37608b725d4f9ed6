"""A request through the analysis process is the request that came, and so is its response."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
from werkzeug.test import Client, EnvironBuilder

from veilcount_aggregator.server.analysis_process import forwarding
from veilcount_aggregator.server.analysis_process.forwarding import (
    BUSY,
    DOWN,
    MOST_WAITING,
    SLOW,
    Forwarder,
    is_local,
)
from veilcount_aggregator.server.analysis_process.frames import BrokenChannel
from veilcount_aggregator.server.analysis_process.worker import AnalysisServer

LONG = 5_000_000


class Application:
    def __init__(self) -> None:
        self.environ: dict[str, Any] = {}
        self.go = threading.Event()

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        self.environ = environ
        answers: dict[str, Callable[[WSGIEnvironment], Iterable[bytes]]] = {
            "/echo": lambda environ: [environ["wsgi.input"].read()],
            "/unread": lambda _: [b"no"],
            "/long": lambda _: (bytes([n]) * 100_000 for n in range(LONG // 100_000)),
            "/breaks": lambda _: _breaking(),
            "/waits": lambda _: [str(self.go.wait(30)).encode()],
            "/fails": lambda _: _failing(),
        }
        body = answers[path](environ) if (path := environ["PATH_INFO"]) in answers else []
        start("299 Its Own", [("X-A", "1"), ("X-A", "2"), ("X-B", "é")])
        return body


def _failing() -> Iterable[bytes]:
    raise MemoryError


def _breaking() -> Iterator[bytes]:
    yield b"x" * 200_000
    raise MemoryError


@pytest.fixture
def application() -> Iterator[Application]:
    made = Application()
    yield made
    made.go.set()


@pytest.fixture
def address(tmp_path: Path, application: Application) -> Iterator[str]:
    """Where the application is served, by threads of this process."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        AnalysisServer(listener, application).start()
        yield path


@pytest.fixture
def refused() -> list[str]:
    return []


@pytest.fixture
def forwarder(address: str, refused: list[str]) -> Forwarder:
    return Forwarder(_local, address, refused=refused.append)


def _local(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    start("200 OK", [])
    return [b"local"]


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/v1/reports", True),
        ("/v1/rows/close", True),
        ("/v1/rows/close/", False),
        ("/readyz", True),
        ("/metrics", True),
        ("/assets/ab/chart.js", True),
        ("/v1/reports/", False),
        ("/v1/collections/a/estimate", False),
        ("//v1/reports", False),
    ],
)
def test_devices_and_probes_are_answered_by_the_worker(
    forwarder: Forwarder, path: str, *, local: bool
) -> None:
    assert is_local(path) is local
    assert (b"".join(forwarder(_environ(path), lambda *_: lambda _: None)) == b"local") is local


def test_a_request_arrives_as_it_came(forwarder: Forwarder, application: Application) -> None:
    headers = {"X-Odd": "é", "X-Many": "a=b; c=d", "Authorization": "Bearer x"}
    body = bytes(range(256)) * 1_000
    answer = Client(forwarder).post("/echo?a=%20b&a=c", data=body, headers=headers)
    seen = application.environ

    assert (answer.status, answer.get_data()) == ("299 Its Own", body)
    assert answer.headers.getlist("X-A") == ["1", "2"]
    assert answer.headers["X-B"] == "é"
    assert (seen["REQUEST_METHOD"], seen["QUERY_STRING"]) == ("POST", "a=%20b&a=c")
    assert (seen["HTTP_X_MANY"], seen["HTTP_X_ODD"]) == ("a=b; c=d", "é")
    assert (seen["HTTP_AUTHORIZATION"], seen["CONTENT_LENGTH"]) == ("Bearer x", str(len(body)))


def test_no_address_and_no_variable_of_ours_is_passed_on(
    forwarder: Forwarder, application: Application
) -> None:
    environ = _environ("/unread", REMOTE_ADDR="192.0.2.7", VEILCOUNT_STORE="redis://:secret@x/")
    b"".join(forwarder(environ, lambda *_: lambda _: None))

    assert "REMOTE_ADDR" not in application.environ
    assert "secret" not in str(application.environ)


def test_a_body_that_nobody_reads_is_not_sent(forwarder: Forwarder) -> None:
    class Unreadable(io.RawIOBase):
        def read(self, _: int = -1) -> bytes:
            raise AssertionError("it was read")

    environ = _environ("/unread", REQUEST_METHOD="POST", CONTENT_LENGTH="99")
    environ["wsgi.input"] = Unreadable()

    assert b"".join(forwarder(environ, lambda *_: lambda _: None)) == b"no"


def test_a_request_that_was_not_accepted_is_retried(
    tmp_path: Path, application: Application, refused: list[str]
) -> None:
    """A process that ends hangs up on those who wait for it: the next one takes them, once."""
    path = str(tmp_path / "again")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        forwarder = Forwarder(_local, path, refused=refused.append)

        def end() -> None:
            listener.accept()[0].close()

        ending = threading.Thread(target=end)
        ending.start()
        held = [forwarder._permits.acquire() for _ in range(MOST_WAITING - 1)]

        def next_one() -> None:
            ending.join()
            AnalysisServer(listener, application).start()

        threading.Thread(target=next_one).start()
        answer = Client(forwarder).get("/unread")

    assert (answer.get_data(), refused, all(held)) == (b"no", [], True)
    assert forwarder._permits._value == 1


def test_a_client_that_goes_away_within_its_body_is_an_error_there_too(
    forwarder: Forwarder, refused: list[str]
) -> None:
    class Gone(io.RawIOBase):
        def read(self, _: int = -1) -> bytes:
            raise OSError("gone")

    environ = _environ("/echo", REQUEST_METHOD="POST", CONTENT_LENGTH="99")
    environ["wsgi.input"] = Gone()
    b"".join(forwarder(environ, lambda *_: lambda _: None))

    assert refused == [DOWN]  # this application has no answer to it; Flask has


def test_an_answer_that_breaks_off_is_never_taken_for_a_whole_one(forwarder: Forwarder) -> None:
    pieces = iter(forwarder(_environ("/breaks"), lambda *_: lambda _: None))
    next(pieces)

    with pytest.raises(BrokenChannel):
        b"".join(pieces)


def test_a_worker_waits_for_a_bounded_number_of_answers(
    forwarder: Forwarder, application: Application, refused: list[str]
) -> None:
    answers: list[bytes] = []

    def ask() -> None:
        answers.append(Client(forwarder).get("/waits").get_data())

    threads = [threading.Thread(target=ask) for _ in range(MOST_WAITING)]
    for each in threads:
        each.start()
    while forwarder._permits._value:
        threads[0].join(0.01)
    one_more = Client(forwarder).get("/unread")
    local = Client(forwarder).get("/healthz")
    application.go.set()
    for each in threads:
        each.join(30)

    assert (one_more.status_code, one_more.headers["Retry-After"]) == (503, "2")
    assert json.loads(one_more.get_data())["type"] == "urn:veilcount:problem:busy"
    assert one_more.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert refused == [BUSY]
    assert local.get_data() == b"local"
    assert answers == [b"True"] * MOST_WAITING
    assert Client(forwarder).get("/unread").status_code == 299


def test_a_response_that_takes_too_long_is_abandoned(
    forwarder: Forwarder, refused: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "ANSWER_SECONDS", 0.2)

    assert Client(forwarder).get("/waits").status_code == 503
    assert refused == [SLOW]


@pytest.mark.parametrize("path", ["/fails", "/unread"])
def test_a_process_that_is_down_gives_503(
    tmp_path: Path, forwarder: Forwarder, refused: list[str], path: str
) -> None:
    """One that broke off before its head, and one where nobody listens; no permit is lost."""
    requested = forwarder if path == "/fails" else Forwarder(_local, "/x", refused=refused.append)
    for _ in range(MOST_WAITING + 1):
        assert Client(requested).get(path).status_code == 503

    assert refused == [DOWN] * (MOST_WAITING + 1)


def test_an_answer_that_is_dropped_unread_keeps_no_permit(forwarder: Forwarder) -> None:
    """Closed or forgotten by the server: both are over."""
    for turn in range(2 * MOST_WAITING + 2):
        answer: Any = forwarder(_environ("/long"), lambda *_: lambda _: None)
        next(iter(answer))
        if turn % 2:
            answer.close()
        del answer

    assert forwarder._permits._value == MOST_WAITING


def test_it_reports_whether_the_process_responds(forwarder: Forwarder, tmp_path: Path) -> None:
    assert not forwarder.is_up()  # this application answers /healthz with 299
    assert not Forwarder(_local, str(tmp_path / "none")).is_up()


def test_what_a_request_changed_is_known_before_its_answer(address: str) -> None:
    changes: list[int] = []
    forwarder = Forwarder(_local, address, changed=lambda: changes.append(1))
    Client(forwarder).get("/unread")
    Client(forwarder).head("/unread")
    reads = len(changes)
    Client(forwarder).post("/unread")

    assert (reads, len(changes)) == (0, 1)


def _environ(path: str, **changes: str) -> dict[str, Any]:
    environ = EnvironBuilder(path).get_environ()
    return environ | {"PATH_INFO": path} | changes
