"""The gateway leads to the endpoints of devices alone, and opens nothing that was changed."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.gateway_keys import (
    KIND,
    create_gateway_key,
    load_gateway_keys,
    retire_gateway_key,
)
from veilcount_serving.errors import SettingsError
from veilcount_shared.oblivious_http import binary_http
from veilcount_shared.oblivious_http.encapsulation import REQUEST_TYPE, RESPONSE_TYPE, seal_request
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM, KeyConfig, decode_configs
from veilcount_shared.problem_details import TYPE_PREFIX
from veilcount_shared.report import Batch
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import (
    BINARY_TYPE,
    JSON_TYPE,
    decode_verdicts,
    encode_base64,
    encode_binary,
)

from ..aggregator.web.api.deployment_fixtures import FILE, Deployment, Response, deployment
from ..aggregator.web.api.gateway_fixtures import wsgi_gateway
from ..aggregator.web.dashboard.page_fixtures import logged_in

PATH = "/v1/ohttp"


@dataclass
class Gateway:
    deployed: Deployment

    @property
    def config(self) -> KeyConfig:
        return load_gateway_keys(self.deployed.aggregator.store)[0].config

    def post(self, sealed: bytes) -> Response:
        return self.deployed.ask("POST", PATH, sealed, kind=REQUEST_TYPE)

    def ask(
        self, method: str, path: str, content: bytes = b"", key: str = "", kind: str = BINARY_TYPE
    ) -> binary_http.Response:
        """Return the inner response to an inner request."""
        fields = [("content-type", kind)] + [("authorization", f"Bearer {key}")] * bool(key)
        plain = binary_http.Request(method, path, tuple(fields), content).encode()
        sealed, exchange = seal_request(self.config, plain)
        reply = self.post(sealed)
        assert (reply.status, reply.headers["Content-Type"]) == (200, RESPONSE_TYPE), reply.body
        assert (len(reply.body) - 32) % 512 == 0
        return binary_http.Response.decode(exchange.open(reply.body))

    def verdict(self, name: str = "alone") -> Verdict:
        body = encode_binary(Batch((self.deployed.report(name),)))
        return Verdict(*decode_verdicts(self.ask("POST", "/v1/reports", body).content, 1))


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with deployment(tmp_path, FILE) as made:
        create_gateway_key(made.aggregator.store, made.clocks.now)
        made.aggregator.catalog_cache.refresh()
        yield Gateway(made)


def test_pages_and_metrics_name_the_route(gateway: Gateway) -> None:
    """Counted are requests that were accepted, and nothing that is of one report."""
    made = gateway.deployed
    for _ in range(3):
        assert gateway.verdict() is Verdict.COUNTED
    assert gateway.ask("POST", "/v1/reports", b"no batch").status >= 400
    for _ in range(2):
        assert made.verdicts(made.report("alone")) == [Verdict.COUNTED]
    made.aggregator.flush()
    metrics = made.ask("GET", "/metrics", key=made.key(Role.ANALYST)).body.decode()
    page = logged_in(made).get("/operations").text

    assert "veilcount_relayed_total{} 3\n" in metrics
    assert "60.00% of 5 accepted requests with reports came through a relay" in page


def test_what_is_not_handed_on_is_counted_by_its_reason(gateway: Gateway) -> None:
    sealed, _ = seal_request(gateway.config, b"no request")
    gateway.post(sealed)
    gateway.post(sealed[:-1] + b"x")
    gateway.post(sealed[:20])
    gateway.post(b"\xff" + sealed[1:])
    gateway.post(bytes(3 << 20))
    gateway.ask("GET", "/v1/keys")
    gateway.deployed.ask("GET", PATH)
    made = gateway.deployed
    made.aggregator.flush()
    metrics = made.ask("GET", "/metrics", key=made.key(Role.ANALYST)).body.decode()
    name = "veilcount_gateway_refused_total"
    refused = dict(re.findall(name + r'\{reason="([\w-]+)"\} (\d+)', metrics))

    assert {reason: int(number) for reason, number in refused.items()} == {
        "content": 1, "encapsulation": 2, "gateway-key": 1, "too-large": 1, "not-found": 1,
        "wrong-method": 1,
    }  # fmt: skip


def test_a_report_counts_once_however_often_its_bytes_come(gateway: Gateway) -> None:
    report = gateway.deployed.report("alone")
    body = encode_binary(Batch((report,)))
    plain = binary_http.Request("POST", "/v1/reports", (("content-type", BINARY_TYPE),), body)
    sealed, exchange = seal_request(gateway.config, plain.encode())
    verdicts: list[str] = []
    for _ in range(2):
        inner = binary_http.Response.decode(exchange.open(gateway.post(sealed).body))
        verdicts += decode_verdicts(inner.content, 1)

    assert verdicts == [Verdict.COUNTED, Verdict.DUPLICATE]
    assert gateway.deployed.counted("alone") == 1


def test_a_row_is_closed_through_it(gateway: Gateway) -> None:
    report = gateway.deployed.report("theme")
    gateway.deployed.verdicts(report)
    name = {"fingerprint": report.fingerprint, "pseudonym": encode_base64(report.pseudonym)}
    body = json.dumps(name | {"padding": "0" * 900}).encode()

    assert gateway.ask("POST", "/v1/rows/close", body, kind=JSON_TYPE).status == 204
    assert gateway.ask("POST", "/v1/rows/close", body).status == 415
    assert gateway.deployed.verdicts(report) == [Verdict.DUPLICATE]


def test_it_is_no_way_to_anything_else(gateway: Gateway) -> None:
    """Not with an admin's key, nor by another host, another spelling or itself."""
    key = gateway.deployed.key(Role.ADMIN)
    for method, path in (
        ("GET", "/v1/keys"), ("POST", "/v1/keys"), ("GET", "/v1/collections"), ("GET", "/"),
        ("GET", "/v1/reports"), ("GET", "/metrics"), ("POST", "/v1/reports/../keys"),
        ("POST", "/v1/reports?x=1"), ("POST", "https://elsewhere.example.org/v1/reports"),
        ("POST", "//elsewhere.example.org/v1/reports"), ("POST", "/v1/ohttp"),
        ("DELETE", "/v1/keys/1"), ("CONNECT", "elsewhere.example.org:443"),
        ("DELETE", "/v1/rows/close"), ("POST", "/v1/rows/close/"), ("POST", "/v1/rows/close?x=1"),
        ("POST", "/v1/rows/close/../../keys"), ("POST", "/v1/rows/%2e%2e/keys"),
        ("POST", "/v1/reports#x"), ("POST", "/v1/reports/"), ("POST", "/v1/reports;x"),
        ("POST", ""),
        ("post", "/v1/reports"), ("POST", "/v1/ohttp-keys"), ("PRI", "*"), ("POST", "/V1/reports"),
        ("POST", "/v1/reports HTTP/1.1\r\nHost: elsewhere.example.org\r\n\r\nGET /v1/keys"),
    ):  # fmt: skip
        assert gateway.ask(method, path, key=key, kind="application/json").status == 404, path


