"""Through a relay: what each party has in its log; exactly once through lost replies and kills."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import requests
from bench.gateway import GARBAGE_BYTES, GARBAGE_CONNECTIONS, garbage

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.records.definitions import load_catalog
from veilcount_aggregator.store import open_store
from veilcount_aggregator.web.api.reports import PATH as REPORTS_PATH
from veilcount_aggregator.web.api.rows import PATH as ROWS_PATH
from veilcount_client.clock import SystemClock
from veilcount_client.delivery.relay import RelayTransport
from veilcount_shared import SystemRandomSource, load_collections
from veilcount_shared.oblivious_http.binary_http import Request, Response
from veilcount_shared.oblivious_http.encapsulation import REQUEST_TYPE, seal_request
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM, KeyConfig, decode_configs
from veilcount_shared.oblivious_http.key_file import decode_key_file
from veilcount_shared.wire import BINARY_TYPE, JSON_TYPE, MAX_BODY, encode_base64

from ..client.device_fixtures import Device, definitions_text
from ..processes import stopped
from .server import Server, free_port, wait_until

PEOPLE = 12


@dataclass
class RelayLog:
    """Everything that a relay can write down."""

    gateway: str
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    replies: list[int] = field(default_factory=list)
    loses_every: int = 0  # reply: it hands the request on, and the answer back to nobody


@contextmanager
def relay(log: RelayLog) -> Iterator[str]:
    """Run a relay that keeps a log, and loses replies."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            log.requests.append((self.client_address[0], self.path, dict(self.headers), body))
            kind = {"Content-Type": self.headers["Content-Type"]}
            try:
                reply = requests.post(log.gateway, data=body, headers=kind, timeout=30)
            except requests.RequestException:
                self.send_error(502)
                return
            log.replies.append(len(reply.content))
            if log.loses_every and len(log.requests) % log.loses_every == 0:
                self.close_connection = True
                return
            self.send_response(reply.status_code)
            self.send_header("Content-Type", reply.headers["Content-Type"])
            self.send_header("Content-Length", str(len(reply.content)))
            self.end_headers()
            self.wfile.write(reply.content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/relay"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Deployed:
    folder: Path

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder}/store.db"

    @property
    def file(self) -> Path:
        return self.folder / "collections.toml"

    @property
    def keys(self) -> list[KeyConfig]:
        return [key.config for key in decode_key_file((self.folder / "relay.keys").read_bytes())]

    def device(self, number: int, url: str) -> Device:
        transport = RelayTransport(url, self.keys, None, SystemClock.now)
        now = datetime.now(UTC).timestamp()
        return Device(
            self.folder / str(number), load_collections(self.file), now, transport,
            randomness=SystemRandomSource(),
        )  # fmt: skip

    def counted(self) -> int:
        with closing(open_store(self.store)) as opened:
            (series,) = load_catalog(opened).series.values()
            return sum(opened.report_counts(series).values())


@pytest.fixture
def deployed(tmp_path: Path) -> Deployed:
    made = Deployed(tmp_path)
    today = datetime.now(UTC).date()
    dates = {"from": today, "until": today.replace(year=today.year + 1)}
    made.file.write_text(definitions_text(theme={"unit": "user", **dates}))
    assert run(["init", "--store", made.store, "--yes"]) == 0
    assert run(["collections", "push", str(made.file), "--store", made.store]) == 0
    line = ["relay-keys", "create", "--out", str(tmp_path / "relay.keys"), "--store", made.store]
    assert run(line) == 0
    return made


def post_garbage(server: Server, key_id: int) -> requests.Response:
    """Send what names a key and does not open."""
    body = bytes([key_id]) + bytes.fromhex("002000010003") + bytes(range(1, 97))
    return server.ask("POST", "/v1/ohttp", data=body, headers={"Content-Type": REQUEST_TYPE})


def test_each_counts_once_and_neither_log_says_who_sent_what(deployed: Deployed) -> None:
    """Replies are lost, and the server is killed; the relay sees lengths that are all alike."""
    port = free_port()
    server = Server(deployed.store, deployed.folder, port=port)
    log = RelayLog(f"http://127.0.0.1:{port}/v1/ohttp", loses_every=5)
    with relay(log) as url:
        devices = [deployed.device(number, url) for number in range(PEOPLE)]
        for number, device in enumerate(devices):
            if number == PEOPLE // 2:
                server.kill()
            device.record()
            device.client.flush()
        server = Server(deployed.store, deployed.folder, port=port)
        server.wait_until_open()
        for _ in range(4):
            for device in devices:
                device.client.flush()
        waiting = [device.state.waiting(device.clock.now()) for device in devices]
        pseudonyms = [each.pseudonym for device in devices for each in device.stored]
        for device in devices:
            device.stop()
    text, code = server.log_text(), server.stop()

    assert code == 0
    assert waiting == [0] * PEOPLE
    assert deployed.counted() == PEOPLE
    assert {len(body) for _, _, _, body in log.requests} == {7 + 32 + 1280 + 16}
    assert len(set(log.replies)) == 1
    assert not any(each in body for _, _, _, body in log.requests for each in pseudonyms)
    assert all("Authorization" not in headers for _, _, headers, _ in log.requests)
    assert len({body for _, _, _, body in log.requests}) == len(log.requests)  # a retry, too
    assert not any(each.hex() in text for each in pseudonyms)


