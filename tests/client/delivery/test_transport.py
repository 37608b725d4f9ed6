"""One request: what leaves, what comes back, and what never does."""

from __future__ import annotations

import platform
import socket
import ssl
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from veilcount_client.delivery import transport
from veilcount_client.delivery.body_packing import SIZES, pack
from veilcount_client.delivery.transport import Delivered, HttpTransport, Later, Outcome, Rejected
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, encode_binary

from . import server_fixtures
from .app_client import client_of
from .server_fixtures import Behaviour, serving

REPORT = Report("0" * 64, 0, 0, bytes(16), 0, b"\x01")
BODY = encode_binary(Batch((REPORT,)))
NOW = 1_800_000_000.0
COUNTED = Delivered((Verdict.COUNTED,))


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request takes half a second at most, and no proxy stands before the loopback."""
    monkeypatch.setattr(transport, "TIMEOUT", (0.3, 0.3))
    monkeypatch.setattr(transport, "MAX_SECONDS", 0.5)
    monkeypatch.setenv("NO_PROXY", server_fixtures.HOST)


def send(url: str, key: str | None = None) -> Outcome:
    """Post the one body."""
    return HttpTransport(url, key, lambda: NOW).send(BODY, 1)


def outcome(behaviour: Behaviour) -> Outcome:
    """Return what becomes of a body at a server that behaves like this."""
    with serving(behaviour) as server:
        return send(server.url)


# -- outcomes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", list(Verdict))
def test_every_verdict_is_delivered(word: Verdict) -> None:
    """What a verdict means is not the transport's to say."""
    assert outcome(server_fixtures.with_verdicts(word)) == Delivered((word,))


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_problem_about_the_body_refuses_it(status: int) -> None:
    """Only an aggregator writes problem documents, so its word is final."""
    assert outcome(server_fixtures.problem(status)) == Rejected(str(status))


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_the_same_status_without_a_problem_is_for_later(status: int) -> None:
    """A proxy or a portal says 400, too, and knows nothing of reports."""
    assert outcome(server_fixtures.answering(status)) == Later(str(status))


@pytest.mark.parametrize("status", [204, 301, 302, 307, 308, 401, 403, 404, 429, 500, 502, 503])
def test_any_other_status_is_for_later(status: int) -> None:
    """With a problem document or without."""
    assert outcome(server_fixtures.answering(status)) == Later(str(status))
    assert outcome(server_fixtures.problem(status)) == Later(str(status))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("0.001", 60.0),
        ("7", 60.0),
        ("60", 60.0),
        ("60.5", 300.0),
        ("301", 900.0),
        ("901", 3_600.0),
        ("-1", 0.0),
        ("nan", 0.0),
        ("inf", 3_600.0),
        ("-inf", 0.0),
        ("99999999999", 3_600.0),
        ("soon", 0.0),
        ("", 0.0),
        ("Fri, 15 Jan 2027 08:00:30 GMT", 60.0),
        ("Fri, 15 Jan 2027 08:04:59 GMT", 300.0),
        ("Fri, 15 Jan 2020 08:00:30 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3_600.0),
        ("Mon, 01 Jan 2026 00:00:00 +99999999999999", 0.0),
    ],
)
def test_retry_after_is_rounded_up_and_bounded(header: str, seconds: float) -> None:
    """Seconds or a date, an hour at most; what is neither asks for nothing."""
    assert outcome(server_fixtures.answering(429, Retry_After=header)) == Later("429", seconds)


