"""The reports of one series in a batch, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.report import Losses, Report


def _none() -> NDArray[np.uint8]:
    return np.empty((0, 0), np.uint8)


@dataclass(frozen=True, slots=True)
class ReportColumns:
    """Columns of one length: what the wire says of each report of one series."""

    fingerprint: str
    places: NDArray[np.intp]  # where in the batch each stands
    pseudonyms: NDArray[np.uint8]  # (n, 16)
    periods: NDArray[np.int64]
    segments: NDArray[np.int64]
    slots: NDArray[np.int64]
    messages: NDArray[np.uint8]  # (n, width)
    tokens: NDArray[np.uint8] = field(default_factory=_none)  # (n, 256); without tokens, no columns

    def __len__(self) -> int:
        """How many reports."""
        return len(self.places)

    @property
    def widths(self) -> tuple[int, int]:
        """Of a message and of a token."""
        return self.messages.shape[1], self.tokens.shape[1]

    def select(self, rows: slice | NDArray[np.bool_]) -> ReportColumns:
        """Return some of the reports."""
        return ReportColumns(
            self.fingerprint,
            self.places[rows],
            self.pseudonyms[rows],
            self.periods[rows],
            self.segments[rows],
            self.slots[rows],
            self.messages[rows],
            self.tokens[rows],
        )


def _column(name: str) -> property:
    column = attrgetter(name)
    return property(lambda part: column(part.table)[part.rows])


class TablePart:
    """The reports of one series in a table of several: a column is taken when it is wanted.

    Most never are: what is checked of many series is checked in the table.
    """

    __slots__ = ("fingerprint", "rows", "table")
    places = _column("places")
    pseudonyms = _column("pseudonyms")
    periods = _column("periods")
    segments = _column("segments")
    slots = _column("slots")
    messages = _column("messages")
    tokens = _column("tokens")

    def __init__(self, fingerprint: str, table: ReportColumns, rows: slice) -> None:
        """Take the reports of a series: these rows of the table."""
        self.fingerprint, self.table, self.rows = fingerprint, table, rows

    def __len__(self) -> int:
        """How many reports."""
        length: int = self.rows.stop - self.rows.start
        return length

    @property
    def widths(self) -> tuple[int, int]:
        """Of a message and of a token."""
        return self.table.widths

    def select(self, rows: slice | NDArray[np.bool_]) -> ReportColumns:
        """Return some of the reports, as columns of their own."""
        whole = replace(self.table.select(self.rows), fingerprint=self.fingerprint)
        return whole.select(rows)


SeriesColumns = ReportColumns | TablePart


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A batch as the intake wants it."""

    reports: int
    series_columns: tuple[SeriesColumns, ...]
    losses: Losses | None = None
    test: bool = False


_COLUMNS = tuple(column.name for column in fields(ReportColumns))[1:]


def join_columns(parts: Sequence[SeriesColumns]) -> SeriesColumns:
    """Return reports of series whose messages have one width as one table, in their order."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if isinstance(first, TablePart) and _is_whole(parts, first.table):  # nearly always
        return first.table
    columns = ([getattr(part, name) for part in parts] for name in _COLUMNS)
    return ReportColumns("", *map(np.concatenate, columns))


def _is_whole(parts: Sequence[SeriesColumns], table: ReportColumns) -> bool:
    """Whether these are all parts of a table, in its order."""
    end = 0
    for part in parts:
        if not isinstance(part, TablePart) or part.table is not table or part.rows.start != end:
            return False
        end = part.rows.stop
    return end == len(table)


def columns_from_reports(reports: Sequence[Report]) -> tuple[ReportColumns, ...]:
    """Return the columns of a batch's reports, series by series."""
    by_series: dict[str, list[int]] = {}
    for place, report in enumerate(reports):
        by_series.setdefault(report.fingerprint, []).append(place)
    return tuple(
        _columns(fingerprint, places, [reports[place] for place in places])
        for fingerprint, places in by_series.items()
    )


def _columns(fingerprint: str, places: list[int], reports: list[Report]) -> ReportColumns:
    return ReportColumns(
        fingerprint,
        np.array(places, np.intp),
        _matrix([report.pseudonym for report in reports]),
        np.array([report.period for report in reports], np.int64),
        np.array([report.segment for report in reports], np.int64),
        np.array([report.slot for report in reports], np.int64),
        _matrix([report.message for report in reports]),
        _matrix([report.token for report in reports]),
    )


def _matrix(rows: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), len(rows[0]))
