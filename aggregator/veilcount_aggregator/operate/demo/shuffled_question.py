"""One question whose reports travel by shuffler: its own store, which hands over by HTTP, and logs.

Devices hand it their envelopes by a call, since one clock rules all parties of a replay. It keeps
no log, nor does the aggregator; the demo does, to show that the two say nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from veilcount_serving.structured_logging import FaultLog
from veilcount_shared import Collection
from veilcount_shared.oblivious_http.key_file import decode_key_file
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.part import BatchPart
from veilcount_shuffler.aggregator_client import HttpAggregator
from veilcount_shuffler.crowd_states import CrowdStates
from veilcount_shuffler.crowd_store import CrowdStore
from veilcount_shuffler.delivery import Delivery
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.hand_over import HandOver
from veilcount_shuffler.holding import EnvelopeAnswer, Holding
from veilcount_shuffler.promise_check import check_promises
from veilcount_shuffler.served_crowds import ServedCrowds
from veilcount_shuffler.store_settings import PUBLIC_FILE, StoreSettings
from veilcount_shuffler.witness import Witness

from ...records.api_keys import Role, create_key
from ...records.gateway_keys import GatewayKey, key_file
from ...records.shuffler_keys import ANY, trust_shuffler
from ...service import Aggregator

NAME = "Wayfarer's neighbours"  # of the organisation that runs it


class HeldEnvelope(NamedTuple):
    """All that a shuffler has of one report."""

    address: str
    instant: datetime
    sealed: bytes


@dataclass(slots=True)
class ShufflerLogs:
    """What the shuffler was sent, and what the aggregator has of it, in the order of each."""

    shuffler: list[HeldEnvelope] = field(default_factory=list)
    aggregator: list[bytes] = field(default_factory=list)  # sealed reports, covers among them

    def in_place(self) -> int:
        """Return how many reports stand in the batch where they stood in the order of arrival."""
        arrived = [held.sealed for held in self.shuffler]
        own = set(arrived)
        handed_over = [sealed for sealed in self.aggregator if sealed in own]
        pairs = zip(arrived, handed_over, strict=False)
        return sum(one == other for one, other in pairs)


@dataclass(frozen=True, slots=True)
class DemoAggregator(HttpAggregator):
    """The aggregator over HTTP; its clock is the replay's, not that of its HTTP server."""

    clock: Callable[[], datetime] = field(kw_only=True)
    log: list[bytes] = field(kw_only=True)

    def now(self) -> datetime:
        """Return what its clock says."""
        return self.clock()

    def take_part(self, part: bytes) -> list[int]:
        """Hand over a part, and write down what is in it."""
        missing = HttpAggregator.take_part(self, part)
        decoded = BatchPart.decode(part)
        size = decoded.head.size
        rows = range(0, len(decoded.sealed), size)
        self.log.extend(decoded.sealed[start : start + size] for start in rows)
        return missing


@dataclass(frozen=True, slots=True)
class DemoShuffler:
    """A shuffler of one question, and what seals a report for it."""

    collection: Collection
    relay_keys: bytes
    logs: ShufflerLogs
    _store: CrowdStore
    _holding: Holding
    _hand_over: HandOver

    def take(self, address: str, envelope: bytes) -> EnvelopeAnswer:
        """Hold an envelope."""
        decoded = Envelope.decode(envelope)
        (answer,) = self._holding.hold([decoded])
        if answer is EnvelopeAnswer.HELD:
            held = HeldEnvelope(address, self._store.clock(), decoded.sealed)
            self.logs.shuffler.append(held)
        return answer

    def hand_over(self) -> None:
        """Do what is due now; it is mostly nothing."""
        self._hand_over.round()


@contextmanager
def open_shuffler(
    collection: Collection, folder: Path, aggregator: Aggregator, url: str, key: GatewayKey
) -> Iterator[DemoShuffler]:
    """Open a shuffler on a store in the folder; the aggregator trusts it."""
    now, disk, logs = aggregator.instant, Disk(), ShufflerLogs()
    check_promises([collection])
    settings = StoreSettings(folder / "shuffler", disk)
    _, secret = create_key(aggregator.store, Role.SHUFFLER, NAME, now())
    settings.make(url, secret, NAME)
    relay_keys = key_file([key]).encode()
    settings.set_keys(decode_key_file(relay_keys), now().date())
    settings.add_collections([collection], now().date())
    public = (folder / "shuffler" / PUBLIC_FILE).read_bytes()
    trust_shuffler(aggregator.store, public, ANY, now())
    with closing(CrowdStates(settings.crowds, disk)) as states:
        witness = Witness(None, disk)
        store = CrowdStore(settings.crowds, ServedCrowds(settings), states, witness, disk, now)
        receiver = DemoAggregator(url, secret, clock=now, log=logs.aggregator)
        delivery = Delivery(receiver, states, settings.signing_key, disk)
        faults = FaultLog()
        holding = Holding(store, lambda error: faults.log("disk", "shuffler", error))
        with closing(holding):
            yield DemoShuffler(
                collection, relay_keys, logs, store, holding, HandOver(store, delivery)
            )
