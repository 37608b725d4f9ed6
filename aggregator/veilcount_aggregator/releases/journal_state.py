"""The state file of a release journal: who it is, and what its host has seen in the store.

A journal alone proves which releases the store must still hold. The state file (`<journal>.id`)
remembers which other journals were registered there: a store that lacks one is not released from
before that one has confirmed it. It is durable before its host confirms anything.

The file is replaced as a whole, under a lock that all processes of the host take. A journal that is
carried to another machine takes its state file along; it is never used by two hosts at once, which
would answer for each other.
"""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path

from veilcount_serving.durable_files import sync_path
from veilcount_serving.errors import system_reason
from veilcount_serving.posix import LOCK_EX, LOCK_NB, flock, sync_file

from ..errors import StoreFull, StoreUnavailable, StoreUnfit

ENDING = ".id"
LOCK_ENDING = ".lock"
ID_BYTES = 8
POLL_SECONDS = 0.02

_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9._-]")
_LABEL_LENGTH = 64


class StateFileBusy(StoreUnavailable):
    """Another process of this host has the state file at the moment."""


@dataclass(frozen=True, slots=True)
class JournalState:
    """A journal's identity, and the store as its host saw it last."""

    id: str
    label: str  # the host's name, for operators
    joined: str  # when the identity was made
    members: Mapping[str, str] = field(default_factory=dict)  # registered journals: id to label

    @classmethod
    def new(cls, now: datetime) -> JournalState:
        """Return the state of a journal that was never registered."""
        return cls(secrets.token_hex(ID_BYTES), _label(platform.node()), now.isoformat())

    def age(self, now: datetime) -> float:
        """Return the age of the identity in seconds; below 0 if a clock went back."""
        return (now - datetime.fromisoformat(self.joined)).total_seconds()

    def renewed(self, now: datetime) -> JournalState:
        """Return the state of a new journal that has seen the same."""
        return replace(self, id=secrets.token_hex(ID_BYTES), joined=now.isoformat())


@dataclass(frozen=True, slots=True)
class StateFile:
    """The file in which a host's processes keep their journal's state."""

    path: Path

    @classmethod
    def for_journal(cls, journal: Path) -> StateFile:
        """Return the one of a journal."""
        return cls(journal.with_name(journal.name + ENDING))

    @contextmanager
    def locked(self, seconds: float) -> Iterator[None]:
        """Keep the host's other processes out; wait for them so long, or raise."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            name = self.path.with_name(self.path.name + LOCK_ENDING)
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreFull(
                f"{self.path}: cannot be locked ({system_reason(error)}): check its folder and disk"
            ) from error
        try:
            self._take(descriptor, seconds)
            yield
        finally:
            os.close(descriptor)

    def load(self) -> JournalState | None:
        """Return what it holds; None where there is no such file."""
        try:
            return JournalState(**json.loads(self.path.read_bytes()))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreUnavailable(
                f"{self.path}: cannot be read ({system_reason(error)}):"
                " check its permissions and its disk"
            ) from error
        except (ValueError, TypeError) as error:
            raise StoreUnfit(
                f"{self.path}: damaged, or written by another version: move it away, and its"
                " journal is registered anew; then retire the old one"
            ) from error

    def save(self, state: JournalState) -> None:
        """Replace it, and return once the new content is on the disk."""
        if self.load() == state:
            return
        part = self.path.with_name(f"{self.path.name}.part")
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(asdict(state), file, sort_keys=True)
                file.flush()
                sync_file(file.fileno())
            part.replace(self.path)
            sync_path(self.path.parent)
        except OSError as error:
            raise StoreFull(
                f"{self.path}: cannot be written ({system_reason(error)}):"
                " check its folder and disk"
            ) from error

    def _take(self, descriptor: int, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                flock(descriptor, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise StateFileBusy(
                        f"{self.path}: another process of this host has held it for {seconds:g} s"
                    ) from None
                time.sleep(POLL_SECONDS)
            else:
                return


def _label(name: str) -> str:
    """Return a machine's name as operators read it; it stands in messages and tables."""
    return _NOT_IN_LABELS.sub("-", name)[:_LABEL_LENGTH] or "host"
