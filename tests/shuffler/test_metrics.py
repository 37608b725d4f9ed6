"""Figures of a shuffler: what they show, and that none moves when a device sends."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.processes import wait_until
from veilcount_shared.shuffling.batch_record import BatchState
from veilcount_shuffler import disk_limit
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.envelope_figures import FILE, EnvelopeFigures, rounded
from veilcount_shuffler.errors import StateUnavailable
from veilcount_shuffler.problems import SHUFFLER_PROBLEMS
from veilcount_shuffler.shuffler_metrics import PREFIX, ShufflerMetrics

from .parties import HandClock, ShufflerStore, messages
from .test_serving import Served, server

__all__ = ["server"]

LINE = re.compile(rf"^{PREFIX}(\w+)\{{(.*)\}} (\d+)$", re.MULTILINE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ShufflerStore]:
    """A store whose first crowd takes reports, with a witness."""
    (tmp_path / "witness").mkdir()
    store = ShufflerStore(tmp_path / "store", HandClock(), witness=tmp_path / "witness")
    store.store().witness.identify(store.settings)
    yield store
    store.close()


def metrics(store: ShufflerStore, disk: Disk | None = None) -> ShufflerMetrics:
    figures = EnvelopeFigures(store.settings.store, store.clock)
    return ShufflerMetrics(
        store.settings, store.witness_folder, figures, store.clock, disk or Disk()
    )


def read(exposition: str) -> dict[str, int]:
    """Return the figures by their names, with the value of the label if there is one."""
    return {
        name + (f" {labels.partition('=')[2][1:-1]}" if labels else ""): int(number)
        for name, labels, number in LINE.findall(exposition)
    }


def moved(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Return the figures that changed, but for the disk's, which other processes use too."""
    changed = {name for name in after if after[name] != before.get(name, 0)}
    return {name: after[name] for name in changed - {"disk_free_bytes"}}


# -- no time finer than a day ----------------------------------------------------------------------


def test_no_figure_moves_when_a_device_sends(store: ShufflerStore) -> None:
    """Not by a crowd's first report, nor by any other, nor by a refusal, until the day ends."""
    before = read(metrics(store).exposition())
    worker, figures = store.worker(), EnvelopeFigures(store.settings.store, store.clock)
    for envelope in messages(store.crowd, 130):
        (answer,) = worker.hold([envelope])
        figures.count(answer.value)
        figures.count("too-many")
        figures.flush()
        assert not moved(before, read(metrics(store).exposition()))
    store.clock.advance(days=1)
    after = moved(before, read(metrics(store).exposition()))

    assert after == {"held_total": 130, "refused_total too-many": 130, "crowds open": 2}


