"""nginx as it is written, in front of an aggregator: what it keeps off, and what it keeps of none.

Only the seconds that a body may stop for are fewer, where one stops.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
import requests

from veilcount_aggregator.operate.cli.main import run
from veilcount_client.delivery.transport import HttpTransport, Later, Rejected
from veilcount_shared.shuffling.part import PART_TYPE
from veilcount_shared.wire import BINARY_TYPE, MAX_BODY

from ..server import HOST, Server, free_port, wait_until
from ..test_serving import COUNTED, FILE, body, collection
from .nginx import IMPATIENT, Nginx, in_front_of
from .recording_upstream import RecordingUpstream

REPORTS = "/v1/reports"
PAUSE = 0.25  # between what drips
PASSED = {
    *("host", "content-type", "content-length", "authorization", "content-encoding"),
    *("x-veilcount-source-class", "x-veilcount-request-id"),
}
REVEALING = {
    "User-Agent": "one of a kind",
    "Cookie": "who=me",
    "Referer": "https://example.org/private",
    "Accept-Language": "gsw",
    "X-Forwarded-For": "192.0.2.7",
    "X-Real-IP": "192.0.2.7",
    "Forwarded": "for=192.0.2.7",
    "X-Request-Id": "7",
    "Traceparent": "00-7-7-01",
    "DNT": "1",
    "X-Veilcount-Source-Class": "a quota of my own",
    "X-Veilcount-Request-Id": "01234567-89ab-4def-8123-456789abcdef",
}


@pytest.fixture(scope="module")
def proxy(echo: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    folder = tmp_path_factory.mktemp("proxy") / "nginx"
    with in_front_of(folder, echo.server_address[1]) as nginx:
        yield nginx


@pytest.fixture(scope="module")
def impatient(echo: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """A proxy that waits two seconds where it would wait ten."""
    folder = tmp_path_factory.mktemp("impatient") / "nginx"
    with in_front_of(folder, echo.server_address[1], more=IMPATIENT) as nginx:
        yield nginx


def ask(nginx: Nginx, method: str, path: str, **options: object) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        url = nginx.url + path
        return session.request(method, url, verify=str(nginx.certificate), timeout=30, **options)  # type: ignore[arg-type]


def connected(
    nginx: Nginx, context: ssl.SSLContext | None = None, session: ssl.SSLSession | None = None
) -> ssl.SSLSocket:
    context = context or nginx.tls()
    plain = socket.create_connection((HOST, nginx.port), 10)
    return context.wrap_socket(plain, server_hostname="localhost", session=session)


def head(length: int) -> bytes:
    lines = (f"POST {REPORTS} HTTP/1.1", "Host: localhost", f"Content-Length: {length}", "", "")
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize(("method", "path"), [("POST", REPORTS), ("POST", "/v1/rows/close")])
def test_no_header_of_a_device_arrives_but_what_is_read(
    proxy: Nginx, echo: RecordingUpstream, method: str, path: str
) -> None:
    headers_sent = REVEALING | {"Authorization": "Bearer x", "Content-Type": BINARY_TYPE}
    reply = ask(proxy, method, path, headers=headers_sent, data=b"body")
    arrived = echo.headers[-1]

    assert set(arrived) <= PASSED, arrived
    assert (arrived["authorization"], arrived["content-type"]) == ("Bearer x", BINARY_TYPE)
    assert arrived["x-veilcount-source-class"] == "any"
    assert "Set-Cookie" not in reply.headers
    assert reply.headers["Connection"] == "close"


@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
def test_the_aggregator_decides_which_pages_may_send(
    proxy: Nginx, echo: RecordingUpstream, method: str
) -> None:
    ask(proxy, method, REPORTS, headers={"Origin": "https://elsewhere.example"})

    assert echo.lines[-1] == f"{method} {REPORTS} HTTP/1.1"
    assert echo.headers[-1]["origin"] == "https://elsewhere.example"


def test_an_analyst_keeps_his_session_and_no_address(proxy: Nginx, echo: RecordingUpstream) -> None:
    reply = ask(proxy, "GET", "/collections", headers=REVEALING)
    arrived = echo.headers[-1]

    assert (arrived["cookie"], arrived["x-forwarded-proto"]) == ("who=me", "https")
    assert arrived.keys().isdisjoint({"x-forwarded-for", "x-real-ip", "forwarded"})
    assert reply.headers["Set-Cookie"] == "who=me"


@pytest.mark.parametrize("path", [REPORTS, "/v1/rows/close", "/collections", "/docs"])
def test_each_request_has_a_new_id(proxy: Nginx, echo: RecordingUpstream, path: str) -> None:
    for _ in range(3):
        ask(proxy, "POST", path, headers=REVEALING, data=b"body")
    ids = {headers["x-veilcount-request-id"] for headers in echo.headers[-3:]}

    assert len(ids - {REVEALING["X-Veilcount-Request-Id"]}) == 3
    assert all(str(UUID(request)) == request and UUID(request).version == 4 for request in ids)


def test_what_drips_is_cut_before_the_server(impatient: Nginx, echo: RecordingUpstream) -> None:
    """A body once it stops; headers after a while, however long they go on."""
    before = echo.connections
    with connected(impatient) as slow:
        slow.sendall(head(1000))
        for _ in range(10):
            slow.sendall(b"x")
            time.sleep(PAUSE)
        dripped = echo.connections
        answer = read_until_closed(slow)
    with connected(impatient) as slow, pytest.raises(OSError, match=r"reset|[Bb]roken|EOF|closed"):
        drip(slow)

    assert dripped == echo.connections == before
    assert b" 200 " not in answer


def drip(slow: ssl.SSLSocket) -> None:
    """Send a header after the other, for as long as somebody listens."""
    slow.sendall(head(0)[:-2])
    for place in range(40):
        slow.sendall(f"X-{place}: 1\r\n".encode())
        time.sleep(PAUSE)


def read_until_closed(connection: ssl.SSLSocket) -> bytes:
    """Return what comes until the other side hangs up; fail if it does not."""
    connection.settimeout(60)
    try:
        return connection.recv(1000)
    except (ConnectionError, ssl.SSLError):
        return b""


@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_no_session_of_tls_is_resumed(proxy: Nginx, most: ssl.TLSVersion) -> None:
    """It would join two bodies of one device."""
    assert not resumes(proxy, most)


def resumes(nginx: Nginx, most: ssl.TLSVersion) -> bool:
    context = nginx.tls(most)
    with connected(nginx, context) as first:
        first.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        first.recv(4096)
        session = first.session
    with connected(nginx, context, session) as second:
        return bool(second.session_reused)


def test_old_tls_is_refused(proxy: Nginx) -> None:
    context = proxy.tls()
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")

    with pytest.raises(ssl.SSLError):
        connected(proxy, context)


def test_clear_text_and_metrics_stay_outside(proxy: Nginx, echo: RecordingUpstream) -> None:
    """Who reads a page is sent to https; a device is refused, and keeps what it has."""
    before = len(echo.headers)
    clear = f"http://{HOST}:{proxy.clear}"
    page = requests.get(f"{clear}/collections", allow_redirects=False, timeout=10)
    device = HttpTransport(clear, None, time.time).send(b"body", 1)
    mistaken = HttpTransport(f"http://{HOST}:{proxy.port}", None, time.time).send(b"body", 1)
    metrics = ask(proxy, "GET", "/metrics")

    assert (page.status_code, page.headers["Location"]) == (308, "https://localhost/collections")
    assert [device, mistaken] == [Later("403"), Later("400")]
    assert metrics.status_code == 404
    assert len(echo.headers) == before


def test_a_body_that_is_too_long_stops_at_the_proxy_and_no_device_drops_it(
    proxy: Nginx, echo: RecordingUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Definitions may be longer: they bring their lists of values."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(proxy.certificate))
    before, longer = echo.connections, bytes(2 * MAX_BODY)
    outcome = HttpTransport(proxy.url, None, time.time).send(bytes(MAX_BODY + 1), 1)
    whole = ask(proxy, "POST", REPORTS, data=bytes(MAX_BODY))
    connections = echo.connections
    pushed = ask(proxy, "POST", "/v1/collections", data=longer, headers=REVEALING)
    elsewhere = ask(proxy, "POST", "/v1/collections/theme/close", data=longer)

    assert outcome == Later("413")
    assert whole.status_code == 200
    assert connections <= before + 1
    assert (pushed.status_code, elsewhere.status_code) == (200, 413)
    assert echo.headers[-1]["x-forwarded-proto"] == "https"
    assert "x-forwarded-for" not in echo.headers[-1]


LONGEST_PART = 4096 * 600  # reports with tokens
OF_THE_AGGREGATOR = "Tue, 01 Dec 2026 02:00:00 GMT"


@pytest.mark.parametrize("is_planted", [False, True])
def test_a_shuffler_hands_over_through_the_proxy_and_reads_the_aggregators_clock(
    echo: RecordingUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_planted: bool
) -> None:
    """A whole part passes, which no device's limit would let; without the line the proxy's Date."""
    monkeypatch.setattr(echo.RequestHandlerClass, "date_time_string", lambda _: OF_THE_AGGREGATOR)
    without = {"proxy_pass_header Date;": ""} if is_planted else {}
    with in_front_of(tmp_path / "nginx", echo.server_address[1], more=without) as nginx:
        headers_sent = REVEALING | {"Authorization": "Bearer x", "Content-Type": PART_TYPE}
        part = ask(nginx, "POST", "/v1/batches", headers=headers_sent, data=bytes(LONGEST_PART))
        arrived = echo.headers[-1]
        longer = ask(nginx, "POST", "/v1/batch-records", data=bytes(2 * LONGEST_PART))
        clock = ask(nginx, "GET", "/health/live")

    assert (part.status_code, longer.status_code, clock.status_code) == (200, 413, 200)
    assert arrived["authorization"] == "Bearer x"
    assert set(arrived) <= PASSED, arrived
    assert (clock.headers["Date"] == OF_THE_AGGREGATOR) is not is_planted


def test_it_writes_no_address_whatever_goes_wrong(tmp_path: Path) -> None:
    """Nobody behind it, wrong TLS, cut bodies, bodies that are too long, paths that are none."""
    with in_front_of(tmp_path / "nginx", free_port(), more=IMPATIENT) as nginx:
        away = ask(nginx, "POST", REPORTS, data=b"body")
        ask(nginx, "POST", REPORTS, data=bytes(MAX_BODY + 1))
        ask(nginx, "GET", "/none/192.0.2.7")
        with socket.create_connection((HOST, nginx.port)) as noise:
            noise.sendall(b"\x16\x03\x01\x00\x05noise")
            noise.recv(100)
        with connected(nginx) as cut:
            cut.sendall(head(1000) + b"x")
            read_until_closed(cut)

        assert away.status_code == 502
        assert HOST not in nginx.written()
        assert "192.0.2.7" not in nginx.written()


@pytest.mark.full
def test_doctor_finds_no_problem_through_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A real server: devices are counted, and what is no batch is refused in its words."""
    file = tmp_path / "collections.toml"
    file.write_text(FILE.format("autosave"))
    flags = ("--dev", "--collections", str(file))
    with (
        Server(f"sqlite:///{tmp_path}/store.db", tmp_path, *flags) as server,
        in_front_of(tmp_path / "nginx", server.port) as nginx,
    ):
        kind = {"Content-Type": BINARY_TYPE}
        counted = ask(nginx, "POST", REPORTS, data=body(collection()), headers=kind)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(nginx.certificate))
        garbage = HttpTransport(nginx.url, None, time.time).send(b"VC", 1)
        capsys.readouterr()
        code = run(["doctor", "--url", nginx.url, "--json"])
        found = json.loads(capsys.readouterr().out)["findings"]

    assert counted.json()["verdicts"] == COUNTED
    assert garbage == Rejected("400")
    assert (code, [each for each in found if each["state"] == "wrong"]) == (0, [])


def test_an_aggregator_that_went_away_is_one_that_devices_do_not_notice(
    echo: RecordingUpstream, tmp_path: Path
) -> None:
    """Of two, one is away: what it would have got, the other does."""
    before = len(echo.headers)
    with in_front_of(tmp_path / "n", free_port(), echo.server_address[1]) as nginx:
        answers = [ask(nginx, "POST", REPORTS, data=b"body").status_code for _ in range(6)]
        wait_until(lambda: len(echo.headers) >= before + 6)

    assert answers == [200] * 6
