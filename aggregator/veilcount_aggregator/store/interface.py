"""What the rest of the aggregator asks of a store: one contract, two engines, one battery of tests.

**Exactly once.** A report spends one slot of one row; the row's bitmap says whether the slot was
spent. `commit` judges and writes a whole group in one durable transaction: for each report, in
order, the first of these that holds,

    the row's epoch was dropped                         stale
    the slot is spent, or the row was closed            duplicate
    the report was judged before (`otherwise`)          that verdict
    the row is new, and the period has no room          full
    the row is new, and its quota for the hour is spent full
    the row has spent all it may (`Series.most`)        over_budget
    its counters need memory beyond a limit             full
    otherwise                                           counted: the slot spent, the message added

**Memory of counters** is limited by series and by store [memory]. A report whose counters exist
needs none. Which counters of a large tally exist, and what new ones take, depends on the engine.

**What is kept of a device**: the first 12 of its pseudonym's 16 bytes and its bitmap, until the
epoch is dropped; its message is added to counters and gone. No time, no order, no address.

**Quotas** of new rows are counted by hour, series and source (a device key, a class of networks) in
the transaction that counts the rows, so they hold over all workers and hosts. Those of an hour are
deleted some two hours later (SQLite: by the first new row then), and never copied to another store.

**Dropping takes two steps**, a day apart: an epoch is marked as dropped (its reports are stale from
then on, and the moment is kept), and only later are its rows deleted. In between the mark can be
taken back. Both steps go by the store's own time where it has one: a caller's clock may be wrong.

**Small records** (definitions, keys, releases, audit) are a shelf that changes by compare-and-set
on one generation number, so that their logic is written once, above the engines.

An engine raises `StoreError`s only; after one, nothing of the call was written, or (the reply was
lost) all of it, lane by lane: asking again is safe for every method here. Notes alone may then be
counted twice. Where rows are spread over shards, each has its share of a period's room, of an
hour's quota and of the limits on memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.report import PSEUDONYM_BYTES
from veilcount_shared.verdict import Verdict

from ..series.series import Series
from .memory_limit import DEFAULT_LIMITS, MemoryLimits, MemoryUse

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Codes = NDArray[np.uint8]
Counters = NDArray[np.int64]

#: verdicts as numbers, for arrays: the place in this tuple; the last are `DEFERRED`, `MEMORY_FULL`
VERDICTS = (*Verdict, Verdict.FULL, Verdict.FULL)
CODES = {verdict: np.uint8(code) for code, verdict in enumerate(Verdict)}
COUNTED = CODES[Verdict.COUNTED]
#: `full` by the quota of an hour, not by the period's limit
HOURLY_FULL = np.uint8(len(Verdict))
#: `full` by a limit on the memory of counters
MEMORY_FULL = np.uint8(len(Verdict) + 1)

#: in place of a verdict: the report's lane failed, and whether it was counted is not known
UNDECIDED = np.uint8(255)

#: how much of a pseudonym is kept: two of 10^9 agree in it by chance once in 10^11 times
ROW_BYTES = 12
assert ROW_BYTES < PSEUDONYM_BYTES  # noqa: S101 - two constants that belong together


class Quota(NamedTuple):
    """How many new rows of a series one source may bring in one hour."""

    hour: int  # since 1970
    source: str
    limit: int


@dataclass(frozen=True, slots=True)
class SeriesReports:
    """Reports of one series, in columns of one length; each is a message that its design has."""

    series: Series
    rows: Bytes  # (n, 12): the pseudonym's first bytes
    epochs: Numbers
    periods: Numbers
    segments: Numbers
    slots: Numbers
    messages: Bytes  # (n, width)
    default_verdicts: Codes  # the verdict if the slot is free; COUNTED: count it
    new_pseudonym_limit: int  # how many new rows each period may bring
    quota: Quota | None = None  # None: as many in an hour as there is room for
    memory: MemoryLimits = DEFAULT_LIMITS  # bytes that counters may take

    def __len__(self) -> int:
        return len(self.rows)


class ServiceCounter(NamedTuple):
    """Something that is counted beside the answers: a verdict, a loss, a request of the service."""

    what: str
    fingerprint: str  # "": of no series
    period: int  # -1: of no period
    word: str


ServiceCounts = Mapping[ServiceCounter, int]

#: what the engines themselves note of each report that was not counted
VERDICT = "verdict"
#: a report that was answered `full` by another limit than its period's, and by which
LIMITED = "limited"
BY_HOUR = "hour"
BY_MEMORY = "memory"
_LIMITS = {int(HOURLY_FULL): BY_HOUR, int(MEMORY_FULL): BY_MEMORY}


def refusal_counts(
    fingerprint: str, period: int, code: int, times: int
) -> dict[ServiceCounter, int]:
    """Return what is noted of some reports that were not counted."""
    found = {ServiceCounter(VERDICT, fingerprint, period, VERDICTS[code]): times}
    limit = _LIMITS.get(code)
    return found | ({ServiceCounter(LIMITED, fingerprint, -1, limit): times} if limit else {})


class Cell(NamedTuple):
    """What one tally is of."""

    period: int
    segment: int


class DurabilityState(StrEnum):
    """Whether an acknowledgement outlives a power cut."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Weakness:
    """A setting or a state of a server by which acknowledged reports could be lost."""

    what: str  # names no server: it is shown at /readyz, to anyone
    where: str
    fix: str
    blocks: bool = True  # that server acknowledges no report while it lasts
    passing: bool = False  # ends by itself: no reason to refuse the store at the start

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.fix}"


