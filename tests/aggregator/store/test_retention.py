"""Dropping in two steps, on every engine: what is marked can be restored until it is swept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.aggregator.store.series_fixtures import (
    DAILY,
    LINKED,
    LONG_AGO,
    Asked,
    drop,
    drop_and_delete,
    row,
    send,
)
from veilcount_aggregator.errors import RetentionTooEarly
from veilcount_aggregator.retention.clock_guard import TOLERANCE
from veilcount_aggregator.store import Store, open_store
from veilcount_aggregator.store.transfer_format import content_digest
from veilcount_shared.verdict import Verdict

COUNTED, DUPLICATE, STALE = Verdict.COUNTED, Verdict.DUPLICATE, Verdict.STALE
A_DAY = timedelta(days=1)


def test_restored_epochs_take_reports_and_know_who_has_answered(store: Store) -> None:
    """Nothing counts twice, and what was marked closed stays closed."""
    send(store, DAILY, *(Asked(row(n), period) for n in (1, 2) for period in range(4)))
    store.close_row(DAILY, [1], row(2))
    before = content_digest(store.export_pieces())
    drop(store, DAILY, 3)
    dropped = send(store, DAILY, Asked(row(1), 0), Asked(row(3), 0))

    assert dropped == [STALE, STALE]
    assert store.restore_dropped(DAILY) == 3
    assert (
        content_digest(piece for piece in store.export_pieces() if piece.kind != "service_counter")
        == before
    )
    again = [Asked(row(1), 0), Asked(row(3), 0), Asked(row(2), 1), Asked(row(1), 2)]
    assert send(store, DAILY, *again) == [DUPLICATE, COUNTED, DUPLICATE, DUPLICATE]


def test_a_sweep_leaves_what_was_dropped_within_a_day(store: Store) -> None:
    send(store, LINKED, Asked(row(1)))
    drop(store, LINKED, 1)
    store.delete_dropped(LINKED, A_DAY, LONG_AGO)

    assert store.restore_dropped(LINKED) == 1
    assert send(store, LINKED, Asked(row(1)), Asked(row(2))) == [DUPLICATE, COUNTED]


def test_what_was_swept_is_never_restored(store: Store) -> None:
    """Its rows are gone: slots would be free again. Later drops are still restored."""
    send(store, DAILY, *(Asked(row(1), period) for period in range(4)))
    drop_and_delete(store, DAILY, 2)
    drop(store, DAILY, 3)

    assert store.restore_dropped(DAILY) == 1
    assert store.restore_dropped(DAILY) == 0
    reports = [Asked(row(1), period) for period in range(4)]
    assert send(store, DAILY, *reports) == [STALE, STALE, DUPLICATE, DUPLICATE]


def test_what_was_restored_is_not_swept_and_can_be_dropped_again(store: Store) -> None:
    send(store, DAILY, Asked(row(1), 0))
    drop(store, DAILY, 1)
    store.restore_dropped(DAILY)
    store.delete_dropped(DAILY, timedelta(0), LONG_AGO)

    assert send(store, DAILY, Asked(row(1), 0)) == [DUPLICATE]
    assert drop(store, DAILY, 1) == 1
    assert store.restore_dropped(DAILY) == 1


def test_dropping_and_restoring_say_how_many_epochs_changed(store: Store) -> None:
    """Also of a series of which nothing was ever counted."""
    send(store, DAILY, Asked(row(1), 0))

    assert [drop(store, DAILY, epochs) for epochs in (2, 2, 1, 5)] == [2, 0, 0, 3]
    assert (drop(store, LINKED, 1), store.restore_dropped(LINKED)) == (1, 1)
    assert (store.restore_dropped(DAILY), store.restore_dropped(DAILY)) == (5, 0)


def test_a_caller_with_a_wrong_clock_drops_nothing(store: Store) -> None:
    """A store that has a clock goes by it; one that has none by its caller's."""
    send(store, DAILY, Asked(row(1), 0))
    now = datetime.now(UTC)
    due, ahead = now + timedelta(hours=1), now + timedelta(days=40)
    by_callers_clock = ahead if store.server_times() else now
    before = content_digest(store.export_pieces())
    with pytest.raises(RetentionTooEarly):
        store.mark_dropped(DAILY, 1, due, by_callers_clock)

    assert content_digest(store.export_pieces()) == before
    assert store.mark_dropped(DAILY, 1, now - timedelta(hours=1), now) == 1


def test_a_store_that_has_clocks_shows_all_of_them(store: Store) -> None:
    """They run on this machine."""
    now = datetime.now(UTC)

    assert all(abs(each - now) < TOLERANCE for each in store.server_times())


def test_what_was_dropped_before_a_copy_cannot_be_restored_in_it(
    store: Store, target: Store
) -> None:
    """Rows of dropped epochs are not carried."""
    send(store, DAILY, *(Asked(row(1), period) for period in range(4)))
    drop(store, DAILY, 2)
    target.import_pieces(list(store.export_pieces()))

    assert target.restore_dropped(DAILY) == 0
    reports = [Asked(row(1), period) for period in range(4)]
    assert send(target, DAILY, *reports) == [STALE, STALE, DUPLICATE, DUPLICATE]


def test_a_drop_outlives_the_process_that_made_it(url: str, store: Store) -> None:
    """It is swept or restored by another."""
    send(store, LINKED, Asked(row(1)))
    drop(store, LINKED, 1)
    store.close()
    again = open_store(url)

    assert send(again, LINKED, Asked(row(1))) == [STALE]
    assert again.restore_dropped(LINKED) == 1
    assert send(again, LINKED, Asked(row(1))) == [DUPLICATE]
    again.close()
