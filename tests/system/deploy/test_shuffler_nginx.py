"""nginx in front of a shuffler, as it is written: what it passes on, and what it writes of nobody.

Envelopes come to a real shuffler; what a proxy could add is read by an upstream that records it.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import requests

from veilcount_client.delivery.shuffler import ShufflerTransport
from veilcount_client.delivery.transport import Delivered, Later
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE
from veilcount_shuffler.envelope_intake import MAX_BODY
from veilcount_shuffler.plain_envelopes import ENVELOPES_PATH

from ...shuffler.parties import messages
from ...shuffler.test_serving import Served, server
from ..server import HOST, free_port
from .files import text
from .nginx import IMPATIENT, Nginx, shuffler_at
from .recording_upstream import RecordingUpstream
from .test_nginx import REVEALING, connected, read_until_closed, resumes
from .test_nginx_limits import ADDRESSES

__all__ = ["server"]

PATH = "/acme"
PASSED = {"host", "content-type", "content-length", "x-forwarded-for"}
RATE = 9
NETWORKS = ["198.51.100.7"] * 7 + ["198.51.100.200"] * 5, ["203.0.113.7"] * 3
WITHOUT_ADDRESS = {"proxy_set_header X-Forwarded-For $remote_addr;": ""}
AS_SENT = {"proxy_pass_request_headers off;": "", **WITHOUT_ADDRESS}


@pytest.fixture(scope="module")
def proxy(echo: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    folder = tmp_path_factory.mktemp("proxy") / "nginx"
    with shuffler_at(folder, echo.server_address[1]) as nginx:
        yield nginx


def post(
    nginx: Nginx,
    body: bytes = b"VE",
    path: str = PATH + ENVELOPES_PATH,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
) -> requests.Response:
    """Send an envelope as no device would: with all that could reveal it."""
    sent = REVEALING | {"Content-Type": ENVELOPE_TYPE, "Authorization": "Bearer x"}
    with requests.Session() as session:
        session.trust_env = False
        return session.request(
            method, nginx.url + path, data=body, headers=sent | dict(headers or {}), timeout=30,
            verify=str(nginx.certificate), allow_redirects=False,
        )  # fmt: skip


def test_an_envelope_is_held_and_no_log_has_an_address(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the client's own transport; a clear one is refused, and the report waits."""
    first, second = (envelope.encode() for envelope in messages(server.store.crowd, 2))
    server.start()
    with shuffler_at(tmp_path / "nginx", server.port) as nginx:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(nginx.certificate))
        sends = ShufflerTransport(nginx.url + PATH, time.time).send_envelope
        outcomes = [sends(first), sends(first), sends(second)]
        clear = ShufflerTransport(f"http://{HOST}:{nginx.port}{PATH}", time.time)
        refused = clear.send_envelope(first)
        written = nginx.written()
    log = server.log.read_text().partition("\n")[2]  # but its own address

    assert all(isinstance(outcome, Delivered) for outcome in outcomes), outcomes
    assert isinstance(refused, Later)
    assert HOST not in written + log


@pytest.mark.parametrize("planted", [None, WITHOUT_ADDRESS, AS_SENT])
def test_a_network_has_a_rate_of_its_own(
    server: Served, tmp_path: Path, planted: dict[str, str] | None
) -> None:
    """A /24, whatever a device says where it is; its addresses are in no log and no file.

    Planted: all devices are one network, or each is where it says.
    """
    server.start("--rate", str(RATE))
    envelopes = [envelope.encode() for envelope in messages(server.store.crowd, 15)]
    changes = ADDRESSES | {"error.log crit": "error.log info"} | (planted or {})
    with shuffler_at(tmp_path / "nginx", server.port, changes) as nginx:
        found = [
            Counter(
                post(
                    nginx,
                    envelopes.pop(),
                    headers={"X-Test-Address": address, "X-Forwarded-For": f"10.{number}.0.1"},
                ).status_code
                for number, address in enumerate(network)
            )
            for network in NETWORKS
        ]
        written = nginx.written() + server.log.read_text()
    files = b"".join(p.read_bytes() for p in server.folder.rglob("*") if p.is_file())

    expected = [{202: RATE, 429: 3}, {202: 3}]
    assert (found == expected) is (planted is None), found
    assert "198.51.100" not in written
    assert b"198.51.100" not in files


