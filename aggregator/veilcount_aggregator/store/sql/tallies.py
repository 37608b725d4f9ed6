"""Tallies in SQL: small ones as one blob, large ones as parts that are merged as they grow.

A large tally (up to four million counters) is never rewritten for a few reports. Each group adds a
part, the counters it touched and by how much; `FAN` parts of one level become one part of the next,
and the last level holds one part only. So a tally is the sum of a few dozen parts at most, and each
number in it was written once a level. A tally of hashes is kept in parts alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from veilcount_analysis.mechanisms import increments, tally
from veilcount_analysis.series.hash_counts import merge_hash_counts
from veilcount_analysis.series.series import Series

from ..interface import Cell
from ..series_reports import Bytes, Counters
from ..transfer_format import decode_numbers, encode_numbers, pad_zeros
from .sql_connection import SqlConnection

#: so many counters are one blob, read and written whole
SMALL = 512
#: so many parts of a level become one of the next
FAN = 32
#: the level that holds one part
TOP = 3

#: adds to n, and puts the counters
PUT_WHOLE = (
    "insert into tally (series, period, segment, n, counters) values (?, ?, ?, ?, ?)"
    " on conflict do update set n = n + excluded.n, counters = excluded.counters"
)
_ADD_PART = (
    "insert into tally (series, period, segment, n, counters, waiting) values (?, ?, ?, ?, x'', 1)"
    " on conflict do update set n = n + excluded.n, waiting = waiting + 1 returning waiting"
)
_WHOLE = "select counters from tally where series = ? and period = ? and segment = ?"
_FOLDED = "update tally set waiting = 0 where series = ? and period = ? and segment = ?"
_CLEAR = "delete from tally where series = ? and period = ? and segment = ?"

_PART = "insert into part (series, period, segment, level, form, body) values (?, ?, ?, ?, ?, ?)"
_COUNT = "select count(*) from part where series = ? and period = ? and segment = ? and level = ?"
_PARTS = (
    "select form, body from part where series = ? and period = ? and segment = ? and level <= ?"
)
_CLEAR_PARTS = "delete from part where series = ? and period = ? and segment = ? and level <= ?"


class SqlTally:
    """The tally of one cell, inside a transaction."""

    def __init__(self, database: SqlConnection, number: int, cell: Cell) -> None:
        self._database = database
        self._here = (number, *cell)

    def add(self, series: Series, messages: Bytes) -> None:
        """Count messages in a large tally."""
        self._grow_parts(len(messages), TallyPart.touched(series, messages), series)

    def grow(self, series: Series, n: int, counters: Counters) -> None:
        """Add what was counted elsewhere."""
        if series.counters <= SMALL:
            total = pad_zeros(self.whole(), series.counters)
            total += counters
            self._database.execute(PUT_WHOLE, (*self._here, n, encode_numbers(total)))
        else:
            self._grow_parts(n, TallyPart.from_counters(counters), series)

    def _grow_parts(self, n: int, part: TallyPart, series: Series) -> None:
        self._append(0, part)
        row = self._database.execute(_ADD_PART, (*self._here, n)).fetchone()
        if row[0] >= FAN:
            self._fold(series)

    def add_to(self, total: Counters) -> None:
        """Add the counters to a total."""
        whole = self.whole()
        total[: len(whole)] += whole
        for part in self._parts(TOP):
            part.add_to(total)

    def hash_counts(self, level: int = TOP) -> Counters:
        """Return the hashes that the parts up to a level hold, and their counts."""
        return merge_hash_counts(part.hash_counts for part in self._parts(level))

    def read(self) -> Counters:
        """Return the counters as far as any was touched, without knowing how many there are."""
        parts = list(self._parts(TOP))
        if any(part.form == PartForm.HASHES for part in parts):
            return self.hash_counts()
        total = pad_zeros(self.whole(), max((part.reach for part in parts), default=0))
        for part in parts:
            part.add_to(total)
        return total

    def put(self, n: int, counters: Counters) -> None:
        """Set n and the counters, whatever stood here."""
        self._database.execute(_CLEAR, self._here)
        self._database.execute(_CLEAR_PARTS, (*self._here, TOP))
        small = counters.ndim == 1 and len(counters) <= SMALL
        self._database.execute(
            PUT_WHOLE, (*self._here, n, encode_numbers(counters) if small else b"")
        )
        if not small:
            self._append(TOP, TallyPart.from_counters(counters))

    def finish(self, series: Series) -> None:
        """Make one part of all: it is read fastest, and nothing comes any more."""
        self._merge(TOP, series)

    def whole(self) -> Counters:
        """Return the counters of a small tally, without knowing how many there are."""
        row = self._database.execute(_WHOLE, self._here).fetchone()
        return decode_numbers(row[0] if row else b"")

    def _parts(self, level: int) -> Iterator[TallyPart]:
        rows = self._database.execute(_PARTS, (*self._here, level))
        return (TallyPart(PartForm(form), body) for form, body in rows)

    def _append(self, level: int, part: TallyPart) -> None:
        self._database.execute(_PART, (*self._here, level, *part))

    def _fold(self, series: Series) -> None:
        """Make one part of each full level, from the lowest up."""
        for level in range(TOP):
            if self._database.execute(_COUNT, (*self._here, level)).fetchone()[0] < FAN:
                break
            self._merge(level, series)
        self._database.execute(_FOLDED, self._here)

    def _merge(self, level: int, series: Series) -> None:
        """Make one part of all up to a level; half full, it goes where whole tallies are."""
        total = self._sum(level, series)
        if level + 1 >= TOP or 2 * np.count_nonzero(total) >= series.counters:
            level, total = TOP, self._sum(TOP, series)
        self._database.execute(_CLEAR_PARTS, (*self._here, level))
        self._append(min(level + 1, TOP), TallyPart.from_counters(total))

    def _sum(self, level: int, series: Series) -> Counters:
        if series.counts_hashes:
            return self.hash_counts(level)
        total = np.zeros(series.counters, np.int64)
        for part in self._parts(level):
            part.add_to(total)
        return total


def unmerged_cells(database: SqlConnection, number: int, last: int) -> list[Cell]:
    """Return the cells up to a period that are kept in several parts."""
    rows = database.execute(
        "select period, segment from part where series = ? and period <= ?"
        " group by period, segment having min(level) < ? or count(*) > 1",
        (number, last, TOP),
    )
    return [Cell(*row) for row in rows]


class PartForm(IntEnum):
    """What the numbers of a part are."""

    SPARSE = 0  # places, then their counts
    DENSE = 1  # a counter for each place
    HASHES = 2  # hashes, ascending, then their counts


class TallyPart(NamedTuple):
    """A summand of a tally."""

    form: PartForm
    body: bytes

    @classmethod
    def from_counters(cls, counters: Counters) -> TallyPart:
        """Write counters in the shorter form."""
        if counters.ndim > 1:
            return cls(PartForm.HASHES, encode_numbers(counters))
        places = np.flatnonzero(counters)
        if 2 * len(places) >= len(counters):
            return cls(PartForm.DENSE, encode_numbers(counters))
        return cls(PartForm.SPARSE, encode_numbers(places) + encode_numbers(counters[places]))

    @classmethod
    def touched(cls, series: Series, messages: Bytes) -> TallyPart:
        """Return the counters that messages touch: their tally, without its many zeros."""
        if series.counts_hashes:
            return cls.from_counters(tally(series.collection, messages))
        places, counts = increments(series.collection, messages)
        return cls(PartForm.SPARSE, encode_numbers(places) + encode_numbers(counts))

    @property
    def hash_counts(self) -> Counters:
        """The hashes and their counts."""
        return decode_numbers(self.body).reshape(2, -1)

    @property
    def reach(self) -> int:
        """How many counters it may touch."""
        counters = decode_numbers(self.body)
        return (
            len(counters)
            if self.form == PartForm.DENSE
            else int(counters[: len(counters) // 2].max(initial=-1)) + 1
        )

    def add_to(self, total: Counters) -> None:
        """Add it to a total; each place stands in it once."""
        counters = decode_numbers(self.body)
        if self.form == PartForm.DENSE:
            total[: len(counters)] += counters
        else:
            places, counts = np.split(counters, 2)
            total[places] += counts
