"""A connection that is passed on: its bytes go to another server as they came, and back.

Each end reads no faster than the other one writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path


class TunnelEnd(asyncio.Protocol):
    """One end of a tunnel; `other` is the transport of the other one."""

    def __init__(self, ended: Callable[[], object], *, passes_end: bool) -> None:
        """Call `ended` once it has; with `passes_end` the other end learns that no more comes."""
        self._ended = ended
        self._passes_end = passes_end
        self.other: asyncio.Transport | None = None

    def data_received(self, data: bytes) -> None:
        """Pass bytes on."""
        if self.other is not None:
            self.other.write(data)

    def eof_received(self) -> bool:
        """Pass the end on; True: this end is still written to."""
        if self._passes_end and self.other is not None and not self.other.is_closing():
            self.other.write_eof()
        return self._passes_end

    def connection_lost(self, _: Exception | None) -> None:
        """Close the other end, once it has what was written to it."""
        self._ended()
        if self.other is not None:
            self.other.close()

    def pause_writing(self) -> None:
        """Stop reading at the other end."""
        if self.other is not None and not self.other.is_closing():
            self.other.pause_reading()

    def resume_writing(self) -> None:
        """Read again at the other end."""
        if self.other is not None and not self.other.is_closing():
            self.other.resume_reading()


async def pass_on(transport: asyncio.Transport, client: TunnelEnd, path: Path, data: bytes) -> None:
    """Connect a connection that is not read now to the server at a Unix socket."""
    loop = asyncio.get_running_loop()
    server = TunnelEnd(lambda: None, passes_end=False)
    try:
        onward, _ = await loop.create_unix_connection(lambda: server, str(path))
    except OSError:  # that server has ended, or has too many connections
        transport.abort()
        return
    server.other = transport
    if transport.is_closing():
        onward.abort()
        return
    client.other = onward
    onward.write(data)
    transport.resume_reading()
