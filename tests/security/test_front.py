"""A worker's front and the server behind it: whatever is sent, both see the same requests.

Bytes go to the port, and to the private socket behind the front: the same responses must come.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions
from veilcount_aggregator.store import open_store
from veilcount_serving import plain_head
from veilcount_serving.front_connection import MOST_HEAD
from veilcount_serving.plain_head import parse_plain
from veilcount_shared.wire import BINARY_TYPE

from ..system.server import HOST, Server, slow_commits
from ..system.test_serving import KNOWN, body, collection, counted
from .test_limits import CLOSE, TWO_LENGTHS, Heard, head, listen

START = b"POST /v1/reports HTTP/1.1\r\n"
QUIET = 0.7
MUTATIONS = 400
FRAGMENTS = (
    *(b"\r", b"\n", b"\r\n", b"\r\n ", b"\t", b" ", b"\x00", b"\x0b", b"\x80", b":", b",", b";"),
    *(b"0", b"+", b"_", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n"),
    *(b"Content-Length: 0\r\n", b"Content-Length: 7\r\n", b"Content-Length : 7\r\n"),
    *(b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Connection: x, close\r\n"),
    *(b"Upgrade: h2c\r\n", b"Host: y\r\n", b"Content-Encoding: gzip\r\n", b"Origin: http://x\r\n"),
    *(b"A: b\r\n", b"A:b\r\n", b"A: \r\n", b"HTTP/1.0", b"TE: trailers\r\n", b"A: b\r\n c: d\r\n"),
)
LAST = head("GET", "/readyz", CLOSE)


@dataclass(frozen=True)
class Served:
    server: Server
    store: str
    file: Path
    sockets: Path

    def public(self) -> socket.socket:
        return socket.create_connection((HOST, self.server.port), 20)

    def private(self) -> socket.socket:
        """Connect to the server behind the front."""
        (path,) = self.sockets.glob("veilcount-*/1")
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(20)
        connection.connect(str(path))
        return connection


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("front")
    url = f"sqlite:///{folder}/store.db"
    with closing(open_store(url, make=True)) as store:
        add_definitions(store, DefinitionSource(KNOWN), datetime.now(UTC), "test")
    with TemporaryDirectory() as short, Server(url, folder, environ={"TMPDIR": short}) as server:
        server.wait_until_open()
        yield Served(server, url, folder / "store.db", Path(short))


def say(connect: Callable[[], socket.socket], raw: bytes) -> Heard:
    with connect() as connection:
        with suppress(OSError):  # a server that has heard enough hangs up
            connection.sendall(raw)
        connection.settimeout(QUIET)
        return listen(connection, QUIET)


def plain(raw: bytes, *lines: str) -> bytes:
    """Return a request as a device sends it."""
    length = f"Content-Length: {len(raw)}"
    return head("POST", "/v1/reports", f"Content-Type: {BINARY_TYPE}", length, *lines) + raw


def mutated(raw: bytes, chance: random.Random) -> bytes:
    """Return a request with one to three fragments put into its head, or bytes taken out of it."""
    end = raw.index(b"\r\n\r\n") + 2
    for _ in range(chance.randint(1, 3)):
        lines = [place for place in range(end) if raw[place - 2 : place] == b"\r\n"]
        at = chance.choice([chance.randrange(end), *chance.choices(lines, k=3)])
        raw = raw[:at] + chance.choice(FRAGMENTS) + raw[at + chance.choice((0, 0, 0, 1)) :]
    return raw


def differences(served: Served, streams: list[bytes]) -> list[tuple[bytes, list[int], list[int]]]:
    def compare(raw: bytes) -> tuple[bytes, list[int], list[int]]:
        return raw, say(served.public, raw).statuses, say(served.private, raw).statuses

    with ThreadPoolExecutor(32) as senders:
        compared = list(senders.map(compare, streams))
    assert any(200 in statuses for _, statuses, _ in compared)
    return [(raw, front, private) for raw, front, private in compared if front != private]


def test_both_parsers_see_the_same_requests(served: Served) -> None:
    """Random changes to the head of a report, with another request behind it."""
    chance = random.Random(45)
    report = plain(body(collection()))

    streams = [mutated(report, chance) + LAST for _ in range(MUTATIONS)]

    assert sum(parse_plain(raw[: raw.find(b"\r\n\r\n") + 4], START) is not None for raw in streams)
    assert differences(served, streams) == []


def test_what_hides_a_request_hides_it_from_neither(served: Served) -> None:
    """All that is known to be read in two ways, behind a plain report and without one."""
    report = plain(body(collection()))
    streams = [before + raw for raw in TWO_LENGTHS.values() for before in (b"", report)]

    assert differences(served, [*streams, report + LAST]) == []


def test_a_parser_that_trusts_an_odd_head_is_noticed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: without the comparison with what was sent, two lengths would be plain."""
    raw = head("POST", "/v1/reports", "Content-Length: 5", "Content-Length: 6")

    assert parse_plain(raw, START) is None
    assert parse_plain(head("POST", "/v1/reports", "Content-Length: 5"), START) is not None
    for line in ("Transfer-Encoding: chunked", "Expect: 100-continue", "A:b", "A: b ", "A_b: c"):
        assert parse_plain(head("POST", "/v1/reports", "Content-Length: 5", line), START) is None
    monkeypatch.setattr(plain_head, "_SPECIAL", frozenset())
    raw = head("POST", "/v1/reports", "Content-Length: 5", "Expect: 100-continue")
    assert parse_plain(raw, START) is not None  # so the table is what refuses it


