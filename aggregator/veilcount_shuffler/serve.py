"""`veilcount shuffler serve`: workers that hold, and one process that hands over.

Neither keeps what has left: a worker ends once a crowd that it held reports of is sealed, the
process that hands over once it has moved one. Another takes its place, with nothing in memory.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from veilcount_serving.listen_address import ListenAddress
from veilcount_serving.malloc import limit_malloc_arenas
from veilcount_serving.structured_logging import FaultLog, configure_logging, log_event
from veilcount_serving.worker_processes import (
    Announce,
    StartupSummary,
    enter_worker,
    raise_file_limit,
    run_workers,
)
from veilcount_shared.errors import VeilcountError
from veilcount_shared.shuffling.batch_record import BatchState

from .aggregator_client import HttpAggregator
from .crowd_limit import CrowdFull, DiskLimit
from .crowd_states import CrowdState, CrowdStates
from .crowd_store import CrowdStore, system_clock
from .delivery import Delivery
from .disk import Disk
from .envelope_figures import EnvelopeFigures
from .envelope_intake import EnvelopeIntake
from .envelopes_endpoint import EnvelopesEndpoint
from .errors import ShufflerError
from .hand_over import HandOver
from .holding import Holding
from .network_limit import RATE, NetworkLimit
from .served_crowds import crowds_of
from .shuffler_metrics import ShufflerMetrics
from .store_settings import StoreSettings

ROUND_SECONDS, DEVELOPMENT_SECONDS = 60.0, 0.5
WATCH_SECONDS = 1.0
ENDPOINT = "shuffler"
MOVED = frozenset({"crowd ended", "crowd waits", "crowd refused", "crowd expired"})


@dataclass(frozen=True, slots=True)
class ShufflerSettings:
    """What an operator sets where a shuffler is served."""

    store: Path
    witness: Path | None = None
    rate: int = RATE
    workers: int = 1
    development: timedelta | None = None  # instead of the grace; never with persons' reports

    @property
    def round_seconds(self) -> float:
        """How long it is from one round to the next."""
        return DEVELOPMENT_SECONDS if self.development else ROUND_SECONDS

    def stored(self) -> StoreSettings:
        """Return what was loaded into the store."""
        return StoreSettings(self.store, Disk())

    def open(self) -> CrowdStore:
        """Open the store."""
        return CrowdStore.open(self.stored(), self.witness, self.development)

    def hand_over(self, store: CrowdStore) -> HandOver:
        """Return what hands crowds over to the aggregator."""
        stored = self.stored()
        aggregator = HttpAggregator(*stored.target)
        return HandOver(store, Delivery(aggregator, store.states, stored.signing_key, store.disk))


class ShufflerSummary(StartupSummary):
    """The line that is printed once the shuffler accepts connections."""

    def __str__(self) -> str:
        return f"veilcount: shuffling at {self.bind} from {self.store} ({self.intake})"


def serve_shuffler(settings: ShufflerSettings, bind: ListenAddress, announce: Announce) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code. Nothing is handed over at the end."""
    forbid_core_dumps()
    bind.check()
    settings.stored().require()
    store = settings.open()
    try:
        check_witness(settings.stored(), settings.hand_over(store))
        store.witness.identify(settings.stored())
    finally:
        store.states.close()
    witness = "with a witness" if settings.witness else "WITHOUT a witness"
    ready = ShufflerSummary(bind, str(settings.store), "durable", settings.workers, witness)
    configure_logging(sys.stderr)
    limit_malloc_arenas()
    raise_file_limit()
    ends = threading.Event()
    keeper = threading.Thread(target=_keep_handing_over, args=(settings, ends), daemon=True)
    keeper.start()
    try:
        return run_workers(ready, partial(_load, settings), announce, has_front=True)
    finally:
        ends.set()
        keeper.join(WATCH_SECONDS * 3)


def forbid_core_dumps() -> None:
    """Have a crash write no memory to a disk."""
    import resource  # noqa: PLC0415 - where nothing is served it may be missing

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


# -- a worker --------------------------------------------------------------------------------------


