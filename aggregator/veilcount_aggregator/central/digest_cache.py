"""What bytes say, worked out once: the same bytes say the same."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Generic, TypeVar

MAX_ENTRIES = 100_000

Result = TypeVar("Result")


class DigestCache(Generic[Result]):
    """A function of bytes that remembers what it told. For any thread.

    It knows bytes by their SHA-256 and keeps none of them: whoever changes one bit is asked about
    anew, and long ones take no more room than short ones.
    """

    def __init__(self, tell: Callable[[bytes], Result]) -> None:
        """Remember what this function tells."""
        self._tell = tell
        self._told: dict[bytes, Result] = {}

    def __call__(self, given: bytes) -> Result:
        """Tell what these bytes say. An error is not remembered."""
        name = sha256(given).digest()
        try:
            return self._told[name]
        except KeyError:
            told = self._tell(given)
        if len(self._told) >= MAX_ENTRIES:
            self._told.clear()
        self._told[name] = told
        return told
