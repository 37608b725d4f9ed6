"""nginx as somebody else's relay, as it is written: what it hands on, refuses, and writes nowhere.

Requests come from a real device to a real server through both files of `deploy`; what a relay could
add or pass on is read by an upstream that records it.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import requests

from veilcount_client.clock import SystemClock
from veilcount_client.delivery.relay import RelayTransport
from veilcount_client.delivery.transport import HttpTransport, Later
from veilcount_shared.oblivious_http.encapsulation import REQUEST_TYPE
from veilcount_shared.oblivious_http.key_config import decode_configs
from veilcount_shared.wire import MAX_BODY

from ..server import HOST, Server, free_port
from ..test_relay import Deployed, deployed
from .nginx import Nginx, certified, in_front_of, relay_to
from .recording_upstream import RecordingUpstream, recording_upstream
from .test_nginx import REVEALING, resumes
from .test_nginx_limits import ADDRESSES, FEW, SLOW

__all__ = ["deployed"]  # a fixture

PATH = "/acme"
GATEWAY = "/v1/ohttp"
LONGEST = MAX_BODY + 4096
RELAY_NETWORK = {"# 203.0.113.0/24 acme;": f"{HOST}/32 acme;"}
PASSED = {"host", "content-type", "content-length"}
CLOSED = {
    "Location": "https://stats.example.org/direct",
    "Alt-Svc": 'h3="stats.example.org:443"',
    "Set-Cookie": "who=me",
    "NEL": "{}",
    "Report-To": "{}",
    "Reporting-Endpoints": 'default="https://stats.example.org"',
    "Refresh": "0; url=https://stats.example.org",
    "Link": "<https://stats.example.org>; rel=preload",
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordingUpstream]:
    folder = tmp_path_factory.mktemp("gateway")
    certified(folder)
    with recording_upstream(folder) as server:
        yield server


@pytest.fixture(scope="module")
def relay(gateway: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    folder = tmp_path_factory.mktemp("relay") / "nginx"
    port, certificate = gateway.server_address[1], gateway.certificate
    with relay_to(folder, port, certificate) as nginx:
        yield nginx


def post(
    nginx: Nginx,
    body: bytes | Iterable[bytes] = b"sealed",
    path: str = PATH,
    method: str = "POST",
    headers: dict[str, str] | None = None,
) -> requests.Response:
    """Send a request as no device would: with all that could reveal it."""
    sent = REVEALING | {"Content-Type": REQUEST_TYPE, "Authorization": "Bearer x"} | (headers or {})
    with requests.Session() as session:
        session.trust_env = False
        return session.request(
            method, nginx.url + path, data=body, headers=sent, verify=str(nginx.certificate),
            timeout=30, allow_redirects=False,
        )  # fmt: skip


def test_a_device_is_counted_through_a_relay_and_the_proxy_and_no_log_has_an_address(
    deployed: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the gateway's certificate alone among those that the relay trusts."""
    with (
        Server(deployed.store, deployed.folder) as server,
        in_front_of(tmp_path / "proxy", server.port, more=RELAY_NETWORK) as proxy,
        relay_to(tmp_path / "relay", proxy.port, proxy.certificate) as nginx,
    ):
        compared = requests.get(
            f"{proxy.url}/v1/ohttp-keys", verify=str(proxy.certificate), timeout=30
        )
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(nginx.certificate))
        for number in range(2):
            device = deployed.device(number, nginx.url + PATH)
            device.record()
            device.client.flush()
            waiting = device.state.waiting(device.clock.now())
            pseudonyms = [each.pseudonym.hex() for each in device.stored]
            device.stop()
            assert waiting == 0
        written = nginx.written() + proxy.written()
        log = server.log_text()

    assert deployed.counted() == 2
    assert decode_configs(compared.content) == deployed.keys
    assert HOST not in written
    assert not any(each in written + log for each in pseudonyms)


