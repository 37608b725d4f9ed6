"""The servers of a store: one, or the masters of a cluster; and asking many things in one go.

A call is sent to all servers it concerns before the first answer is read, so that they work, and
wait for their disks, at the same time. Nothing is tried twice behind the caller's back, with two
exceptions in which a server says that it did nothing: the keys have moved to another, or it has no
function library yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import redis
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import ResponseError
from redis.retry import Retry

from ...errors import StoreError, StoreUnavailable
from .address import Address
from .faults import BROKEN, forgotten, gone, moved, said
from .library import source

CONNECT_SECONDS = 2.0
READ_SECONDS = 5.0
CONNECTIONS = 1 << 16

Host = tuple[str, int]
Words = tuple[bytes | str | int, ...]


class Command(NamedTuple):
    """What is asked, and the base key that says of whom."""

    base: bytes
    words: Words
    confirms: bool = False  # asks about the command before it, and again if that is asked again


@dataclass(frozen=True, slots=True)
class Server:
    """One Redis server, and the connections to it that rest."""

    host: Host
    pool: redis.ConnectionPool

    @classmethod
    def at(cls, host: Host, address: Address) -> Server:
        """Get ready to ask one; nothing is sent yet."""
        connection = redis.SSLConnection if address.tls else redis.Connection
        pool = redis.ConnectionPool(
            connection_class=connection,
            max_connections=CONNECTIONS,
            host=host[0],
            port=host[1],
            db=address.database,
            username=address.username,
            password=address.password,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=READ_SECONDS,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        return cls(host, pool)

    def __str__(self) -> str:
        """Return what an operator knows it by."""
        return "{}:{}".format(*self.host)

    def ask(self, *words: bytes | str | int) -> Any:
        """Return its answer to one command, or raise what it says."""
        (answer,) = ask_together([(self, words)])
        if isinstance(answer, ResponseError):
            raise said(str(self), answer) from answer
        return answer


def ask_together(asked: Sequence[tuple[Server, Words]]) -> list[Any]:
    """Return all answers, in order; one that is an error as such. StoreUnavailable: none came."""
    answers: list[Any] = [None] * len(asked)
    by_server: dict[Host, list[int]] = {}
    for at, (server, _) in enumerate(asked):
        by_server.setdefault(server.host, []).append(at)
    servers = {server.host: server for server, _ in asked}
    with _connections(servers[host] for host in by_server) as connections:
        for connection, places in zip(connections, by_server.values(), strict=True):
            connection.send_packed_command([b"".join(_packed(asked[at][1]) for at in places)])
        for connection, places in zip(connections, by_server.values(), strict=True):
            for at in places:
                answers[at] = _answer(connection)
    return answers


@contextmanager
def _connections(servers: Iterable[Server]) -> Iterator[list[Any]]:
    """Lend one connection to each; whatever goes wrong, none is left with an answer on its way."""
    lent: list[tuple[Server, Any]] = []
    try:
        for server in servers:
            connection = server.pool.get_connection()
            lent.append((server, connection))  # at once: what was lent goes back, come what may
        yield [connection for _, connection in lent]
    except BaseException as error:
        for _, connection in lent:
            connection.disconnect()
        for used, _ in lent:  # they rest on what may have died with it
            used.pool.disconnect(inuse_connections=False)
        if isinstance(error, BROKEN):
            raise gone(error) from error
        raise
    finally:
        for used, connection in lent:
            used.pool.release(connection)


def _packed(words: Words) -> bytes:
    """Return a command as it is sent, in one piece: redis-py sends a long argument by itself."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    sized = [b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]
    return b"*%d\r\n%b" % (len(parts), b"".join(sized))


def _answer(connection: Any) -> Any:
    try:
        return connection.read_response(disconnect_on_error=False)
    except ResponseError as error:
        return error


