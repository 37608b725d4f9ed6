"""Counts that a warehouse has grouped: a message, how many reports it has, and of what.

CSV with a line of names, or JSON: a list of objects with the same names, or one object of messages
and counts. `message` is a whole number, decimal or 0x and hexadecimal digits; `count` is how many
reports have it. Optional are `period`, its number or a UTC day in it, and all segments by name.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.errors import MessageOutOfRange
from veilcount_shared.periods import period_number

from ..errors import CountsError
from ..mechanisms import tally
from ..series.packed_rows import Counters, rows_from_messages
from ..series.series import Series
from ..text.result_columns import spelled
from .counters_source import CountersSource, require_countable

MESSAGE, COUNT, PERIOD = "message", "count", "period"
MOST_REPORTS = 1 << 53  # beyond, figures would round their counts
_DECIMAL = re.compile("[0-9]{1,1000}")
_HEXADECIMAL = re.compile("0x[0-9A-Fa-f]{1,1000}")

Cell = tuple[int, int]  # a period, and a cell of the segments


def read_counts(collection: Collection, text: str, today: date) -> CountersSource:
    """Return the counters of grouped counts, as of a UTC day, or refuse the first wrong line."""
    require_countable(collection)
    names, rows = _rows(text)
    columns = _Columns.check(collection, names, today)
    messages: dict[Cell, dict[int, int]] = defaultdict(dict)
    for line, row in rows:
        columns.add(messages, line, row)
    total = sum(sum(counts.values()) for counts in messages.values())
    if total >= MOST_REPORTS:
        raise CountsError(COUNT, total, f"give fewer than {MOST_REPORTS:,} reports in all")
    counters = {
        cell: weighted_tally(collection, list(counts), list(counts.values()))
        for cell, counts in messages.items()
    }
    return CountersSource(
        Series(collection), counters, today, dated=columns.dated, by_segment=columns.by_segment
    )


def weighted_tally(
    collection: Collection, messages: Iterable[int], counts: Sequence[int]
) -> Counters:
    """Return the counters of messages that occur so often.

    The messages whose count has a bit are tallied once for that bit: 53 tallies at most, however
    many reports there are.
    """
    rows, weights = rows_from_messages(collection, messages), np.array(counts, np.int64)
    total = np.zeros(collection.mechanism.counters, np.int64)
    for bit in range(int(weights.max(initial=0)).bit_length()):
        total += tally(collection, rows[weights >> bit & 1 == 1]) << bit
    return total


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a file, and how their cells are read."""

    collection: Collection
    today: date
    dated: bool
    by_segment: bool

    @classmethod
    def check(cls, collection: Collection, names: Sequence[str], today: date) -> _Columns:
        """Return the columns that a file names, or refuse it."""
        segments = [name for name, _ in collection.segments]
        allowed = [MESSAGE, COUNT, PERIOD, *segments]
        for name in names:
            if name not in allowed or names.count(name) > 1:
                fix = f"the columns are {', '.join(allowed)}, each once: rename it or leave it out"
                raise CountsError("column", name, fix)
        for name in (MESSAGE, COUNT):
            if name not in names:
                raise CountsError("columns", list(names), f"the column {name} is missing: add it")
        if collection.is_trend and PERIOD not in names:
            fix = "the column period is missing: a trend is estimated from all of its periods"
            raise CountsError("columns", list(names), fix)
        missing = [name for name in segments if name not in names]
        if missing and (len(missing) < len(segments) or collection.margins is not None):
            fix = f"the segment {missing[0]} is missing: group by all segments"
            raise CountsError("columns", list(names), fix)
        return cls(collection, today, PERIOD in names, not missing)

    def add(
        self, messages: Mapping[Cell, dict[int, int]], line: int, row: Mapping[str, Any]
    ) -> None:
        """Add one row."""
        cell = self._period(line, row), self._cell(line, row)
        message, counts = self._message(line, row[MESSAGE]), messages[cell]
        if message in counts:
            fix = "it occurs twice with the same other columns: group by all of them, once"
            raise _wrong(line, MESSAGE, row[MESSAGE], fix)
        counts[message] = _whole(line, COUNT, row[COUNT], "how many reports have the message")

    def _message(self, line: int, cell: object) -> int:
        collection = self.collection
        text = str(cell)
        if not isinstance(cell, bool) and _HEXADECIMAL.fullmatch(text):
            message = int(text, 16)
        else:
            fix = "the message as a whole number, 123 or 0x7b"
            message = _whole(line, MESSAGE, cell, fix)
        try:
            return collection.unpack(collection.pack(message))
        except (MessageOutOfRange, OverflowError) as error:
            fix = (
                "no device sends it under this definition: are the counts of it, and is the message"
                " the whole number of its bytes, the highest first?"
            )
            raise _wrong(line, MESSAGE, cell, fix) from error

    def _period(self, line: int, row: Mapping[str, Any]) -> int:
        if not self.dated:
            return 0
        collection, text = self.collection, str(row[PERIOD])
        periods = range(Series(collection).open_periods(self.today)[1] + 1)
        try:
            if _DECIMAL.fullmatch(text):
                period = int(text)
            else:
                day = date.fromisoformat(text)
                period = period_number(collection.unit, collection.start, day)
                period = -1 if day >= collection.until else period
        except ValueError:
            period = -1
        if period not in periods:
            fix = (
                f"give the number of a period that has begun, below {len(periods)}, or a UTC day in"
                f" one, {collection.start} or later"
            )
            raise _wrong(line, PERIOD, row[PERIOD], fix)
        return period

    def _cell(self, line: int, row: Mapping[str, Any]) -> int:
        cell = 0
        for name, labels in self.collection.segments if self.by_segment else ():
            texts = [spelled(label) for label in labels]
            if (text := spelled(row[name])) not in texts:
                raise _wrong(line, name, row[name], f"give one of {', '.join(texts)}")
            cell = cell * len(labels) + texts.index(text)
        return cell


