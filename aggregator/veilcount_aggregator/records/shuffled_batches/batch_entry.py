"""The entry of a batch: what has come of it, in one value that changes part by part.

Its counters stand here, apart from the tally, until the last part is in: half a batch has half of
its cover reports, and an estimate from it would be wrong. They are added to the tally in the commit
that completes the entry, and are gone from here.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import msgspec

from veilcount_shared.errors import BadField
from veilcount_shared.shuffling.part import PART_REPORTS, BatchHead, BatchPart, batch_digest

from ...errors import SecondBatch
from ...store.series_reports import Counters
from ...store.transfer_format import decode_numbers, encode_numbers, pad_zeros, trim_zeros

FASTEST = 1


class PartTotals(msgspec.Struct, frozen=True, array_like=True):
    """What a part held. Its shuffler is not shown how many canaries: they count as accepted."""

    digest: bytes  # of its sealed reports
    accepted: int
    unreadable: int
    canaries: dict[int, int] = {}  # of the operator: their places in the part, by their numbers


class BatchEntry(msgspec.Struct, frozen=True, array_like=True):
    """What has come of one batch."""

    batch_id: bytes
    crowd_id: bytes
    period: int
    reports: int  # without covers, as its shuffler says
    covers: int
    digest: bytes
    parts: int
    size: int
    day: str  # on which the first part came
    totals: dict[int, PartTotals] = {}
    counters: bytes = b""  # compressed; none once the batch is complete
    closed: bool = False  # nothing of it is taken any more: see `expiry`

    @classmethod
    def begin(cls, head: BatchHead, day: str) -> BatchEntry:
        """Return the entry of a batch of which nothing has come."""
        fields = (head.batch_id, head.crowd_id, head.period, head.reports, head.covers)
        return cls(*fields, head.digest, head.parts, head.size, day)

    @classmethod
    def decode(cls, raw: bytes) -> BatchEntry:
        """Return the entry of its bytes."""
        return msgspec.msgpack.decode(raw, type=cls)

    def encode(self) -> bytes:
        """Return its bytes."""
        return msgspec.msgpack.encode(self)

    @property
    def missing(self) -> list[int]:
        """The numbers of the parts that have not come."""
        return [number for number in range(self.parts) if number not in self.totals]

    @property
    def is_complete(self) -> bool:
        """Whether all parts have come."""
        return len(self.totals) == self.parts

    @property
    def unreadable(self) -> int:
        """How many reports could not be read so far."""
        return sum(part.unreadable for part in self.totals.values())

    @property
    def canary_positions(self) -> dict[int, int]:
        """Where in the batch the canaries are that came, by their numbers."""
        return {
            canary: number * PART_REPORTS + place
            for number, part in self.totals.items()
            for canary, place in part.canaries.items()
        }

    @property
    def canaries(self) -> int:
        """How many canaries of the operator came so far: they count nowhere."""
        return sum(len(part.canaries) for part in self.totals.values())

    @property
    def n(self) -> int:
        """How many reports of devices were read so far, if all covers could be."""
        accepted = sum(part.accepted for part in self.totals.values())
        return max(0, accepted - self.canaries - self.covers)

    def is_counted(self, least: int) -> bool:
        """Whether the batch is in the tally: complete, and not below `least` without its canaries.

        Its shuffler cannot tell canaries, and hands over a batch that they bring to `least`.
        """
        is_below = self.canaries > 0 and self.reports - self.canaries < least
        return self.is_complete and not is_below

    def totals_of(self, part: BatchPart) -> PartTotals | None:
        """Return the totals of a part that has come; None: it is new; refuse any other content."""
        if part.head != self._head:  # its shuffler signed two of them
            raise SecondBatch(part.head.crowd_id, part.head.period)
        totals = self.totals.get(part.number)
        if totals is not None and totals.digest != part.digest:
            raise BadField("part", f"part {part.number} came before, with another content")
        return totals

    def with_part(
        self,
        part: BatchPart,
        accepted: int,
        unreadable: int,
        counters: Counters,
        canaries: Mapping[int, int],
    ) -> BatchEntry:
        """Return the entry with one part more; the last one must make up the stated digest."""
        added = PartTotals(part.digest, accepted, unreadable, dict(canaries))
        grown = msgspec.structs.replace(self, totals=self.totals | {part.number: added})
        if grown.is_complete:
            grown.require_digest()
            return msgspec.structs.replace(grown, counters=b"")
        body = encode_numbers(trim_zeros(self.sum_with(counters)))
        return msgspec.structs.replace(grown, counters=zlib.compress(body, FASTEST))

    def sum_with(self, counters: Counters) -> Counters:
        """Return the counters of all parts that came before and of one more."""
        if not self.counters:
            return counters
        return pad_zeros(decode_numbers(zlib.decompress(self.counters)), len(counters)) + counters

    def require_digest(self) -> None:
        """Refuse the last part if the batch is not the one whose digest its shuffler signed."""
        digests = [self.totals[number].digest for number in range(self.parts)]
        if batch_digest(digests) != self.digest:
            raise BadField("digest", "the parts do not have the digest that they state")

    def close(self) -> BatchEntry:
        """Return the entry of a closed batch: without its pending counters."""
        return msgspec.structs.replace(self, closed=True, counters=b"")

    @property
    def _head(self) -> BatchHead:
        fields = (self.batch_id, self.crowd_id, self.period, self.reports, self.covers)
        return BatchHead(*fields, self.digest, self.parts, self.size)
