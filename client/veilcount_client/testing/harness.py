"""The kit: every client that is made while it is open runs without thread, network and chance.

Clients made before it was opened (at the import of the app, say) are left alone: have the app make
its client in a function, or through an integration, which does.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from itertools import count
from typing import Any, Self

from veilcount_shared import Collection
from veilcount_shared.report import Report

from ..client import Client, Person
from ..delivery.worker import Worker
from ..recording.recorder import RecordCall
from ..state.key_derivation import key_of
from . import patching
from .clock import SettableClock, opening
from .recorded_values import Recorded, segments_of
from .seeded_randomness import SeededRandomSource
from .transports import RecordingTransport

PACE = 3600.0  # when time passes, what is due is done at least this far apart


class Kit:
    """Clients for tests, and what they recorded and sent."""

    def __init__(self, *, seed: int = 1, consent: bool | None = True) -> None:
        """Choose the coins, and what new persons answer when asked; None leaves them unasked."""
        self.consent = consent
        self.clock = SettableClock()
        self.transport = RecordingTransport()
        self.recorded: list[Recorded] = []
        self._seed = seed
        self._clients: list[Client] = []
        self._fresh = count()
        self._construct = Client.__init__
        self._undo: ExitStack | None = None

    # -- what a test calls ---------------------------------------------------------------------

    def client(
        self,
        collections: str | os.PathLike[str] | Mapping[str, Collection] | None = None,
        **options: Any,
    ) -> Client:
        """Return a client with a state of its own. What is given here wins over the kit's."""
        if self._undo is None:
            raise RuntimeError("open the kit first: with Kit() as veilcount")
        if not {"state", "state_dir"} & options.keys():
            options["state_dir"] = f"fresh {next(self._fresh)}"
        if onward := options.pop("transport", None):
            options["transport"] = RecordingTransport(onward, self.transport.batches)
        client = Client.__new__(Client)
        self._open(client, **{**self._options(), "collections": collections, **options})
        return client

    @property
    def sent(self) -> list[Report]:
        """Return the reports that left, in order."""
        return self.transport.reports

    def flush(self) -> bool:
        """Store and send everything that may leave now."""
        flushed = [client.flush() for client in self._running()]
        return all(flushed)

    def advance(self, **by: float) -> None:
        """Let time pass, advance(days=7), and do what is due on the way, when it is due."""
        end = self.clock.now() + timedelta(**by).total_seconds()
        self._work()
        while (due := self._next_due(end)) < end:
            self._pass(until=due)
        self._pass(until=end)

    # -- opening and closing -------------------------------------------------------------------

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            directory = undo.enter_context(tempfile.TemporaryDirectory(prefix="veilcount-test-"))
            undo.enter_context(patching.environment())
            undo.enter_context(patching.places(directory))
            undo.enter_context(patching.secrets(SeededRandomSource(self._seed)))
            undo.enter_context(patching.persons(self._meet))
            undo.enter_context(patching.records(self._see))
            undo.enter_context(patching.constructor(self._reroute()))
            undo.enter_context(patching.integrations())
            undo.callback(self._close)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._undo is not None:
            self._undo.close()
            self._undo = None

    def _close(self) -> None:
        for client in self._running():
            client.close(0)

    # -- clients -------------------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        return {
            "strict": True,
            "threaded": False,
            "clock": self.clock,
            "coins": SeededRandomSource(self._seed + len(self._clients)),
            "transport": self.transport,
        }

    def _reroute(self) -> Any:
        """Return the constructor of the clients that the app makes: the kit's options win."""

        def make(client: Client, *given: Any, **options: Any) -> None:
            self._open(client, *given, **{**options, **self._options()})

        return make

    def _open(self, client: Client, *given: Any, **options: Any) -> None:
        self._construct(client, *given, **options)
        if (worker := client._worker) is not None:  # noqa: SLF001 - the same room
            worker.uploader.grace = 2 * PACE  # rounds are so far apart: nothing is overdue for that
        self._clients.append(client)
        if not self.clock.is_set and client.collections:
            self.clock.set(opening(client.collections.values()))
        self._meet(client)

    def _meet(self, person: Client | Person) -> None:
        """Ask a person for consent who was not asked yet."""
        if self.consent is not None and person.consented is None:
            person.consent(self.consent)

    def _see(self, worker: Worker, record: RecordCall) -> None:
        """List what a person records who consented."""
        key = key_of(worker.state.root, record.person)
        if worker.state.person(key).consented:
            segments = segments_of(record.collection, record.segment)
            self.recorded.append(Recorded(record.collection.name, record.value, segments))

    def _running(self) -> list[Client]:
        return [client for client in self._clients if not client._closed]  # noqa: SLF001 - the same room

    # -- time ----------------------------------------------------------------------------------

    def _workers(self) -> list[Worker]:
        workers = [client._worker for client in self._running()]  # noqa: SLF001 - the same room
        return [worker for worker in workers if worker is not None]

    def _work(self) -> None:
        for worker in self._workers():
            worker.work()

    def _pass(self, *, until: float) -> None:
        self.clock.advance(seconds=until - self.clock.now())
        self._work()

    def _next_due(self, end: float) -> float:
        """Return when something is next due, but no sooner than one pace from now."""
        dues = [worker.uploader.next_due() for worker in self._workers()]
        return max(
            min((due for due in dues if due is not None), default=end), self.clock.now() + PACE
        )