def _whole(line: int, name: str, cell: object, what: str) -> int:
    """Return a whole number; not 3.0, which a warehouse writes of a number that it has rounded."""
    if isinstance(cell, bool) or not _DECIMAL.fullmatch(str(cell)):
        raise _wrong(line, name, cell, f"give {what.removeprefix('the ')}, a whole number")
    return int(str(cell))


def _wrong(line: int, name: str, value: object, fix: str) -> CountsError:
    return CountsError(f"row {line}, {name}", value, fix)


# -- rows ------------------------------------------------------------------------------------------

Rows = Iterator[tuple[int, Mapping[str, Any]]]
NO_COUNTS = "give CSV with the columns message and count, or JSON with these names"


def _rows(text: str) -> tuple[Sequence[str], Rows]:
    """Return the names of the columns, and the rows with their numbers from 1."""
    start = text.lstrip("\ufeff \t\r\n")
    if not start:
        raise CountsError("counts", "", f"it is empty: {NO_COUNTS}")
    return _json_rows(start) if start[0] in "{[" else _csv_rows(start)


def _json_rows(text: str) -> tuple[Sequence[str], Rows]:
    try:
        document = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        if isinstance(error, CountsError):
            raise
        raise CountsError("counts", text[:20], f"it is no JSON: {NO_COUNTS}") from error
    if isinstance(document, dict):
        pairs = ({MESSAGE: message, COUNT: count} for message, count in document.items())
        return (MESSAGE, COUNT), enumerate(pairs, 1)
    first = document[0] if document else None
    if not isinstance(first, dict):
        raise CountsError("counts", text[:20], f"it has no rows: {NO_COUNTS}")
    return list(first), _same_names(list(first), document)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, or refuse one in which a name occurs twice: JSON keeps the last."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CountsError(MESSAGE, twice, "it occurs twice: group by the message, once")
    return dict(pairs)


def _same_names(names: Sequence[str], rows: Sequence[object]) -> Rows:
    for line, row in enumerate(rows, 1):
        if not isinstance(row, dict) or set(row) != set(names):
            raise CountsError(f"row {line}", row, f"give an object with {', '.join(names)}")
        yield line, row


def _csv_rows(text: str) -> tuple[Sequence[str], Rows]:
    names, *rows = ([cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if row)
    return names, _csv_cells(names, rows)


def _csv_cells(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Rows:
    for line, row in enumerate(rows, 1):
        if len(row) != len(names):
            fix = f"give {len(names)} cells, one for each of {', '.join(names)}"
            raise CountsError(f"row {line}", ",".join(row), fix)
        yield line, dict(zip(names, row, strict=True))