class Asked(Protocol):
    """Whatever can be asked: servers, or servers whose answers are confirmed."""

    def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Return the answers, or raise the first that is an error."""

    def ask_one(self, command: Command) -> Any:
        """Return one answer."""


class Servers:
    """Who has which keys, as far as is known."""

    def __init__(self, address: Address) -> None:
        """Begin with the servers of the URL."""
        self.address = address
        self._known = {host: Server.at(host, address) for host in address.hosts}
        self._slots: list[tuple[int, int, Server]] = []
        self._owners: dict[bytes, Server] = {}
        self._doubtful = address.cluster

    def all(self) -> list[Server]:
        """Return every server that has keys."""
        if not self.address.cluster:
            return list(self._known.values())
        self._look_if_doubtful()
        return list({server.host: server for _, _, server in self._slots}.values())

    def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Return the answers, or raise the first that is an error."""
        answers = self._ask(commands)
        again = _again(commands, answers)
        errors = [answers[at] for at in again if isinstance(answers[at], ResponseError)]
        if again and self._mend(errors):
            for at, answer in zip(again, self._ask([commands[at] for at in again]), strict=True):
                answers[at] = answer
        for command, answer in zip(commands, answers, strict=True):
            if isinstance(answer, ResponseError):
                raise said(str(self.owner(command.base)), answer) from answer
        return answers

    def ask_one(self, command: Command) -> Any:
        """Return one answer."""
        return self.ask([command])[0]

    def load_library(self) -> None:
        """Give every server the functions; those that have them get them anew."""
        for server in self.all():
            server.ask("FUNCTION", "LOAD", "REPLACE", source())

    def look(self) -> None:
        """Ask who has which keys now."""
        for server in list(self._known.values()):
            with suppress(StoreUnavailable):
                self._take(server, server.ask("CLUSTER", "SLOTS"))
                return
        raise StoreUnavailable(f"no server of the cluster answers; began at {self.address}")

    def close(self) -> None:
        """Let go of all connections."""
        for server in self._known.values():
            server.pool.disconnect()

    def _ask(self, commands: Sequence[Command]) -> list[Any]:
        self._look_if_doubtful()
        try:
            return ask_together([(self.owner(each.base), each.words) for each in commands])
        except StoreError:
            self._doubtful = self.address.cluster  # a master may have lost its place
            raise

    def _mend(self, errors: Sequence[ResponseError]) -> bool:
        """Do what lets these be asked again, if anything does."""
        has_moved = self.address.cluster and any(map(moved, errors))
        was_emptied = any(map(forgotten, errors))
        if has_moved:
            self.look()
        if was_emptied:
            self.load_library()
        return has_moved or was_emptied

    def _look_if_doubtful(self) -> None:
        if self._doubtful:
            self.look()

    def owner(self, base: bytes) -> Server:
        """Return the server that has the keys of a base."""
        if not self.address.cluster:
            return next(iter(self._known.values()))
        owner = self._owners.get(base)
        if owner is None:
            slot = key_slot(base)
            found = (server for first, last, server in self._slots if first <= slot <= last)
            owner = next(found, None)
            if owner is None:
                self._doubtful = True
                raise StoreUnavailable(f"no server of the cluster has slot {slot} at the moment")
            self._owners[base] = owner
        return owner

    def _take(self, asked: Server, answer: Sequence[Any]) -> None:
        """Remember who has what. A server without a name is the one that was asked."""
        slots = []
        for (first, last), (name, port) in _ranges(answer):
            host = (name or asked.host[0], port)
            if host not in self._known:
                self._known[host] = Server.at(host, self.address)
            slots.append((first, last, self._known[host]))
        self._slots, self._owners, self._doubtful = slots, {}, False


def _again(commands: Sequence[Command], answers: Sequence[Any]) -> list[int]:
    """Return the places of errors, and of what confirms them: that has to follow on the new try."""
    places: list[int] = []
    failed = False
    for at, (command, answer) in enumerate(zip(commands, answers, strict=True)):
        failed = isinstance(answer, ResponseError) or (failed and command.confirms)
        if failed:
            places.append(at)
    return places


def _ranges(answer: Sequence[Any]) -> Iterator[tuple[tuple[int, int], Host]]:
    for first, last, master, *_ in answer:
        yield (first, last), ((master[0] or b"").decode(), master[1])
