"""For tests of the client: a database that a simulated crash abandons is closed after the test."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from veilcount_client.state import sqlite_database


@pytest.fixture(autouse=True)
def _close_databases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    opened: list[sqlite3.Connection] = []
    connect = sqlite_database._connect

    def connect_and_register(path: Path) -> sqlite3.Connection:
        opened.append(connect(path))
        return opened[-1]

    monkeypatch.setattr(sqlite_database, "_connect", connect_and_register)
    yield
    for connection in opened:
        connection.close()
