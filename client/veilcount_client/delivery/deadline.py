"""One deadline and one read budget for a whole HTTP exchange, from its first connection on.

A socket's timeout starts again with every byte, and `requests` has no other. A peer that sends a
byte now and then (of a header, a TLS record, a chunk's size, an interim response) would hold the
sending thread for ever. Here a timer shuts the sockets of an exchange down, which ends whatever
call waits on them.

Not covered: name resolution, which no timer interrupts (the resolver has timeouts of its own), and
the negotiation with a SOCKS proxy, where each step has the timeout to connect.

Interim responses, chunk sizes and their extensions, and trailers have no limit of their own in
`http.client` and urllib3. A peer that sends them as fast as it can would take all of a processor
until the deadline, and one line without an end all of the memory. No honest reply comes near it.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from functools import partial
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from ssl import SSLCertVerificationError
from threading import Lock, Timer
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError
from urllib3.util.connection import create_connection

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_READ = 256 << 10


class ReplyTooLong(OSError):
    """A reply was longer than any honest one."""


class ReadBudget:
    """How many bytes an exchange may still read, over all its connections and responses."""

    def __init__(self, most: int = MAX_READ) -> None:
        """Begin with all of it."""
        self._left = most

    def spend(self, size: int) -> None:
        """Subtract what was read; ReplyTooLong if the budget is exceeded."""
        self._left -= size
        if self._left < 0:
            raise ReplyTooLong("the reply is too long")


class _LimitedReader(RawIOBase):
    def __init__(self, raw: Any, budget: ReadBudget) -> None:
        self._raw, self._budget = raw, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        size: int | None = self._raw.readinto(buffer)
        self._budget.spend(size or 0)
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


def limited_response(budget: ReadBudget, *arguments: Any, **options: Any) -> HTTPResponse:
    """Make a response as `http.client` does, which reads within a budget."""
    response = HTTPResponse(*arguments, **options)
    response.fp = BufferedReader(_LimitedReader(response.fp.detach(), budget))
    return response


def is_unsent(error: Exception) -> bool:
    """Whether an exchange failed before its request can have been read by anybody."""
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    if isinstance(reason, NewConnectionError | ConnectTimeoutError):
        return True
    return bool(
        isinstance(reason, Exception)
        and reason.args
        and isinstance(reason.args[0], SSLCertVerificationError)
    )


class Deadline:
    """A time at which every watched socket is shut down; then leaving the context raises."""

    def __init__(self, seconds: float) -> None:
        """Prepare a deadline so many seconds from now."""
        self._ends = time.monotonic() + seconds
        self._lock = Lock()
        self._sockets: list[socket.socket] = []
        self._passed = False
        self.budget = ReadBudget()
        self._timer = Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        """Start the timer.

        From Python 3.12 on an interpreter that goes down starts no thread. It does not wait for
        ours either, but for the second that `atexit` gives them.
        """
        with suppress(RuntimeError):
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Release timer and sockets; TimeoutError if the deadline has passed.

        A socket that was shut down reads like one that its peer closed: to `http.client` that may
        be the end of headers or of a body, so nothing that was read then counts. An interrupt is
        left as it is.
        """
        self._timer.cancel()
        if self._timer.ident:
            self._timer.join()  # at once: cancelled, or only shutting down what it watches
        for watched in self._sockets:
            watched.close()
        late = error is not None and time.monotonic() >= self._ends  # the timer may wake later
        if (self._passed or late) and (error is None or isinstance(error, Exception)):
            raise TimeoutError("the exchange took too long") from error

    def remaining(self) -> float:
        """Return how many seconds are left; TimeoutError if none are."""
        seconds = self._ends - time.monotonic()
        if self._passed or seconds <= 0:
            raise TimeoutError("the exchange took too long")
        return seconds

    def watch(self, connected: socket.socket) -> None:
        """Shut a socket down at the deadline. A duplicate is kept: TLS detaches the original."""
        with self._lock:
            self.remaining()
            self._sockets.append(connected.dup())

    def _end(self) -> None:
        with self._lock:
            self._passed = True
            for watched in self._sockets:
                with suppress(OSError):  # its peer was faster
                    watched.shutdown(socket.SHUT_RDWR)


def session(deadline: Deadline) -> requests.Session:
    """Return a session whose connections the deadline watches, direct or through a proxy."""
    new_session, adapter = requests.Session(), _Adapter(deadline)
    new_session.mount("http://", adapter)
    new_session.mount("https://", adapter)
    return new_session


class _Adapter(HTTPAdapter):
    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        _guard(self.poolmanager, self._deadline)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return _guard(super().proxy_manager_for(proxy, **options), self._deadline)


# The classes that urllib3 would use are wrapped, whichever they are: a SOCKS proxy brings its own,
# and replacing those would bypass the proxy.


def _guard(manager: Any, deadline: Deadline) -> Any:
    """Have a pool manager of urllib3 make pools whose connections the deadline watches."""
    manager.pool_classes_by_scheme = {
        scheme: partial(_pool, pool, deadline)
        for scheme, pool in manager.pool_classes_by_scheme.items()
    }
    return manager


def _pool(kind: Any, deadline: Deadline, *arguments: Any, **options: Any) -> Any:
    pool = kind(*arguments, **options)
    pool.ConnectionCls = partial(_connection, pool.ConnectionCls, deadline)
    return pool


def _connection(kind: Any, deadline: Deadline, *arguments: Any, **options: Any) -> Any:
    connection = kind(*arguments, **options)
    connection._new_conn = partial(_open, connection, deadline)  # noqa: SLF001 - urllib3's hook
    connection.response_class = partial(limited_response, deadline.budget)
    connection._tunnel = partial(_tunnel, connection, deadline)  # noqa: SLF001 - http.client's
    return connection


def _open(connection: Any, deadline: Deadline) -> socket.socket:
    """Open the socket of a connection, and watch it."""
    original = type(connection)._new_conn  # noqa: SLF001 - likewise
    if original is HTTPConnection._new_conn:  # noqa: SLF001 - likewise
        opened = _connect(connection, deadline)
    else:  # through SOCKS: the proxy resolves the name, not we
        opened = original(connection)
    try:
        deadline.watch(opened)
    except BaseException:
        opened.close()
        raise
    return opened


def _tunnel(connection: Any, deadline: Deadline) -> None:
    """Request a tunnel of a proxy. After a reply that the deadline cut short no TLS begins."""
    type(connection)._tunnel(connection)  # noqa: SLF001 - likewise
    deadline.remaining()


def _connect(connection: Any, deadline: Deadline) -> socket.socket:
    """Connect as urllib3 does, but to all addresses of a host before one deadline."""
    host, port = connection._dns_host, connection.port  # noqa: SLF001 - the name, as it is resolved
    options = connection.socket_options

    def dial(address: str) -> socket.socket:
        seconds = min(connection.timeout, deadline.remaining())
        opened = create_connection((address, port), seconds, socket_options=options)
        opened.settimeout(connection.timeout)  # from here on the timer ends it
        return opened

    try:
        *earlier_addresses, last = _addresses(host, port)
        for address in earlier_addresses:
            with suppress(OSError):
                return dial(address)
        return dial(last)
    except TimeoutError as error:
        raise ConnectTimeoutError(connection, f"{host} does not answer") from error
    except OSError as error:
        raise NewConnectionError(connection, f"{host}: {error}") from error


def _addresses(host: str, port: int) -> list[str]:
    addresses = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in addresses]
