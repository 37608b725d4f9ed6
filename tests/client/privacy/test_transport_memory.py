"""No reply changes a transport: whatever one hears for a row, it sends all others as before.

A transport is shared by all rows of a device. Anything in it that a reply can change, a server can
write with one row and read with the next. So every kind of reply is given to every transport, and
all that it holds, however deep, is compared before and after.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from types import FunctionType, MethodType, ModuleType
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.delivery.relay import RelayTransport
from veilcount_client.delivery.transport import HttpTransport, Reply, Transport
from veilcount_client.testing.doubles import RecordingTransport, WsgiTransport
from veilcount_shared.oblivious_http.encapsulation import RESPONSE_TYPE
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM
from veilcount_shared.problem_details import UNKNOWN_VERSION, Problem
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import encode_binary, encode_verdicts

from ...aggregator.web.api.gateway_fixtures import wsgi_gateway
from ..delivery import server_fixtures
from ..delivery.server_fixtures import Request, Server, reply, serving
from .relayed_wire import SimulatedRelayTransport, gateway_key, one_memory_of_keys, wsgi_reply

BODY = encode_binary(Batch((Report("0" * 64, 0, 0, bytes(16), 0, b"\x01"),)))
KEYS = gateway_key(2), gateway_key(1)
PROBLEM = {"Content-Type": "application/problem+json"}
JSON = {"Content-Type": "application/json"}
STATUSES = 200, 204, 301, 400, 401, 403, 404, 408, 410, 413, 415, 422, 429, 500, 502, 503, 504


@dataclass(frozen=True)
class Answer:
    """What comes back for one request."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_cut: bool = False  # the connection ends within the reply
    is_sealed: bool = False  # by the gateway, where there is one

    def start(self) -> bytes:
        """Return the bytes on the socket."""
        raw = reply(self.status, self.body, dict(self.headers))
        return raw[: len(raw) // 2] if self.is_cut else raw


def answers() -> Iterator[Answer]:
    """Yield every kind of reply, of the server and of whoever stands in its place."""
    document = b'{"type": "%s"}' % KEY_PROBLEM.encode()
    for is_sealed in (False, True):
        for status in STATUSES:
            yield Answer(status, is_sealed=is_sealed)
            yield Answer(status, PROBLEM, b"{}", is_sealed=is_sealed)
        for seconds in ("0", "1", "301", "1000000", "Fri, 01 Jan 2100 00:00:00 GMT", "?"):
            for status in (200, 429, 503):
                yield Answer(status, {"Retry-After": seconds}, is_sealed=is_sealed)
        for verdict in Verdict:
            yield Answer(200, JSON, encode_verdicts((verdict,)), is_sealed=is_sealed)
        yield Answer(200, JSON, b'{"verdicts": ["unheard-of"]}', is_sealed=is_sealed)
        newer = Problem(UNKNOWN_VERSION, "").body
        yield Answer(400, PROBLEM, newer, is_sealed=is_sealed)
        for header in ({"Deprecation": "@1800000000"}, {"Sunset": "Fri, 01 Jan 2100 00:00:00 GMT"}):
            yield Answer(200, JSON | header, encode_verdicts([""]), is_sealed=is_sealed)
        yield Answer(200, JSON | {"Set-Cookie": "who=you"}, b"[" * 9999, is_sealed=is_sealed)
    for status in (400, 401):
        yield Answer(status, PROBLEM, document)
    for body in (b"", b"garbage", bytes(600)):
        yield Answer(200, {"Content-Type": RESPONSE_TYPE}, body)
    yield Answer(200, JSON, encode_verdicts((Verdict.COUNTED,)), is_cut=True)


@dataclass
class Network:
    """Gives the same answer to every request, on a socket or without one."""

    answer: Answer = field(default_factory=lambda: Answer(200))

    def behave(self, server: Server, connection: socket.socket, request: Request) -> None:
        connection.sendall(self._outer(request.body).start())
        if self.answer.is_cut:
            raise ConnectionAbortedError

    def serve(self, environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        if self.answer.is_cut:
            raise ConnectionAbortedError
        start(f"{self.answer.status} X", list(self.answer.headers.items()))
        return [self.answer.body]

    def relay(self, _method: str, _path: str, body: bytes, _kind: str, _most: int) -> Reply:
        if self.answer.is_cut:
            raise ConnectionAbortedError
        outer = self._outer(body)
        return Reply(outer.status, outer.headers, outer.body)

    def _outer(self, body: bytes) -> Answer:
        """Return the answer as it travels: sealed, if it is the gateway's."""
        if not self.answer.is_sealed or body == BODY:
            return self.answer
        gateway = wsgi_gateway(self.serve, KEYS)
        return Answer(*wsgi_reply(gateway, "POST", "/v1/ohttp", body, "message/ohttp-req"))


CONFIGS = [key.config for key in KEYS]
TRANSPORTS: dict[str, Callable[[str, Network], Transport]] = {
    "http": lambda url, _: HttpTransport(url, "a key", _now),
    "relay": lambda url, _: RelayTransport(url, CONFIGS, "a key", _now),
    "relay, one key": lambda url, _: RelayTransport(url, CONFIGS[:1], None, _now),
    "wsgi": lambda _, network: WsgiTransport(network.serve, None, _now),
    "recording": lambda url, _: RecordingTransport(HttpTransport(url, None, _now)),
    "simulated relay": lambda _, network: SimulatedRelayTransport(network.relay, KEYS, _now),
}


def _now() -> float:
    return 1_800_000_000.0


def changes(name: str, plant: Callable[[], AbstractContextManager[object]]) -> list[Answer]:
    """Return the replies that change a transport."""
    network = Network()
    with serving(network.behave) as server, plant():
        transport = TRANSPORTS[name](server.url, network)
        return [answer for answer in answers() if _is_changed(transport, network, answer)]


def _is_changed(transport: Transport, network: Network, answer: Answer) -> bool:
    network.answer = answer
    before = snapshot(transport)
    transport.send(BODY, 1)
    if isinstance(transport, RecordingTransport):
        transport.batches.clear()  # what it sent, whatever came back
    return snapshot(transport) != before


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy stands before the loopback."""
    monkeypatch.setenv("NO_PROXY", server_fixtures.HOST)


@pytest.mark.parametrize("name", TRANSPORTS)
def test_no_reply_changes_a_transport(name: str) -> None:
    assert changes(name, nullcontext) == []


# -- what a transport holds ------------------------------------------------------------------------


def snapshot(value: object, places: dict[int, tuple[int, object]] | None = None) -> object:
    """Return all that a value holds, however deep, as data that can be compared."""
    places = {} if places is None else places
    if value is None or isinstance(value, str | bytes | int | float | Enum):
        return value
    if id(value) in places:
        return "again", places[id(value)][0]
    places[id(value)] = len(places), value  # alive, so that no other gets its id
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return name, [snapshot(part, places) for part in _parts(value)]


def _parts(value: object) -> list[object]:
    """Return what a value consists of; in order, since an order is a memory too."""
    match value:
        case Mapping():
            parts = [part for item in value.items() for part in item]
        case list() | tuple():
            parts = list(value)
        case set() | frozenset():
            parts = sorted(value, key=repr)
        case ModuleType() | type():
            parts = _own_variables(value)
        case FunctionType():
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            parts = [value.__qualname__, *cells, value.__defaults__, vars(value)]
        case MethodType():
            parts = [value.__self__, value.__func__]
        case _:
            parts = _attributes(value)
    return parts


def _attributes(value: object) -> list[object]:
    """Return what an object and its classes hold; without attributes, how it is written."""
    kinds = type(value).__mro__
    slots = [name for kind in kinds for name in getattr(kind, "__slots__", ())]
    parts = [getattr(value, name, None) for name in slots]
    if hasattr(value, "__dict__"):
        return [*parts, vars(value), *kinds]
    return parts or [re.sub(" at 0x[0-9a-f]+", "", repr(value))]


def _own_variables(place: ModuleType | type) -> list[object]:
    """Return the data and functions of a module or class of ours; of any other, its name."""
    name = place.__name__ if isinstance(place, ModuleType) else place.__module__
    if not name.startswith("veilcount_"):
        return [place.__name__]
    return [
        (name, value)
        for name, value in vars(place).items()
        if not isinstance(value, ModuleType) and not re.fullmatch("__.*__", name)
    ]


@contextmanager
def a_memory_of_delays() -> Iterator[None]:
    """Wrong: the longest Retry-After is kept, two levels below the transport."""

    def read(transport: Any, answer: Reply, reports: int) -> Any:
        outcome = original(transport, answer, reports)
        delays = transport.__dict__.setdefault("_kept", {"delays": [0.0]})["delays"]
        delays[0] = max(delays[0], getattr(outcome, "seconds", 0.0))
        return outcome

    original = HttpTransport._read
    with patch.object(HttpTransport, "_read", read):
        yield


@contextmanager
def a_memory_in_a_closure() -> Iterator[None]:
    """Wrong: the statuses are kept by a function that every transport shares."""
    statuses: list[int] = []

    def read(transport: Any, answer: Reply, reports: int) -> Any:
        statuses.append(answer.status)
        return original(transport, answer, reports)

    original = HttpTransport._read
    with patch.object(HttpTransport, "_read", read):
        yield


@contextmanager
def a_memory_of_the_class() -> Iterator[None]:
    """Wrong: the last status is kept by the class."""

    def read(transport: Any, answer: Reply, reports: int) -> Any:
        HttpTransport._last = answer.status  # type: ignore[attr-defined] # planted
        return original(transport, answer, reports)

    original = HttpTransport._read
    with (
        patch.object(HttpTransport, "_read", read),
        patch.object(HttpTransport, "_last", 0, create=True),
    ):
        yield


@pytest.mark.parametrize(
    ("name", "plant"),
    [
        ("relay", one_memory_of_keys),
        ("simulated relay", one_memory_of_keys),
        ("http", a_memory_of_delays),
        ("relay", a_memory_of_delays),
        ("recording", a_memory_of_delays),
        ("wsgi", a_memory_of_the_class),
        ("http", a_memory_in_a_closure),
    ],
)
def test_a_planted_memory_is_found(
    name: str, plant: Callable[[], AbstractContextManager[object]]
) -> None:
    assert changes(name, plant)
