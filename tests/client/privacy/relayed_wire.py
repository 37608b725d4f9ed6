"""A relay and a gateway that write down all they see of a device's real encapsulated requests.

The device seals each request with the client's own transport; the relay may do to it what it likes;
the server's own gateway opens it and seals the reply. Nothing is simulated but the sockets, so a
request takes no time: whoever has both logs joins them by the instant.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any, NamedTuple
from unittest.mock import patch

from veilcount_aggregator.records.gateway_keys import GatewayKey
from veilcount_aggregator.web.api import gateway as gateway_module
from veilcount_client.delivery import padded_bodies, uploader
from veilcount_client.delivery import relay as relay_module
from veilcount_client.delivery.relay import RelayTransport
from veilcount_client.delivery.transport import Delivered, Later, Outcome, Reply
from veilcount_shared.oblivious_http.binary_http import Request
from veilcount_shared.oblivious_http.encapsulation import open_request, seal_request
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM
from veilcount_shared.report import Batch
from veilcount_shared.wire import decode_binary, encode_binary, encode_verdicts

from ...aggregator.web.api.gateway_fixtures import wsgi_gateway
from ..device_fixtures import Wire, number

HEADER_BYTES, ENC_BYTES = 7, 32  # of an encapsulated request: key id and suite; ephemeral key


class RelayEntry(NamedTuple):
    """All that a relay sees of one request."""

    instant: float
    address: object
    outer: tuple[str, str, str]  # method, path, media type
    body: bytes
    status: int
    reply: int  # bytes

    @property
    def shape(self) -> tuple[object, ...]:
        """What is no ciphertext."""
        return self._replace(body=self.body[:HEADER_BYTES]), len(self.body)

    @property
    def enc(self) -> bytes:
        """The ephemeral key, which is in clear."""
        return self.body[HEADER_BYTES : HEADER_BYTES + ENC_BYTES]


def relay_view(log: Sequence[RelayEntry]) -> list[tuple[object, ...]]:
    """Return all that a relay's log says, once what is encrypted is left out.

    Of ciphertexts, it is which are the same: that is seen without a key.
    """
    first: dict[bytes, int] = {}
    return [(*each.shape, first.setdefault(each.enc, place)) for place, each in enumerate(log)]


def repeated(log: Sequence[RelayEntry]) -> int:
    """Return how many encapsulated keys occur again."""
    return len(log) - len({each.enc for each in log})


@cache
def gateway_key(key_id: int) -> GatewayKey:
    private = number("gateway", key_id).to_bytes(8, "big") * 4
    return GatewayKey(key_id, private.hex(), "2026-12-01", "2026-12-01")


#: of the keys that the app shipped to a device, the newest first: two, as during every rotation
KEY_IDS: Callable[[object], tuple[int, ...]] = lambda _: (2, 1)  # noqa: E731 - a table of one row
UNKNOWN_KEY = Later("unknown key")  # the gateway's reply, by an answer of the server
ACTIONS = ("forward", "drop", "lose the reply", "forge", "change the reply", "twice")


class KeyRefused(Exception):
    """The server pretends not to know the key of a request."""


class SimulatedRelayTransport(RelayTransport):
    """The client's own transport; its requests go to a function instead of a socket."""

    def __init__(
        self, relay: Callable[..., Reply], keys: Sequence[GatewayKey], now: Callable[[], float]
    ) -> None:
        super().__init__("http://relay", [key.config for key in keys], None, now)
        self._simulated_relay = relay

    def _deadline(self) -> Any:
        return nullcontext()  # no time passes

    def _exchange(
        self, deadline: Any, method: str, path: str, body: bytes, *, content_type: str, most: int
    ) -> Reply:
        return self._simulated_relay(method, path, body, content_type, most)


