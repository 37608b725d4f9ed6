"""What the rest of the aggregator asks of a store: one contract, two engines, one battery of tests.

**Exactly once.** A report spends one slot of one row; the row's bitmap says whether the slot was
spent. `commit` judges and writes a whole group in one durable transaction: for each report, in
order, the first of these that holds,

    the row's epoch was dropped                         stale
    the slot is spent, or the row was closed            duplicate
    the report was judged before (`otherwise`)          that verdict
    the row is new, and the period has no room          full
    the row has spent all it may (`Series.most`)        over_budget
    otherwise                                           counted: the slot spent, the message added

**What is kept of a device**: the first 12 of its pseudonym's 16 bytes and its bitmap, until the
epoch is dropped; its message is added to counters and gone. No time, no order, no address.

**Small records** (definitions, keys, releases, audit) are a shelf that changes by compare-and-set
on one generation number, so that their logic is written once, above the engines.

An engine raises `StoreError`s only; after one, nothing of the call was written, or (the reply was
lost) all of it, lane by lane: asking again is safe for every method here. Notes alone may then be
counted twice. Where rows are spread over shards, each has its share of a period's room.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.report import PSEUDONYM_BYTES
from veilcount_shared.verdict import Verdict

from ..series import Series

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Codes = NDArray[np.uint8]
Counters = NDArray[np.int64]

#: verdicts as numbers, for arrays: the place in this tuple
VERDICTS = tuple(Verdict)
CODES = {verdict: np.uint8(code) for code, verdict in enumerate(VERDICTS)}
COUNTED = CODES[Verdict.COUNTED]

#: how much of a pseudonym is kept: two of 10^9 agree in it by chance once in 10^11 times
ROW_BYTES = 12
assert ROW_BYTES < PSEUDONYM_BYTES  # noqa: S101 - two constants that belong together


@dataclass(frozen=True, slots=True)
class Spends:
    """Reports of one series, in columns of one length; each is a message that its design has."""

    series: Series
    rows: Bytes  # (n, 12): the pseudonym's first bytes
    epochs: Numbers
    periods: Numbers
    segments: Numbers
    slots: Numbers
    messages: Bytes  # (n, width)
    otherwise: Codes  # the verdict if the slot is free; COUNTED: count it
    room: int  # how many new rows each period may bring

    def __len__(self) -> int:
        """How many reports."""
        return len(self.rows)


class Note(NamedTuple):
    """Something that is counted beside the answers: a verdict, a loss, a request of the service."""

    what: str
    fingerprint: str  # "": of no series
    period: int  # -1: of no period
    word: str


Notes = Mapping[Note, int]

#: what the engines themselves note of each report that was not counted
VERDICT = "verdict"


class Cell(NamedTuple):
    """What one tally is of."""

    period: int
    segment: int


class Durable(StrEnum):
    """Whether an acknowledgement outlives a power cut."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Health:
    """What an operator wants to know of a store."""

    engine: str
    durable: Durable
    why: str
    fenced: bool


Records = Mapping[str, bytes]


class Record(NamedTuple):
    """One record of the shelf, or the absence of one (None)."""

    kind: str
    key: str
    value: bytes | None


class Piece(NamedTuple):
    """A part of a store on its way to another: absolute, so that taking it twice changes nothing.

    `kind` and `key` name it in every engine alike; `body` is the same bytes for the same content.
    """

    kind: str
    key: str
    body: bytes


class Store(Protocol):
    """A store of one deployment. Its methods may be called by any thread of any process."""

    # -- the intake ----------------------------------------------------------------------------

    def commit(self, group: Sequence[Spends], notes: Notes) -> list[Codes]:
        """Judge and count a group in one durable transaction; return each report's verdict."""

    def lane(self, group: Sequence[Spends]) -> int:
        """Return which of the store's lanes a group belongs to; -1: to several.

        Groups of one lane are committed one after the other, those of two lanes side by side. A
        group of several lanes is one transaction in each of them, and may fail in some of them.
        """

    def forget(self, series: Series, epochs: Sequence[int], row: bytes) -> bool:
        """Close a row wherever it stands in these epochs: what it spent is gone, no slot is free.

        Say whether there was any.
        """

    def drop(self, series: Series, epochs: int) -> None:
        """Drop the rows of the first so many epochs, for ever: what comes for them is stale.

        Their counters are final: an engine stores them in the form that is read fastest.
        """

    # -- what the analyst reads ----------------------------------------------------------------

    def sizes(self, series: Series) -> dict[Cell, int]:
        """Return how many reports each tally holds; cells without any are left out."""

    def counters(self, series: Series, cells: Sequence[Cell]) -> Counters:
        """Return the sum of the tallies of these cells."""

    def spread(self, series: Series) -> dict[int, Counters]:
        """Return per epoch how many rows have spent j slots, for j = 1 .. `Series.most`.

        Kept after its epoch drops. Place j - 1 holds the rows with j spent slots.
        """

    def fresh(self, series: Series) -> dict[int, int]:
        """Return how many new rows each period has brought."""

    def noted(self) -> dict[Note, int]:
        """Return everything that was ever noted."""

    # -- the shelf -----------------------------------------------------------------------------

    def generation(self) -> int:
        """Return the number of changes of the shelf so far; cheap: workers ask all the time."""

    def records(self, kind: str) -> Records:
        """Return all records of a kind, by key."""

    def record_keys(self, kind: str) -> frozenset[str]:
        """Return the keys of all records of a kind, without their values."""

    def records_at(self, kind: str, keys: Collection[str]) -> Records:
        """Return the records of a kind under these keys; keys without a record are left out."""

    def change(self, generation: int, records: Sequence[Record]) -> bool:
        """Write (or, where the value is None, remove) all records if nobody else changed the shelf
        since this generation; say whether it was done. Durable, and the generation grows by one.
        """

    # -- moving, and the operator --------------------------------------------------------------

    def fence(self, *, on: bool) -> None:
        """Refuse (or take) whatever would change something from now on, in every process."""

    def pieces(self) -> Iterator[Piece]:
        """Return everything, in one order, for another store; meant for a fenced one."""

    def absorb(self, pieces: Sequence[Piece]) -> None:
        """Take over pieces of another store, in place of what stands there under their names.

        Records are changes of the shelf: the generation grows.
        """

    def health(self) -> Health:
        """Return how it is, or raise."""

    def close(self) -> None:
        """Let go of connections and files."""
