"""The consistency check: counters, ledgers and histogram agree, and a changed one is found."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from veilcount_aggregator.operate.doctor import Finding, Severity, examine_backups
from veilcount_aggregator.store.backup import backup
from veilcount_aggregator.store.sqlite.schema import FORMAT

from ...store.series_fixtures import drop_and_delete
from ...store.sqlite.sqlite_fixtures import set_format
from ...web.api.deployment_fixtures import FILE, deployment
from .doctor_fixtures import examine_deployment


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("update tally set n = n + 1", "differ by 1"),
        ("update new_rows set rows = rows + 2", "rows of the ledger differ by 2"),
        ("update spent_rows set rows = zeroblob(8)", "histogram differ by 3"),
    ],
)
def test_a_changed_count_is_wrong(tmp_path: Path, statement: str, message: str) -> None:
    with deployment(tmp_path, FILE) as made:
        for _ in range(3):
            made.verdicts(made.report("alone"))
        before = examine_deployment(made, deep=True)["consistency"]
        with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
            assert database.execute(statement).rowcount
        found = examine_deployment(made, deep=True)["consistency"]

    assert (before.state, found.state) == (Severity.OK, Severity.WRONG)
    assert message in found.what


def test_counts_agree_while_reports_arrive(tmp_path: Path) -> None:
    """A closed row has all its slots spent, and a dropped epoch has no rows."""
    with deployment(tmp_path, FILE) as made:
        report = made.report("theme")
        made.verdicts(report, made.report("opened"))
        made.aggregator.store.close_row(made.series("theme"), [0], report.pseudonym[:12])
        drop_and_delete(made.aggregator.store, made.series("opened"), 20)
        sender = threading.Thread(
            target=lambda: [made.verdicts(made.report("theme")) for _ in range(60)]
        )
        sender.start()
        states = {examine_deployment(made, deep=True)["consistency"].state}
        while sender.is_alive():
            states.add(examine_deployment(made, deep=True)["consistency"].state)
        sender.join()

    assert states == {Severity.OK}


def newest(folder: Path, now: datetime) -> list[Finding]:
    return [
        examine_backup
        for examine_backup in examine_backups(folder, now)
        if examine_backup.check == "newest"
    ]


def test_the_newest_backup_is_verified(tmp_path: Path) -> None:
    folder, now = tmp_path / "backups", datetime.now(UTC)
    folder.mkdir()
    (folder / "notes.txt").write_text("not a backup")
    (empty,) = newest(folder, now)
    with deployment(tmp_path, FILE) as made:
        backup(made.aggregator.settings.store, folder / "monday.db")
    fresh, intact = newest(folder, now)
    late, _ = newest(folder, now + timedelta(days=3))
    too_late, _ = newest(folder, now + timedelta(days=8))
    (folder / "tuesday.db").write_bytes((folder / "monday.db").read_bytes()[:-4096])
    os.utime(folder / "tuesday.db", (now.timestamp() + 9, now.timestamp() + 9))
    *_, cut = newest(folder, now)
    shutil.copy(folder / "monday.db", folder / "wednesday.db")
    set_format(folder / "wednesday.db", FORMAT - 1)
    os.utime(folder / "wednesday.db", (now.timestamp() + 19, now.timestamp() + 19))
    *_, other = newest(folder, now)
    (missing,) = newest(tmp_path / "none", now)

    assert {each.state for each in (empty, too_late, cut, other, missing)} == {Severity.WRONG}
    assert {fresh.state, intact.state} == {Severity.OK}
    assert late.state is Severity.WARN
    assert "tuesday.db" in cut.what
    assert f"wednesday.db has format {FORMAT - 1}; this version reads {FORMAT}" in other.what
