"""A connection that is passed on: its bytes go to another server as they came, and back.

Each end reads no faster than the other one writes, and little at a time: thousands of connections
that are passed on to a server that is busy must not fill the memory.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

CHUNK = 16 << 10
LINGER_SECONDS = 1.0  # for a client that still sends while it gets its last response
_read = bytearray(CHUNK)  # by all ends: what was read is copied at once


class TunnelEnd(asyncio.BufferedProtocol):
    """One end of a tunnel, which passes on what comes to the transport of the other end."""

    def __init__(
        self,
        ended: Callable[[], object],
        *,
        passes_end: bool,
        data: bytes = b"",
        is_over: bool = False,
        spare: socket.socket | None = None,
    ) -> None:
        """Begin with data that came before; call `ended` once it has.

        With `passes_end` the other end learns that no more comes, else it is closed. `spare` is
        another descriptor of this end: a failed write closes it with a response unread.
        """
        self._ended = ended
        self._passes_end = passes_end
        self._early = data
        self._is_over = is_over
        self._other: asyncio.Transport | None = None
        self._spare = spare

    def attach(self, other: asyncio.Transport) -> None:
        """Pass on to this transport what came, and what comes."""
        self._other = other
        other.set_write_buffer_limits(CHUNK)
        other.write(self._early)
        self._early = b""
        if self._is_over:
            other.write_eof()

    def get_buffer(self, _: int) -> bytearray:
        """Return where to read to."""
        return _read

    def buffer_updated(self, size: int) -> None:
        """Pass on what was read."""
        self.pass_on(bytes(memoryview(_read)[:size]))

    def pass_on(self, data: bytes) -> None:
        """Pass bytes on."""
        if self._other is None:
            self._early += data
        elif not self._other.is_closing():
            self._other.write(data)

    def eof_received(self) -> bool:
        """Pass the end on; True: this end is still written to."""
        self._is_over = True
        if self._passes_end and self._other is not None and not self._other.is_closing():
            self._other.write_eof()
        return self._passes_end and (self._other is None or not self._other.is_closing())

    def connection_lost(self, _: Exception | None) -> None:
        """Close the other end, once it has what was written to it.

        A client may still send: closed at once, with bytes unread, it would lose the response.
        """
        self._ended()
        if self._spare is not None:
            with suppress(OSError), self._spare:
                while data := self._spare.recv(CHUNK, socket.MSG_DONTWAIT):
                    self.pass_on(data)
        if self._other is None:
            return
        if self._passes_end or self._other.is_closing():
            self._other.close()
            return
        self._other.pause_reading()
        self._other.write_eof()
        asyncio.get_running_loop().call_later(LINGER_SECONDS, self._other.close)

    def pause_writing(self) -> None:
        """Stop reading at the other end."""
        if self._other is not None and not self._other.is_closing():
            self._other.pause_reading()

    def resume_writing(self) -> None:
        """Read again at the other end."""
        if self._other is not None and not self._other.is_closing():
            self._other.resume_reading()


async def connect(
    transport: asyncio.Transport, client: TunnelEnd, paths: Iterable[Path], name: Path | None = None
) -> None:
    """Connect a connection that is not read now to the first server that takes it.

    A `name` is how that server learns which connection it is.
    """
    for path in paths:
        with suppress(OSError):  # that server has ended, or has too many connections
            if name is None:
                connected, spare = _connected(path)
            else:  # on a thread: a disk that hangs holds up what needs a name, and not the loop
                connected, spare = await asyncio.to_thread(_connected, path, name)
            break
    else:
        transport.abort()
        return
    server = TunnelEnd(lambda: None, passes_end=False, spare=spare)
    loop = asyncio.get_running_loop()
    onward, _ = await loop.create_unix_connection(lambda: server, sock=connected)
    if transport.is_closing():
        onward.abort()
        return
    server.attach(transport)
    client.attach(onward)
    transport.resume_reading()


def _connected(path: Path, name: Path | None = None) -> tuple[socket.socket, socket.socket]:
    """Return a connected socket, and another descriptor of it.

    One with a name has it at the other end, and nowhere else.
    """
    onward = socket.socket(socket.AF_UNIX)
    try:
        onward.setblocking(False)
        if name is not None:
            onward.bind(str(name))
        try:
            onward.connect(str(path))
        finally:
            if name is not None:
                name.unlink(missing_ok=True)
        return onward, onward.dup()
    except OSError:
        onward.close()
        raise
