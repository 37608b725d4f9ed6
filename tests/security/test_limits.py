"""What a stranger can make a real server read, keep or misunderstand.

HTTP as no library would send it: bytes to a real server, and whatever comes back.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions
from veilcount_aggregator.server.request_bodies import MOST_LARGE_BYTES, SMALL_BODY
from veilcount_aggregator.store import open_store
from veilcount_shared.wire import BINARY_TYPE, JSON_TYPE, MAX_BODY

from ..aggregator.intake.test_decode import HOSTILE
from ..processes import status
from ..system.server import HOST, Server
from ..system.test_serving import KNOWN, body, collection, counted, send

PATIENCE = 20.0  # for an answer; a busy machine is no failure
QUIET = 1.0  # after one, for another or for the end
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
POST = ("POST", "/v1/reports", f"Content-Type: {BINARY_TYPE}")
CHUNKED = "Transfer-Encoding: chunked"
CLOSE = "Connection: close"
MARK = "MaRkEdVaLuE"


@dataclass(frozen=True, slots=True)
class Heard:
    raw: bytes
    ended: bool  # by the server

    @property
    def statuses(self) -> list[int]:
        return [int(each) for each in _STATUS.findall(self.raw)]


def connected(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), PATIENCE)


def say(port: int, raw: bytes, quiet: float = QUIET) -> Heard:
    """Send bytes on a connection of their own; return all that comes back."""
    with connected(port) as connection:
        with suppress(OSError):  # a server that has heard enough hangs up
            connection.sendall(raw)
        return listen(connection, quiet)


def listen(connection: socket.socket, quiet: float = QUIET) -> Heard:
    """Return what comes until the server ends it, or falls silent behind an answer."""
    heard = b""
    try:
        while piece := connection.recv(1 << 16):
            heard += piece
            connection.settimeout(quiet)
    except TimeoutError:
        return Heard(heard, ended=False)
    except ConnectionResetError:
        return Heard(heard, ended=True)
    return Heard(heard, ended=True)


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode("latin-1")


SMUGGLED = head("GET", "/readyz")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("limits")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """One worker, for all: it must outlive everything here."""
    url = f"sqlite:///{folder}/store.db?durability=relaxed"
    made = open_store(url, make=True)
    add_definitions(made, DefinitionSource(KNOWN), datetime.now(UTC), "test")
    made.close()
    with Server(url, folder) as served:
        yield served


@pytest.fixture(autouse=True)
def _it_serves_still(server: Server) -> Iterator[None]:
    """Whatever was sent, the same worker counts the next report."""
    workers = server.workers()
    yield
    reply = server.ask(
        "POST", "/v1/reports", data=body(collection()), headers={"Content-Type": BINARY_TYPE}
    )

    assert reply.json()["verdicts"] == ["counted"]
    assert server.workers() == workers


def posted(server: Server, raw: bytes, *lines: str) -> Heard:
    length = f"Content-Length: {len(raw)}"
    return say(server.port, head("POST", "/v1/reports", length, CLOSE, *lines) + raw)


# -- one request, one meaning ----------------------------------------------------------------------

#: a proxy and a server that disagree on where a body ends let one request hide in another
TWO_LENGTHS = {
    "both lengths, short": head(*POST, "Content-Length: 5", CHUNKED) + b"0\r\n\r\n" + SMUGGLED,
    "both lengths, long": head(*POST, CHUNKED, "Content-Length: 99") + b"0\r\n\r\n" + SMUGGLED,
    "two lengths": head(*POST, "Content-Length: 0", f"Content-Length: {len(SMUGGLED)}") + SMUGGLED,
    "a list of lengths": head(*POST, f"Content-Length: 0, {len(SMUGGLED)}") + SMUGGLED,
    "a signed length": head(*POST, "Content-Length: +0") + SMUGGLED,
    "a negative length": head(*POST, "Content-Length: -1") + SMUGGLED,
    "a length in hex": head(*POST, "Content-Length: 0x0") + SMUGGLED,
    "a length beyond all": head(*POST, "Content-Length: 99999999999999999999") + SMUGGLED,
    "another coding": head(*POST, "Transfer-Encoding: xchunked") + b"0\r\n\r\n" + SMUGGLED,
    "a coding after chunks": head(*POST, "Transfer-Encoding: chunked, identity") + SMUGGLED,
    "two codings": head(*POST, CHUNKED, "Transfer-Encoding: identity") + SMUGGLED,
    "a coding behind a tab": head(*POST, "Transfer-Encoding:\x0bchunked") + SMUGGLED,
    "a space before the colon": head(*POST, "Transfer-Encoding : chunked") + SMUGGLED,
    "a folded line": head(*POST, "Transfer-Encoding:", " chunked") + SMUGGLED,
    "a chunk of no size": head(*POST, CHUNKED) + b"zz\r\n" + SMUGGLED,
    "a chunk beyond all": head(*POST, CHUNKED) + b"ffffffffffffffffff\r\n" + SMUGGLED,
    "a chunk without an end": head(*POST, CHUNKED) + b"1\r\nxx\r\n" + SMUGGLED,
    "a zero in a name": head(*POST, "A\x00B: c", "Content-Length: 0") + SMUGGLED,
    "a zero in a value": head(*POST, "A: b\x00c", "Content-Length: 0") + SMUGGLED,
    "no version": b"GET /healthz\r\n\r\n" + SMUGGLED,
    "a version to come": b"GET /healthz HTTP/3.0\r\nHost: x\r\n\r\n" + SMUGGLED,
    "a hello of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + SMUGGLED,
    "a space in the path": b"GET /healthz /readyz HTTP/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
}


@pytest.mark.parametrize("name", TWO_LENGTHS)
def test_request_smuggling_is_refused(server: Server, name: str) -> None:
    """What can be read in two ways is refused, and the connection with it."""
    heard = say(server.port, TWO_LENGTHS[name])

    assert heard.statuses == [400]
    assert heard.ended


def test_a_second_request_works_after_a_complete_one_and_no_body_is_one(server: Server) -> None:
    """Else the test above would prove nothing; an endpoint that reads no body leaves none."""
    heard = say(server.port, head("GET", "/healthz") + head("GET", "/readyz", CLOSE), PATIENCE)

    assert heard.statuses == [200, 200]
    for method, path in (("GET", "/healthz"), ("GET", "/nothing"), ("POST", "/logout")):
        raw = head(method, path, f"Content-Length: {len(SMUGGLED)}") + SMUGGLED

        assert len(say(server.port, raw, quiet=0.2).statuses) == 1


@pytest.mark.parametrize(
    "line",
    ["Transfer-Encoding: chunked", "Host: elsewhere.example", "X-Forwarded-Host: elsewhere.example",
     "X-Original-URL: /keys", "X-Rewrite-URL: /keys", "X-HTTP-Method-Override: POST"],
)  # fmt: skip
def test_no_header_leads_a_request_elsewhere(server: Server, line: str) -> None:
    """The path is the path, and no answer repeats a host."""
    heard = say(server.port, head("GET", "/collections/theme?a=b", line, CLOSE) + b"0\r\n\r\n")

    assert heard.statuses[0] == 303
    assert b"location: /login?to=%2Fcollections%2Ftheme%3Fa%3Db\r\n" in heard.raw
    assert b"elsewhere" not in heard.raw


@pytest.mark.parametrize("path", ["/v1/reports", "/v1/ohttp", "/healthz", "/docs"])
def test_a_request_of_http_1_1_names_a_host(server: Server, path: str) -> None:
    """One of HTTP/1.0 need not."""
    nameless = say(server.port, f"GET {path} HTTP/1.1\r\n{CLOSE}\r\n\r\n".encode())
    older = say(server.port, f"GET {path} HTTP/1.0\r\n\r\n".encode())

    assert nameless.statuses == [400]
    assert older.statuses in ([200], [405])


LONG = (
    (head("GET", "/" + "a" * 70_000), 431),  # of the whole head: it ends before the path does
    (head("GET", "/healthz", "A: " + "a" * 300_000), 431),
    (head("GET", "/healthz", *["A: b"] * 200), 431),
    (head("GET", "/healthz", "Cookie: " + "a=b; " * 60_000), 431),
)


@pytest.mark.parametrize(("raw", "status"), LONG, ids=["a path", "a header", "headers", "cookies"])
def test_a_head_is_of_a_bounded_length(server: Server, raw: bytes, status: int) -> None:
    heard = say(server.port, raw)

    assert (heard.statuses, heard.ended) == ([status], True)


@pytest.mark.full  # it takes the server's ten seconds
def test_a_head_that_drips_is_cut(server: Server) -> None:
    """One letter now and then, for ever: the server ends the connection, and says so to nobody."""
    with connected(server.port) as connection, suppress(ConnectionError):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nA: ")
        connection.settimeout(0.2)
        heard = None
        while heard is None:
            connection.sendall(b"a")
            with suppress(TimeoutError):
                heard = connection.recv(1)

        assert heard == b""


# -- bodies ----------------------------------------------------------------------------------------

BOMB = gzip.compress(bytes(16 << 20), 1, mtime=0)
MOST_GROWTH = 40_000  # kilobytes: a few bodies at once, and what the allocator keeps
ROUNDS = 2


def kilobytes(server: Server) -> int:
    (worker,) = server.workers()
    return status(worker, "VmRSS")


def test_no_body_fills_the_memory_of_a_worker(server: Server) -> None:
    """The longest body of every bad shape, JSON, bombs: refused, and forgotten."""
    binary, zipped = f"Content-Type: {BINARY_TYPE}", "Content-Encoding: gzip"
    posted(server, HOSTILE["no batch"], binary)
    before = kilobytes(server)
    statuses = set()
    for _ in range(ROUNDS):
        for raw in HOSTILE.values():
            statuses |= set(posted(server, raw, binary).statuses)
        statuses |= set(posted(server, BOMB, binary, zipped).statuses)
        statuses |= set(posted(server, b"[" * MAX_BODY, f"Content-Type: {JSON_TYPE}").statuses)

    assert statuses == {400, 415}
    assert kilobytes(server) - before < MOST_GROWTH


def test_a_body_that_is_announced_too_long_is_not_waited_for(server: Server) -> None:
    for path in ("/v1/reports", "/login"):
        heard = say(server.port, head("POST", path, f"Content-Length: {40 << 20}"))

        assert heard.statuses == [413]


@pytest.mark.parametrize("path", ["/v1/reports", "/login"])
@pytest.mark.parametrize("length", [(), ("Content-Length: 5",)], ids=["", "and announced as short"])
def test_a_body_without_an_end_is_read_no_further_than_a_body_can_be(
    server: Server, path: str, length: tuple[str, ...]
) -> None:
    """Chunk after chunk: after a little more than a body can hold, it is refused."""
    kind = "application/x-www-form-urlencoded" if path == "/login" else BINARY_TYPE
    before, sent = kilobytes(server), 0
    with connected(server.port) as connection, suppress(OSError):
        connection.sendall(head("POST", path, CHUNKED, *length, f"Content-Type: {kind}"))
        while sent < 64 << 20:
            sent += connection.send(b"10000\r\n" + bytes(1 << 16) + b"\r\n")

    assert 0 < sent < 64 << 20
    assert kilobytes(server) - before < MOST_GROWTH


MOST_DRIPPING = 600  # twenty times the threads of a worker


def test_bodies_that_never_come_keep_nobody(server: Server, folder: Path) -> None:
    """Each is refused at its deadline; meanwhile reports are taken, and pages are served."""
    url = f"sqlite:///{folder}/store.db?durability=relaxed"
    before = counted(url)
    with ExitStack() as dripping:
        slow = []
        for _ in range(MOST_DRIPPING):
            slow.append(dripping.enter_context(connected(server.port)))
            slow[-1].sendall(head(*POST, "Content-Length: 99") + b"VC")
        served = [say(server.port, head("GET", path)).statuses for path in ("/healthz", "/docs")]
        taken = send(server.url, body(collection()))
        refused = [listen(each).statuses for each in slow]

    assert served == [[200], [200]]
    assert taken.json()["verdicts"] == ["counted"]
    assert refused == [[408]] * MOST_DRIPPING
    assert counted(url) == before + 1


MOST_LARGE = MOST_LARGE_BYTES // MAX_BODY


def test_large_bodies_that_never_end_share_a_budget(server: Server) -> None:
    """All but a byte of each is sent; reports of devices are taken all the same."""
    raw = head(*POST, f"Content-Length: {MAX_BODY}") + bytes(MAX_BODY - 1)
    send(server.url, body(collection()))  # has it load what a first report needs
    before = kilobytes(server)
    with ExitStack() as dripping:
        for _ in range(160):
            connection = dripping.enter_context(connected(server.port))
            with suppress(OSError):  # a server that has refused hangs up
                connection.sendall(raw)
        taken = send(server.url, body(collection()))
        time.sleep(1.0)  # all that was sent is read or refused
        grown = kilobytes(server) - before

    assert grown < 64 << 10  # with the buffers of 160 connections
    assert taken.json()["verdicts"] == ["counted"]


@pytest.mark.parametrize("line", [f"Content-Length: {MAX_BODY}", CHUNKED])
def test_large_bodies_that_are_only_announced_keep_no_other_out(server: Server, line: str) -> None:
    """What was announced and does not come is no memory."""
    padding = 2 * SMALL_BODY
    large = body(collection())[:-2] + padding.to_bytes(2, "big") + bytes(padding)
    with ExitStack() as dripping:
        for _ in range(2 * MOST_LARGE):
            dripping.enter_context(connected(server.port)).sendall(head(*POST, line))
        taken = send(server.url, large)

    assert taken.json()["verdicts"] == ["counted"]


# -- what is told ----------------------------------------------------------------------------------


KEPT = (b"content-length", b"cache-control", b"x-content-type-options", b"referrer-policy")
MAKERS = (b"granian", b"hyper", b"werkzeug", b"python", b"traceback", b"x-powered-by", b"via:")


def test_no_answer_of_a_real_server_names_what_it_is_made_of(server: Server) -> None:
    """Right, wrong, refused by us, refused before us: no maker, no release, no place."""
    paths = ("/healthz", "/nothing", "/v1/keys", "/login", "/docs")
    raws = [
        *(head("GET", path, CLOSE) for path in paths),
        head("PUT", "/v1/reports", CLOSE),
        head(*POST, "Content-Length: 3", CLOSE) + b"abc",
        head("TRACE", "/healthz", CLOSE),
        head("CONNECT", "elsewhere.example:80", CLOSE),
        b"junk\r\n\r\n",
        head("GET", "/" + "a" * 70_000),
    ]
    for raw in raws:
        heard = say(server.port, raw).raw.lower()
        servers = {line for line in heard.split(b"\r\n") if line.startswith(b"server:")}

        assert servers <= {b"server: veilcount"}
        assert not [word for word in MAKERS if word in heard]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/v1/keys"])
def test_the_head_is_the_same_with_and_without_a_body(server: Server, path: str) -> None:
    """Whatever serves it: on the event loop, on a thread, in the analysis process."""
    get, of_head = (
        {
            line
            for line in say(server.port, head(method, path, CLOSE)).raw.lower().split(b"\r\n")
            if line.partition(b":")[0] in KEPT
        }
        for method in ("GET", "HEAD")
    )

    assert get == of_head
    assert len(get) == len(KEPT)


INJECTED = (
    *("%0a", "%0d%0aSet-Cookie:%20a=b", "%00", "%1b[31m", "%ff%fe", "%e2%80%ae", "%25s%25n"),
    *("..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/", "%c0%ae%c0%ae/"),
    *("';drop%20table--", "${jndi:ldap://x}", "{{7*7}}"),
)
PATHS = (
    *("/{0}", "/v1/collections/{0}", "/v1/keys/{0}", "/v1/rows/{0}", "/assets/{0}/{0}"),
    *("/collections/{0}/estimates.{0}", "/login?to={0}"),
)


def test_no_path_leads_out_and_none_is_repeated_in_a_head_or_a_log(server: Server) -> None:
    """Line ends, zeros, escapes, dots, in each place of a path: plain answers, and a plain log."""
    for path in PATHS:
        for odd in INJECTED:
            headers = (f"User-Agent: {MARK}\x1b[31m", f"Authorization: Bearer {MARK}%0a", CLOSE)
            heard = say(server.port, head("GET", path.format(odd + MARK), *headers))
            top, _, below = heard.raw.partition(b"\r\n\r\n")

            assert heard.statuses[0] in {200, 303, 400, 401, 404, 405, 429}
            assert b"\nset-cookie: a=b" not in top.lower()
            assert b"root:" not in below
            assert b"\x1b" not in heard.raw
    lines = server.log_text().splitlines()

    assert all(json.loads(line).keys() >= {"time", "level", "event"} for line in lines)
    assert MARK not in server.log_text()
