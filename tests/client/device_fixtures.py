"""Devices in simulated time: a clock, a server that remembers all it sees, and whole clients.

The client is the real one, state on disk included. Only its thread is simulated: it does a round
whenever the thread would, no sooner and no later.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from veilcount_client import Client
from veilcount_client.delivery import live_workers
from veilcount_client.delivery.transport import Delivered, Later, Outcome
from veilcount_client.delivery.worker import GATHER, RETRY_STATE, SHORT, ClientWorker
from veilcount_client.recording import answer_times
from veilcount_client.state import ClientState, PersonState
from veilcount_client.testing import SeededRandomSource, SettableClock, patching
from veilcount_shared import Collection, RandomSource, parse_collections
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import decode_binary

START = datetime(2026, 12, 1, tzinfo=UTC)
DATES = {"from": "2026-12-01", "until": "2026-12-31"}
DOMAINS = {"values", "values_file", "range", "boolean", "features", "questions"}
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


def at(days: float = 0, hours: float = 0, seconds: float = 0) -> float:
    """Return an instant of the campaign, as a clock's reading."""
    return (START + timedelta(days=days, hours=hours, seconds=seconds)).timestamp()


def one_collection(name: str, **keys: object) -> dict[str, Collection]:
    """Return one collection, a boolean one of each day of December by default."""
    return file(**{name: keys})


def file(app: str = "acme", /, **tables: Mapping[str, object]) -> dict[str, Collection]:
    """Return collections as a file of them would be read."""
    return parse_collections(definitions_text(app, **tables), lambda _: [])


def definitions_text(
    app: str = "acme", common: Mapping[str, object] = DATES, /, **tables: Mapping[str, object]
) -> str:
    """Return a file of definitions; what a table leaves out is a yes or no of each day."""
    defaults = {"question": "?", "epsilon": 1, "unit": "day", **DATES, **common}
    lines = [f'app = "{app}"']
    for name, own in tables.items():
        keys = defaults | {key.removesuffix("_"): value for key, value in own.items()}
        if not DOMAINS & keys.keys():
            keys["boolean"] = True
        if keys.get("model") == "central":
            del keys["epsilon"]
        lines.append(f"[{name}]")
        lines += [f"{key} = {each if key in DATES else _toml(each)}" for key, each in keys.items()]
    return "\n".join([*lines, ""])


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


class RaisingValue:
    """A value that raises whatever is done with it."""

    def __bool__(self) -> bool:
        raise RuntimeError("bang")

    __float__ = __add__ = __radd__ = __gt__ = __lt__ = __eq__ = __hash__ = __bool__  # type: ignore[assignment] # bang


@dataclass(frozen=True)
class Arrival:
    """A body, as the server sees it: all but the address."""

    instant: float
    body: bytes
    marks: bytes = b""  # whatever else the server sees of the request

    @property
    def batch(self) -> Batch:
        return decode_binary(self.body)


@dataclass
class Wire:
    """The network and the server at its end: counts each slot once, unless its mood is another."""

    clock: SettableClock
    arrivals: list[Arrival] = field(default_factory=list)  # what reached the server
    attempts: list[Arrival] = field(default_factory=list)  # whatever left the device
    counted: dict[tuple[str, bytes, int], Report] = field(default_factory=dict)
    mood: Callable[[], Outcome | None] = lambda: None  # an outcome before the server hears of it
    verdict: Callable[[Report], Verdict | None] = lambda _: None
    loses_reply: bool = False
    during: Callable[[], None] = lambda: None
    marks: bytes = b""

    def send(self, body: bytes, reports: int) -> Outcome:
        arrival = Arrival(self.clock.now(), body, self.marks)
        self.attempts.append(arrival)
        self.during()
        refused = self.mood()
        if refused is not None:
            return refused
        self.arrivals.append(arrival)
        verdicts = tuple(self._judge(report) for report in arrival.batch.reports)
        return Later("the reply was lost") if self.loses_reply else Delivered(verdicts)

    @property
    def is_heard(self) -> bool:
        """Whether the device hears what the server says of its reports."""
        return self.mood() is None and not self.loses_reply

    @property
    def reports(self) -> list[Report]:
        return [report for arrival in self.arrivals for report in arrival.batch.reports]

    def offline(self) -> None:
        self.mood = lambda: Later("offline", seen=False)

    def online(self) -> None:
        self.mood = lambda: None

    def shut(self) -> None:
        self.verdict = lambda _: Verdict.CLOSED

    def _judge(self, report: Report) -> Verdict:
        key = (report.fingerprint, report.pseudonym, report.slot)
        if (verdict := self.verdict(report)) is None and key not in self.counted:
            self.counted[key] = report
            return Verdict.COUNTED
        return verdict or Verdict.DUPLICATE


