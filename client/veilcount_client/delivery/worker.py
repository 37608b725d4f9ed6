"""The worker: a queue in memory and a lazy daemon thread, safe across forks.

`put` never blocks and waits for no lock: it may run in a signal handler or a finalizer, in the very
thread that holds one [docs.python.org, queue.SimpleQueue.put: reentrant]. A forked child drops the
inherited queue (its parent still has it), makes its locks anew and starts its own thread with its
first record.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass, field

from ..clock import Clock
from ..recording.answer_times import full_minute
from ..recording.recorder import RecordCall, Recorder
from ..state import ClientState, ConsentDecision, StateError
from ..state.key_derivation import person_key
from ..state.losses import Loss
from . import live_workers
from .delivery_pool import DeliveryPool
from .uploader import Uploader

MOST_QUEUED = 100_000
MOST_AT_ONCE = 1_000
GATHER = 0.02  # seconds in which records gather for one commit
SHORT, LONG = 0.05, 3600.0  # seconds between two rounds, the longest for what others leave here
RETRY_STATE = 5.0
POLL = 0.25  # seconds: what is waited for may also be delivered by another process
EXIT_SECONDS = 1.0  # for true values, at the exit of a process that did not close its client


@dataclass(eq=False)
class ClientWorker:
    """Stores what is recorded and keeps the uploader going."""

    state: ClientState
    recorder: Recorder
    uploader: Uploader
    clock: Clock
    complain: Callable[[str, str], None]
    threaded: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        """Make no thread, touch no network: that waits for the first record."""
        self.uploader.pool = DeliveryPool(
            threaded=self.threaded, finished=self._delivered, failed=self._fail
        )
        self._queue: deque[RecordCall] = deque()
        self.refusals: dict[bytes, ConsentDecision] = {}  # that the state could not take yet
        self._closing = False
        self._process = _ProcessLocals()
        live_workers.add(self)

    @property
    def storing(self) -> threading.RLock:
        """The lock under which records are stored."""
        self._notice_fork()
        return self._process.storing

    # -- called by the app's threads -----------------------------------------------------------

    def put(self, record: RecordCall) -> bool:
        """Queue a record; False if memory holds enough already. Microseconds, no lock."""
        self._notice_fork()
        if len(self._queue) >= MOST_QUEUED:
            return False
        self._queue.append(record)
        if not self._process.woken:
            self.wake()
        return True

    def wake(self) -> None:
        """Start the thread if it does not run, and wake it."""
        self._notice_fork()
        if not self.threaded or self._closing:
            return
        if self._process.thread is None or not self._process.thread.is_alive():
            self._start()
        self._process.wake()

    def store(self) -> bool:
        """Store what is queued, in the caller's thread; False if the state cannot take it."""
        self._notice_fork()
        return self._write(self._store_queue)

    def store_queued(self) -> None:
        """Store what is queued, if anything is."""
        if self._queue or self.refusals:
            self.store()

    def finish(self) -> bool:
        """Store what is queued and what is held: the process, or the client, ends."""
        stored = self.store()
        return self._write(self.recorder.finish) and stored

    def _write(self, store: Callable[[], None]) -> bool:
        try:
            with self._process.storing:
                store()
                self.recorder.write_losses()
        except StateError as error:
            self.complain("state", str(error))
            return False
        return True

    def _store_queue(self) -> None:
        for person, refusal in list(self.refusals.items()):  # before anything else may leave
            self.state.consent(person, refusal)
            self.refusals.pop(person, None)
        # First what was due when the first record came: a record must not hide the absence of an
        # earlier period, nor an absence that falls due meanwhile take the place of a record.
        collections, now = self.uploader.collections.values(), self.clock.now()
        first = min((now, *(record.at for record in list(self._queue))))
        self.recorder.sweep(first, collections)
        for _ in range(0, len(self._queue), MOST_AT_ONCE):  # and not what comes meanwhile
            size = min(len(self._queue), MOST_AT_ONCE)
            self._store_records([self._queue.popleft() for _ in range(size)])
        if first < full_minute(now):  # instants are full minutes: else nothing fell due since
            self.recorder.sweep(now, collections)

    def deliver(self, timeout: float) -> bool:
        """Send what may leave, at once; whether all of it was counted in time."""
        self._notice_fork()
        ends, refused = time.monotonic() + timeout, self.uploader.refused
        if not self.threaded:
            self.work()  # what is due and cannot be hurried has nobody else to send it
        if self.uploader.pool.is_busy:  # what is under way may fail, and is then tried once more
            self._hurry(lambda: self._all_delivered() or self._all_tried(), timeout)
        self._hurry(self._all_delivered, ends - time.monotonic())
        return self._all_delivered() and self.uploader.refused == refused

    def close(self, timeout: float) -> None:
        """Send what is due and what only memory has, in this time; stop the thread."""
        self._notice_fork()
        ends = time.monotonic() + timeout
        self._send_last(timeout)
        self._closing = True
        self._process.wake()
        thread = self._process.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, ends - time.monotonic()))
        self.let_go()
        self.state.close()
        live_workers.remove(self)

    def leave(self) -> None:
        """The process exits: try to deliver what only memory has, and leave the rest."""
        if self.uploader.outboxes.has_true_values and self._process.thread is not None:
            self._send_last(EXIT_SECONDS)
        self.let_go()
        self.state.close()  # Windows removes no directory in which a file is open

    def _send_last(self, timeout: float) -> None:
        self._process.leaving = self.uploader.outboxes.has_true_values
        if self._process.leaving or (self.threaded and self._is_due()):
            self._do_round(self._all_sent, timeout)

    def _hurry(self, finished: Callable[[], bool], timeout: float) -> None:
        self._process.hurry = True
        self._do_round(finished, timeout)

    def _do_round(self, finished: Callable[[], bool], timeout: float) -> None:
        if self.threaded:
            self.wake()
            ends = time.monotonic() + timeout
            with self._process.rounds:
                while not finished() and (left := ends - time.monotonic()) > 0:
                    self._process.rounds.wait(min(left, POLL))
        else:
            self.work()

    def let_go(self) -> None:
        """Give back what is under way, to the next process."""
        with suppress(StateError):
            self.uploader.let_go()

    def discard(self, person: bytes, series: Container[str]) -> None:
        """Forget what is queued and held of a person, and let no leased report of theirs leave."""
        self._notice_fork()
        for _ in range(len(self._queue)):
            with suppress(IndexError):  # another thread may store at the same time
                record = self._queue.popleft()
                is_person = person_key(self.state.root, record.person) == person
                if not (is_person and record.collection.fingerprint in series):
                    self._queue.append(record)
        self.recorder.discard(person, series)
        self.uploader.discard(person, series)

    # -- the thread ----------------------------------------------------------------------------

    def work(self) -> None:
        """One round: store, then send what is due."""
        hurry, self._process.hurry = self._process.hurry, False
        leaving, self._process.leaving = self._process.leaving, False
        try:
            if self.store():
                self.uploader.run(hurry=hurry, leaving=leaving)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not end the thread, nor pass unseen
            self._fail(error)
        self._notify()

    def _delivered(self) -> None:
        """Go on after a delivery; of a closed client it may have opened the state anew."""
        if self._closing:
            self.state.close()
        self._notify()

    def _notify(self) -> None:
        with self._process.rounds:
            self._process.rounds.notify_all()

    def _fail(self, error: Exception) -> None:
        if isinstance(error, StateError):
            self.complain("state", str(error))
        else:
            self.complain("uploader", f"{type(error).__name__} in the uploader")

    def _run(self) -> None:
        while not self._closing:
            with suppress(queue.Empty):
                self._process.bell.get(timeout=self._pause())
            self._process.gather.wait(GATHER)
            self._process.woken = False  # before the round: what comes now wakes the next one
            if not self._closing:
                self.work()

    def _pause(self) -> float:
        if self.refusals:
            return RETRY_STATE
        try:
            due = self.uploader.next_due()
        except StateError:
            return RETRY_STATE
        return LONG if due is None else min(max(due - self.clock.now(), SHORT), LONG)

    def _start(self) -> None:
        if not self._process.starting.acquire(blocking=False):
            return  # it is being started: perhaps by this very thread, below a signal handler
        try:
            if self._process.thread is None or not self._process.thread.is_alive():
                thread = threading.Thread(target=self._run, name="veilcount", daemon=True)
                with suppress(RuntimeError):  # the interpreter goes down: at exit all is stored
                    thread.start()
                    self._process.thread = thread
        finally:
            self._process.starting.release()
        live_workers.add_multiprocessing_exit(self)

    def _store_records(self, records: list[RecordCall]) -> None:
        try:
            self.recorder.take(records)
        except StateError:
            self._queue.extendleft(reversed(records))
            raise
        except Exception as error:  # noqa: BLE001 - a bug of ours must cost one record, not a thousand
            self.complain("answers", f"{type(error).__name__} while storing")
            if len(records) == 1:
                self.recorder.losses.add(Loss.FAILED, records[0].collection.name)
            for record in records if len(records) > 1 else ():
                self._store_records([record])

    def _is_due(self) -> bool:
        try:
            due = self.uploader.next_due()
        except StateError:
            return False
        return due is not None and due <= self.clock.now()

    def _all_delivered(self) -> bool:
        try:
            return not self._queue and not self.uploader.waiting()
        except StateError:
            return False

    def _all_tried(self) -> bool:
        return not (self._process.hurry or self.uploader.pool.is_busy)

    def _all_sent(self) -> bool:
        return not (self._process.leaving or self.uploader.pool.is_busy or self._is_due())

    # -- forks ---------------------------------------------------------------------------------

    def _notice_fork(self) -> None:
        if self._process.pid != os.getpid():  # forked without Python's hooks
            self.after_fork()
        elif self._process.lock is not threading.Lock:  # patched since, as gevent's workers do
            self._renew()

    def after_fork(self) -> None:
        """Begin anew in a child: nothing of the parent's is stored twice, no lock is inherited."""
        self._queue = deque()
        self.recorder.after_fork()
        self._renew()

    def _renew(self) -> None:
        """Take other locks and no thread: those of before would stop greenlets, or are held."""
        self._process = _ProcessLocals()
        self.uploader.after_fork()
        self.state.after_fork()


class _ProcessLocals:
    """The thread and the locks of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock  # the system's, or what replaced it
        self.thread: threading.Thread | None = None
        self.woken = False
        self.bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.gather = threading.Event()  # never set: a sleep that a daemon thread may die in
        self.storing = threading.RLock()
        self.starting = threading.Lock()
        self.rounds = threading.Condition()
        self.hurry = False
        self.leaving = False

    def wake(self) -> None:
        self.woken = True
        self.bell.put(None)
