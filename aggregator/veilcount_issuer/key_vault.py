"""Where an issuer's secrets are: records of its store, or a folder of owner-only files.

A secret is an entry under a name: one private key a period, the secret of the ledger, and the key
that signs the published numbers. An entry is never changed, only added and deleted. In a folder, a
copy of the store reveals no account.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from veilcount_aggregator.store import Record, RecordStore
from veilcount_serving.durable_files import sync_path
from veilcount_serving.errors import SettingsError
from veilcount_serving.owner_files import OTHERS, create_owner_only, read_owner_only

KIND = "issuer-secret"
LEDGER = "ledger"
NUMBERS = "issued-numbers"  # the seed of the Ed25519 key that signs them


class KeyVault(Protocol):
    """The secrets of one issuer."""

    def names(self) -> frozenset[str]:
        """Return the names of all entries."""

    def read(self, name: str) -> bytes | None:
        """Return an entry; None: there is none."""

    def add(self, entries: Mapping[str, bytes]) -> None:
        """Add entries durably; those that are there stay as they are."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete entries, as far as they are there."""


class StoreVault:
    """Secrets as records of the issuer's store."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def names(self) -> frozenset[str]:
        """Return the names of all entries."""
        return self._store.record_keys(KIND)

    def read(self, name: str) -> bytes | None:
        """Return an entry."""
        return self._store.records_at(KIND, [name]).get(name)

    def add(self, entries: Mapping[str, bytes]) -> None:
        """Add entries."""
        for name, content in entries.items():
            self._store.change_record(Record(KIND, name, content), None)

    def delete(self, names: Iterable[str]) -> None:
        """Delete entries."""
        for name, content in self._store.records_at(KIND, list(names)).items():
            self._store.change_record(Record(KIND, name, None), content)


class FolderVault:
    """Secrets as files that only their owner may read."""

    def __init__(self, folder: Path, *, make: bool = False) -> None:
        if make:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not folder.is_dir():
            fix = "no such folder: `veilcount issuer keys` makes it"
            raise SettingsError("--keys", str(folder), fix)
        if folder.stat().st_mode & OTHERS:
            fix = f"others may look into it: chmod 700 {folder}"
            raise SettingsError("--keys", str(folder), fix)
        self._folder = folder

    def names(self) -> frozenset[str]:
        """Return the names of all entries."""
        return frozenset(path.name for path in self._folder.iterdir() if path.name[0] != ".")

    def read(self, name: str) -> bytes | None:
        """Return an entry."""
        with suppress(FileNotFoundError):
            return read_owner_only(self._folder / name)
        return None

    def add(self, entries: Mapping[str, bytes]) -> None:
        """Add entries."""
        for name, content in entries.items():
            with suppress(FileExistsError):
                create_owner_only(self._folder / name, content)

    def delete(self, names: Iterable[str]) -> None:
        """Delete entries."""
        for name in names:
            (self._folder / name).unlink(missing_ok=True)
        sync_path(self._folder)
