"""The states of crowds, in SQLite: each transition is one commit, from the state that it names.

open -> sealed -> shuffled -> ended -> erased. A row is never removed: a crowd that was handed over
once is refused for ever. It has no secret and no time of a report; its age follows from the row, so
that no definition which one process has and another has not yet decides about its reports.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Any

from veilcount_shared.shuffling.batch_record import NO_DIGEST, BatchState
from veilcount_shared.shuffling.part import BATCH_ID_BYTES

from .disk import Disk
from .errors import StateUnavailable

FILE = "crowds.sqlite"
BUSY_SECONDS = 10.0
_SCHEMA = """
create table if not exists crowd (
    crowd_id blob primary key, fingerprint text not null, period integer not null,
    closes integer not null, state integer not null, batch_id blob not null default x'',
    reports integer not null default 0, covers integer not null default 0,
    digest blob not null default x'', parts_taken integer not null default 0,
    outcome integer not null default 0, recorded integer not null default 0,
    days_waited integer not null default 0, last_wait integer not null default 0
) without rowid"""
_COLUMNS = (
    "crowd_id, fingerprint, period, closes, state, batch_id, reports, covers, digest, parts_taken,"
    " outcome, recorded, days_waited"
)


class CrowdState(IntEnum):
    """How far a crowd is."""

    OPEN = 0  # takes reports
    SEALED = 1  # takes none any more
    SHUFFLED = 2  # covers and order are durable, parts may leave
    ENDED = 3  # nothing of it leaves any more: delivered, or never to be
    ERASED = 4  # its files are gone


@dataclass(frozen=True, slots=True)
class CrowdRow:
    """What the store knows of a crowd."""

    crowd_id: bytes
    fingerprint: str
    period: int
    closes: datetime  # the end of the grace
    state: CrowdState
    batch_id: bytes  # drawn with the covers: a restored store draws another
    reports: int
    covers: int
    digest: bytes
    parts_taken: int
    outcome: BatchState | None
    recorded: bool  # the aggregator has the record of its batch
    days_waited: int  # days on which the aggregator was away


class CrowdStates:
    """The table of crowds."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        """Open it, and make it if there is none."""
        self._disk = disk
        path = folder / FILE
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # others of it follow
        self._db = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = full")
        self._db.execute("pragma fullfsync = on")  # of macOS, as `sync_file`
        self._db.execute(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def state(self, crowd_id: bytes) -> CrowdState | None:
        """Return the state of a crowd as it is now; None: nothing is known of it."""
        row = self.row(crowd_id)
        return row.state if row else None

    def row(self, crowd_id: bytes) -> CrowdRow | None:
        """Return what is known of a crowd."""
        rows = self._rows("where crowd_id = ?", crowd_id)
        return rows[0] if rows else None

    def rows(self) -> list[CrowdRow]:
        """Return all crowds."""
        return self._rows("order by period, crowd_id")

    def open(self, crowd_id: bytes, fingerprint: str, period: int, closes: datetime) -> None:
        """Begin a crowd, unless it has begun."""
        with self._transaction("open"):
            self._db.execute(
                "insert or ignore into crowd (crowd_id, fingerprint, period, closes, state)"
                " values (?, ?, ?, ?, ?)",
                (crowd_id, fingerprint, period, int(closes.timestamp()), CrowdState.OPEN),
            )

    def seal(self, crowd_id: bytes) -> bool:
        """Let a crowd take no more reports; the caller has its lock alone."""
        return self._advance("seal", crowd_id, CrowdState.OPEN, CrowdState.SEALED)

    def shuffled(self, crowd_id: bytes, reports: int, covers: int, digest: bytes) -> bool:
        """Settle what leaves, and in which order: it does not change any more."""
        before, after = CrowdState.SEALED, CrowdState.SHUFFLED
        numbers = {"reports": reports, "covers": covers, "digest": digest}
        numbers["batch_id"] = os.urandom(BATCH_ID_BYTES)
        return self._advance("shuffled", crowd_id, before, after, **numbers)

    def part_taken(self, crowd_id: bytes, parts: int) -> None:
        """Note how many parts, from the first on, the aggregator has taken."""
        with self._transaction("part taken"):
            self._db.execute(
                "update crowd set parts_taken = ? where crowd_id = ? and state = ?",
                (parts, crowd_id, CrowdState.SHUFFLED),
            )

    def end(self, crowd_id: bytes, before: CrowdState, outcome: BatchState) -> bool:
        """Let nothing of a crowd leave any more, with what became of it."""
        return self._advance("end", crowd_id, before, CrowdState.ENDED, outcome=outcome)

    def erased(self, crowd_id: bytes) -> bool:
        """Note that the files of a crowd are gone."""
        return self._advance("erased", crowd_id, CrowdState.ENDED, CrowdState.ERASED)

    def handed_over_after_all(self, crowd_id: bytes) -> None:
        """Correct the end of a crowd: what was called expired had arrived, its answer had not."""
        outcomes = (BatchState.HANDED_OVER, crowd_id, BatchState.EXPIRED)
        with self._transaction("correct"):
            self._db.execute(
                "update crowd set outcome = ? where crowd_id = ? and outcome = ?", outcomes
            )

    def recorded(self, crowd_id: bytes) -> None:
        """Note that the aggregator has the record."""
        with self._transaction("recorded"):
            self._db.execute("update crowd set recorded = 1 where crowd_id = ?", (crowd_id,))

    def waited(self, crowd_id: bytes, day: int) -> None:
        """Note that the aggregator was away on this day."""
        with self._transaction("waited"):
            self._db.execute(
                "update crowd set days_waited = days_waited + 1, last_wait = ?"
                " where crowd_id = ? and last_wait != ?",
                (day, crowd_id, day),
            )

    def _advance(
        self, what: str, crowd_id: bytes, before: CrowdState, after: CrowdState, **fields: object
    ) -> bool:
        """Move a crowd on in one commit; False: it was not in the state that the move begins in."""
        columns = ", ".join(f"{name} = ?" for name in ("state", *fields))
        with self._transaction(what):
            changed = self._db.execute(
                f"update crowd set {columns} where crowd_id = ? and state = ?",  # noqa: S608 - ours
                (after, *fields.values(), crowd_id, before),
            )
        return changed.rowcount == 1

    def _rows(self, clause: str, *values: object) -> list[CrowdRow]:
        query = f"select {_COLUMNS} from crowd {clause}"  # noqa: S608 - ours
        try:
            return [_row(fields) for fields in self._db.execute(query, values)]
        except sqlite3.Error as error:
            raise StateUnavailable(str(error)) from error

    @contextmanager
    def _transaction(self, what: str) -> Iterator[None]:
        self._disk.step(f"before {what}")
        try:
            self._db.execute("begin immediate")
            yield
            self._db.execute("commit")
        except BaseException as error:
            if self._db.in_transaction:
                self._db.execute("rollback")
            if isinstance(error, sqlite3.Error):
                raise StateUnavailable(str(error)) from error
            raise
        self._disk.step(f"after {what}")


def _row(fields: Sequence[Any]) -> CrowdRow:
    """Return the row of the columns' values, whose types are those of the schema."""
    crowd_id, fingerprint, period, closes, state, batch_id, reports, covers, digest, *rest = fields
    parts_taken, outcome, recorded, days_waited = rest
    return CrowdRow(
        crowd_id,
        fingerprint,
        period,
        datetime.fromtimestamp(closes, UTC),
        CrowdState(state),
        batch_id,
        reports,
        covers,
        digest or NO_DIGEST,
        parts_taken,
        BatchState(outcome) if outcome else None,
        bool(recorded),
        days_waited,
    )
