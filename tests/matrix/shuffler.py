"""Reports by a shuffler: sealed on the device, held in the shuffler's own store, handed over once.

What a device posts is the shuffler's log; a server has the batches, and its own reports in them.
All that the operating system would draw is drawn from seeds: a run is the same again.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

from veilcount_client.delivery.transport import Delivered, Outcome, Rejected
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import Collection
from veilcount_shared.limits import PSEUDONYM_BYTES, TOKEN_BYTES
from veilcount_shared.oblivious_http.key_file import encode_key_file
from veilcount_shared.report import Batch, Report
from veilcount_shared.shuffling.crowd import Crowd
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.plain_report import PLAIN_BYTES_WITH_TOKEN, PlainReport
from veilcount_shared.shuffling.sealed_report import open_report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import encode_binary
from veilcount_shuffler.holding import EnvelopeAnswer
from veilcount_shuffler.served_crowds import ServedCrowd, crowds_of

from ..client.device_fixtures import number, quick
from ..shuffler.parties import KEY, PRIVATE, START, HandClock, ShufflerStore, messages
from ..shuffler.seeded import seeded_order, seeded_sealing

RELAY_KEYS = encode_key_file([(START, KEY.encode())]).encode()
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


# -- what devices send -----------------------------------------------------------------------------


class EnvelopeWire:
    """A device's way to a shuffler: an envelope is answered as the body of its report would be."""

    def __init__(
        self, collections: Iterable[Collection], answer: Callable[[bytes, int], Outcome]
    ) -> None:
        """Compute the crowds whose reports may come."""
        self._answer = answer
        self._crowds = {
            Crowd.of_period(collection, period, KEY.encode(), KEY).crowd_id: collection
            for collection in collections
            for period in range(collection.periods)
        }
        self.envelope = b""  # that is being answered

    def send_envelope(self, envelope: bytes) -> Outcome:
        """Answer 202 for what a server would have taken, 410 for what it would have closed."""
        self.envelope = envelope
        outcome = self._answer(encode_binary(Batch((self._opened(envelope),))), 1)
        if not isinstance(outcome, Delivered):
            return outcome
        return Rejected("410") if Verdict.CLOSED in outcome.verdicts else Delivered(("held",))

    def _opened(self, envelope: bytes) -> Report:
        """Return the report in it, under a name of its sealed bytes."""
        sealed = Envelope.decode(envelope)
        collection = self._crowds[sealed.crowd_id]
        raw = open_report({KEY.key_id: PRIVATE}, sealed.crowd_id, sealed.period, sealed.sealed)
        token_bytes = TOKEN_BYTES if len(raw) == PLAIN_BYTES_WITH_TOKEN else 0
        plain = PlainReport.decode(raw, collection.message_bytes, token_bytes)
        series = collection.fingerprint
        return Report(series, sealed.period, 0, name_of(sealed.sealed), 0, plain.message)


def name_of(sealed: bytes) -> bytes:
    """Return what stands for a pseudonym: one sealed report is a row of its own."""
    return hashlib.sha256(sealed).digest()[:PSEUDONYM_BYTES]


# -- what leaves the shuffler ----------------------------------------------------------------------


@dataclass(frozen=True)
class BatchRow:
    """A sealed report at its place in a batch."""

    collection: Collection
    period: int
    instant: float  # of the hand-over; a second later for each place
    sealed: bytes


def hand_over(
    files: Sequence[Mapping[str, Collection]], arrivals: Iterable[tuple[float, bytes]]
) -> Iterator[BatchRow]:
    """Hold envelopes in the order of their arrival; yield all batches without the server's own.

    A crowd is filled up by as many of these as it needs: the server floods it.
    """
    by_crowd: dict[bytes, list[Envelope]] = {}
    for _, raw in sorted(arrivals):
        envelope = Envelope.decode(raw)
        by_crowd.setdefault(envelope.crowd_id, []).append(envelope)
    source = SeededRandomSource(number("covers"))
    first, *later = (list(file.values()) for file in files)
    with (
        tempfile.TemporaryDirectory(dir=quick()) as folder,
        seeded_sealing("shuffler"),
        seeded_order(),
        closing(
            ShufflerStore(Path(folder), HandClock(), collections=first, randomness=source)
        ) as store,
    ):
        for file in later:
            store.settings.add_collections(file, START)
        served = sorted(crowds_of(store.settings), key=lambda crowd: crowd.leaves)
        for leaves, crowds in groupby(served, key=lambda crowd: crowd.leaves):
            yield from _batches(store, leaves, list(crowds), by_crowd)


def _batches(
    store: ShufflerStore,
    leaves: datetime,
    crowds: Sequence[ServedCrowd],
    by_crowd: Mapping[bytes, Sequence[Envelope]],
) -> Iterator[BatchRow]:
    """Hold what came for the crowds that leave at one instant; yield their batches."""
    sybils: set[bytes] = set()
    worker = store.worker()
    for crowd in crowds:
        own = messages(crowd, crowd.least) if crowd.covers else []
        sybils |= {envelope.sealed for envelope in own}
        store.clock.now = crowd.closes - SECOND
        answers = worker.hold([*by_crowd.get(crowd.crowd_id, ()), *own])
        assert set(answers) <= {EnvelopeAnswer.HELD}, set(answers)
    store.clock.now = leaves + MINUTE
    store.rounds(1)
    for crowd in crowds:
        if crowd.crowd_id in store.aggregator.heads:
            order = store.aggregator.sealed(crowd.crowd_id)
            left = [sealed for sealed in order if sealed not in sybils]
            for place, sealed in enumerate(left):
                instant = leaves.timestamp() + place
                yield BatchRow(crowd.collection, crowd.period, instant, sealed)
