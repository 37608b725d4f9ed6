"""The interface of a store: one contract for all engines, tested by one battery.

It is six protocols, and `Store` is all of them: whoever needs a part takes that part alone.

**Exactly once.** A report spends one slot of one row; the row's bitmap says whether the slot was
spent. `commit` judges and writes a whole group in one durable transaction: each report gets the
verdict of the first line that applies,

    the row's epoch was dropped                         stale
    the slot is spent, or the row was closed            duplicate
    `default_verdicts` has another verdict than counted that verdict
    the row is new, and the period's limit is reached   full
    the row is new, and its quota for the hour is spent full
    the row has spent all it may (`Series.most`)        over_budget
    otherwise                                           counted: the slot spent, the message added

**Data about a device**: the first 12 of its pseudonym's 16 bytes and its bitmap, until the epoch is
dropped; its message is added to counters and not kept. No time, no order, no address.

**Quotas** of new rows are counted by hour, series and source (a device key, a class of networks) in
the transaction that counts the rows, so they hold over all workers and hosts. Those of an hour are
deleted some two hours later (SQLite: by the first new row then), and never copied to another store.

**Dropping takes two steps**, a day apart: an epoch is marked as dropped (its reports are stale from
then on, and the time of the mark is recorded), and only later the drop becomes final. In between
the mark can be taken back. Both steps use the store's own clock if it has one: a caller's may be
wrong. The rows of a final drop are then deleted some at a time, by whichever process is there: no
other call waits for them, opening a store least of all.

**Records** (definitions, keys, releases, audit) change by compare-and-set on one generation number,
so that their logic is written once, above the engines.

An engine raises `StoreError`s only; after one, nothing of the call was written, or (the reply was
lost) all of it, shard by shard: every method here can be repeated safely, except that service
counters may then count twice. Where rows are spread over shards, each shard has its share of a
period's limit and of an hour's quota.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from veilcount_analysis.series.series import Series

from .health import Durability, ShardHealth, StoreHealth
from .series_reports import (
    Bytes,
    Codes,
    Counters,
    Flags,
    SeriesReports,
    ServiceCounter,
    ServiceCounts,
)


class Cell(NamedTuple):
    """The period and segment of a tally."""

    period: int
    segment: int


Records = Mapping[str, bytes]


class BatchChange(NamedTuple):
    """What one commit does to a batch of a shuffler: its entry, spent tokens and the tally.

    The tally is that of the period and segment 0.
    """

    key: str
    expected: bytes | None  # the entry as it was read; None: there is none
    entry: bytes | None  # from now on; None: none
    period: int
    spent: Bytes  # (n, 12): rows of tokens, of which none was spent when they were read
    reports: int = 0
    counters: Counters | None = None  # what the tally grows by


class Record(NamedTuple):
    """A record, or the removal of one (None)."""

    kind: str
    key: str
    value: bytes | None


class TransferPiece(NamedTuple):
    """A part of a store in transfer to another: absolute, so that importing it twice is harmless.

    `kind` and `key` name it in every engine alike; `body` is the same bytes for the same content.
    """

    kind: str
    key: str
    body: bytes


class IntakeStore(Protocol):
    """Judges and counts reports, and forgets rows when their epochs are over."""

    def commit(self, group: Sequence[SeriesReports], counts: ServiceCounts) -> list[Codes]:
        """Judge and count a group in one durable transaction; return each report's verdict.

        Where the rows are spread over shards, each has a transaction of its own, all at the same
        time. Some may fail: their reports are UNDECIDED. It raises where all of them fail.
        """

    def close_row(self, series: Series, epochs: Sequence[int], row: bytes) -> bool:
        """Spend all slots of a row in these epochs; return whether it was in any of them."""

    def server_times(self) -> list[datetime]:
        """Return the time of each server of the store that answers.

        Empty: the store has no clock of its own, and goes by its caller's (`now` below).
        """

    def mark_dropped(self, series: Series, epochs: int, due: datetime, now: datetime) -> int:
        """Mark the first epochs as dropped: reports for them are stale.

        Raise `RetentionTooEarly` before the instant `due`. Return how many were not marked before.
        """

    def finalize_dropped(self, series: Series, kept: timedelta, now: datetime) -> None:
        """Make the drops of at least this long ago final: `delete_rows` takes their rows.

        Their counters are final too: an engine stores them in the form that is read fastest.
        """

    def delete_rows(self, series: Series) -> bool:
        """Delete some rows of final drops; return whether there are more.

        What a call costs depends neither on the rows that are left nor on those that are kept. A
        process that is killed between two calls leaves the remaining rows to any other.
        """

    def restore_dropped(self, series: Series) -> int:
        """Take back the drop of all epochs whose rows still exist; return how many they are."""


class CounterReader(Protocol):
    """Reads counters: all that an estimate of local reports needs, published ones as well."""

    def report_counts(self, series: Series) -> dict[Cell, int]:
        """Return how many reports each tally holds; cells without any are left out."""

    def counters(self, series: Series, cells: Sequence[Cell]) -> Counters:
        """Return the sum of the tallies of these cells."""

    def service_counts(self) -> dict[ServiceCounter, int]:
        """Return all service counters."""


class TallyReader(CounterReader, Protocol):
    """Reads what was counted, and how much can be."""

    def spend_histograms(self, series: Series) -> dict[int, Counters]:
        """Return per epoch how many rows have spent j slots, for j = 1 .. `Series.most`.

        Kept after its epoch drops. Entry j - 1 counts the rows with j spent slots.
        """

    def new_pseudonyms(self, series: Series) -> dict[int, int]:
        """Return how many new rows each period has brought."""

    def shard_count(self) -> int:
        """Return the number of shards, each of which may have a tally of every cell."""

    def counter_limit(self) -> int | None:
        """Return the bytes that the counters of all definitions may need; None: any number.

        Definitions are admitted by it when they are pushed; a commit asks nothing.
        """


class BatchStore(Protocol):
    """Keeps what has come of the batches of shufflers: an entry for each batch, and no row.

    Only tokens have rows, in a ledger of their own: whether one of a period was spent. What an
    entry says is up to its writer; it is a few numbers and, until the batch is complete, counters.
    """

    def batches(self, series: Series) -> Records:
        """Return the entries of all batches of a series, by their keys."""

    def batch(self, series: Series, key: str) -> bytes | None:
        """Return the entry of one batch; None: there is none."""

    def spent_tokens(self, series: Series, period: int, rows: Bytes) -> Flags:
        """Return which of these tokens of a period were spent."""

    def change_batch(self, series: Series, change: BatchChange) -> bool:
        """Make a change in one durable commit; return whether it was made.

        Nothing is written unless the entry is as expected and all rows are unspent. Whoever repeats
        a change whose reply was lost reads first: the entry says that it was made.
        """

    def forget_tokens(self, series: Series, period: int) -> None:
        """Delete the spent tokens of a period, of which no batch is taken any more."""


class RecordStore(Protocol):
    """Reads and changes small records, by kind and key."""

    def generation(self) -> int:
        """Return the number of changes of records so far; cheap: workers ask all the time."""

    def generations(self) -> Mapping[str, int]:
        """Return, for each kind of record ever written, the generation of its last change.

        Readers compare these to re-read only the kinds that changed.
        """

    def records(self, kind: str) -> Records:
        """Return all records of a kind, by key."""

    def record_keys(self, kind: str) -> frozenset[str]:
        """Return the keys of all records of a kind, without their values."""

    def record_count(self, kind: str) -> int:
        """Return the number of records of a kind, without reading them."""

    def records_at(self, kind: str, keys: Collection[str]) -> Records:
        """Return the records of a kind under these keys; keys without a record are left out."""

    def change_records(self, generation: int, records: Sequence[Record]) -> bool:
        """Write (or, where the value is None, remove) all records if none was changed since this
        generation; return whether it was done. Durable, and the generation grows by one.
        """

    def change_record(self, record: Record, expected: bytes | None) -> bool:
        """Write (or remove) one record if it is as expected; return whether it was done. Durable.

        None: there is no such record. It touches no generation: for kinds of many records that
        nobody caches, so that writers of different ones do not meet.
        """

    def incarnation(self) -> str:
        """Return the name of the server process that keeps the records; as cheap.

        No two that may differ in what they hold have the same one: it changes when the server
        restarts, when another is promoted, and when a file is replaced by another.
        """


class TransferStore(Protocol):
    """Copies content: to another store, and of records to every shard."""

    def set_read_only(self, *, on: bool) -> None:
        """Refuse (or accept) all changes from now on, in every process."""

    def export_pieces(self) -> Iterator[TransferPiece]:
        """Return all content in a fixed order, for another store; meant for a read-only one."""

    def import_pieces(self, pieces: Sequence[TransferPiece]) -> None:
        """Write pieces of another store in place of what is there under their names.

        Records change the generation.
        """

    def accept_losses(self, now: datetime) -> None:
        """Accept every shard as it is, for all hosts: older data were wanted."""

    def replicate(self, kinds: Sequence[str]) -> bool:
        """Copy the records of these kinds to every shard, where shards are apart.

        False: a shard has not answered, or the records changed meanwhile; a copy may be older.
        """

    def replica(self, kind: str) -> tuple[int, Records]:
        """Return the copy's generation and its records of a kind: for when the records are away."""


class HealthStore(Protocol):
    """Reports what an operator has to know."""

    def losses(self) -> Sequence[str]:
        """Return what each shard lacks of what this host has acknowledged, as of the last look.

        Nothing is written to such a shard: `StoreWentBack`.
        """

    def durability(self) -> Durability:
        """Examine again whether acknowledgements are durable; cheap: each worker asks each second.

        While a weakness blocks at a server, `commit`, `close_row`, `change_records`,
        `change_record` and `import_pieces` of what it keeps raise `StoreUnfit`.
        """

    def health(self) -> StoreHealth:
        """Return how it is, or raise where no shard takes reports."""

    def shards(self) -> Sequence[ShardHealth]:
        """Return how each part is, also of those that are away."""

    def reachable_part(self) -> tuple[Store, bool]:
        """Return a view that reads from the shards that answer now, and whether these are all.

        For figures of the service. An estimate from some of the shards would be a wrong estimate.
        """


class Store(
    IntakeStore, TallyReader, BatchStore, RecordStore, TransferStore, HealthStore, Protocol
):
    """A store of one deployment. Its methods may be called by any thread of any process."""

    def close(self) -> None:
        """Close connections and files."""
