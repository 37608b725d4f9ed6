"""A file of the public site."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256


@dataclass(frozen=True)
class PublicFile:
    """A content, and its media type."""

    content: bytes
    type: str

    @cached_property
    def digest(self) -> str:
        """The name of its content for caches."""
        return sha256(self.content).hexdigest()[:32]