def test_the_gateway_is_a_relays_alone(
    deployed: Deployed, echo: RecordingUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever names the server as its own relay would show its address: its reports wait."""
    before = len(echo.headers)
    with in_front_of(tmp_path / "proxy", echo.server_address[1]) as proxy:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(proxy.certificate))
        transport = RelayTransport(proxy.url + GATEWAY, deployed.keys, None, SystemClock.now)

        assert transport.send(b"body", 1) == Later("NoGatewayReply")
    assert len(echo.headers) == before


def test_the_proxy_passes_type_and_bounds_length(echo: RecordingUpstream, tmp_path: Path) -> None:
    with in_front_of(tmp_path / "proxy", echo.server_address[1], more=RELAY_NETWORK) as proxy:
        longest = post(proxy, bytes(LONGEST), GATEWAY)
        arrived = echo.headers[-1]
        connection = requests.Session()
        with connection:
            kept = [
                connection.post(proxy.url + GATEWAY, verify=str(proxy.certificate), timeout=30)
                for _ in range(3)
            ]
        before = len(echo.headers)
        longer = post(proxy, bytes(LONGEST + 1), GATEWAY)

    assert (longest.status_code, longer.status_code) == (200, 413)
    assert set(arrived) == PASSED | {"x-veilcount-request-id"}
    assert arrived["content-type"] == REQUEST_TYPE
    assert "Set-Cookie" not in longest.headers
    assert [each.headers["Connection"] for each in kept] == ["keep-alive"] * 3
    assert len(echo.headers) == before


def test_a_relay_has_limits_of_its_own(echo: RecordingUpstream, tmp_path: Path) -> None:
    few = {"rate=2000r/s": "rate=1r/m", "burst=5000": "burst=24"}
    changes = RELAY_NETWORK | SLOW | FEW | few
    with in_front_of(tmp_path / "proxy", echo.server_address[1], more=changes) as proxy:
        statuses = [post(proxy, path=GATEWAY).status_code for _ in range(30)]

    assert Counter(statuses) == {200: 25, 503: 5}


def test_the_gateway_gets_nothing_but_the_body(relay: Nginx, gateway: RecordingUpstream) -> None:
    """Nor a connection of its own: they are kept, and shared."""
    gateway.reply = (200, {"Content-Type": "message/ohttp-res"})
    before, requests_before = gateway.connections, len(gateway.headers)
    replies = [post(relay, bytes(1335)) for _ in range(20)]
    chunked = post(relay, iter([b"a", b"b"]))
    arrived = gateway.headers[requests_before:]

    assert {each.status_code for each in [*replies, chunked]} == {200}
    assert {frozenset(each) for each in arrived} == {frozenset(PASSED)}
    assert {each["host"] for each in arrived} == {"localhost"}
    assert {each["content-type"] for each in arrived} == {REQUEST_TYPE}
    assert arrived[-1]["content-length"] == "2"
    assert set(gateway.lines) == {f"POST {GATEWAY} HTTP/1.1"}
    assert gateway.connections <= before + 2
    assert {each.headers["Content-Type"] for each in replies} == {"message/ohttp-res"}
    assert {each.headers["Connection"] for each in replies} == {"close"}
    assert gateway.names == {"localhost"}


APP = "https://app.example.org"
LISTED = {f'# "{APP}" $http_origin;': f'"{APP}" $http_origin;'}


def test_pages_of_listed_origins_may_send_and_no_other(
    gateway: RecordingUpstream, tmp_path: Path
) -> None:
    """The gateway learns nothing of it."""
    gateway.reply = (200, {"Content-Type": "message/ohttp-res"})
    exchanges = [(method, origin) for origin in (APP, f"{APP}:8443", "null") for method in METHODS]
    before, certificate = len(gateway.headers), gateway.certificate
    with relay_to(tmp_path / "nginx", gateway.server_address[1], certificate, LISTED) as nginx:
        replies = [
            post(nginx, method=method, headers={"Origin": each}) for method, each in exchanges
        ]
        without = [post(nginx, method=method).status_code for method in METHODS]

    shown = [each.headers.get("Access-Control-Allow-Origin") for each in replies]
    assert [each.status_code for each in replies] == [200, 204, 403, 403, 403, 403]
    assert shown == [APP, APP, None, None, None, None]
    assert [each.headers["Vary"] for each in replies[:2]] == ["Origin", "Origin"]
    assert replies[1].headers["Access-Control-Allow-Headers"] == "Content-Type"
    assert without == [200, 405]
    assert {frozenset(each) for each in gateway.headers[before:]} == {frozenset(PASSED)}


METHODS = "POST", "OPTIONS"
REQUESTS = (
    (405, PATH, "GET", REQUEST_TYPE, 0),
    (405, PATH, "PUT", REQUEST_TYPE, 9),
    (415, PATH, "POST", "application/json", 9),
    (415, PATH, "POST", "message/ohttp-res", 9),
    (404, f"{PATH}?device=7", "POST", REQUEST_TYPE, 9),
    (404, f"{PATH}/7", "POST", REQUEST_TYPE, 9),
    (404, "/v1/reports", "POST", REQUEST_TYPE, 9),
    (404, "//stats.example.org/", "POST", REQUEST_TYPE, 9),
    (413, PATH, "POST", REQUEST_TYPE, LONGEST + 1),
    (200, PATH, "POST", REQUEST_TYPE, LONGEST),
)


def test_it_takes_only_encapsulated_requests(relay: Nginx, gateway: RecordingUpstream) -> None:
    """The longest one, too, is written to no file: there is no place for one here."""
    gateway.reply = (200, {})
    (relay.folder / "client_body").rmdir()
    for status, path, method, kind, length in REQUESTS:
        before = len(gateway.headers)
        reply = post(relay, bytes(length), path, method, {"Content-Type": kind})

        assert reply.status_code == status, (path, method, kind, length)
        assert len(gateway.headers) == before + (status == 200), path


def test_no_reply_leads_a_device_past_the_relay(relay: Nginx, gateway: RecordingUpstream) -> None:
    """Neither a redirect nor a header; a problem of the gateway arrives as it is."""
    for status in (301, 302, 307, 308):
        gateway.reply = (status, CLOSED)
        redirected = post(relay)
        assert redirected.status_code == 502
        assert redirected.headers.keys().isdisjoint(CLOSED)
    for status in (200, 400, 503):
        gateway.reply = (status, CLOSED | {"X-Accel-Redirect": "/elsewhere", "Retry-After": "7"})
        reply = post(relay)
        assert (reply.status_code, reply.content) == (status, b'{"verdicts":[]}')
        assert reply.headers.keys().isdisjoint(CLOSED)
        assert reply.headers["Retry-After"] == "7"


def test_another_certificate_gets_nothing(gateway: RecordingUpstream, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    before = len(gateway.headers)
    port, other = gateway.server_address[1], certified(tmp_path / "other")
    with relay_to(tmp_path / "relay", port, other) as nginx:
        assert post(nginx).status_code == 502
    assert len(gateway.headers) == before


@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_no_session_of_tls_joins_two_addresses(relay: Nginx, most: ssl.TLSVersion) -> None:
    assert not resumes(relay, most)


def test_a_network_is_limited_and_unwritten(gateway: RecordingUpstream, tmp_path: Path) -> None:
    """Whatever goes wrong: limits, no TLS, the gateway away; and whatever its own log would hold.

    Of a burst of 9, ten pass (one is due at once), of a burst of 4, five.
    """
    gateway.reply = (200, {})
    changes = ADDRESSES | SLOW | FEW | {"error.log crit": "error.log info"}
    networks = (["198.51.100.7"] * 15, [f"2001:db8::{n:x}" for n in range(1, 13)], ["198.51.100.8"])
    port, certificate = gateway.server_address[1], gateway.certificate
    with relay_to(tmp_path / "relay", port, certificate, changes) as nginx:
        found = [
            Counter(post(nginx, headers={"X-Test-Address": each}).status_code for each in network)
            for network in networks
        ]
        with socket.create_connection((HOST, nginx.port)) as noise:
            noise.sendall(b"\x16\x03\x01\x00\x05noise")
            noise.recv(100)
        plain = HttpTransport(f"http://{HOST}:{nginx.port}", None, time.time).send(b"body", 1)
        written = nginx.written()
    with relay_to(tmp_path / "alone", free_port(), certificate, changes) as nginx:
        away = post(nginx, headers={"X-Test-Address": "198.51.100.7"}).status_code
        written += nginx.written()

    assert found == [{200: 10, 429: 5}, {200: 5, 429: 7}, {200: 1}]
    assert (away, plain) == (502, Later("400"))
    for address in (HOST, "198.51.100", "2001:db8", "192.0.2.7"):
        assert address not in written