def test_pipelined_reports_are_answered_in_order(served: Served) -> None:
    """Reports, a page, and reports again: the front answers first, then what is behind it."""
    first, second = plain(body(collection())), plain(b"no report")
    page = head("GET", "/healthz")
    before = counted(served.store)
    heard = say(served.public, first + second + first + page + second + first + LAST)

    assert heard.statuses == [200, 400, 200, 200, 400, 200, 200]
    assert heard.raw.count(b'"counted"') == 1
    assert counted(served.store) == before + 1


@pytest.mark.parametrize("size", [1, 7])
def test_a_request_in_small_pieces_is_one_request(served: Served, size: int) -> None:
    raw = plain(body(collection()), CLOSE)
    with served.public() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for place in range(0, len(raw), size):
            connection.sendall(raw[place : place + size])
        heard = listen(connection)

    assert (heard.statuses, heard.ended) == ([200], True)


def test_a_device_that_sends_and_reads_nothing_costs_bounded_memory(served: Served) -> None:
    """Reports without end, pipelined: at some point nothing more of it is taken."""
    raw = plain(b"no report") * 100
    sent = 0
    with served.public() as connection:
        connection.settimeout(2)
        with suppress(TimeoutError):
            while sent < 64 << 20:
                sent += connection.send(raw)

    assert sent < 64 << 20


def test_a_late_outcome_answers_no_other_request(served: Served) -> None:
    """A store that hangs: 503, then another request on the same connection gets its own answer."""
    with served.public() as connection:
        with slow_commits(served.file):
            connection.sendall(plain(body(collection())))
            refused = listen(connection)
            connection.sendall(plain(body(collection())))
            again = listen(connection)
            page = say(served.public, head("GET", "/healthz", CLOSE))
        time.sleep(1)
        connection.sendall(plain(b"no report"))
        connection.settimeout(20)
        after = listen(connection)

    assert refused.statuses == again.statuses == [503]
    assert page.statuses == [200]
    assert after.statuses == [400]


def test_a_long_head_is_passed_on_and_bounded(served: Served) -> None:
    report = body(collection())
    known = plain(report, "A: " + "a" * MOST_HEAD, CLOSE)

    assert say(served.public, known).statuses == [200]


def test_an_end_of_sending_is_passed_on(served: Served) -> None:
    """A report is answered though nothing more will come; a page behind it as without a front."""
    page, statuses = head("GET", "/docs", CLOSE), []
    for connect, raw in (
        (served.public, plain(body(collection())) + page),
        (served.private, page),
    ):
        with connect() as connection:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            statuses.append(listen(connection, 20).statuses)

    assert statuses[0] == [200, *statuses[1]]


def test_a_long_page_reaches_a_slow_reader_whole(served: Served) -> None:
    """Its pieces wait where they are made, not in the front."""
    with served.public() as connection, served.private() as private:
        heard = []
        for one in (connection, private):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(head("GET", "/openapi.json", CLOSE))
            time.sleep(0.5)
            heard.append(listen(one, 20).raw.partition(b"\r\n\r\n")[2])

    assert heard[0] == heard[1]
    assert len(heard[0]) > 1 << 16


def test_what_was_answered_was_counted_when_the_server_ends(tmp_path: Path) -> None:
    """Devices send without a pause while it is asked to end: no answer is without its count."""
    url = f"sqlite:///{tmp_path}/store.db"
    with closing(open_store(url, make=True)) as store:
        add_definitions(store, DefinitionSource(KNOWN), datetime.now(UTC), "test")
    with Server(url, tmp_path, "--workers", "2") as server:

        def send(_: int) -> int:
            """Send reports on one connection until it ends; return how many were counted."""
            answers = 0
            with (
                suppress(OSError),
                socket.create_connection((HOST, server.port), 20) as connection,
            ):
                while True:
                    connection.sendall(plain(body(collection())))
                    reply = b""
                    while b"]}" not in reply:
                        if not (piece := connection.recv(1 << 12)):
                            return answers
                        reply += piece
                    answers += b'"counted"' in reply
            return answers

        with ThreadPoolExecutor(16) as devices:
            sending = [devices.submit(send, number) for number in range(16)]
            time.sleep(1)
            code = server.stop()
        answered = sum(one.result() for one in sending)

    assert code == 0
    assert answered > 16
    assert counted(url) == answered