class Device:
    """One machine: a state that lasts, and the process that runs now."""

    def __init__(
        self,
        place: Path,
        collections: Mapping[str, Collection],
        clock: SettableClock | float = at(0, 9),  # noqa: B008 - a number
        wire: Any = None,
        *,
        person: object = None,
        randomness: RandomSource | None = None,
        consent: bool | None = True,
        lazy: bool = False,
        **options: Any,
    ) -> None:
        """Start the first process, on a clock or at an instant; its thread, unless it is lazy.

        A person named here has the same secrets in every run.
        """
        self.place, self.collections = place, collections
        self.clock = clock if isinstance(clock, SettableClock) else clock_at(clock)
        self.wire = wire or Wire(self.clock)
        self.randomness = randomness or SeededRandomSource(1)
        self.lazy, self.options = lazy, options
        self.runs = self.awake = self.woken = False
        self.abandoned: list[sqlite3.Connection] = []
        with nullcontext() if person is None else secrets(person):
            self.start()
            is_one = not options.get("persons")
            if is_one and consent is not None and self.client.consented is None:
                self.client.consent(consent)

    # -- processes -----------------------------------------------------------------------------

    def start(self, collections: Mapping[str, Collection] | None = None) -> None:
        """Start a process of the app, perhaps of a newer version of it."""
        self.collections = collections or self.collections
        with patch.object(ClientWorker, "wake") as wake:
            self.client = Client(
                collections=self.collections,
                state_dir=self.place,
                transport=self.wire,
                clock=self.clock,
                randomness=self.randomness,
                threaded=False,
                **self.options,
            )
        self.runs, self.awake = True, False
        self.close_abandoned()
        if self.client._session.worker is not None:
            setattr(self.client._session.worker, "wake", self._wake)  # noqa: B010 - a method, for once
        if wake.called or not self.lazy:
            self._wake()

    def stop(self) -> None:
        """End the process as it should: store, do what is due, let go."""
        self.client.close(0)
        self.runs = False
        self.close_abandoned()

    def close_abandoned(self) -> None:
        """Close what crashes and forks left open, as the system does for a process that died."""
        for connection in self.abandoned:
            connection.close()
        self.abandoned.clear()

    def restart(self) -> None:
        """End the process as it should, and start another one."""
        self.stop()
        self.start()

    def crash(self) -> None:
        """End the process as it should not: nothing is stored."""
        worker = self.worker
        worker.state.after_fork()  # the file is not closed
        self.abandoned += getattr(worker.state, "_abandoned", [])
        worker._queue.clear()
        worker.recorder.after_fork()
        live_workers.remove(worker)  # it will see no exit
        self.runs = False

    def fork(self) -> None:
        """Go on as a child, whose parent goes on elsewhere and stores what it has."""
        worker = self.worker
        worker.store()
        worker.after_fork()
        self.abandoned += getattr(worker.state, "_abandoned", [])

    # -- what its person does, and has ---------------------------------------------------------

    def record(self, *names: str, value: object = True, **segments: object) -> None:
        """Record a value in these collections, by default in all; store it."""
        for name in names or self.collections:
            self.client.record(name, value, **segments)
        self.work()

    def record_at(self, instant: float, name: str = "it", *, value: object = True) -> None:
        """Let time pass until an instant; record a value."""
        self.run_until(instant)
        self.record(name, value=value)

    def send(self, *names: str, value: object = True) -> None:
        """Record a value in these collections, by default in all; deliver it."""
        for name in names or self.collections:
            self.client.record(name, value)
        self.client.flush()

    def run_until(self, instant: float) -> None:
        pass_time(self.clock, instant, self)

    def run_for(self, seconds: float) -> None:
        pass_time(self.clock, self.clock.now() + seconds, self)

    def start_at(self, instant: float) -> None:
        set_clock(self.clock, instant)
        self.start()

    @property
    def worker(self) -> ClientWorker:
        assert self.client._session.worker is not None
        return self.client._session.worker

    @property
    def state(self) -> ClientState:
        return self.worker.state

    @property
    def key(self) -> bytes:
        """The key of the client's one person."""
        return self.client._session.consents.key("")

    @property
    def person(self) -> PersonState:
        return self.state.person(self.key)

    def instant(self, name: str = "it", period: int = 0, answer: int = 0) -> float:
        """Return when an answer of a period falls due, on the full minute."""
        return answer_times.instants(self.person, self.collections[name], period)[answer]

    @property
    def stored(self) -> list[Report]:
        """The reports that the state has, on their way or settled."""
        return [each.report for each in self.state.sent(self.key)]

    def spent(self, name: str) -> int:
        """Return what a collection has cost the person, in millionths."""
        spent = self.state.spent(self.key)
        return spent[name].life if name in spent else 0

    def losses(self, *names: str) -> dict[str, int]:
        """Return what was lost of these collections, by default of all, by reason."""
        lost = (self.client.explain(name).losses for name in names or self.collections)
        return dict(sum(map(Counter, lost), Counter[str]()))

    # -- the thread ----------------------------------------------------------------------------

    def _wake(self) -> None:
        if self.runs and not self.awake and self.client._session.worker is not None:
            self.awake = self.woken = True

    def work(self) -> None:
        """Do what the thread does when it is woken, if it was ever started."""
        if self.runs and self.awake:
            self.woken = False
            self.worker.work()

    def due(self) -> float | None:
        """Return when the thread has something to do."""
        if not (self.runs and self.awake and self.client._session.worker is not None):
            return None
        if self.worker.refusals:  # what cannot be stored is tried again, and nothing else is done
            return self.clock.now() + RETRY_STATE
        gathered = self.clock.now() + GATHER if self.worker._queue or self.woken else None
        dues = (gathered, self.worker.uploader.next_due())
        return min((due for due in dues if due is not None), default=None)