def _load(settings: ShufflerSettings) -> EnvelopesEndpoint:
    enter_worker()
    configure_logging(sys.stderr)
    faults = FaultLog()
    store = settings.open()
    holding = Holding(store, partial(_log_not_held, faults))
    limit = NetworkLimit(settings.rate, settings.workers, system_clock, time.monotonic)
    disk_limit = DiskLimit(store.crowds)
    states = CrowdStates(store.crowds, store.disk)
    watch = partial(_watch, holding, states, disk_limit, faults)
    threading.Thread(target=watch, name="veilcount-watch", daemon=True).start()
    figures = EnvelopeFigures(settings.store, system_clock)
    threading.Thread(target=_keep_flushing, args=(figures, faults), daemon=True).start()
    metrics = ShufflerMetrics(settings.stored(), settings.witness, figures, system_clock)
    intake = EnvelopeIntake(holding, limit, faults, lambda: disk_limit.has_space, figures=figures)
    return EnvelopesEndpoint(intake, faults, metrics.exposition)


def _keep_flushing(figures: EnvelopeFigures, faults: FaultLog) -> None:
    """Add this worker's figures to the store's; those of its last second are lost with it."""
    while True:
        time.sleep(WATCH_SECONDS)
        try:
            figures.flush()
        except VeilcountError as error:
            faults.log("figures", ENDPOINT, error)


def _log_not_held(faults: FaultLog, error: Exception) -> None:
    if isinstance(error, CrowdFull):
        faults.log("crowd full", ENDPOINT, error, reason=str(error))
    else:
        faults.log("disk", ENDPOINT, error)


def _watch(holding: Holding, states: CrowdStates, limit: DiskLimit, faults: FaultLog) -> None:
    """Look after the disk; end this process once a crowd that it held reports of is sealed."""
    while True:
        time.sleep(WATCH_SECONDS)
        faults.log_ended()
        try:
            limit.measure()
            has_ended = any(
                states.state(crowd_id) is not CrowdState.OPEN for crowd_id in holding.crowd_ids
            )
        except Exception as error:  # noqa: BLE001 - the thread goes on
            faults.log("failed", ENDPOINT, error)
            continue
        if has_ended:
            os.kill(os.getpid(), signal.SIGTERM)
            return


# -- the process that hands over -------------------------------------------------------------------


def _keep_handing_over(settings: ShufflerSettings, ends: threading.Event) -> None:
    """Have a process that hands over, and another one after each crowd."""
    context = multiprocessing.get_context("spawn")
    delay = 0.0
    while not ends.is_set():
        process = context.Process(target=hand_over_process, args=(settings, delay), daemon=True)
        process.start()
        while process.is_alive() and not ends.wait(WATCH_SECONDS / 4):
            pass
        process.terminate()
        process.join()
        delay = settings.round_seconds


def hand_over_process(settings: ShufflerSettings, delay: float) -> None:
    """Run rounds after a delay, until one has moved a crowd: then nothing of it stays in memory."""
    forbid_core_dumps()
    enter_worker()
    configure_logging(sys.stderr)
    time.sleep(delay)
    faults = FaultLog()
    hand_over = settings.hand_over(settings.open())
    while not _round(hand_over, faults):
        time.sleep(settings.round_seconds)


def _round(hand_over: HandOver, faults: FaultLog) -> bool:
    """Run one round and log it; return whether a crowd's reports were in this memory."""
    faults.log_ended()
    try:
        events = hand_over.round()
    except (VeilcountError, OSError) as error:
        faults.log("failed", ENDPOINT, error)
        return True
    for event in events:
        level = logging.ERROR if event.is_alert else logging.INFO
        log_event(event.what, level, reason=event.reason)
    return any(event.what in MOVED for event in events)


def check_witness(settings: StoreSettings, hand_over: HandOver) -> None:
    """Refuse a store that knows less than its witness, once its crowds are recorded as lost.

    Those that are open in it may have left already; with fresh covers they would leave twice.
    """
    with hand_over.store.alone():
        _check_witness(settings, hand_over)


def _check_witness(settings: StoreSettings, hand_over: HandOver) -> None:
    states = hand_over.states
    unknown = hand_over.store.witness.unknown_to(states)
    if not unknown:
        return
    served = {crowd.crowd_id: crowd for crowd in crowds_of(settings)}
    unfinished = [row.crowd_id for row in states.rows() if row.outcome is None]
    lost = list(dict.fromkeys([*unfinished, *unknown]))  # the witness's last: it shows what is left
    for crowd_id in lost:
        if states.state(crowd_id) is None:
            if crowd_id not in served:
                raise ShufflerError("the witness has a crowd of other definitions: load them first")
            hand_over.store.open_row(served[crowd_id])
        hand_over.end(crowd_id, BatchState.LOST)
    raise ShufflerError(
        f"the store knows less than its witness: it was restored, and {len(lost)} crowds are"
        " recorded as lost. None of them will be handed over; start it again"
    )
