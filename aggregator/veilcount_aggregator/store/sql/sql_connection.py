"""What the SQL of a store asks of a connection."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol


class SqlConnection(Protocol):
    """A connection in a transaction. `?` marks a parameter."""

    def execute(self, statement: str, parameters: Any = ..., /) -> Any:
        """Execute a statement; return a cursor."""

    def executemany(self, statement: str, rows: Iterable[Any], /) -> Any:
        """Execute a statement for each row of parameters."""


class SqlReader(Protocol):
    """What can be read, a transaction at a time."""

    def reading(self) -> AbstractContextManager[SqlConnection]:
        """Read one state of the store."""
