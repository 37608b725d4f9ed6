"""Messages as tables: one row of bytes for each message, cut into symbols of any width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
        """Refuse symbols too wide to be counted."""
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
    def of(cls, sent: Sequence[bytes], size: int) -> MessageTable:
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
