"""Dropping in two steps, on every engine: what is marked can be restored until it is deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.aggregator.store.series_fixtures import (
    DAILY,
    LINKED,
    LONG_AGO,
    digest,
    drop,
    drop_and_delete,
    report,
    send,
)
from veilcount_aggregator.errors import RetentionTooEarly
from veilcount_aggregator.retention.clock_guard import TOLERANCE
from veilcount_aggregator.store import Store, open_store
from veilcount_shared.verdict import Verdict

COUNTED, DUPLICATE, STALE = Verdict.COUNTED, Verdict.DUPLICATE, Verdict.STALE
FOUR = [report(1, period) for period in range(4)]


def test_what_was_deleted_is_never_restored(store: Store, target: Store) -> None:
    """Its slots would be free again. Later drops are still restored, but not in a copy."""
    send(store, DAILY, *FOUR)
    drop_and_delete(store, DAILY, 2)
    drop(store, DAILY, 3)
    target.import_pieces(list(store.export_pieces()))

    assert store.restore_dropped(DAILY) == 1
    assert store.restore_dropped(DAILY) == 0
    assert send(store, DAILY, *FOUR) == [STALE, STALE, DUPLICATE, DUPLICATE]
    assert target.restore_dropped(DAILY) == 0
    assert send(target, DAILY, *FOUR) == [STALE, STALE, STALE, DUPLICATE]


def test_a_caller_with_a_wrong_clock_drops_nothing(store: Store) -> None:
    """A store that has clocks shows them and goes by them; one that has none by its caller's."""
    send(store, DAILY, report(1, 0))
    now = datetime.now(UTC)
    times = store.server_times()
    assert all(abs(each - now) < TOLERANCE for each in times)

    due, ahead = now + timedelta(hours=1), now + timedelta(days=40)
    before = digest(store)
    with pytest.raises(RetentionTooEarly):
        store.mark_dropped(DAILY, 1, due, ahead if times else now)
    assert digest(store) == before
    assert store.mark_dropped(DAILY, 1, now - timedelta(hours=1), now) == 1


def test_a_drop_outlives_its_process_and_a_day(url: str, store: Store) -> None:
    """Another process restores it, unless it is older than what is to be kept."""
    send(store, LINKED, report(1))
    drop(store, LINKED, 1)
    store.delete_dropped(LINKED, timedelta(days=1), LONG_AGO)
    store.close()
    again = open_store(url)

    assert send(again, LINKED, report(1)) == [STALE]
    assert again.restore_dropped(LINKED) == 1
    assert send(again, LINKED, report(1), report(2)) == [DUPLICATE, COUNTED]
    again.close()
