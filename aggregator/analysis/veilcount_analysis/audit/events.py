"""Messages as tables, and events: statements about a message, in words and counted over a table.

A table has one row of bytes for each message and is cut into symbols of any width. A feature turns
each message into one number. An event is that the number is one of a set, or that two such events
happen at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.errors import format_value

Codes = NDArray[np.int64]
Table = NDArray[np.int32]

BYTE = 8
SYMBOL_BITS_MAX = 24


@dataclass(frozen=True, slots=True)
class SymbolGrid:
    """A way to cut a message: symbols of `width` bits, after `skip` bits that are left out."""

    width: int
    skip: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.width <= SYMBOL_BITS_MAX:
            raise ValueError(f"symbols of {self.width} bits: give 1 to {SYMBOL_BITS_MAX}")

    def name(self, number: int, what: str = "") -> str:
        """Return what one symbol is called, such as "bit 3" or "byte value 7"."""
        noun = {1: "bit", BYTE: "byte"}.get(self.width, f"{self.width}-bit symbol")
        after = f" (after {self.skip} bits)" if self.skip else ""
        return f"{noun}{what} {number}{after}"


def grids(symbol_bits: Iterable[int], size: int) -> Iterator[SymbolGrid]:
    """Yield the grids of messages of `size` bytes: aligned at the first bit and at the last.

    A number packed at a fixed width has its fill in front; what is written bit by bit, at its end.
    """
    for width in symbol_bits:
        if width <= size * BYTE:
            yield from (SymbolGrid(width, skip) for skip in sorted({0, size * BYTE % width}))


@dataclass(frozen=True, slots=True, eq=False)
class MessageTable:
    """The messages that one input gave, in the order sent; a short one is filled up with zeros."""

    table: NDArray[np.uint8]
    lengths: Codes
    _cut: dict[SymbolGrid, Table] = field(default_factory=dict, repr=False)

    @classmethod
    def from_messages(cls, sent: Sequence[bytes], size: int) -> MessageTable:
        """Return messages of at most `size` bytes as a table."""
        filled = b"".join(message.ljust(size, b"\0") for message in sent)
        table = np.frombuffer(filled, np.uint8).reshape(len(sent), size)
        return cls(table, np.fromiter(map(len, sent), np.int64, len(sent)))

    def __len__(self) -> int:
        return len(self.lengths)

    def part(self, begin: int, end: int) -> MessageTable:
        """Return some of the messages."""
        return MessageTable(self.table[begin:end], self.lengths[begin:end])

    def symbols(self, grid: SymbolGrid) -> Table:
        """Return the symbols of each message, a column for each place; cut once for each grid."""
        if grid not in self._cut:
            self._cut[grid] = self._symbols(grid)
        return self._cut[grid]

    def _symbols(self, grid: SymbolGrid) -> Table:
        if grid == SymbolGrid(BYTE):
            return self.table.astype(np.int32)
        bits = np.unpackbits(self.table, axis=1)[:, grid.skip :]
        places = bits.shape[1] // grid.width
        cut = bits[:, : places * grid.width].reshape(len(self), places, grid.width)
        weights = 1 << np.arange(grid.width - 1, -1, -1, dtype=np.int32)
        return np.asarray(cut @ weights, np.int32)


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
        short = values[0] >= 0 and values[-1] < SHORT
        return f"the message is {listed(values) if short else _some(values)}"


@dataclass(frozen=True, slots=True)
class MessageLength:
    """The number of bytes."""

    def read(self, messages: MessageTable) -> Codes:
        return messages.lengths

    def describe(self, values: Codes) -> str:
        return f"the length is {listed(values)} bytes"


@dataclass(frozen=True, slots=True)
class SymbolAtPlace:
    """The symbol at one place."""

    grid: SymbolGrid
    place: int

    def read(self, messages: MessageTable) -> Codes:
        return messages.symbols(self.grid)[:, self.place].astype(np.int64)

    def describe(self, values: Codes) -> str:
        return f"{self.grid.name(self.place)} is {listed(values)}"


@dataclass(frozen=True, slots=True)
class SymbolCount:
    """How often a symbol occurs, wherever it stands. Of the bit 1, the message's weight."""

    grid: SymbolGrid
    symbol: int

    def read(self, messages: MessageTable) -> Codes:
        return np.asarray((messages.symbols(self.grid) == self.symbol).sum(axis=1), np.int64)

    def describe(self, values: Codes) -> str:
        times = "" if len(values) == 1 and values[0] == 1 else "s"
        return f"{self.grid.name(self.symbol, ' value')} occurs {listed(values)} time{times}"


@dataclass(frozen=True, slots=True)
class ValueSupport:
    """Whether a message supports a value, by the mechanism's own rule.

    Of millions of messages hardly one is seen twice: then nothing that is read off the bytes alone
    tells two values apart.
    """

    value: object
    supports: Callable[[bytes], bool]
    _known: dict[bytes, bool] = field(default_factory=dict, repr=False, compare=False)

    def read(self, messages: MessageTable) -> Codes:
        return np.fromiter(map(self._find, map(bytes, messages.table)), np.int64, len(messages))

    def describe(self, values: Codes) -> str:
        verb = "supports" if values[-1] else "does not support"
        return f"the message {verb} {format_value(self.value)}"

    def _find(self, message: bytes) -> bool:
        if message not in self._known:
            self._known[message] = self.supports(message)
        return self._known[message]


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
        return np.isin(self.feature.read(messages), self.values)

    def __str__(self) -> str:
        return self.feature.describe(np.sort(self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction:
    """Two events at once."""

    one: Event
    two: Event

    def happened(self, messages: MessageTable) -> Flags:
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
