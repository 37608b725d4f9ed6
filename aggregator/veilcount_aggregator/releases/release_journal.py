"""The journal of central releases: one line each in an append-only file.

It remembers what a store that came back from an old backup has forgotten: that part of a budget was
spent. A line is on the disk before its answer leaves, and those of other hosts' releases are added
as they appear in the store. Each carries a digest of itself, so that one that was damaged, or
edited, is rejected. A line without an end does not count: whoever was writing it died, and
its answer never left. Its identity is in a file of its own (`journal_state`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Generic, TypeVar

from veilcount_serving.durable_files import sync_path
from veilcount_serving.errors import SettingsError, system_reason
from veilcount_serving.posix import LOCK_EX, flock, sync_file

from ..errors import StoreFull, StoreUnavailable, StoreUnfit
from ..settings import Settings
from ..store import store_file

ENDING = ".releases.jsonl"

_FIX = "give the journal as it was written"

JournalLine = Mapping[str, Any]
VerifySeal = Callable[[bytes], bytes | None]


@dataclass(frozen=True, slots=True)
class ReleaseJournal:
    """A file of lines. For any process of one machine."""

    path: Path

    @classmethod
    def from_settings(cls, settings: Settings) -> ReleaseJournal | None:
        """Return a deployment's: the one that is set, or the file next to a local store."""
        if settings.journal is not None:
            return cls(settings.journal)
        path = store_file(settings.store)  # None: shared by many hosts, so no file is next to it
        return cls(path.with_name(path.name + ENDING)) if path else None

    def lines(self) -> list[JournalLine]:
        """Return what it holds, the oldest first; nothing, where there is no such file."""
        return [parse_line(text) for _, text in self.sealed()]

    def sealed(self, verify: VerifySeal | None = None) -> list[tuple[bytes, bytes]]:
        """Return its lines as written, each with its seal; raise if one is damaged.

        `verify` is `verified_seal`, or that memoized.
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreUnavailable(
                f"{self.path}: the journal cannot be read ({system_reason(error)}):"
                " check its permissions and its disk"
            ) from error
        return [
            (self._sure(place, (verify or verified_seal)(line)), line)
            for place, line in enumerate(_whole(text), 1)
        ]

    def check(self) -> None:
        """Refuse a file to which no line could be added, or which is no journal."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.path.parent):  # the state file is made next to it
                pass
            with suppress(FileNotFoundError):
                os.close(os.open(self.path, os.O_RDWR | os.O_NOFOLLOW))
        except OSError as error:
            why = f"cannot be written ({system_reason(error)}): give a file that may be written"
            raise SettingsError("--journal", str(self.path), why) from error
        self.sealed()

    def keep(self, lines: Iterable[JournalLine]) -> None:
        """Add those that are not there yet, and return once they are on the disk."""
        texts = {seal(text): text for text in map(encode_line, lines)}
        self.add(texts, texts.__getitem__)

    def add(self, seals: Iterable[bytes], text: Callable[[bytes], bytes]) -> None:
        """Add lines by their seals; `text` is called only for those that are not there yet."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW  # what it cuts off is never another's
            with os.fdopen(os.open(self.path, flags, 0o600), "rb+") as file:
                flock(file, LOCK_EX)
                journaled = _whole(file.read())
                there = set(map(seal, journaled))
                file.seek(sum(map(len, journaled)))
                file.truncate()
                file.writelines(text(mark) for mark in seals if mark not in there)
                file.flush()
                sync_file(file.fileno())
            sync_path(self.path.parent)  # a new file is lost without it
        except OSError as error:
            raise StoreFull(
                f"{self.path}: the journal cannot be written ({system_reason(error)}):"
                " check its folder and disk"
            ) from error

    def _sure(self, place: int, found: bytes | None) -> bytes:
        if found is None:
            raise StoreUnfit(f"{self.path}, line {place}: damaged, edited, or no release: {_FIX}")
        return found


def verified_seal(text: bytes) -> bytes | None:
    """Return the seal of a line that is as it was written, or None."""
    try:
        line = parse_line(text)
    except (ValueError, LookupError, TypeError):
        return None
    return seal(text) if encode_line(line) == text else None


def parse_line(text: bytes) -> JournalLine:
    """Return what a line holds."""
    line: JournalLine = json.loads(text)["release"]
    return line


def encode_line(line: JournalLine) -> bytes:
    """Return how a line is written."""
    digest = hashlib.sha256(_json(line)).hexdigest()
    return _json({"release": line, "sha256": digest}) + b"\n"


def seal(text: bytes) -> bytes:
    """Return the digest that identifies a line as written."""
    return hashlib.sha256(text).digest()


def _whole(text: bytes) -> list[bytes]:
    """Return the lines of a text, but a last one that has no end."""
    return [line + b"\n" for line in text.split(b"\n")[:-1]]


def _json(value: JournalLine) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode()


MAX_ENTRIES = 100_000

Result = TypeVar("Result")


class DigestCache(Generic[Result]):
    """A memoized function of bytes. Thread-safe.

    It stores digests and no bytes, so that long arguments take no more memory than short ones.
    """

    def __init__(self, function: Callable[[bytes], Result]) -> None:
        self._function = function
        self._results: dict[bytes, Result] = {}

    def __call__(self, argument: bytes) -> Result:
        """Return the function's result. Errors are not remembered."""
        name = sha256(argument).digest()
        try:
            return self._results[name]
        except KeyError:
            result = self._function(argument)
        if len(self._results) >= MAX_ENTRIES:
            self._results.clear()
        self._results[name] = result
        return result
