"""The public site of a server, computed at most once a minute, and only if something changed.

Anybody may ask for it as often as they like: a request reads what was computed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from veilcount_serving.errors import Overloaded
from veilcount_shared.problem_details import RETRY_SECONDS

from ....errors import StoreError
from ....queries import Snapshot
from ....queries.published_figures import publishing_problem
from ....queries.publishing_key import read_publishing_key
from ....queries.releases import latest_release
from ....service import Aggregator
from ..pages import PublicFile
from .site_files import Files, site_files

SECONDS = 60.0  # for which nothing is looked at
WAIT_SECONDS = 5.0  # for the first files


class ServedSite:
    """The files that the settings publish. For any thread."""

    def __init__(self, aggregator: Aggregator, seconds: Callable[[], float], style: bytes) -> None:
        self._aggregator, self._seconds, self._style = aggregator, seconds, style
        self._lock = threading.Lock()
        self._files: Files = {}
        self._until = -1.0
        self._state: tuple[object, ...] = ()

    def file(self, path: str) -> PublicFile | None:
        """Return a file by its path; None: there is none."""
        return self._current().get(path)

    def _current(self) -> Files:
        if not self._aggregator.settings.publish or self._seconds() < self._until:
            return self._files
        if not self._lock.acquire(timeout=0 if self._files else WAIT_SECONDS):
            if self._files:
                return self._files
            raise Overloaded(RETRY_SECONDS, "the figures are being computed: retry in a moment")
        try:
            self._refresh()
        except StoreError:  # what was published stays so
            if not self._files:
                raise
        finally:
            self._lock.release()
        return self._files

    def _refresh(self) -> None:
        now, aggregator = self._seconds(), self._aggregator
        if now < self._until:  # another thread has just computed them
            return
        snapshot = aggregator.snapshot()
        snapshot = replace(snapshot, today=aggregator.retention.sure(snapshot.today))
        names = tuple(name for name in aggregator.settings.publish if _is_published(snapshot, name))
        state = (snapshot.today, names, *(_version(snapshot, name) for name in names))
        if state != self._state:
            file = aggregator.settings.publish_key
            key = None if file is None else read_publishing_key(file)
            self._files = site_files(snapshot, names, self._style, key)
            self._state = state
        self._until = now + SECONDS


def _is_published(snapshot: Snapshot, name: str) -> bool:
    """Whether a name is of a collection that may be published; it may be pushed later."""
    definitions = snapshot.catalog.by_name.get(name, ())
    return any(not publishing_problem(one.collection) for one in definitions)


def _version(snapshot: Snapshot, name: str) -> tuple[object, ...]:
    """Return what a day's files of a collection depend on: its definitions, and releases."""
    return tuple(
        (one.fingerprint, one.collection.trust.releases and latest_release(snapshot.store, one))
        for one in snapshot.named(name)
    )