@dataclass
class RelayedWire(Wire):
    """The network and the server, with a relay and the gateway in between."""

    address: object = 0  # of the device: the relay alone sees it
    act: Callable[[int], str] = lambda _: "forward"  # what the relay does to the n-th request
    relay_log: list[RelayEntry] = field(default_factory=list)
    answer: Callable[[bytes, int], Outcome] | None = None  # the server's, if it chooses its own

    sealed_to: int = 0  # the id of the key of the request that the server answers

    def __post_init__(self) -> None:
        """Give the device its transport, with the keys that the app shipped."""
        self.keys = [gateway_key(key_id) for key_id in KEY_IDS(self.address)]
        self.route = SimulatedRelayTransport(self._relay, self.keys, self.clock.now)
        self.gateway = wsgi_gateway(self._serve, self.keys)

    def send(self, body: bytes, reports: int) -> Outcome:
        refused = self.mood()  # no network: nothing reaches the relay
        if refused is not None:
            return refused
        return self.route.send(body, reports)

    def _relay(self, method: str, path: str, body: bytes, kind: str, most: int) -> Reply:
        action = self.act(len(self.relay_log))
        reply = Reply(502, {}, b"")
        if action == "forge":
            document = b'{"type": "%s"}' % KEY_PROBLEM.encode()
            reply = Reply(400, {"Content-Type": "application/problem+json"}, document)
        elif action != "drop":
            for _ in range(1 + (action == "twice")):
                reply = self._ask_gateway(method, body, kind)
        seen = method, path, kind
        entry = (self.clock.now(), self.address, seen, body, reply.status, len(reply.content))
        self.relay_log.append(RelayEntry(*entry))
        assert len(reply.content) <= most
        if action == "lose the reply":
            raise ConnectionError("lost")
        if action == "change the reply":
            changed = reply.content[:-1] + bytes([reply.content[-1] ^ 1])
            return Reply(reply.status, reply.headers, changed)
        return reply

    def _ask_gateway(self, method: str, body: bytes, kind: str) -> Reply:
        """Hand a request on as a relay would: its body and nothing of whose it is."""
        plain, _ = open_request({key.key_id: key.secret for key in self.keys}, body)
        request = Request.decode(plain)
        rest = request.scheme, request.authority, request.fields, len(plain)
        self.marks = repr((body[:HEADER_BYTES], request.method, *rest)).encode()
        self.sealed_to = body[0]
        try:
            return Reply(*wsgi_reply(self.gateway, method, "/v1/ohttp", body, kind))
        except KeyRefused:
            keyless = wsgi_gateway(self._serve, ())
            return Reply(*wsgi_reply(keyless, method, "/v1/ohttp", body, kind))

    def _serve(self, environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        """Answer an opened request as the server chooses."""
        body = environ["wsgi.input"].read()
        answer = self.answer or super().send
        outcome = answer(body, len(decode_binary(body).reports))
        if isinstance(outcome, Delivered):
            start("200 OK", [("Content-Type", "application/json")])
            return [encode_verdicts(outcome.verdicts)]
        assert isinstance(outcome, Later)
        if outcome is UNKNOWN_KEY:
            raise KeyRefused
        if not outcome.why.isdecimal():
            raise ConnectionError(outcome.why)
        start(f"{outcome.why} Later", [("Retry-After", str(int(outcome.seconds)))])
        return [b""]


def wsgi_reply(
    app: Any, method: str, path: str, body: bytes, kind: str
) -> tuple[int, Mapping[str, str], bytes]:
    """Return the status, headers and content of a WSGI application's reply."""
    head: list[Any] = []
    environ = {
        "REQUEST_METHOD": method, "PATH_INFO": path, "CONTENT_TYPE": kind,
        "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body),
    }  # fmt: skip
    content = b"".join(app(environ, lambda status, headers: head.extend((status, headers))))
    return int(head[0][:3]), dict(head[1]), content


# -- planted leaks ---------------------------------------------------------------------------------


@contextmanager
def no_padding() -> Iterator[None]:
    """Wrong: neither a body nor what is encapsulated is padded."""

    def encode_padded(batch: Batch) -> bytes:
        return encode_binary(batch)

    with (
        patch.object(uploader, "encode_padded", encode_padded),
        patch.object(relay_module, "SIZE", 1),
    ):
        yield


def unpadded_replies() -> AbstractContextManager[object]:
    """Wrong: the gateway's replies have the length of their verdicts."""
    return patch.object(gateway_module, "REPLY_BYTES", 1)


@contextmanager
def one_encapsulation() -> Iterator[None]:
    """Wrong: a retry is the same encapsulated bytes again."""
    sealed: dict[bytes, Any] = {}

    def seal(config: Any, plain: bytes) -> Any:
        return sealed.setdefault(plain, seal_request(config, plain))

    with patch.object(relay_module, "seal_request", seal):
        yield


@contextmanager
def one_memory_of_keys() -> Iterator[None]:
    """Wrong, and once so: the transport remembers which key was unknown, and begins with another.

    The device that hears it retries its report, and everything else from then on, under that key.
    """

    def request(transport: Any, *arguments: Any, **options: Any) -> Reply:
        keys = transport._keys
        transport._keys = keys[:1]
        try:
            return original(transport, *arguments, **options)
        except relay_module.KeyRetired:
            keys = (*keys[1:], *keys[:1])
            raise
        finally:
            transport._keys = keys

    original = RelayTransport.request
    with patch.object(RelayTransport, "request", request):
        yield


def own_keys() -> AbstractContextManager[object]:
    """Wrong: each device was given another key."""
    return patch(f"{__name__}.KEY_IDS", lambda address: (number("own key", address) % 256,))


@contextmanager
def own_header() -> Iterator[None]:
    """Wrong: a field within the encrypted request is the device's own."""
    name = f"install-{next(_INSTALLS)}"

    def request(method: str, path: str, fields: Any, body: bytes) -> Request:
        return Request(method, path, (*fields, ("user-agent", name)), body)

    with patch.object(relay_module, "Request", request):
        yield


_INSTALLS = count()
assert padded_bodies.SIZES[0] < relay_module.SIZE  # a body of one report fits one request
