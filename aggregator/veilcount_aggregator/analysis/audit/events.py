"""Events: statements about a message, described in words and counted over a whole table.

A feature turns each message into one number. An event is that the number is one of a set, or that
two such events happen at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .message_table import BYTE, Codes, MessageTable, SymbolGrid

Flags = NDArray[np.bool_]

NAMED = 4  # so many values are listed by name
SHORT = 1 << 16  # and messages below this number
EXACT_BYTES = 7  # messages up to this length are numbers of their own


class MessageFeature(Protocol):
    """One number read off each message."""

    def read(self, messages: MessageTable) -> Codes:
        """Return the number of each message."""

    def describe(self, values: Codes) -> str:
        """Describe the event that the number is one of these."""


@dataclass(frozen=True, slots=True)
class WholeMessage:
    """The message itself, its length included."""

    def read(self, messages: MessageTable) -> Codes:
        """Return the message as a number; of a long one, a hash: two that collide are one event."""
        size = messages.table.shape[1]
        code = messages.table @ _weights(size)  # int64 wraps around
        return np.asarray(code + (messages.lengths - size) * _LENGTH_WEIGHT, np.int64)

    def describe(self, values: Codes) -> str:
        """Name the messages."""
        short = values[0] >= 0 and values[-1] < SHORT
        return f"the message is {listed(values) if short else _some(values)}"


@dataclass(frozen=True, slots=True)
class MessageLength:
    """The number of bytes."""

    def read(self, messages: MessageTable) -> Codes:
        """Return the lengths."""
        return messages.lengths

    def describe(self, values: Codes) -> str:
        """Name the lengths."""
        return f"the length is {listed(values)} bytes"


@dataclass(frozen=True, slots=True)
class SymbolAtPlace:
    """The symbol at one place."""

    grid: SymbolGrid
    place: int

    def read(self, messages: MessageTable) -> Codes:
        """Return the symbol of each message at this place."""
        return messages.symbols(self.grid)[:, self.place].astype(np.int64)

    def describe(self, values: Codes) -> str:
        """Name the symbols and the place."""
        return f"{self.grid.name(self.place)} is {listed(values)}"


@dataclass(frozen=True, slots=True)
class SymbolCount:
    """How often a symbol occurs, wherever it stands. Of the bit 1, the message's weight."""

    grid: SymbolGrid
    symbol: int

    def read(self, messages: MessageTable) -> Codes:
        """Return the number of times the symbol occurs in each message."""
        return np.asarray((messages.symbols(self.grid) == self.symbol).sum(axis=1), np.int64)

    def describe(self, values: Codes) -> str:
        """Name the counts."""
        times = "" if len(values) == 1 and values[0] == 1 else "s"
        return f"{self.grid.name(self.symbol, ' value')} occurs {listed(values)} time{times}"


class Event(Protocol):
    """Something that is true of a message or not."""

    def happened(self, messages: MessageTable) -> Flags:
        """Return for each message whether it is true."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureInSet:
    """The feature is one of these values."""

    feature: MessageFeature
    values: Codes

    def happened(self, messages: MessageTable) -> Flags:
        """Return for each message whether its feature is one of the values."""
        return np.isin(self.feature.read(messages), self.values)

    def __str__(self) -> str:
        return self.feature.describe(np.sort(self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction:
    """Two events at once."""

    one: Event
    two: Event

    def happened(self, messages: MessageTable) -> Flags:
        """Return for each message whether both happened."""
        return self.one.happened(messages) & self.two.happened(messages)

    def __str__(self) -> str:
        return f"{self.one} and {self.two}"


def listed(values: Codes) -> str:
    """Return ascending values in words: by name where few, as a range where there is no gap."""
    first, last = int(values[0]), int(values[-1])
    if len(values) > 2 and last - first + 1 == len(values):  # noqa: PLR2004 - "3 or 4" is shorter
        return f"{first} to {last}"
    if len(values) <= NAMED:
        *most, end = map(str, values)
        return f"{', '.join(most)} or {end}" if most else end
    return _some(values)


def _some(values: Codes) -> str:
    return f"one of {len(values):,} values"


def _weights(size: int) -> Codes:
    if size <= EXACT_BYTES:
        return 1 << np.arange(size * BYTE - BYTE, -1, -BYTE, dtype=np.int64)
    return np.random.default_rng(size).integers(1 << 62, size=size)  # the same at every call


_LENGTH_WEIGHT = 0x9E3779B97F4A7C15 >> 1  # any odd number far from the bytes' weights
