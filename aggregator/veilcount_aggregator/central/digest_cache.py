"""Memoize a function of bytes, keyed by SHA-256."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Generic, TypeVar

MAX_ENTRIES = 100_000

Result = TypeVar("Result")


class DigestCache(Generic[Result]):
    """A memoized function of bytes. Thread-safe.

    It stores digests and no bytes, so that long arguments take no more memory than short ones.
    """

    def __init__(self, function: Callable[[bytes], Result]) -> None:
        """Memoize this function."""
        self._function = function
        self._results: dict[bytes, Result] = {}

    def __call__(self, argument: bytes) -> Result:
        """Return the function's result. Errors are not remembered."""
        name = sha256(argument).digest()
        try:
            return self._results[name]
        except KeyError:
            result = self._function(argument)
        if len(self._results) >= MAX_ENTRIES:
            self._results.clear()
        self._results[name] = result
        return result
