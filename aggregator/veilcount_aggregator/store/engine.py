"""What the tree asks of an engine by a store's URL: none is loaded before it is used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from veilcount_serving.findings import CheckResult, Finding

from .interface import Store

#: the check of a server that does not respond: the store need not be opened to be examined
RESPONDS = "responds"
MAKE_BACKUP = "run `veilcount store backup FILE` daily, to another disk"


class Engine(ABC):
    """An engine. Its folder has one, and the factory registers it."""

    schemes: ClassVar[frozenset[str]]
    form: ClassVar[str] = ""  # of its URLs, for messages; "": not for operators
    magic: ClassVar[bytes] = b"\0no file"  # with which its files and their backups begin

    @abstractmethod
    def open(self, url: str, *, make: bool, heights: Path | None) -> Store:
        """Open the store at a URL; with `make`, create it if it is missing.

        `heights` is the file in which this host keeps how far it has acknowledged a store that is
        shared by hosts; without it, this process alone remembers.
        """

    def file(self, url: str) -> Path | None:
        """Return the file that is the store, for one host; None: a server shares it with all."""
        return None

    @abstractmethod
    def back_up(self, url: str, part: Path) -> None:
        """Write a store's present state to an empty file, as a `sqlite.backup_file`."""

    def verify_backup(self, path: Path) -> Iterator[CheckResult]:
        """Read the whole of a file with this engine's magic, as a restore would."""
        raise NotImplementedError

    def examine_servers(
        self,
        url: str,
        clock: Callable[[], datetime],
    ) -> Iterator[Finding]:
        """Yield the findings of each server, before the store is opened."""
        return iter(())

    def examine_files(self, url: str, target: str, *, deep: bool) -> Iterator[Finding]:
        """Yield the findings of the files of a store that can be opened."""
        return iter(())