def test_nothing_that_was_changed_reaches_the_intake(gateway: Gateway) -> None:
    body = encode_binary(Batch((gateway.deployed.report("alone"),)))
    plain = binary_http.Request("POST", "/v1/reports", (("content-type", BINARY_TYPE),), body)
    sealed, _ = seal_request(gateway.config, plain.encode())
    for place in range(len(sealed)):
        changed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        reply = gateway.post(changed)
        assert reply.status == 400, place
        assert reply.problem in {"bad-request", KEY_PROBLEM}
    assert gateway.post(b"").problem == "bad-request"
    assert gateway.post(bytes(3 << 20)).problem == "too-large"
    assert gateway.deployed.ask("POST", PATH, sealed, kind="text/plain").problem == "unsupported"
    assert gateway.deployed.ask("GET", PATH).problem == "wrong-method"
    assert gateway.deployed.counted("alone") == 0


def test_garbage_within_a_sound_encapsulation_is_refused(gateway: Gateway) -> None:
    for plain in (b"", b"\2", b"\0\4POST", b"\0" + b"\xff" * 40, b"\1\x40\xc8"):
        sealed, _ = seal_request(gateway.config, plain)
        assert gateway.post(sealed).problem == "bad-request"
    inner = gateway.ask("POST", "/v1/reports", b"VC")
    assert inner.status == 400
    assert TYPE_PREFIX.encode() in inner.content


SMUGGLED = (
    ("host", "elsewhere.example.org"), ("transfer-encoding", "chunked"), ("content-length", "1"),
    ("content-encoding", "gzip"), ("cookie", "session=1"), ("connection", "upgrade"),
    ("x-forwarded-for", "192.0.2.1"), ("x-forwarded-proto", "http"), ("expect", "100-continue"),
    ("x-veilcount-source-class", "trusted"), ("x-http-method-override", "DELETE"),
)  # fmt: skip


