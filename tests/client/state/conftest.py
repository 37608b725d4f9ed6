"""Both engines of a state: a directory and a Redis. Whatever `state` promises, both are tested."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from veilcount_client.state import ClientState, file_checks
from veilcount_client.state.factory import open_state
from veilcount_client.state.sqlite_database import FILE

from ...redis_server import RedisServer

spaces = count()


@dataclass
class Engine:
    """A location for one state, which may be opened many times."""

    location: str  # what `open_state` takes
    folder: Path  # where all of it is stored
    states: list[ClientState] = field(default_factory=list)

    def everything(self) -> bytes:
        """Return all bytes that are stored."""
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())

    def open(self) -> ClientState:
        self.states.append(open_state(self.location))
        return self.states[-1]

    def close(self) -> None:
        for state in self.states:
            state.close()


class SqliteEngine(Engine):
    """A directory."""

    @property
    def mark(self) -> Path:
        return file_checks.mark_path(self.folder / FILE)

    def committed(self) -> int:
        """Return how many transactions the state has counted."""
        return int(self.open().note("transactions") or 0)


@pytest.fixture(scope="session")
def server(memory: Path) -> Iterator[RedisServer]:
    """A server for all tests that do it no harm."""
    with TemporaryDirectory(dir=memory) as folder:
        server = RedisServer(Path(folder))
        yield server
        server.kill()


@pytest.fixture
def frail(tmp_path: Path) -> Iterator[RedisServer]:
    """A server for one test alone."""
    server = RedisServer(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(str(tmp_path / "state"), tmp_path / "state")
    yield engine
    engine.close()


@pytest.fixture
def redis(server: RedisServer) -> Iterator[Engine]:
    """A key space of a server."""
    engine = Engine(f"{server.url}#space-{next(spaces)}", server.folder)
    yield engine
    engine.close()


@pytest.fixture(params=["sqlite", "redis"])
def engine(request: pytest.FixtureRequest) -> Engine:
    engine: Engine = request.getfixturevalue(request.param)
    return engine


@pytest.fixture
def state(engine: Engine) -> ClientState:
    """A new state, in each engine in turn."""
    return engine.open()
