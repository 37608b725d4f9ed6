"""A file that lacks commits that this machine has acknowledged is refused."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreWentBack
from veilcount_aggregator.store import DurabilityState, Record
from veilcount_aggregator.store.acknowledged import ENDING, AcknowledgedHeights
from veilcount_aggregator.store.backup import backup, restore
from veilcount_shared.verdict import Verdict

from ..series_fixtures import DAILY, report, send
from .sqlite_fixtures import open_at

COUNTED, DUPLICATE = Verdict.COUNTED, Verdict.DUPLICATE
NOW = datetime(2026, 2, 1, tzinfo=UTC)


def rewind(path: Path) -> None:
    """Count two reports, and put back the file as it was after the first."""
    with closing(open_at(path)) as store:
        send(store, DAILY, report(1))
    saved = path.with_name("saved.db")
    shutil.copy(path, saved)
    with closing(open_at(path)) as store:
        send(store, DAILY, report(2))
    shutil.copy(saved, path)


def test_an_older_file_is_refused_until_it_is_accepted(path: Path) -> None:
    rewind(path)
    with closing(open_at(path)) as store:
        for write in (
            lambda: send(store, DAILY, report(3)),
            lambda: store.change_records(store.generation(), [Record("kind", "key", b"")]),
            lambda: store.close_row(DAILY, [0], report(1).row),
        ):
            with pytest.raises(StoreWentBack, match=r"lacks 1 of 2 acknowledged commits"):
                write()
        health = store.health()

        assert health.blocked
        assert health.durable is DurabilityState.NO
        assert store.shards()[0].went_back
        store.accept_losses(NOW)
        assert send(store, DAILY, report(1), report(2)) == [DUPLICATE, COUNTED]
        assert not store.health().blocked


def test_a_file_that_was_killed_lacks_nothing(path: Path) -> None:
    """The height is kept after the commit: a kill in between leaves it too low, never too high."""
    with closing(open_at(path)) as store:
        send(store, DAILY, report(1))
        path.with_name(path.name + ENDING).unlink()
        send(store, DAILY, report(2))

        assert not store.losses()


def test_one_process_notices_what_another_has_acknowledged(path: Path) -> None:
    """Both share one file of heights; planted: a process that compares its own alone would not."""
    with closing(open_at(path)) as first, closing(open_at(path)) as second:
        send(first, DAILY, report(1))
        send(second, DAILY, report(2))
        last = AcknowledgedHeights(path.with_name(path.name + ENDING)).read(0)
        assert last is not None
        with first.file.writing() as database:
            database.execute("update state set height = ?", (last.height - 1,))
        with pytest.raises(StoreWentBack):
            send(first, DAILY, report(3))


def test_what_was_rolled_back_raises_nothing(path: Path) -> None:
    with closing(open_at(path)) as store:
        send(store, DAILY, report(1))
        with pytest.raises(ZeroDivisionError), store.changing():
            _ = 1 / 0

        last = AcknowledgedHeights(path.with_name(path.name + ENDING)).read(0)
        assert last is not None
        assert last.height == 1


def test_a_restored_backup_waits_to_be_accepted(path: Path) -> None:
    url, saved = f"sqlite:///{path}", path.with_name("backup.db")
    with closing(open_at(path)) as store:
        send(store, DAILY, report(1))
        backup(url, saved)
        send(store, DAILY, report(2))
    path.unlink()
    restore(saved, url)
    with closing(open_at(path)) as store:
        with pytest.raises(StoreWentBack, match="another store"):
            send(store, DAILY, report(3))
        store.accept_losses(NOW)

        assert send(store, DAILY, report(1), report(2)) == [DUPLICATE, COUNTED]


def test_a_torn_entry_is_none(tmp_path: Path) -> None:
    """As a power cut may leave it: what it said is no longer known, and nothing is refused."""
    file = tmp_path / "height"
    file.write_bytes(b"6f0c none 12")

    assert AcknowledgedHeights(file).read(0) is None
    assert AcknowledgedHeights(file).read(3) is None
