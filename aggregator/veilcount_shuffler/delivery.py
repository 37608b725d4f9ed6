"""Delivery: the order of a crowd in signed parts, from the first that is not acknowledged.

Every part is a slice of a durable file under a head that is settled, and Ed25519 is deterministic:
after a crash the same part is the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from veilcount_shared.shuffling.batch_record import NO_DIGEST, BatchRecord, BatchState
from veilcount_shared.shuffling.part import PART_REPORTS, BatchHead, BatchPart, part_count

from .aggregator_client import BatchReceiver
from .crowd_folder import CrowdFolder
from .crowd_states import CrowdRow, CrowdStates
from .disk import Disk
from .errors import AggregatorAway, NotTaken

RECORD_DIFFERS = "record-differs"  # the aggregator's problem: it has all parts of the batch


@dataclass(frozen=True, slots=True)
class Delivery:
    """Brings parts and records of batches to the aggregator."""

    aggregator: BatchReceiver
    states: CrowdStates
    key: Ed25519PrivateKey
    disk: Disk

    def deliver(self, row: CrowdRow, folder: CrowdFolder, size: int) -> None:
        """Hand over what is left of a batch; AggregatorAway: go on later.

        The last part is sent once more where a crash hides what its answer was.
        """
        head = batch_head(row, size)
        missing: list[int] = []
        for number in range(min(row.parts_taken, head.parts - 1), head.parts):
            missing = self._send(self._part(head, folder, number))
            self.states.part_taken(row.crowd_id, number + 1)
        for number in missing:  # those that the aggregator has lost since
            if 0 <= number < head.parts:
                missing = self._send(self._part(head, folder, number))
        if missing:
            raise AggregatorAway("it misses parts that it has taken")

    def record(self, row: CrowdRow) -> BatchRecord:
        """Return the signed record of a crowd: of one that leaves or left, else what became of it.

        It has no numbers unless the batch was handed over.
        """
        state = row.outcome or BatchState.HANDED_OVER
        record = BatchRecord(state, row.crowd_id, row.period)
        if state is BatchState.HANDED_OVER:
            record = replace(record, reports=row.reports, covers=row.covers, digest=row.digest)
        return replace(record, signature=self.key.sign(record.signed()))

    def send_record(self, row: CrowdRow) -> None:
        """Hand over the record of a crowd that has ended.

        One that we call expired may have arrived, where the last answer was lost: the aggregator
        says so, and gets the record of a batch that was handed over.
        """
        try:
            self._send_record(row)
        except NotTaken as error:
            if error.problem != RECORD_DIFFERS or not _may_have_arrived(row):
                raise
            self._send_record(replace(row, outcome=BatchState.HANDED_OVER))
            self.states.handed_over_after_all(row.crowd_id)
        self.states.recorded(row.crowd_id)

    def _send_record(self, row: CrowdRow) -> None:
        self.disk.step("send record")
        self.aggregator.take_record(self.record(row).encode())
        self.disk.step("record sent")

    def _send(self, part: bytes) -> list[int]:
        self.disk.step("send part")
        missing = self.aggregator.take_part(part)
        self.disk.step("part sent")
        return missing

    def _part(self, head: BatchHead, folder: CrowdFolder, number: int) -> bytes:
        with folder.order.open("rb") as file:
            file.seek(number * PART_REPORTS * head.size)
            part = BatchPart(head, number, file.read(PART_REPORTS * head.size))
        return replace(part, signature=self.key.sign(part.signed())).encode()


def batch_head(row: CrowdRow, size: int) -> BatchHead:
    """Return what all parts of a batch say."""
    parts = part_count(row.reports + row.covers)
    return BatchHead(
        row.batch_id, row.crowd_id, row.period, row.reports, row.covers, row.digest, parts, size
    )


def _may_have_arrived(row: CrowdRow) -> bool:
    """Whether all parts of a crowd that we call expired were sent, the last maybe unanswered."""
    last = part_count(row.reports + row.covers) - 1
    return row.outcome is BatchState.EXPIRED and row.digest != NO_DIGEST and row.parts_taken >= last