def test_the_shuffler_gets_the_envelope_and_the_address_alone(
    proxy: Nginx, echo: RecordingUpstream
) -> None:
    before = len(echo.headers)
    replies = [post(proxy, bytes(range(200))) for _ in range(12)]
    arrived = echo.headers[before:]

    assert {reply.status_code for reply in replies} == {200}
    assert {frozenset(headers) for headers in arrived} == {frozenset(PASSED)}
    assert {headers["x-forwarded-for"] for headers in arrived} == {HOST}
    assert echo.lines[-1] == f"POST {ENVELOPES_PATH} HTTP/1.1"
    assert {reply.headers["Connection"] for reply in replies} == {"close"}
    assert not any("Set-Cookie" in reply.headers for reply in replies)


REQUESTS = (
    (405, PATH + ENVELOPES_PATH, "GET", 0),
    (405, PATH + ENVELOPES_PATH, "OPTIONS", 0),
    (404, f"{PATH}{ENVELOPES_PATH}?device=7", "POST", 9),
    (404, ENVELOPES_PATH, "POST", 9),
    (404, PATH, "POST", 9),
    (404, f"{PATH}/metrics", "GET", 0),
    (404, "/metrics", "GET", 0),
    (404, "/health/ready", "GET", 0),
    (413, PATH + ENVELOPES_PATH, "POST", MAX_BODY + 1),
    (200, PATH + ENVELOPES_PATH, "POST", MAX_BODY),
)


def test_it_takes_envelopes_and_shows_nothing(proxy: Nginx, echo: RecordingUpstream) -> None:
    """The longest one, too, is written to no file: there is no place for one here."""
    (proxy.folder / "client_body").rmdir()
    for status, path, method, length in REQUESTS:
        before = len(echo.headers)
        reply = post(proxy, bytes(length), path, method)

        assert reply.status_code == status, (path, method, length)
        assert len(echo.headers) == before + (status == 200), path
    assert f"client_max_body_size {MAX_BODY};" in text("shuffler-nginx.conf")


@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_no_session_of_tls_joins_two_envelopes(proxy: Nginx, most: ssl.TLSVersion) -> None:
    assert not resumes(proxy, most)


LOGGING = {"access_log off;": "access_log access.log;"}


@pytest.mark.parametrize("planted", [{}, LOGGING])
def test_it_writes_no_address_whatever_goes_wrong(tmp_path: Path, planted: dict[str, str]) -> None:
    """The shuffler away, wrong TLS, a body that stops or is too long; a log would be noticed."""
    changes = ADDRESSES | IMPATIENT | {"error.log crit": "error.log info"} | planted
    with shuffler_at(tmp_path / "nginx", free_port(), changes) as nginx:
        sent = {"X-Test-Address": "198.51.100.7"}
        away = post(nginx, headers=sent).status_code
        post(nginx, bytes(MAX_BODY + 1), headers=sent)
        post(nginx, path="/none", headers=sent)
        with socket.create_connection((HOST, nginx.port)) as noise:
            noise.sendall(b"\x16\x03\x01\x00\x05noise")
            noise.recv(100)
        with connected(nginx) as cut:
            cut.sendall(b"POST /acme/v1/envelopes HTTP/1.1\r\nHost: localhost\r\n")
            cut.sendall(b"Content-Length: 1000\r\n\r\nx")
            read_until_closed(cut)
        written = nginx.written()

    assert away == 502
    assert any(address in written for address in (HOST, "198.51.100.7")) is bool(planted)