@pytest.mark.parametrize("planted", ["today", "rows"])
def test_a_figure_that_moves_is_detected(
    store: ShufflerStore, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the day under way; and crowds that count as open from their first report on."""
    if planted == "today":
        monkeypatch.setattr("veilcount_shuffler.envelope_figures.date", _EndedAlways)
    else:
        monkeypatch.setattr(ShufflerMetrics, "_taking", lambda _, rows, __: len(rows))
    before = read(metrics(store).exposition())
    figures = EnvelopeFigures(store.settings.store, store.clock)
    (answer,) = store.worker().hold(messages(store.crowd, 1))
    figures.count(answer.value)
    figures.flush()

    assert moved(before, read(metrics(store).exposition()))


class _EndedAlways(datetime):
    @classmethod
    def fromordinal(cls, _: int) -> _EndedAlways:
        return cls(1970, 1, 1)

    def __lt__(self, _: object) -> bool:
        return True


def test_a_days_reports_are_shown_in_two_digits(store: ShufflerStore) -> None:
    """So that no crowd's number follows from them before its record has it."""
    figures = EnvelopeFigures(store.settings.store, store.clock)
    for number in (1234, 57):
        for _ in range(number):
            figures.count("held")
        figures.flush()
        store.clock.advance(days=1)

    assert [rounded(number) for number in (0, 7, 99, 101, 1999)] == [0, 7, 99, 100, 1900]
    assert figures.totals() == {"held": 1200 + 57}


def test_nothing_of_a_device_is_in_the_file(store: ShufflerStore) -> None:
    """Days, answers and numbers; for its owner alone."""
    figures = EnvelopeFigures(store.settings.store, store.clock)
    figures.count("over")
    figures.flush()
    path = store.settings.store / FILE
    now = store.clock.now

    assert path.stat().st_mode & 0o077 == 0
    assert b"over" in path.read_bytes()
    for stamp in (now.isoformat(), str(int(now.timestamp())), now.strftime("%H:%M")):
        assert stamp.encode() not in path.read_bytes()


# -- what they show --------------------------------------------------------------------------------


def test_all_workers_are_added_up_and_what_the_file_does_not_take_is_added_later(
    store: ShufflerStore,
) -> None:
    workers = [EnvelopeFigures(store.settings.store, store.clock) for _ in range(2)]
    path = store.settings.store / FILE
    for worker in workers:
        worker.count("held")
        worker.count("over")
    path.mkdir()
    with pytest.raises((StateUnavailable, OSError)):
        workers[0].flush()
    path.rmdir()
    for worker in workers:
        worker.flush()
    workers[1].flush()
    store.clock.advance(days=1)

    assert workers[0].totals() == {"held": 2, "over": 2}


def test_every_reason_has_a_figure_from_the_beginning(store: ShufflerStore) -> None:
    """A rate over a series that has just appeared would be none."""
    figures = read(metrics(store).exposition())

    assert {f"refused_total {name}" for name in SHUFFLER_PROBLEMS} <= figures.keys()
    assert {name.partition(" ")[2] for name in figures if name.startswith("crowds ")} == {
        *("open", "sealed", "shuffled", "handed_over", "below_least", "expired", "lost")
    }


def test_a_crowd_goes_through_its_states(store: ShufflerStore) -> None:
    """Overdue for as long as the aggregator is away, which is shown too; then handed over."""
    store.worker().hold(messages(store.crowd, 130))
    store.leave()
    store.aggregator.away = True
    store.rounds()
    store.clock.advance(days=2)
    store.rounds()
    away = read(metrics(store).exposition())
    store.aggregator.away = False
    store.rounds()
    back = read(metrics(store).exposition())

    assert (away["oldest_undelivered_days"], away["aggregator_away_days"]) == (2, 2)
    assert away["crowds handed_over"] == 0
    assert (back["oldest_undelivered_days"], back["aggregator_away_days"]) == (0, 0)
    assert (back["crowds handed_over"], back["crowds below_least"]) == (1, 2)
    assert store.aggregator.states().count(BatchState.HANDED_OVER) == 1


def test_a_crowd_that_is_not_served_any_more_is_overdue(store: ShufflerStore) -> None:
    """Its definition or key is gone from the store: it stays, and that must be seen."""
    store.worker().hold(messages(store.crowd, 3))
    closes = store.crowd.closes
    for path in store.settings.store.glob("settings/definitions/*"):
        path.unlink()
    store.clock.now = closes + timedelta(days=3, hours=1)
    figures = read(metrics(store).exposition())

    assert (figures["crowds open"], figures["oldest_undelivered_days"]) == (1, 3)


class _Unwritable(Disk):
    """A disk on which one folder takes nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append(self, descriptor: int, content: bytes) -> None:
        if Path(f"/proc/self/fd/{descriptor}").resolve().parent == self._folder:
            raise OSError(30, "read-only")
        super().append(descriptor, content)


def test_a_place_that_takes_nothing_is_shown(store: ShufflerStore) -> None:
    witness = store.witness_folder
    assert witness is not None
    good = read(metrics(store).exposition())
    for place, folder in (("store", store.settings.crowds), ("witness", witness)):
        bad = read(metrics(store, _Unwritable(folder)).exposition())

        assert moved(good, bad) == {f"writable {place}": 0}
    assert not [*store.settings.crowds.glob("probe*"), *witness.glob("probe*")]


def test_a_witness_that_is_not_mounted_is_shown(store: ShufflerStore) -> None:
    """Also where none is named though the store has one; a store without any has no figure."""
    assert store.witness_folder is not None
    (store.witness_folder / "witness.id").unlink()
    unmounted = read(metrics(store).exposition())
    store.witness_folder = None
    unnamed = read(metrics(store).exposition())
    alone = ShufflerStore(store.settings.store.parent / "alone", store.clock)

    assert (unmounted["writable witness"], unnamed["writable witness"]) == (0, 0)
    assert "writable witness" not in read(metrics(alone).exposition())


def test_a_disk_that_is_too_full_is_shown_in_coarse_steps(
    store: ShufflerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = read(metrics(store).exposition())
    monkeypatch.setattr(disk_limit, "LEAST_FREE", 1 << 60)
    full = read(metrics(store).exposition())

    assert (free["takes_envelopes"], full["takes_envelopes"]) == (1, 0)
    assert free["disk_free_bytes"] % (64 << 20) == 0 < free["disk_free_bytes"]


# -- as it is served -------------------------------------------------------------------------------


def scraped(server: Served) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def counted(server: Served, answers: dict[str, int]) -> Callable[[], bool]:
    """Return whether the file has these answers, seen from tomorrow."""
    tomorrow = EnvelopeFigures(server.folder / "store", lambda: datetime.now(UTC) + DAY)
    return lambda: tomorrow.totals() == answers


DAY = timedelta(days=1)


def test_a_server_shows_its_figures_and_no_address(server: Served) -> None:
    """Two workers; what they answer today is in the file, and not shown today."""
    server.start("--workers", "2")
    status, before = scraped(server)
    server.hold(messages(server.store.crowd, 5))
    assert server.post(b"VE") == 400
    assert server.post(b"VE", "application/json") == 415
    wait_until(counted(server, {"held": 5, "bad-field": 1, "unsupported": 1}))
    after = scraped(server)[1]

    assert status == 200
    assert not moved(read(before), read(after))
    assert "127.0.0.1" not in after
    assert read(after)["writable witness"] == 1


def test_a_store_that_is_gone_leaves_no_figures(server: Served) -> None:
    server.start()
    (server.folder / "store" / "crowds").rename(server.folder / "elsewhere")

    assert scraped(server)[0] == 503
