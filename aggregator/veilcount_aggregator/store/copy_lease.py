"""A lease on copying into a store: one process holds it, and renews it every few seconds.

A file lock works on one host only, and Redis stores are copied from any. So the lease is a record
of the target. A process that finds another's record waits until it was not renewed for
`SILENT_SECONDS` by its own clock (clocks of two hosts are never compared), or until its process is
dead, and takes over. A process whose lease was taken over is refused.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ..errors import StoreError, StoreUnavailable
from .interface import Record, RecordStore
from .records import update_records
from .target_lock import this_process

BEAT_SECONDS = 2.0
SILENT_SECONDS = 10.0
LOOK_SECONDS = 0.1


class CopyLease:
    """One process's right to copy into one store."""

    def __init__(self, store: RecordStore, kind: str, key: str) -> None:
        self._store = store
        self._name = kind, key
        self._own: dict[str, Any] = this_process() | {"token": secrets.token_hex(8), "beats": 0}
        self._stopping = threading.Event()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it for as long as this lasts."""
        self._acquire()
        thread = threading.Thread(target=self._beat, name="veilcount-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()
            with suppress(StoreError):
                self.change(lambda: [Record(*self._name, None)])

    def change(self, decide: Callable[[], Sequence[Record]]) -> None:
        """Change records of the store if the lease is still held."""

        def decide_if_held() -> tuple[Sequence[Record], None]:
            self._refuse_if_lost()
            return decide(), None

        update_records(self._store, decide_if_held)

    def _acquire(self) -> None:
        lease = self._kept()
        ends = time.monotonic() + SILENT_SECONDS
        while lease is not None and not _is_dead(lease) and time.monotonic() < ends:
            time.sleep(LOOK_SECONDS)
            self._refuse_if_changed(lease)

        def decide() -> tuple[Sequence[Record], None]:
            self._refuse_if_changed(lease)
            return [self._record()], None

        update_records(self._store, decide)

    def _refuse_if_changed(self, found: bytes | None) -> None:
        now = self._kept()
        if now != found:
            raise StoreUnavailable(f"{_holder(now)} copies into this store: wait for it")

    def _beat(self) -> None:
        while not self._stopping.wait(BEAT_SECONDS):
            self._own["beats"] += 1
            with suppress(StoreError):  # the copy itself will raise
                self.change(lambda: [self._record()])

    def _refuse_if_lost(self) -> None:
        if not self._holds():
            raise StoreUnavailable(
                f"{_holder(self._kept())} has taken the copy over: this process was silent for"
                f" {SILENT_SECONDS:g} s"
            )

    def _holds(self) -> bool:
        stored_lease = self._kept()
        return stored_lease is not None and json.loads(stored_lease)["token"] == self._own["token"]

    def _kept(self) -> bytes | None:
        kind, key = self._name
        return self._store.records(kind).get(key)

    def _record(self) -> Record:
        return Record(*self._name, json.dumps(self._own).encode())


def _is_dead(found: bytes) -> bool:
    """Whether the process is known to be dead: it can be looked up on this host alone."""
    lease = json.loads(found)
    if lease["host"] != socket.gethostname():
        return False
    try:
        os.kill(lease["process"], 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False


def _holder(kept: bytes | None) -> str:
    if kept is None:
        return "another process"
    lease = json.loads(kept)
    return f"process {lease['process']} on {lease['host']} (since {lease['since']})"
