"""Connections to Redis servers, and pipelines over several servers at once.

Commands are sent to all servers they concern before the first answer is read, so that the servers
work, and wait for their disks, at the same time. Each server's part succeeds or fails by itself:
one that does not answer costs its own commands and no others. Nothing is tried twice.

How long an answer is waited for depends on what waits. A commit: 2 s, since a request's thread
waits for it; a disk whose fsync takes more than a second (with `appendfsync always`, Redis answers
nobody before its fsync returns) is slow and not away. What analysts read: 5 s, since a server may
work for long on a large answer. A probe: 1 s; that one timed out opens no breaker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ResponseError
from redis.retry import Retry

from ...errors import StoreError, StoreUnavailable, StoreUnfit
from .circuit_breaker import CircuitBreaker
from .error_mapping import BROKEN, connection_error, connection_reason, reply_error
from .url import RedisUrl

CONNECTIONS = 1 << 16
GRACE_SECONDS = 0.05  # for a server that had as long as another that did not answer

Host = tuple[str, int]
Words = tuple[bytes | str | int, ...]


class Wait(StrEnum):
    """The kind of caller, which sets the timeouts."""

    PROBE = "probe"
    COMMIT = "commit"
    READ = "read"


class Timeout(NamedTuple):
    """Seconds until a connection is accepted, and until the next bytes come."""

    connect: float
    read: float


TIMEOUTS = {
    Wait.PROBE: Timeout(0.5, 1.0),
    Wait.COMMIT: Timeout(1.0, 2.0),
    Wait.READ: Timeout(1.0, 5.0),
}


@dataclass(frozen=True, slots=True)
class RedisNode:
    """One Redis server: its circuit breaker, and its idle connections by what waits for them."""

    host: Host
    address: RedisUrl = field(repr=False)
    breaker: CircuitBreaker = field(repr=False)
    examine: Callable[[RedisNode], object] = field(repr=False)  # raises StoreUnfit
    pools: dict[Wait, redis.ConnectionPool] = field(default_factory=dict, repr=False)

    @classmethod
    def at(
        cls, host: Host, address: RedisUrl, examine: Callable[[RedisNode], object] = lambda _: None
    ) -> RedisNode:
        """Return a server; nothing is sent yet. `examine` is called when it is back."""
        return cls(host, address, CircuitBreaker("{}:{}".format(*host)), examine)

    def __str__(self) -> str:
        return "{}:{}".format(*self.host)

    def ask(self, *words: bytes | str | int, wait: Wait = Wait.READ) -> Any:
        """Return its answer to one command, or raise its error."""
        (answer,) = execute_all([(self, words)], wait)
        if isinstance(answer, ResponseError):
            raise reply_error(str(self), answer) from answer
        return answer

    def pool(self, wait: Wait) -> redis.ConnectionPool:
        """Return the connections with these timeouts."""
        # One step, so that two threads never have a pool each.
        return self.pools.get(wait) or self.pools.setdefault(wait, self._pool(TIMEOUTS[wait]))

    def disconnect(self, *, idle: bool) -> None:
        """Close its connections; those that are not in use, or all."""
        for pool in list(self.pools.values()):
            pool.disconnect(inuse_connections=not idle)

    def probe_if_due(self) -> None:
        """Ping a server that was down, if a probe is due."""
        if not self.breaker.begin_probe():
            return
        try:
            connection: Any = self.pool(Wait.PROBE).get_connection()
            try:
                connection.send_command("PING")
                connection.read_response()
            finally:
                self.pool(Wait.PROBE).release(connection)
        except (*BROKEN, ResponseError) as error:
            self.breaker.failed(connection_reason(error, tls=self.address.tls))
        except BaseException:
            self.breaker.failed("the probe was stopped")
            raise
        else:
            self.breaker.succeeded()
            self._examine()

    def probe_in_background(self) -> None:
        """Do so on a thread: a group has reports for other servers, which do not wait for it."""
        if self.breaker.probe_is_due():
            threading.Thread(target=self.probe_if_due, daemon=True).start()

    def _examine(self) -> None:
        """Refuse a server that is back with settings that lose data."""
        try:
            self.examine(self)
        except StoreUnfit as error:
            self.breaker.failed(str(error))
        except StoreError:  # it went away again: the next call finds out
            return

    def _pool(self, timeout: Timeout) -> redis.ConnectionPool:
        address = self.address
        # Stated, since older releases of the library do not check the host by default.
        tls: dict[str, Any] = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
        return redis.ConnectionPool(
            connection_class=redis.SSLConnection if address.tls else redis.Connection,
            **(tls | {"ssl_ca_certs": address.ca} if address.tls else {}),
            max_connections=CONNECTIONS,
            host=self.host[0],
            port=self.host[1],
            db=address.database,
            username=address.username,
            password=address.password,
            socket_connect_timeout=timeout.connect,
            socket_timeout=timeout.read,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )


def execute_each(requests: Sequence[tuple[RedisNode, Words]], wait: Wait = Wait.READ) -> list[Any]:
    """Return all answers, in order: in place of one that did not come a StoreError with the reason,
    in place of a refusal the error of Redis.
    """
    places: dict[Host, list[int]] = {}
    for at, (server, _) in enumerate(requests):
        places.setdefault(server.host, []).append(at)
    servers = {server.host: server for server, _ in requests}
    calls = [
        _Call(servers[host], wait, [requests[at][1] for at in places[host]]) for host in places
    ]
    answers: list[Any] = [None] * len(requests)
    try:
        for call in calls:
            call.send()
        waited = False
        for call, of_server in zip(calls, places.values(), strict=True):
            for at, answer in zip(of_server, call.receive(waited=waited), strict=True):
                answers[at] = answer
            waited |= call.timed_out
    finally:
        for call in calls:
            call.end()
    return answers


def execute_all(requests: Sequence[tuple[RedisNode, Words]], wait: Wait = Wait.READ) -> list[Any]:
    """Return all answers, in order; one that is an error as such. StoreError: one did not come."""
    return require_all(execute_each(requests, wait))


def require_all(answers: list[Any]) -> list[Any]:
    """Return answers, or raise the first that is a StoreError."""
    for answer in answers:
        if isinstance(answer, StoreError):
            raise answer
    return answers


class _Call:
    """Some commands to one server, on one connection."""

    def __init__(self, server: RedisNode, wait: Wait, commands: Sequence[Words]) -> None:
        self._server = server
        self._wait = wait
        self._commands = commands
        self._connection: Any = None
        self._error: StoreError | None = None
        self.timed_out = False
        self._left = 0  # answers that are on their way
        self._stack = ExitStack()

    def send(self) -> None:
        """Send all commands, or keep why not."""
        if self._wait is Wait.COMMIT:
            self._server.probe_in_background()
        else:
            self._server.probe_if_due()
        try:
            self._stack.enter_context(self._server.breaker.call())
            self._connection = self._connect()
            self._left = len(self._commands)
            packed = b"".join(self._connection.pack_commands(self._commands))
            self._connection.send_packed_command([packed])  # in one piece: fewer packets
        except StoreUnavailable as error:
            self._error = error
        except BROKEN as error:
            self._fail(error)

    def receive(self, *, waited: bool) -> list[Any]:
        """Return the answers; where they did not come, the error in place of each.

        Where another server was waited for in vain, this one has had as long already.
        """
        answers: list[Any] = []
        try:
            if waited and self._left and not self._connection.can_read(GRACE_SECONDS):
                raise redis.TimeoutError("no answer, while another server was waited for")
            while self._left and self._error is None:
                answers.append(self._answer())
                self._left -= 1
        except BROKEN as error:
            self._fail(error)
        if self._error is not None:  # what came is of a call that is not known to be whole
            return [self._error] * len(self._commands)
        self._server.breaker.succeeded()
        return answers

    def end(self) -> None:
        """Give the connection back; never one with an answer on its way."""
        if self._connection is not None:
            if self._left:
                self._connection.disconnect()
            self._server.pool(self._wait).release(self._connection)
        self._stack.close()

    def _connect(self) -> Any:
        try:
            return self._server.pool(self._wait).get_connection()
        except AuthenticationError:
            raise
        except BROKEN as error:
            self._server.breaker.failed(connection_reason(error, tls=self._server.address.tls))
            raise

    def _answer(self) -> Any:
        try:
            return self._connection.read_response(disconnect_on_error=False)
        except ResponseError as error:
            return error

    def _fail(self, error: BaseException) -> None:
        """Keep the error. A time-out is the server's; a connection that ended may be an old one."""
        self.timed_out = isinstance(error, redis.TimeoutError)
        if self.timed_out and self._wait is not Wait.PROBE:
            self._server.breaker.failed(f"no answer within {TIMEOUTS[self._wait].read:g} s")
        self._server.disconnect(idle=True)  # they rest on what may have died with it
        tls = self._server.address.tls
        self._error = connection_error(str(self._server), error, tls=tls)
        self._error.__cause__ = error


def pairs(answer: Sequence[Any]) -> dict[Any, Any]:
    """Return an answer of keys and values by turns as a dict."""
    return dict(zip(answer[::2], answer[1::2], strict=True))


def parse_info(answer: bytes) -> dict[str, str]:
    """Return the fields of an answer to INFO."""
    lines = (line.partition(":") for line in answer.decode().splitlines() if ":" in line)
    return {name: value for name, _, value in lines}
