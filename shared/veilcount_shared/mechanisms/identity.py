"""The identity: the true input, for a trusted curator. It has `reveal` and no `randomize`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Identity:
    """One configuration: k inputs, each its own message."""

    k: int

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return self.k

    @property
    def messages(self) -> int:
        """As many as inputs."""
        return self.k

    @property
    def counters(self) -> int:
        """The number of counters of a tally."""
        return self.k

    @property
    def bits(self) -> int:
        """The length of a message."""
        return (self.k - 1).bit_length()

    def reveal(self, x: int) -> int:
        """Return the message of input x: x itself."""
        return x

    def valid(self, message: int) -> bool:
        """Whether the message is valid."""
        return 0 <= message < self.k

    def describe(self) -> str:
        """Return how a report depends on the true value."""
        return "the true value itself, for a trusted curator"

    def describe_message(self, message: int, labels: Sequence[object]) -> str:  # noqa: ARG002 - of another mechanism
        """Return a message as a person can read it."""
        return f"{message} of {self.messages}"

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        return {"design": "plain", "k": self.k}