def test_no_field_of_a_device_but_two_reaches_the_server(gateway: Gateway) -> None:
    """Neither lengths, codings, hosts, sessions nor a network's class can be claimed within."""
    body = encode_binary(Batch((gateway.deployed.report("alone"),)))
    fields = (("content-type", BINARY_TYPE), ("Authorization", "Bearer x"), *SMUGGLED)
    request = binary_http.Request(
        "POST", "/v1/reports", fields, body, scheme="http", authority="elsewhere.example.org"
    )
    handed_on: list[dict[str, object]] = []

    def onward(environ: dict[str, object], start: Callable[..., object]) -> list[bytes]:
        handed_on.append(environ)
        start("200 OK", [("Set-Cookie", "a=b"), ("Location", "/"), ("Content-Type", "text/plain")])
        return [b"ok"]

    store = gateway.deployed.aggregator.store
    sealed, exchange = seal_request(gateway.config, request.encode())
    outer = {
        "REQUEST_METHOD": "POST", "PATH_INFO": PATH, "CONTENT_TYPE": REQUEST_TYPE,
        "CONTENT_LENGTH": str(len(sealed)), "wsgi.input": io.BytesIO(sealed),
        "REMOTE_ADDR": "192.0.2.9", "HTTP_COOKIE": "of=relay", "HTTP_X_FORWARDED_FOR": "192.0.2.7",
        "HTTP_X_VEILCOUNT_SOURCE_CLASS": "trusted",
    }  # fmt: skip
    reply = b"".join(
        wsgi_gateway(onward, load_gateway_keys(store))(outer, lambda *_: lambda _: None)
    )
    (environ,) = handed_on
    claimed = {name for name in environ if name.startswith("HTTP_")}

    assert claimed == {"HTTP_AUTHORIZATION"}
    assert "REMOTE_ADDR" not in environ
    assert environ["CONTENT_LENGTH"] == str(len(body))
    assert environ["SERVER_NAME"] == "localhost"
    shown = binary_http.Response.decode(exchange.open(reply)).fields
    assert shown == (("content-type", "text/plain"),)


def test_a_report_replayed_by_the_hundred_counts_once(gateway: Gateway) -> None:
    """The same encapsulation, and the same report sealed afresh, in any order."""
    body = encode_binary(Batch((gateway.deployed.report("alone"),)))
    plain = binary_http.Request("POST", "/v1/reports", (("content-type", BINARY_TYPE),), body)
    sealed, _ = seal_request(gateway.config, plain.encode())
    for place in range(200):
        again, _ = seal_request(gateway.config, plain.encode() + bytes(place))
        assert gateway.post(sealed if place % 2 else again).status == 200

    assert gateway.deployed.counted("alone") == 1


def test_lengths_within_are_no_bombs(gateway: Gateway) -> None:
    """A length beyond the message is refused before anything of it is allocated."""
    start = binary_http.Request("POST", "/v1/reports").encode()[:-3]
    for length in (b"\xff" * 8, b"\xbf" + b"\xff" * 3, b"\x7f\xff"):
        for sections in (length, b"\0" + length, b"\0\0" + length):
            sealed, _ = seal_request(gateway.config, start + sections)
            assert gateway.post(sealed).problem == "bad-request"
    compressed = gzip.compress(bytes(1 << 20))
    assert gateway.ask("POST", "/v1/reports", compressed).status == 400


def test_an_id_is_not_reused_soon(gateway: Gateway) -> None:
    """A device with a retired key hears of it, whatever keys were made since."""
    store, now = gateway.deployed.aggregator.store, gateway.deployed.clocks.now
    first = gateway.config
    sealed, _ = seal_request(first, b"")
    for days in range(1, 4):
        made = create_gateway_key(store, now + timedelta(days=days))
        retire_gateway_key(store, made.key_id - 1, now)

        assert made.key_id == first.key_id + days
        assert [each.key_id for each in load_gateway_keys(store)] == [made.key_id]
    gateway.deployed.aggregator.catalog_cache.refresh()
    assert gateway.post(sealed).problem == KEY_PROBLEM
    private = [json.loads(each)["private"] for each in store.records(KIND).values()]
    assert sum(map(bool, private)) == 1


def test_two_keys_are_valid_and_a_retired_one_is_named(gateway: Gateway) -> None:
    store, now = gateway.deployed.aggregator.store, gateway.deployed.clocks.now
    old = gateway.config
    create_gateway_key(store, now.replace(year=now.year + 1))
    gateway.deployed.aggregator.catalog_cache.refresh()
    published = gateway.deployed.ask("GET", "/v1/ohttp-keys")
    sealed, _ = seal_request(old, b"")

    assert decode_configs(published.body) == [gateway.config, old]
    assert gateway.config != old
    assert gateway.verdict() is Verdict.COUNTED
    assert gateway.post(sealed).problem == "bad-request"
    with pytest.raises(SettingsError, match="retire one first"):
        create_gateway_key(store, now)
    retire_gateway_key(store, old.key_id, now)
    gateway.deployed.aggregator.catalog_cache.refresh()
    assert gateway.post(sealed).problem == KEY_PROBLEM
    with pytest.raises(SettingsError, match="no such key"):
        retire_gateway_key(store, old.key_id, now)


def test_a_server_without_keys_has_no_gateway(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as made:
        assert made.ask("GET", "/v1/ohttp-keys").problem == "not-found"
        assert made.ask("POST", PATH, bytes(80), kind=REQUEST_TYPE).problem == KEY_PROBLEM