def test_reports_and_row_closes_are_relayed_with_the_pool_stopped(deployed: Deployed) -> None:
    """So are the keys, for whoever compares them."""
    with Server(deployed.store, deployed.folder) as server:
        log = RelayLog(f"{server.url}/v1/ohttp")
        with stopped(server.analysis()), relay(log) as url:
            device = deployed.device(0, url)
            device.record()
            device.client.flush()
            waiting = device.state.waiting(device.clock.now())
            (stored,) = device.stored
            name = {
                "fingerprint": stored.fingerprint, "pseudonym": encode_base64(stored.pseudonym)
            }  # fmt: skip
            closed = inner_status(server, deployed, ROWS_PATH, json.dumps(name).encode(), JSON_TYPE)
            keys = server.ask("GET", "/v1/ohttp-keys").content
            device.stop()

    assert (waiting, deployed.counted()) == (0, 1)
    assert closed == 204
    assert decode_configs(keys) == deployed.keys


def inner_status(server: Server, deployed: Deployed, path: str, content: bytes, kind: str) -> int:
    """Return the status of the reply within the encapsulation; that of the gateway if none is."""
    plain = Request("POST", path, (("content-type", kind),), content).encode()
    sealed, exchange = seal_request(deployed.keys[0], plain)
    headers = {"Content-Type": REQUEST_TYPE}
    reply = server.ask("POST", "/v1/ohttp", data=sealed, headers=headers)
    if not reply.ok:
        return reply.status_code
    return Response.decode(exchange.open(reply.content)).status


@pytest.mark.parametrize(
    ("connections", "size"), [(GARBAGE_CONNECTIONS, GARBAGE_BYTES), (8, MAX_BODY)]
)
def test_garbage_refuses_no_honest_request(deployed: Deployed, connections: int, size: int) -> None:
    """However long it is: what does not open takes no place of what devices send."""
    (key,) = deployed.keys
    with (
        Server(deployed.store, deployed.folder) as server,
        garbage(server.port, key.key_id, connections, size),
    ):
        server.wait_until_open()
        statuses = [
            inner_status(server, deployed, REPORTS_PATH, b"no batch", BINARY_TYPE)
            for _ in range(40)
        ]

    assert statuses == [400] * 40  # each was opened, and judged by the intake


def test_what_is_no_reply_of_the_gateway_leaves_reports_where_they_are(deployed: Deployed) -> None:
    log = RelayLog("http://127.0.0.1:9/nobody")
    with relay(log) as url, Server(deployed.store, deployed.folder) as server:
        device = deployed.device(0, url)
        device.record()
        for gateway in ("http://127.0.0.1:9/nobody", f"{server.url}/readyz", f"{server.url}/docs"):
            log.gateway = gateway
            device.client.flush()
            assert device.state.waiting(device.clock.now()) == 1, gateway
        run(["relay-keys", "retire", "1", "--store", deployed.store])
        log.gateway = f"{server.url}/v1/ohttp"
        wait_until(lambda: KEY_PROBLEM in post_garbage(server, key_id=1).text)  # within a second
        device.client.flush()
        assert device.state.waiting(device.clock.now()) == 1
        assert "ship the file" in str(device.client.explain("theme"))
        device.stop()
    assert deployed.counted() == 0


def test_the_relay_for_development_says_what_it_is(deployed: Deployed) -> None:
    command = [sys.executable, "-m", "veilcount_aggregator", "relay", "serve", "--port", "0"]
    with Server(deployed.store, deployed.folder) as server:
        refused = subprocess.run(
            [*command, "--to", server.url], capture_output=True, text=True, check=False
        )
        served = subprocess.Popen(
            [*command, "--to", server.url, "--dev-only"], stdout=subprocess.PIPE, text=True
        )
        assert served.stdout is not None
        with served.stdout:
            line = served.stdout.readline()
            device = deployed.device(0, line.split()[2].rstrip(","))
            device.record()
            device.client.flush()
            device.stop()
        served.terminate()
        served.wait(20)

    assert refused.returncode == 2
    assert "somebody else runs it" in refused.stderr
    assert deployed.counted() == 1
