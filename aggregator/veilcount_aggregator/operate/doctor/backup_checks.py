"""Checks of a directory of backups: the newest one, permissions, and where the journal is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from veilcount_serving.findings import (
    Check,
    CheckResult,
    Finding,
    Severity,
    examine,
    graded,
    or_ok,
    problems_or_ok,
    warn,
    wrong,
)

from ...releases.release_journal import ENDING
from ...store.engine import MAKE_BACKUP, Engine
from ...store.factory import ENGINES
from ...store.file_permissions import exposed

BACKUPS = "backups"
OLD = timedelta(days=2)
TOO_OLD = timedelta(days=7)
HEAD_BYTES = max(len(engine.magic) for engine in ENGINES)


@dataclass(frozen=True, slots=True)
class BackupDirectory:
    """A directory of backups at an instant, and the journal of releases of its deployment."""

    path: Path
    now: datetime
    journal: Path | None

    def files(self) -> list[Path]:
        """Return the backups in it."""
        return [file for file in self.path.iterdir() if file.is_file() and _engine(file)]

    def journals(self) -> list[Path]:
        """Return the journals of releases in it, by path or by name."""
        journal = self.journal.resolve() if self.journal else None
        files = (file for file in self.path.rglob("*") if file.is_file())
        return [file for file in files if file.resolve() == journal or file.name.endswith(ENDING)]


def examine_backups(path: Path, now: datetime, journal: Path | None = None) -> Iterator[Finding]:
    """Yield the findings of a directory of backups."""
    if path.is_dir():
        yield from examine(BACKUPS, BACKUP_CHECKS, BackupDirectory(path, now, journal))
    else:
        fix = "give the directory that backups are written to"
        yield Finding(BACKUPS, "newest", Severity.WRONG, f"{path} is not a directory", fix)


def _newest(directory: BackupDirectory) -> Iterator[CheckResult]:
    files = directory.files()
    if not files:
        yield wrong(f"{directory.path} contains no backup of a store", MAKE_BACKUP)
        return
    newest = max(files, key=lambda file: file.stat().st_mtime)
    yield _age(newest, directory.now)
    yield from _verified(newest)


def _private(directory: BackupDirectory) -> Iterator[CheckResult]:
    problems = exposed(directory.path, directory.files())
    yield from problems_or_ok(problems, "only their owner may read and write the backups")


@or_ok("no journal of releases is among the backups")
def _separate(directory: BackupDirectory) -> Iterator[CheckResult]:
    for journal in directory.journals():
        yield warn(
            f"{journal} is among the backups: a lost disk or an older copy takes both, and spent"
            " budget is forgotten",
            "move the journal and its .id file to another disk, and give it as --journal",
        )


BACKUP_CHECKS: dict[str, Check[BackupDirectory]] = {
    "newest": _newest,
    "permissions": _private,
    "journal": _separate,
}


def _engine(path: Path) -> Engine | None:
    """Return the engine that can verify a file; None: it is no backup."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    return next((engine for engine in ENGINES if head.startswith(engine.magic)), None)


def _age(path: Path, now: datetime) -> CheckResult:
    age = now - datetime.fromtimestamp(path.stat().st_mtime, UTC)
    message = f"{path.name} is {age.days} days and {age.seconds // 3600} hours old"
    return graded(message, MAKE_BACKUP, is_wrong=age > TOO_OLD, is_doubtful=age > OLD)


def _verified(path: Path) -> Iterator[CheckResult]:
    engine = _engine(path)
    return engine.verify_backup(path) if engine else iter(())