@dataclass(frozen=True, slots=True)
class Durability:
    """Whether acknowledgements outlive a power cut, and what is in the way."""

    durable: DurabilityState
    why: str
    weaknesses: tuple[Weakness, ...] = ()
    blocked: bool = False  # at every server something blocks: no report is taken

    @property
    def blocking(self) -> Weakness | None:
        """Return the first weakness for which nothing is acknowledged."""
        return next((each for each in self.weaknesses if each.blocks), None)


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """What an operator wants to know of a store."""

    engine: str
    durable: DurabilityState
    why: str
    read_only: bool
    serving: int = 1  # shards that take reports now
    shards: int = 1
    weaknesses: tuple[Weakness, ...] = ()
    blocked: bool = False  # no report is taken until one of them is gone
    trouble: str = ""  # why it cannot be written now, in words that anybody may read


@dataclass(frozen=True, slots=True)
class ShardHealth:
    """How one part of a store is, as one process sees it now. None: not known."""

    name: str  # its number; `records`: what keeps definitions and keys
    up: bool
    breaker: str = "closed"
    why: str = ""  # it is not up
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None  # 0: there is none
    aof_failing: bool | None = None  # the last write or rewrite of the append-only file failed
    aof_delayed_fsyncs: int | None = None
    aof_rewriting: bool | None = None


Records = Mapping[str, bytes]


class Record(NamedTuple):
    """One record of the shelf, or the absence of one (None)."""

    kind: str
    key: str
    value: bytes | None


class TransferPiece(NamedTuple):
    """A part of a store on its way to another: absolute, so that taking it twice changes nothing.

    `kind` and `key` name it in every engine alike; `body` is the same bytes for the same content.
    """

    kind: str
    key: str
    body: bytes


