"""The server of a run, its store, and the way to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.proxy import Proxy
from tests.system.server import HOST, Server, free_port

from .engines import Engine


@dataclass(slots=True)
class Site:
    """One deployment."""

    engine: Engine
    folder: Path
    flags: tuple[str, ...]  # of `veilcount serve`
    roundabout: bool = False  # whether devices come through a proxy
    port: int = field(default_factory=free_port)
    server: Server = field(init=False)
    way: Proxy = field(init=False)

    def __enter__(self) -> Self:
        self.serve()
        self.way = Proxy(self.port)
        return self

    def __exit__(self, *_: object) -> None:
        self.way.close()
        if self.server.process.poll() is None:
            self.server.stop()
        self.server.__exit__(None, None, None)

    @property
    def url(self) -> str:
        """Where devices send to."""
        return f"http://{HOST}:{self.way.port}" if self.roundabout else self.server.url

    def serve(self) -> None:
        """Start the server."""
        self.server = Server(self.engine.url, self.folder, *self.flags, port=self.port)

    def pids(self) -> list[int]:
        """Return the server's processes; none while there is none."""
        try:
            return [self.server.pid, *self.server.workers()]
        except OSError:
            return []
