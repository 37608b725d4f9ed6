"""Deletion of the rows of final drops, a bounded range of the primary key at a time.

A step begins at the first row that is left and ends a fixed number of rows later, so it costs the
same however many rows follow. Nothing has to be remembered between two steps: whoever goes on, this
process or the next one, finds the first row that is left by one search.
"""

from __future__ import annotations

from dataclasses import dataclass

from .sql_connection import SqlConnection

#: rows of one transaction: a commit waits for them for some milliseconds
ROWS_AT_ONCE = 2_000

_SERIES_WITH_ROWS = (
    "select number, deleted from series where fingerprint = ? and exists"
    " (select 1 from ledger where series = number and epoch < deleted)"
)
_LAST_ROW = (
    "select epoch, row from ledger where series = ? and epoch < ?"
    " order by epoch, row limit 1 offset ?"
)
_DELETE = "delete from ledger where series = ? and (epoch, row) <= (?, ?)"


@dataclass(frozen=True, slots=True)
class RowRange:
    """The rows of a series up to a key, all of final drops."""

    series: int
    epoch: int
    row: bytes
    #: whether rows of final drops follow, or may
    more: bool

    def delete(self, database: SqlConnection) -> None:
        """Delete the rows; those that another process deleted meanwhile are no error."""
        database.execute(_DELETE, (self.series, self.epoch, self.row))


def next_range(database: SqlConnection, fingerprint: str) -> RowRange | None:
    """Return the next rows to delete; None: no row of a final drop is left."""
    series = database.execute(_SERIES_WITH_ROWS, (fingerprint,)).fetchone()
    if series is None:
        return None
    number, deleted = series
    last = database.execute(_LAST_ROW, (number, deleted, ROWS_AT_ONCE - 1)).fetchone()
    if last is None:  # fewer rows are left: all before the first row of the first kept epoch
        return RowRange(number, deleted, b"", more=False)
    epoch, row = last
    return RowRange(number, epoch, row, more=True)