class Store(Protocol):
    """A store of one deployment. Its methods may be called by any thread of any process."""

    # -- the intake ----------------------------------------------------------------------------

    def commit(self, group: Sequence[SeriesReports], notes: ServiceCounts) -> list[Codes]:
        """Judge and count a group in one durable transaction; return each report's verdict.

        In a group of several lanes some may fail: their reports are UNDECIDED. It raises where
        all of them fail.
        """

    def lane(self, group: Sequence[SeriesReports]) -> int:
        """Return which of the store's lanes a group belongs to; -1: to several.

        Groups of one lane are committed one after the other, those of two lanes side by side. A
        group of several lanes is one transaction in each of them, and may fail in some of them.
        StoreUnavailable: the lane is known to be away, so that nobody need wait in it.
        """

    def close_row(self, series: Series, epochs: Sequence[int], row: bytes) -> bool:
        """Close a row wherever it stands in these epochs: what it spent is gone, no slot is free.

        Say whether there was any.
        """

    # -- retention -----------------------------------------------------------------------------

    def server_times(self) -> list[datetime]:
        """Return the time of each server of the store that answers.

        Empty: the store has no clock of its own, and goes by its caller's (`now` below).
        """

    def mark_dropped(self, series: Series, epochs: int, due: datetime, now: datetime) -> int:
        """Mark the first so many epochs as dropped: what comes for them is stale.

        Raise `NotDue` before the instant `due`. Return how many were not marked before.
        """

    def delete_dropped(self, series: Series, kept: timedelta, now: datetime) -> None:
        """Delete the rows of the epochs that were dropped at least so long ago, for good.

        Their counters are final: an engine stores them in the form that is read fastest.
        """

    def restore_dropped(self, series: Series) -> int:
        """Take back the drop of all epochs whose rows are still there; return how many they are."""

    # -- what the analyst reads ----------------------------------------------------------------

    def report_counts(self, series: Series) -> dict[Cell, int]:
        """Return how many reports each tally holds; cells without any are left out."""

    def counters(self, series: Series, cells: Sequence[Cell]) -> Counters:
        """Return the sum of the tallies of these cells."""

    def spend_histograms(self, series: Series) -> dict[int, Counters]:
        """Return per epoch how many rows have spent j slots, for j = 1 .. `Series.most`.

        Kept after its epoch drops. Place j - 1 holds the rows with j spent slots.
        """

    def new_pseudonyms(self, series: Series) -> dict[int, int]:
        """Return how many new rows each period has brought."""

    def service_counts(self) -> dict[ServiceCounter, int]:
        """Return everything that was ever noted."""

    def memory_use(self) -> MemoryUse:
        """Return how many bytes the counters take, by the account that commits are held to."""

    # -- the shelf -----------------------------------------------------------------------------

    def generation(self) -> int:
        """Return the number of changes of the shelf so far; cheap: workers ask all the time."""

    def records(self, kind: str) -> Records:
        """Return all records of a kind, by key."""

    def record_keys(self, kind: str) -> frozenset[str]:
        """Return the keys of all records of a kind, without their values."""

    def records_at(self, kind: str, keys: Collection[str]) -> Records:
        """Return the records of a kind under these keys; keys without a record are left out."""

    def record_count(self, kind: str) -> int:
        """Return the number of records of a kind, without reading them."""

    def generations(self) -> Mapping[str, int]:
        """Return, for each kind of record ever written, the generation of its last change.

        Readers compare these to re-read only the kinds that changed.
        """

    def change_records(self, generation: int, records: Sequence[Record]) -> bool:
        """Write (or, where the value is None, remove) all records if nobody else changed the shelf
        since this generation; say whether it was done. Durable, and the generation grows by one.
        """

    def replicate(self, kinds: Sequence[str]) -> None:
        """Copy the records of these kinds to every shard, where shards are apart."""

    def replica(self, kind: str) -> tuple[int, Records]:
        """Return the copy's generation and its records of a kind: for when the records are away."""

    def incarnation(self) -> str:
        """Return the name of the server process that keeps the records; as cheap.

        No two that may differ in what they hold have the same one: it changes when the server
        restarts, when another is promoted, and when a file is replaced by another.
        """

    # -- moving, and the operator --------------------------------------------------------------

    def set_read_only(self, *, on: bool) -> None:
        """Refuse (or take) whatever would change something from now on, in every process."""

    def export_pieces(self) -> Iterator[TransferPiece]:
        """Return everything, in one order, for another store; meant for a read-only one."""

    def import_pieces(self, pieces: Sequence[TransferPiece]) -> None:
        """Take over pieces of another store, in place of what stands there under their names.

        Records are changes of the shelf: the generation grows.
        """

    def durability(self) -> Durability:
        """Examine again whether acknowledgements are durable; cheap: each worker asks each second.

        While a weakness blocks at a server, `commit`, `forget`, `change` and `absorb` of what it
        keeps raise `StoreUnfit`.
        """

    def health(self) -> StoreHealth:
        """Return how it is, or raise where no shard takes reports."""

    def shards(self) -> Sequence[ShardHealth]:
        """Return how each part is, also of those that are away."""

    def reachable_part(self) -> tuple[Store, bool]:
        """Return a view that reads from the shards that answer now, and whether these are all.

        For figures of the service. An estimate from some of the shards would be a wrong estimate.
        """

    def close(self) -> None:
        """Let go of connections and files."""
