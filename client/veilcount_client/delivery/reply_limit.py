"""A limit on the bytes that one HTTP exchange reads.

Interim responses, chunk sizes and their extensions, and trailers have no limit of their own in
`http.client` and urllib3. A peer that sends them as fast as it can would take all of a processor
until the deadline, and one line without an end all of the memory. No honest reply comes near it.
"""

from __future__ import annotations

from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_READ = 256 << 10


class ReplyTooLong(OSError):
    """A reply was longer than any honest one."""


class ReadBudget:
    """How many bytes an exchange may still read, over all its connections and responses."""

    def __init__(self, most: int = MAX_READ) -> None:
        """Begin with all of it."""
        self._left = most

    def spend(self, size: int) -> None:
        """Subtract what was read; ReplyTooLong if the budget is exceeded."""
        self._left -= size
        if self._left < 0:
            raise ReplyTooLong("the reply is too long")


class _LimitedReader(RawIOBase):
    def __init__(self, raw: Any, budget: ReadBudget) -> None:
        self._raw, self._budget = raw, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        size: int | None = self._raw.readinto(buffer)
        self._budget.spend(size or 0)
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


def limited_response(budget: ReadBudget, *arguments: Any, **options: Any) -> HTTPResponse:
    """Make a response as `http.client` does, which reads within a budget."""
    made = HTTPResponse(*arguments, **options)
    made.fp = BufferedReader(_LimitedReader(made.fp.detach(), budget))
    return made
