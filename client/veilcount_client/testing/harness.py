"""The test harness: while it is open, every new client runs without thread, network and chance.

Clients made before it was opened (at the import of the app, say) are left alone: have the app make
its client in a function, or through an integration, which does.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, Self

from veilcount_shared import Collection
from veilcount_shared.domain import Label
from veilcount_shared.report import Report

from ..client import Client, Respondent
from ..delivery.worker import ClientWorker
from ..options import ClientOptions, Definitions
from ..recording.person_id import SELF
from ..recording.recorder import RecordCall
from ..session import Session
from ..state.key_derivation import person_key
from . import patching
from .doubles import (
    RecordingShuffler,
    RecordingTransport,
    SeededRandomSource,
    SettableClock,
    first_common_noon,
)


class RecordedValue(tuple[str, object]):  # noqa: SLOT001 - its segments are no item of the tuple
    """One recorded value: equal to (name, value), and knows its segments."""

    segments: Mapping[str, Label]

    def __new__(cls, name: str, value: object, segments: Mapping[str, Label] | None = None) -> Self:
        """Remember a value with the public segments it was recorded in."""
        recorded = super().__new__(cls, (name, value))
        recorded.segments = dict(segments or {})
        return recorded

    @property
    def name(self) -> str:
        """The collection."""
        return self[0]

    @property
    def value(self) -> object:
        """What was recorded, before any noise."""
        return self[1]


def segments_of(collection: Collection, cell: int) -> dict[str, Label]:
    """Return the segments that a cell's number stands for."""
    values: dict[str, Label] = {}
    for name, labels in reversed(collection.segments):
        cell, place = divmod(cell, len(labels))
        values[name] = labels[place]
    return dict(reversed(values.items()))


PACE = 3600.0  # when time passes, what is due is done at least this far apart


class ClientHarness:
    """Clients for tests, and what they recorded and sent."""

    def __init__(self, *, seed: int = 1, consent: bool | None = True) -> None:
        """Choose the seed, and the consent of new persons; None leaves them unasked."""
        self.consent = consent
        self.clock = SettableClock()
        self.transport = RecordingTransport()
        self.shuffler = RecordingShuffler()  # in place of the one that the app names
        self.recorded: list[RecordedValue] = []
        self._seed = seed
        self._sessions: list[Session] = []
        self._overrides: dict[str, Any] = {}  # the options of `client`
        self._fresh = count()
        self._undo: ExitStack | None = None

    # -- what a test calls ---------------------------------------------------------------------

    def client(self, collections: Definitions | None = None, **options: Any) -> Client:
        """Return a client with a state of its own. These options win over the harness's."""
        if self._undo is None:
            raise RuntimeError("open the harness first: with ClientHarness() as veilcount")
        if not {"state", "state_dir"} & options.keys():
            options["state_dir"] = f"fresh {next(self._fresh)}"
        if onward := options.pop("transport", None):
            options["transport"] = RecordingTransport(onward, self.transport.batches)
        self._overrides = options
        try:
            return Client(collections=collections, **options)
        finally:
            self._overrides = {}

    @property
    def sent(self) -> list[Report]:
        """Return the reports that left, in order."""
        return self.transport.reports

    def flush(self) -> bool:
        """Store and send everything that may leave now."""
        flushed = [session.flush(10.0, "delivered") for session in self._running()]
        return all(flushed)

    def advance(self, **by: float) -> None:
        """Let time pass, advance(days=7), and do what is due on the way, when it is due."""
        end = self.clock.now() + timedelta(**by).total_seconds()
        self._pass(until=self.clock.now())
        while (due := self._next_due()) < end:
            self._pass(until=due)
        self._pass(until=end)

    # -- opening and closing -------------------------------------------------------------------

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            directory = undo.enter_context(tempfile.TemporaryDirectory(prefix="veilcount-test-"))
            for replacement in (
                patching.environment(),
                patching.state_locations(directory),
                patching.secrets(SeededRandomSource(self._seed)),
                patching.persons(self._ask_consent),
                patching.records(self._keep_record),
                patching.sessions(self._open),
                patching.integrations(),
            ):
                undo.enter_context(replacement)
            undo.callback(self._close)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._undo is not None:
            self._undo.close()
            self._undo = None

    def _close(self) -> None:
        for session in self._running():
            session.close(0)

    # -- clients -------------------------------------------------------------------------------

    def _open(self, options: ClientOptions) -> Session:
        """Open the session of a client that the app makes: the harness's options win."""
        forced: dict[str, Any] = {
            "strict": True,
            "threaded": False,
            "clock": self.clock,
            "randomness": SeededRandomSource(self._seed + len(self._sessions)),
            "transport": self.transport,
            "shuffler": self.shuffler if options.read_settings().shuffler else options.shuffler,
        }
        session = Session(replace(options, **{**forced, **self._overrides}))
        if session.worker is not None:
            session.worker.uploader.grace = 2 * PACE  # rounds are so far apart: nothing is overdue
        self._sessions.append(session)
        if not self.clock.is_set and session.collections:
            self.clock.set(first_common_noon(session.collections.values()))
        if not session.settings.persons:
            self._ask_consent(Respondent(session, SELF))
        return session

    def _ask_consent(self, person: Respondent) -> None:
        if self.consent is not None and person.must_ask and person.consented is None:
            person.consent(self.consent)

    def _keep_record(self, worker: ClientWorker, record: RecordCall) -> None:
        """List what a person records who consented."""
        key = person_key(worker.state.root, record.person)
        if worker.state.person(key).consented:
            segments = segments_of(record.collection, record.segment)
            self.recorded.append(RecordedValue(record.collection.name, record.value, segments))

    def _running(self) -> list[Session]:
        return [session for session in self._sessions if not session.is_closed]

    # -- time ----------------------------------------------------------------------------------

    def _workers(self) -> list[ClientWorker]:
        return [session.worker for session in self._running() if session.worker is not None]

    def _pass(self, *, until: float) -> None:
        self.clock.advance(seconds=until - self.clock.now())
        for worker in self._workers():
            worker.work()

    def _next_due(self) -> float:
        """Return when something is next due, but no sooner than one pace from now."""
        dues = [worker.uploader.next_due() for worker in self._workers()]
        soonest = min((due for due in dues if due is not None), default=math.inf)
        return max(soonest, self.clock.now() + PACE)
