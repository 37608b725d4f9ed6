"""The device-side interface of a mechanism: what a definition, the wire and the receipt need."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from ..randomness import RandomSource


class Mechanism(Protocol):
    """A map from inputs to messages: a randomizer, or a trusted curator's identity."""

    def __hash__(self) -> int:
        """Mechanisms are values: results are cached by them."""

    @property
    def inputs(self) -> int:
        """The number of inputs."""

    @property
    def messages(self) -> int:
        """The number of messages."""

    @property
    def counters(self) -> int:
        """The number of counters of a tally."""

    @property
    def bits(self) -> int:
        """The length of a message."""

    def valid(self, message: int) -> bool:
        """Whether the message is valid."""

    def describe(self) -> str:
        """Return how a report depends on the true value."""

    def describe_message(self, message: int, labels: Sequence[object]) -> str:
        """Return a message as a person can read it."""

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""

    def tables(self) -> dict[str, Any]:
        """Return what follows from them, for a client that derives nothing."""


class Randomizer(Mechanism, Protocol):
    """An epsilon-LDP mechanism."""

    @property
    def epsilon(self) -> Fraction:
        """The privacy guarantee of one report."""

    def randomize(self, x: int, randomness: RandomSource, /) -> int:
        """Return the message of an input; for a number, of a point of its grid."""

    def cover(self, randomness: RandomSource, /) -> int:
        """Return a message that depends on no input, from the mechanism's blanket.

        The blanket is what all inputs have in common: of each message, the least probability over
        all inputs, to scale. A device that draws a part, level or moment before it randomizes does
        so here too, with the same probabilities; the message is then from that part's blanket.
        """


class NumberedMessages:
    """A mechanism whose messages are the numbers below `messages`, each with its own counter."""

    __slots__ = ()

    @property
    def messages(self) -> int:
        raise NotImplementedError

    @property
    def counters(self) -> int:
        return self.messages

    @property
    def bits(self) -> int:
        return (self.messages - 1).bit_length()

    def valid(self, message: int) -> bool:
        return 0 <= message < self.messages

    def tables(self) -> dict[str, Any]:
        return {"messages": str(self.messages), "bits": self.bits}

    def describe_message(self, message: int, labels: Sequence[object]) -> str:  # noqa: ARG002 - they have none
        return f"{message} of {self.messages}"