def pass_time(clock: SettableClock, until: float, *devices: Device) -> None:
    """Let time pass; every thread does what is due when it is due."""
    while True:
        dues = [due for device in devices if (due := device.due()) is not None]
        following = max(min(dues, default=until + 1), clock.now())
        if following > until:
            break
        set_clock(clock, following)
        for device in devices:
            device.work()
        set_clock(clock, following + SHORT)  # no thread does two rounds at once
    set_clock(clock, max(until, clock.now()))


def set_clock(clock: SettableClock, now: float) -> None:
    """Set a clock to a reading, which no `datetime` rounds."""
    clock._now = now
    clock.is_set = True


def clock_at(now: float) -> SettableClock:
    clock = SettableClock()
    set_clock(clock, now)
    return clock


def secrets(seed: object) -> patching.Replacement:
    """Make all secrets from a seed, so that two runs are of the same person."""
    return patching.secrets(SeededRandomSource(number(seed, "secrets")))


@contextmanager
def device_in_memory(
    person: object,
    collections: Mapping[str, Collection],
    clock: SettableClock | float,
    *,
    minute: float = MINUTE,
    plant: Callable[[], AbstractContextManager[object]] = nullcontext,
    **options: Any,
) -> Iterator[Device]:
    """Yield a device whose files are in memory, and whose secrets are those of a person."""
    with (
        tempfile.TemporaryDirectory(dir=quick()) as place,
        secrets(person),
        minutes_of(minute),
        plant(),
    ):
        yield Device(Path(place), collections, clock, **options)


@contextmanager
def minutes_of(seconds: float) -> Iterator[None]:
    """Have drawn instants lie on multiples of this: fewer of them are examined."""
    answer_times.drawn_instants.cache_clear()
    with patch.object(answer_times, "MINUTE", seconds):
        yield
    answer_times.drawn_instants.cache_clear()


def quick() -> str | None:
    """Return a directory in memory, if there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - made for this


def number(*what: object) -> int:
    """Return a number that stands for these things, the same in every process."""
    return int.from_bytes(hashlib.sha256(repr(what).encode()).digest()[:8], "big")
