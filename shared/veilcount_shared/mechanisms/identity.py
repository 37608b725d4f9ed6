"""No noise at all: the true input, for a trusted curator who was named as such.

It is no randomizer and has no `randomize`: the one door is called what it is.
"""

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
        """How many inputs are told apart."""
        return self.k

    @property
    def messages(self) -> int:
        """As many as inputs."""
        return self.k

    @property
    def counters(self) -> int:
        """How many counters a tally of its reports keeps."""
        return self.k

    @property
    def bits(self) -> int:
        """The length of a message."""
        return (self.k - 1).bit_length()

    def reveal(self, x: int) -> int:
        """Return the message of input x: x itself."""
        return x

    def valid(self, message: int) -> bool:
        """Whether this is a message at all."""
        return 0 <= message < self.k

    def describe(self) -> str:
        """Return how a report depends on the true value."""
        return "the true value itself, for a trusted curator"

    def describe_message(self, message: int, labels: Sequence[object]) -> str:  # noqa: ARG002 - of another mechanism
        """Return a message as a person can read it."""
        return f"{message} of {self.messages}"

    def canonical(self) -> dict[str, Any]:
        """Return what is fingerprinted."""
        return {"design": "plain", "k": self.k}
