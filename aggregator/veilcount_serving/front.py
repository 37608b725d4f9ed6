"""The front of a worker: it listens, takes plain requests, and passes all else on.

It runs on the event loop of the server behind it, which listens at a private Unix socket. A plain
request costs no task, future or timer of its own; what waits for too long is looked for now and
then, over all connections.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Sequence
from email.utils import formatdate
from itertools import count
from pathlib import Path
from typing import Protocol

from .front_connection import FrontConnection, PlainRequest, peer_of
from .front_turn import FrontTurn
from .plain_head import PlainHead, parse_plain
from .tunnel import TunnelEnd, connect
from .worker_supervisor import HEADER_MILLISECONDS, MOST_CONNECTIONS

SWEEP_SECONDS = 0.25
CLOSING_SECONDS = 60.0  # for whoever does not read the end of what was passed on
READING_SECONDS = HEADER_MILLISECONDS / 1000  # for a head, and again for its body
DRAIN_SECONDS = 6.0  # less than a worker gets
BACKLOG = 1024
FILES = 256  # that a worker may have open without its connections; one passed on takes four
MOST_HEADS, LONGEST_REMEMBERED = 512, 1 << 10


class PlainEndpoint(Protocol):
    """What takes the plain requests of a front."""

    @property
    def start(self) -> bytes:
        """Return the line with which a plain request begins."""

    @property
    def asks_peers(self) -> bool:
        """Whether the server behind asks for the peers of connections that are passed on."""

    def is_own(self, data: bytes) -> bool:
        """Whether a connection that begins so may be passed on to this worker's server alone."""

    def take(self, request: PlainRequest) -> bool:
        """Take a request, which is answered now or later; False: it is to be passed on."""

    def incomplete(self, request: PlainRequest) -> None:
        """Answer a request whose body did not come."""

    def end_overdue(self, request: PlainRequest, now: float) -> None:
        """Answer a request that has waited for too long, if it has."""


class Front:
    """The front of one worker."""

    def __init__(
        self,
        endpoint: PlainEndpoint,
        listener: socket.socket,
        onward: Path,
        turn: FrontTurn | None = None,
        others: Sequence[Path] = (),
    ) -> None:
        """Take what comes at `listener`, if need be by `turn`; pass on to the server at `onward`.

        What is not its own goes to the servers of the `others` in turn, which leaves it reports.
        """
        self._endpoint = endpoint
        self._listener = listener
        self._onward = onward
        self._turn = turn
        self._others = deque(others)
        self._heads: dict[bytes, PlainHead] = {}
        self._tunnels: dict[TunnelEnd, asyncio.Transport] = {}
        self._names: dict[str, asyncio.Transport] = {}
        self._numbers = count()
        self._closing: dict[TunnelEnd, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._accepts = True
        self.start = endpoint.start
        self.take, self.incomplete = endpoint.take, endpoint.incomplete
        self.now = time.monotonic
        self.connections: set[FrontConnection] = set()

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listen, and look after the connections from now on."""
        import resource  # noqa: PLC0415 - where nothing is served it may be missing

        self._loop = loop
        self._files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES
        if self._turn is None:
            self._sweep()
        else:
            self._turn.wait(loop, self._sweep)

    async def close(self) -> None:
        """Accept no more; wait until all that was taken is answered, and all else has ended."""
        self._accepts = False
        self._stop_listening()
        self._listener.close()
        if self._turn is not None:
            self._turn.end()
        ends = self.now() + DRAIN_SECONDS
        while (self.connections or self._tunnels) and self.now() < ends:
            for connection in tuple(self.connections):
                connection.close_idle()
            await asyncio.sleep(0.01)
        for connection in tuple(self.connections):
            connection.abort()
        for transport in tuple(self._tunnels.values()):
            transport.abort()

    def head(self, raw: bytes) -> PlainHead | None:
        """Return a plain head; those of one app are equal but behind a proxy, and parsed once."""
        head = self._heads.get(raw)
        if head is None:
            head = parse_plain(raw, self.start)
            if head is not None and not head.is_unique and len(raw) <= LONGEST_REMEMBERED:
                if len(self._heads) >= MOST_HEADS:
                    self._heads.clear()
                self._heads[raw] = head
        return head

    def pass_on(self, transport: asyncio.Transport, data: bytes, *, is_over: bool) -> None:
        """Pass a connection on with what has come, all if it `is_over`; it is not read now."""
        name = self._name() if self._endpoint.asks_peers else None
        client = TunnelEnd(
            lambda: self._forget(client, name), passes_end=True, data=data, is_over=is_over
        )
        self._tunnels[client] = transport
        if name is not None:
            self._names[str(name)] = transport
        transport.set_protocol(client)
        task = self._loop.create_task(connect(transport, client, self._servers(data), name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def peer(self, name: str) -> str | None:
        """Return the address of a connection that the server behind has by this name.

        None: it has ended, and nobody waits for an answer.
        """
        transport = self._names.get(name)
        return None if transport is None else peer_of(transport)

    def _name(self) -> Path:
        """Return a name that says nothing of the connection: the file system may keep it."""
        return self._onward.with_name(f"{self._onward.name}-{next(self._numbers)}")

    def _sweep(self) -> None:
        now = self.now()
        self.date = formatdate(time.time(), usegmt=True)
        for connection in tuple(self.connections):
            connection.end_overdue(now - READING_SECONDS)
            if connection.request is not None:
                self._endpoint.end_overdue(connection.request, now)
        for end, transport in tuple(self._tunnels.items()):
            if (
                transport.is_closing()
                and self._closing.setdefault(end, now) < now - CLOSING_SECONDS
            ):
                transport.abort()
        if self._accepts:
            self._limit()
            self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def _servers(self, data: bytes) -> Sequence[Path]:
        """Return the servers of a connection, in the order in which they are tried."""
        if not self._others or self._endpoint.is_own(data):
            return (self._onward,)
        self._others.rotate()
        return (*self._others, self._onward)

    def _forget(self, client: TunnelEnd, name: Path | None) -> None:
        del self._tunnels[client]
        self._names.pop(str(name), None)
        self._closing.pop(client, None)

    def _limit(self) -> None:
        """Listen while there are fewer connections than any worker may have, and files for them."""
        plain, passed = len(self.connections), len(self._tunnels)
        if plain + passed >= MOST_CONNECTIONS or plain + 4 * passed >= self._files:
            self._stop_listening()
        elif self._server is None:
            self._listen()

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()  # of a duplicate: who connects waits at the socket itself
            self._server = None

    def _listen(self) -> None:
        listening = self._loop.create_task(self._serve(self._listener.dup()))
        self._tasks.add(listening)
        listening.add_done_callback(self._tasks.discard)

    async def _serve(self, listener: socket.socket) -> None:
        self._server = await self._loop.create_server(
            lambda: FrontConnection(self), sock=listener, backlog=BACKLOG
        )
