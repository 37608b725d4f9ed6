"""One request: what is sent, which outcome follows, and what neither request nor reply leaves."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from veilcount_client.delivery import transport
from veilcount_client.delivery.backoff import retry_after
from veilcount_client.delivery.padded_bodies import SIZES, encode_padded
from veilcount_client.delivery.transport import Delivered, HttpTransport, Later, Outcome, Rejected
from veilcount_shared.problem_details import PROBLEM_TYPE, UNKNOWN_VERSION, Problem
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import UNKNOWN_VERDICT, Verdict
from veilcount_shared.wire import BINARY_TYPE, encode_binary

from . import server_fixtures
from .server_fixtures import Behaviour, Server, open_files, serving, wait_until
from .test_deadline import encrypted, listening

REPORT = Report("0" * 64, 0, 0, bytes(16), 0, b"\x01")
BODY = encode_binary(Batch((REPORT,)))
NOW = 1_800_000_000.0


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy stands before the loopback."""
    monkeypatch.setenv("NO_PROXY", server_fixtures.HOST)


def send(url: str, key: str | None = None) -> Outcome:
    return HttpTransport(url, key, lambda: NOW).send(BODY, 1)


def outcome(behaviour: Behaviour) -> Outcome:
    with serving(behaviour) as server:
        return send(server.url)


# -- outcomes --------------------------------------------------------------------------------------


def test_every_verdict_is_delivered() -> None:
    with serving(server_fixtures.with_verdicts(*Verdict)) as server:
        sender = HttpTransport(server.url, None, lambda: NOW)
        assert sender.send(BODY, len(Verdict)) == Delivered(tuple(Verdict))


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_problem_about_the_body_rejects_it(status: int) -> None:
    """Only an aggregator writes problem documents; a proxy or a portal sends 400, too."""
    assert outcome(server_fixtures.problem(status)) == Rejected(str(status))
    assert outcome(server_fixtures.answering(status)) == Later(str(status))


@pytest.mark.parametrize("status", [204, 302, 401, 404, 415, 429, 503])
def test_any_other_status_is_for_later(status: int) -> None:
    assert outcome(server_fixtures.answering(status)) == Later(str(status))
    assert outcome(server_fixtures.problem(status)) == Later(str(status))


def test_a_version_that_the_server_does_not_know_yet_is_for_later() -> None:
    """An app that is updated before its server loses nothing; of other 400s the bytes are wrong."""
    newer = Problem(UNKNOWN_VERSION, "only 1").body
    behaviour = server_fixtures.answering(400, newer, Content_Type=PROBLEM_TYPE, Retry_After="61")

    assert outcome(behaviour) == Later("unknown-version", 300.0)
    assert outcome(server_fixtures.answering(400, newer)) == Later("400")


def test_an_unknown_verdict_or_member_invalidates_no_reply() -> None:
    reply = b'{"verdicts": ["splendid"], "more": 0.5}'

    assert outcome(server_fixtures.answering(200, reply)) == Delivered((UNKNOWN_VERDICT,))


ENDS = {
    ("@1798761600", "Sun, 06 Jun 2027 08:00:00 GMT"): [
        "deprecated from 2027-01-01, it ends on 2027-06-06"
    ],
    ("@1798761600", ""): ["deprecated from 2027-01-01"],
    ("", "Sun, 06 Jun 2027 08:00:00 GMT"): ["it ends on 2027-06-06"],
    ("true", ""): [],
    ("@99999999999999999999", ""): [],
    ("", "soon\tveilcount: all is well"): [],
    ("", ""): [],
}


@pytest.mark.parametrize("status", [200, 400, 503])
@pytest.mark.parametrize(("headers", "ends"), ENDS.items())
def test_the_end_that_a_server_announces_changes_no_outcome(
    status: int, headers: tuple[str, str], ends: list[str]
) -> None:
    """Only its dates are passed on [RFC 9745, RFC 8594]."""
    deprecation, sunset = headers
    behaviour = server_fixtures.answering(status, Deprecation=deprecation, Sunset=sunset)
    announced: list[str] = []
    with serving(behaviour) as server:
        sender = HttpTransport(server.url, None, lambda: NOW, announced.append)
        result = sender.send(BODY, 1)

    assert announced == ends
    assert result == outcome(server_fixtures.answering(status))


RETRY_AFTER = {
    "0": 0,
    "0.001": 60,
    "60": 60,
    "60.5": 300,
    "301": 900,
    "901": 3_600,
    "99999999999": 3_600,
    "-1": 0,
    "nan": 0,
    "inf": 3_600,
    "-inf": 0,
    "soon": 0,
    "": 0,
    "Fri, 15 Jan 2027 08:00:30 GMT": 60,
    "Fri, 15 Jan 2027 08:04:59 GMT": 300,
    "Fri, 15 Jan 2020 08:00:30 GMT": 0,
    "Fri, 31 Dec 9999 23:59:59 GMT": 3_600,
    "Mon, 01 Jan 2026 00:00:00 +99999999999999": 0,
}


