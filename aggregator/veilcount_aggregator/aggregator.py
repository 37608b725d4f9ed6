"""One aggregator, put together: a store, and what stands in front of it. No web in here."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime

from veilcount_shared.collection import Model
from veilcount_shared.verdict import Verdict

from .answers import Holdings
from .bodies import Body
from .commit import Committer
from .confirmation import SETTLING_SECONDS
from .curator import Curator
from .definitions import push, read_source
from .errors import StoreError
from .ingest import Intake
from .journal import Journal
from .notebook import Notebook
from .pseudonym_limit import PseudonymLimit, stored_key
from .releases import Filter
from .series import utc_day
from .settings import Settings
from .store import Store, open_store
from .tending import tend
from .watching import Known, Watch

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Aggregator:
    """What every door of a deployment shares, in one process."""

    settings: Settings
    store: Store
    watch: Watch
    intake: Intake
    notebook: Notebook
    curator: Curator
    clock: Clock

    @classmethod
    def open(
        cls,
        settings: Settings,
        clock: Clock = lambda: datetime.now(UTC),
        seconds: Callable[[], float] = time.monotonic,
    ) -> Aggregator:
        """Open the store (in development mode, make it) and load the definitions that are given."""
        store = open_store(settings.store, make=settings.dev)
        for file in settings.collections:
            push(store, read_source(file), clock(), "start")
        notebook = Notebook(seconds)
        limit = PseudonymLimit(settings.room, stored_key(store))
        intake = Intake(Committer(store, notebook).commit, notebook, limit)
        settling = 0 if settings.store.startswith("sqlite:") else SETTLING_SECONDS
        curator = Curator(Filter(store, Journal.of(settings), settling))
        made = cls(settings, store, Watch(store, seconds), intake, notebook, curator, clock)
        with suppress(StoreError):  # looked at again before each release; the intake goes on
            made.confirm()
        return made

    def known(self) -> Known:
        """Return the definitions and keys of now."""
        return self.watch.known()

    def today(self) -> date:
        """Return the UTC day."""
        return utc_day(self.clock())

    def holdings(self) -> Holdings:
        """Return what answers are read from, as of now."""
        with suppress(StoreError):  # of a store that is fenced, what is written can be read
            self.flush()
        return Holdings(self.known().catalogue, self.store, self.today())

    def take(self, body: Body) -> list[Verdict]:
        """Return the verdicts of a body, once they are durable."""
        return self.intake.take(body, self.known().catalogue.series, self.today())

    def tend(self) -> int:
        """Drop what is over."""
        return tend(self.store, self.known().catalogue.series.values(), self.today())

    def confirm(self) -> None:
        """Have this host's journal confirm the store, where anything could be released."""
        journal = self.curator.filter.journal
        models = {each.collection.model for each in self.known().catalogue.series.values()}
        if journal is not None and (Model.CENTRAL in models or journal.path.exists()):
            self.curator.filter.tick(self.clock())

    def flush(self) -> None:
        """Write the figures of the service that are still in memory."""
        notes = self.notebook.take(now=True)
        try:
            if notes:
                self.store.commit([], notes)
        except StoreError:
            self.notebook.put_back(notes)
            raise

    def close(self) -> None:
        """Write what is in memory and let go, also where the store takes no more."""
        try:
            self.flush()
        finally:
            self.store.close()