@pytest.mark.parametrize(
    "behaviour",
    [
        server_fixtures.silent,
        server_fixtures.dropping,
        server_fixtures.answering(200),
        server_fixtures.answering(200, b"<html>please log in</html>"),
        server_fixtures.answering(200, b'{"verdicts": ["splendid"]}'),
        server_fixtures.answering(200, b'{"verdicts": "counted"}'),
        server_fixtures.answering(200, b"[" * 60_000),
        server_fixtures.answering(200, b"\xff\xfe"),
        server_fixtures.with_verdicts(),
        server_fixtures.with_verdicts("counted", "counted"),
        server_fixtures.responding(b""),
        server_fixtures.responding(b"\x00\x01 junk that is no HTTP\r\n\r\n"),
        server_fixtures.responding(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"),
        server_fixtures.responding(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        server_fixtures.responding(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nnot gzip"),
        server_fixtures.responding(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n"),
        server_fixtures.responding(b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\n"),
        server_fixtures.dripping,
        server_fixtures.huge,
    ],
)
def test_whatever_else_comes_back_is_for_later(behaviour: Behaviour) -> None:
    """Silence, junk, too much, too slow, verdicts of another batch: the same bytes go again."""
    started = time.monotonic()

    result = outcome(behaviour)

    assert isinstance(result, Later)
    assert time.monotonic() - started < 10


def test_a_port_that_refuses_is_for_later() -> None:
    """Nobody listens there."""
    with server_fixtures.nobody() as url:
        assert send(url) == Later("ConnectionError", seen=False)


@pytest.mark.parametrize(
    "url", ["stats.example.org", "http://", "ftp://127.0.0.1", "http://[::1", "http://a b", ""]
)
def test_a_url_that_is_none_is_for_later(url: str) -> None:
    """An operator's slip is mended while the reports wait."""
    assert isinstance(send(url), Later)


def test_a_key_that_is_none_is_for_later() -> None:
    """What no header can hold is an operator's slip, too."""
    with serving(server_fixtures.counting) as server:
        assert isinstance(send(server.url, "k\u00e9y \u20ac"), Later)
        assert isinstance(send(server.url, "two\r\nlines"), Later)


def test_tls_to_a_plain_port_is_for_later() -> None:
    """It is not tried without."""
    heard: list[bytes] = []
    with socket.create_server((server_fixtures.HOST, 0)) as listening:
        thread = threading.Thread(target=_answer_plainly, args=(listening, heard))
        thread.start()
        result = send(f"https://{server_fixtures.HOST}:{listening.getsockname()[1]}")
        thread.join(10)

    assert result == Later("SSLError")
    assert heard
    assert b"POST" not in b"".join(heard)


def _answer_plainly(listening: socket.socket, heard: list[bytes]) -> None:
    """Say in clear, whatever comes, that it is no request; a hello may hold no end of a line."""
    connection, _ = listening.accept()
    with connection, suppress(OSError):
        heard.append(connection.recv(1 << 16))
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        while piece := connection.recv(1 << 16):
            heard.append(piece)


def test_a_certificate_that_nobody_vouches_for_is_for_later(tmp_path: Path) -> None:
    """The body stays here."""
    both = _certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    heard: list[bytes] = []
    with socket.create_server((server_fixtures.HOST, 0)) as listening:
        thread = threading.Thread(target=_listen_once, args=(listening, context, heard))
        thread.start()
        result = send(f"https://{server_fixtures.HOST}:{listening.getsockname()[1]}")
        thread.join(10)

    assert result == Later("SSLError", seen=False)
    assert not b"".join(heard)


def _listen_once(listening: socket.socket, context: ssl.SSLContext, heard: list[bytes]) -> None:
    connection, _ = listening.accept()
    connection.settimeout(5)
    try:
        with context.wrap_socket(connection, server_side=True) as wrapped:
            heard.append(wrapped.recv(1 << 16))
    except OSError:
        connection.close()


def _certificate(folder: Path) -> Path:
    """Make a certificate of its own for the loopback; return it and its key in one file."""
    both, name = folder / "both.pem", f"/CN={server_fixtures.HOST}"
    order = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    files = ["-subj", name, "-keyout", str(both), "-out", str(folder / "certificate.pem")]
    subprocess.run([*order, *files], check=True, capture_output=True)
    both.write_text(both.read_text() + (folder / "certificate.pem").read_text())
    return both


# -- bounds ----------------------------------------------------------------------------------------


def test_a_reply_is_read_only_as_far_as_one_can_be_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 MB next to nothing is read, however long there would be for it."""
    monkeypatch.setattr(transport, "MAX_SECONDS", 60)
    with serving(server_fixtures.huge) as server:
        reply = HttpTransport(server.url, None, lambda: NOW).request("POST", "/", BODY)

    assert transport.MAX_REPLY < len(reply.content) <= transport.MAX_REPLY + 16


def test_a_reply_is_read_only_as_long_as_one_may_take() -> None:
    """A byte now and then does not hold the uploader, though no byte is late."""
    assert outcome(server_fixtures.dripping) == Later("TimeoutError")


def test_nothing_lives_on_after_a_request() -> None:
    """No thread, no open connection."""
    before = threading.active_count()
    with serving(server_fixtures.counting) as server:
        open_before = _open_files()
        assert send(server.url) == COUNTED
        server_fixtures.wait_until(lambda: _open_files() == open_before)

        assert _open_files() == open_before
    assert threading.active_count() == before


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


# -- what a request says ---------------------------------------------------------------------------


def test_a_request_says_nothing_of_the_machine() -> None:
    """The same few headers from every device, in every request."""
    with serving(server_fixtures.counting) as server:
        send(server.url)
        [request] = server.requests

    said = dict(request.headers)
    assert said == {
        "host": server.url.removeprefix("http://"),
        "user-agent": "veilcount",
        "accept": "*/*",
        "accept-encoding": "identity",
        "connection": "close",
        "content-type": BINARY_TYPE,
        "content-length": str(len(BODY)),
    }
    assert len(request.headers) == len(said)
    mine = (platform.node(), platform.release(), platform.python_version(), platform.machine())
    assert not any(word in value for word in mine if word for value in said.values())


def test_a_key_is_the_apps_and_nothing_else_is_added() -> None:
    """With a key one header more, and only that."""
    with serving(server_fixtures.counting) as server:
        send(server.url)
        send(server.url, "the-app")
        bare, keyed = server.requests

    assert set(keyed.headers) - set(bare.headers) == {("authorization", "Bearer the-app")}


def test_no_cookie_is_kept() -> None:
    """What one reply sets, no later request carries, over one transport."""
    with serving(server_fixtures.counting) as server:
        sender = HttpTransport(server.url, None, lambda: NOW)
        for _ in range(3):
            sender.send(BODY, 1)

        assert len(server.requests) == 3
        assert not any(request.header("cookie") for request in server.requests)


def test_no_connection_is_used_twice() -> None:
    """Though the server offers to keep it alive."""
    with serving(server_fixtures.counting) as server:
        sender = HttpTransport(server.url, None, lambda: NOW)
        for _ in range(3):
            sender.send(BODY, 1)

        assert [request.connection for request in server.requests] == [1, 2, 3]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    """Reports go to the aggregator that the app named, or nowhere."""
    with (
        serving(server_fixtures.counting) as elsewhere,
        serving(
            server_fixtures.answering(status, Location=f"{elsewhere.url}/v1/reports")
        ) as server,
    ):
        result = send(server.url)

        assert result == Later(str(status))
        assert not elsewhere.connections


def test_no_netrc_adds_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's password file names the user."""
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine {server_fixtures.HOST} login marked password marked\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with serving(server_fixtures.counting) as server:
        send(server.url)
        send(server.url, "the-app")
        bare, keyed = server.requests

    assert bare.header("authorization") is None
    assert keyed.header("authorization") == "Bearer the-app"


def test_a_row_is_closed_where_it_is_gone() -> None:
    """Closed now, or never there: both are what the person asked for."""
    closed = {}
    for status in (200, 204, 404, 410, 401, 429, 500):
        with serving(server_fixtures.answering(status)) as server:
            transport = HttpTransport(server.url, None, lambda: NOW)
            # Once more, as a device does, where a busy machine broke the connection.
            closed[status] = any(transport.close_row("f", "p") for _ in range(2))
            assert (server.requests[0].method, server.requests[0].path) == (
                "DELETE",
                "/v1/pseudonyms/f/p",
            )

    assert [status for status, done in closed.items() if done] == [200, 204, 404, 410]


# -- lengths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reports", [1, 2, 20, 100, 500])
def test_bodies_have_one_of_a_few_lengths(reports: int) -> None:
    """Padding hides how many reports a body holds, up to a few steps."""
    body = pack([REPORT] * reports, test=False)

    assert len(body) in SIZES


def test_the_length_of_a_body_does_not_depend_on_the_value(tmp_path: Path) -> None:
    """True or false, one choice or another, inside the range or no value at all."""
    lengths: dict[str, set[tuple[int, ...]]] = {}
    pairs = {
        "event": (True, False, "neither"),
        "theme": ("light", "a much longer label than the others", None),
        "minutes": (0, 240, float("nan"), "x" * 10_000),
    }
    for name, values in pairs.items():
        for place, value in enumerate(values):
            with serving(server_fixtures.counting) as server:
                client = client_of(server.url, tmp_path / f"{name}{place}", threaded=False)
                client.consent(True)
                client.record(name, value)
                assert client.flush()
                client.close()
                lengths.setdefault(name, set()).add(tuple(len(each.body) for each in server.posts))

    assert all(len(seen) == 1 for seen in lengths.values()), lengths
    assert {length for seen in lengths.values() for each in seen for length in each} == {SIZES[0]}
