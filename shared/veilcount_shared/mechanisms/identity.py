"""The identity: the true input, for a trusted curator. It has `reveal` and no `randomize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .interface import NumberedMessages


@dataclass(frozen=True, slots=True)
class Identity(NumberedMessages):
    """One configuration: k inputs, each its own message."""

    k: int

    @property
    def inputs(self) -> int:
        return self.k

    @property
    def messages(self) -> int:
        return self.k

    def reveal(self, x: int) -> int:
        """Return the message of input x: x itself."""
        return x

    def describe(self) -> str:
        return "the true value itself, for a trusted curator"

    def canonical(self) -> dict[str, Any]:
        return {"design": "plain", "k": self.k}
