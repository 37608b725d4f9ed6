"""The server of a run, its store, and the way to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from tests.engines import Engine
from tests.proxy import Proxy
from tests.system.server import HOST, Server, free_port

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.store import open_store


@dataclass(slots=True)
class Site:
    """One deployment."""

    engine: Engine
    folder: Path
    flags: tuple[str, ...]  # of `veilcount serve`
    through_proxy: bool = False  # whether devices come through a proxy
    port: int = field(default_factory=free_port)
    server: Server = field(init=False)
    proxy: Proxy = field(init=False)

    def __enter__(self) -> Self:
        self.serve()
        self.proxy = Proxy(self.port)
        return self

    def __exit__(self, *_: object) -> None:
        self.proxy.close()
        if self.server.process.poll() is None:
            self.server.stop()
        self.server.__exit__(None, None, None)

    @property
    def url(self) -> str:
        """Where devices send to."""
        return f"http://{HOST}:{self.proxy.port}" if self.through_proxy else self.server.url

    def serve(self) -> None:
        """Start the server."""
        self.server = Server(self.engine.url, self.folder, *self.flags, port=self.port)

    @contextmanager
    def second_server(self, *, ahead_days: int) -> Iterator[Server]:
        """Run one more server on the store whose clock is ahead by so many days."""
        place = self.folder / "ahead"
        place.mkdir(exist_ok=True)
        shift = place / "seconds"
        shift.write_text(str(ahead_days * 86_400), encoding="ascii")
        program = ("tests.system.shifted_serve", str(shift))
        with Server(self.engine.url, place, program=program) as server:
            yield server

    def analyst_key(self) -> str:
        """Make a key for analysts."""
        with closing(open_store(self.engine.url)) as store:
            return create_key(store, Role.ANALYST, "load", datetime.now(UTC))[1]

    def pids(self) -> list[int]:
        """Return the server's processes; none while there is none."""
        try:
            return [self.server.pid, *self.server.workers()]
        except OSError:
            return []
