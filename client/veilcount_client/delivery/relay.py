"""Requests through a relay: encrypted to the server's gateway, so that no one party knows both.

The relay sees an address and no content; the gateway the content and no address [RFC 9458]. Keys
come with the app and are never fetched: a key that one person alone is given would join all of
their reports. Whatever is no reply of the gateway leaves reports where they are.

Every request tries the keys anew, in the order of the app's file. Were it remembered which one the
gateway knows, a server that answers "unknown key" to one row would recognize the device's other
rows by the key that they are encrypted to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from veilcount_shared.errors import ObliviousError
from veilcount_shared.oblivious_http.binary_http import Request, Response
from veilcount_shared.oblivious_http.encapsulation import (
    REQUEST_TYPE,
    RESPONSE_TYPE,
    ObliviousExchange,
    seal_request,
)
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM, KeyConfig
from veilcount_shared.wire import BINARY_TYPE

from .transport import MAX_REPLY, OK, HttpTransport, Reply, problem_document

if TYPE_CHECKING:
    from .deadline import Deadline

SIZE = 1280  # requests are padded to multiples of it: a body of one report takes one
OVERHEAD = 4096  # bytes of a reply beyond its own
KEY_STATUSES = frozenset({400, 401})


class NoGatewayReply(Exception):
    """The relay, or something on the way, answered in the gateway's place."""


class KeyRetired(NoGatewayReply):
    """The gateway has none of the keys any more: the app has to ship another one.

    This reply is not encrypted: a relay can forge it, and gains only that reports wait.
    """


class RelayTransport(HttpTransport):
    """Sends each request encapsulated, afresh each time, to a relay."""

    def __init__(
        self,
        relay: str,
        keys: Sequence[KeyConfig],
        key: str | None,
        now: Callable[[], float],
        announced: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Remember the relay and the gateway's keys, the newest first; and the app's key."""
        super().__init__(relay, None, now, announced)
        self._keys, self._device_key = tuple(keys), key

    def request(
        self,
        method: str,
        path: str,
        body: bytes,
        content_type: str = BINARY_TYPE,
        most: int = MAX_REPLY,
    ) -> Reply:
        """Return the gateway's reply to one request, under the first key that it knows."""
        fields = [("content-type", content_type)]
        if self._device_key:
            fields.append(("authorization", f"Bearer {self._device_key}"))
        plain = Request(method, path, tuple(fields), body).encode()
        with self._deadline() as deadline:  # one for all keys
            for config in self._keys:
                sealed, exchange = seal_request(config, padded(plain))
                reply = self._relay(deadline, config, sealed, most + OVERHEAD)
                if not _is_key_unknown(reply):
                    return _open(reply, exchange)
        raise KeyRetired

    def _relay(self, deadline: Deadline, config: KeyConfig, sealed: bytes, most: int) -> Reply:
        """Return the relay's reply to one encapsulated request."""
        try:
            return self._exchange(
                deadline, "POST", "", sealed, content_type=REQUEST_TYPE, most=most
            )
        except Exception as error:
            if config is self._keys[0]:
                raise
            # Under an earlier key it was read: no failure to connect may count as unsent.
            raise NoGatewayReply(type(error).__name__) from error


def padded(plain: bytes) -> bytes:
    """Return a request with zero bytes up to the next of its lengths."""
    return plain + bytes(-len(plain) % SIZE)


def _open(reply: Reply, exchange: ObliviousExchange) -> Reply:
    """Return the gateway's reply, decrypted."""
    if reply.status != OK or reply.headers.get("Content-Type") != RESPONSE_TYPE:
        raise NoGatewayReply(f"{reply.status}")
    try:
        inner = Response.decode(exchange.open(reply.content))
    except ObliviousError as error:
        raise NoGatewayReply("changed on the way") from error
    headers = {name.title(): value for name, value in inner.fields}
    return Reply(inner.status, headers, inner.content)


def _is_key_unknown(reply: Reply) -> bool:
    """Whether the gateway, or a relay in its name, does not know the key."""
    return reply.status in KEY_STATUSES and problem_document(reply).get("type") == KEY_PROBLEM
