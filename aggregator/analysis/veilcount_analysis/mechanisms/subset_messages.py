"""Subsets on the server, of any mechanism: a report adds to the counters of its members."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from veilcount_shared.mechanisms import SetSelection, SubsetSelection

from ..estimation.confidence_intervals import Counts, Floats
from ..series.packed_rows import Counters, Packed
from .handler import Flags, JointHandler
from .sampling import Ints, chunks

BLOCK = 1 << 20  # bytes of messages that are expanded to bits together
MAX_SYMBOL_BITS = 24  # the widest symbols that an audit counts

Subsets = TypeVar("Subsets", SubsetSelection, SetSelection)


class SubsetMessagesHandler(JointHandler[Subsets]):
    """Of one member, the element itself; of more, masks or packed members."""

    # -- reports become counters -------------------------------------------------------------------

    @property
    def counters_per_report(self) -> int:
        return self.mechanism.w

    @property
    def symbol_bits(self) -> tuple[int, ...]:
        m = self.mechanism
        packed = m.w > 1 and not m.masked and m.label_bits <= MAX_SYMBOL_BITS
        return (1, 8, m.label_bits) if packed else (1, 8)

    def valid_rows(self, rows: Packed) -> Flags:
        """Return which rows are w-subsets, in their one encoding."""
        if self.mechanism.w == 1:
            return super().valid_rows(rows)
        return self._valid_masks(rows) if self.mechanism.masked else self._valid_members(rows)

    def _valid_masks(self, rows: Packed) -> Flags:
        """Exactly w bits, none of them beyond the k-th."""
        bits = np.unpackbits(rows, axis=1)
        unused = bits.shape[1] - self.mechanism.bits
        fits: Flags = (bits.sum(axis=1) == self.mechanism.w) & ~bits[:, :unused].any(axis=1)
        return fits

    def _valid_members(self, rows: Packed) -> Flags:
        """Ascending members below k, the smallest in the lowest bits, nothing beyond them."""
        m = self.mechanism
        bits = np.unpackbits(rows[:, ::-1], axis=1, bitorder="little")
        labels = bits[:, : m.bits].reshape(len(rows), m.w, m.label_bits)
        members = labels @ (1 << np.arange(m.label_bits))
        ascending = (np.diff(members, axis=1) > 0).all(axis=1)
        fits: Flags = ascending & (members[:, -1] < m.ground) & ~bits[:, m.bits :].any(axis=1)
        return fits

    def tally(self, rows: Packed) -> Counters:
        if self.mechanism.w == 1:
            return super().tally(rows)
        total = np.zeros(self.mechanism.counters, np.int64)
        step = max(1, BLOCK // rows.shape[1])
        for first in range(0, len(rows), step):
            total += self._members_counted(rows[first : first + step])
        return total

    def _members_counted(self, rows: Packed) -> Counters:
        m = self.mechanism
        bits = np.unpackbits(rows[:, ::-1], axis=1, count=m.bits, bitorder="little")
        if m.masked:
            counted: Counters = bits.sum(axis=0, dtype=np.int64)
            return counted
        labels = bits.reshape(-1, m.label_bits)
        weights = 1 << np.arange(m.label_bits, dtype=np.int32)  # an element is below 2^20
        return np.bincount(labels @ weights, minlength=m.ground).astype(np.int64)

    def increments(self, rows: Packed) -> tuple[list[int], list[int]]:
        """Return what messages add to which counters; one message adds to many of few."""
        if self.mechanism.w == 1:
            return super().increments(rows)
        counters = self.tally(rows)
        places = np.flatnonzero(counters)
        return places.tolist(), counters[places].tolist()

    # -- estimates ---------------------------------------------------------------------------------

    @property
    def cover_support(self) -> float:
        return self.mechanism.w / self.mechanism.ground

    @property
    @abstractmethod
    def pair_supports(self) -> tuple[float, float]:
        """How likely two inputs are both supported: one of them the reporter's own, or neither."""

    def joint_support(self, counters: Counts, whole: Counts) -> Floats:
        """Return the expected joint supports: counters of subsets keep no pairs.

        Any two inputs are supported together with one of two probabilities, depending on whether
        one of them is the reporter's own.
        """
        marked = np.zeros(self.mechanism.ground)
        marked[whole] = 1
        mean = counters / self.report_count(counters)
        with_own, without = self.pair_supports
        share = self.response.share(mean)
        others = len(whole) - marked
        own = others * share + float(share @ marked) - share * marked
        return marked * mean + without * others + (with_own - without) * own

    # -- simulated devices -------------------------------------------------------------------------

    @abstractmethod
    def draw_members(self, inputs: Ints, generator: Generator) -> Ints:
        """Return a subset for each device, a column of its w members in any order."""

    def draw_rows(self, inputs: Ints, generator: Generator) -> Packed:
        """Return subsets in their one encoding: a mask, or ascending members from the low bits."""
        m = self.mechanism
        if m.w == 1:
            return super().draw_rows(inputs, generator)
        drawn = self.draw_members(inputs, generator)
        bits = np.zeros((len(inputs), 8 * -(-m.bits // 8)), np.uint8)
        if m.masked:
            np.put_along_axis(bits, drawn.T, 1, axis=1)
        else:
            labels = np.sort(drawn, axis=0).T[:, :, np.newaxis]
            digits = labels >> np.arange(m.label_bits) & 1
            bits[:, : m.bits] = digits.reshape(len(inputs), m.bits)
        return np.packbits(bits, axis=1, bitorder="little")[:, ::-1]

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        """Return the counters device by device: of few values, or the inputs are many."""
        total = np.zeros(self.mechanism.counters, np.int64)
        inputs = np.repeat(np.arange(len(held)), held)
        for part in chunks(len(inputs)):
            total += self.tally(self.draw_rows(inputs[part], generator))
        return total