def test_retry_after_is_rounded_up_and_bounded() -> None:
    """Seconds or a date, an hour at most; anything else means now."""
    assert {header: retry_after(header, NOW) for header in RETRY_AFTER} == RETRY_AFTER
    assert outcome(server_fixtures.answering(429, Retry_After="7")) == Later("429", 60.0)


@pytest.mark.parametrize(
    "behaviour",
    [
        server_fixtures.silent,
        server_fixtures.dropping,
        server_fixtures.answering(200),
        server_fixtures.answering(200, b'{"verdicts": []}'),
        server_fixtures.answering(200, b"[" * 60_000),
        server_fixtures.answering(200, b"\xff\xfe"),
        server_fixtures.responding(b"\x00\x01 junk that is no HTTP\r\n\r\n"),
        server_fixtures.responding(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"),
        server_fixtures.responding(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        server_fixtures.responding(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nnot gzip"),
        server_fixtures.responding(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n"),
        server_fixtures.responding(b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\n"),
    ],
)
def test_whatever_else_comes_back_is_for_later(
    behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silence, junk, too much, words of no version: the same bytes go again."""
    monkeypatch.setattr(transport, "TIMEOUT", (0.3, 0.3))
    assert isinstance(outcome(behaviour), Later)


def test_a_port_that_refuses_is_for_later() -> None:
    with server_fixtures.nobody() as url:
        assert send(url) == Later("ConnectionError", seen=False)


@pytest.mark.parametrize("url", ["stats.example.org", "http://", "http://[::1", "http://a b", ""])
def test_an_invalid_url_is_for_later(url: str) -> None:
    """An operator corrects it while the reports wait."""
    assert isinstance(send(url), Later)


@pytest.mark.parametrize("key", ["k\u00e9y \u20ac", "two\r\nlines"])
def test_a_key_that_no_header_can_hold_is_for_later(key: str, sink: Server) -> None:
    assert isinstance(send(sink.url, key), Later)


def test_tls_to_a_plain_port_is_for_later() -> None:
    """It is not tried without."""
    received: list[bytes] = []

    def refuse(connection: socket.socket, _: object) -> None:
        received.append(connection.recv(1 << 16))
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        while piece := connection.recv(1 << 16):
            received.append(piece)

    with listening(refuse) as address:
        assert send(f"https://{address}") == Later("SSLError")
    assert received
    assert b"POST" not in b"".join(received)


def test_an_unknown_certificate_is_for_later(certificate: Path) -> None:
    """Nothing of the body is sent."""
    received: list[bytes] = []

    def receive(connection: socket.socket, _: object) -> None:
        received.append(connection.recv(1 << 16))

    with listening(encrypted(receive, certificate)) as address:
        assert send(f"https://{address}") == Later("SSLError", seen=False)
    assert not b"".join(received)


def test_a_reply_is_read_only_as_far_as_one_can_be_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 MB next to nothing is read, however long there would be for it."""
    monkeypatch.setattr(transport, "MAX_SECONDS", 60)
    with serving(server_fixtures.huge) as server:
        reply = HttpTransport(server.url, None, lambda: NOW).request("POST", "/", BODY)

    assert transport.MAX_REPLY < len(reply.content) <= transport.MAX_REPLY + 16


# -- what a request holds --------------------------------------------------------------------------


def test_a_request_reveals_nothing_of_the_machine_and_leaves_nothing(sink: Server) -> None:
    """The same few headers from every device, in every request, each on its own connection.

    Though each reply sets a cookie, and the server offers to keep the connection alive. Afterwards
    there is no thread and no open file.
    """
    threads, files = set(threading.enumerate()), open_files()
    outcomes = [send(sink.url) for _ in range(3)]

    assert outcomes == [Delivered((each,)) for each in (Verdict.COUNTED, *[Verdict.DUPLICATE] * 2)]
    assert [request.connection for request in sink.requests] == [1, 2, 3]
    for request in sink.requests:
        assert sorted(request.headers) == [
            ("accept", "*/*"),
            ("accept-encoding", "identity"),
            ("connection", "close"),
            ("content-length", str(len(BODY))),
            ("content-type", BINARY_TYPE),
            ("host", sink.url.removeprefix("http://")),
            ("user-agent", "veilcount"),
        ]
    assert wait_until(lambda: set(threading.enumerate()) <= threads)
    assert wait_until(lambda: open_files() <= files)


@pytest.mark.parametrize("status", [301, 303, 307])
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


def test_a_key_is_the_apps_and_nothing_else_is_added(
    sink: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a key one header more; none from a user's .netrc, which names the user."""
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine {server_fixtures.HOST} login marked password marked\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    send(sink.url)
    send(sink.url, "the-app")
    bare, keyed = sink.requests

    assert bare.header("authorization") is None
    assert set(keyed.headers) - set(bare.headers) == {("authorization", "Bearer the-app")}


@pytest.mark.parametrize("reports", [1, 2, 20, 100, 500])
def test_bodies_have_one_of_a_few_lengths(reports: int) -> None:
    """Padding hides how many reports a body holds, up to a few steps."""
    body = encode_padded(Batch((REPORT,) * reports))

    assert len(body) in SIZES
