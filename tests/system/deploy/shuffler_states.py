"""States of a shuffler in which alerts fire: real stores, read at times that are made up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from veilcount_shared.shuffling.batch_record import BatchState
from veilcount_shuffler import crowd_limit
from veilcount_shuffler.envelope_figures import EnvelopeFigures
from veilcount_shuffler.shuffler_metrics import ShufflerMetrics

from ...shuffler.parties import HandClock, ShufflerStore, messages
from .alert_timelines import DAY, MINUTE, UP, Timeline, state
from .promtool import Sample, Scrape, read

SHUFFLER_UP = Sample(UP, {"job": "veilcount-shuffler"}, 1)


@contextmanager
def shuffler(folder: Path) -> Iterator[ShufflerStore]:
    """Have a store with a witness, and a crowd that has begun."""
    folder.mkdir(exist_ok=True)
    (folder / "witness").mkdir()
    store = ShufflerStore(folder / "store", HandClock(), witness=folder / "witness")
    try:
        store.store().witness.identify(store.settings)
        store.worker().hold(messages(store.crowd, 3))
        yield store
    finally:
        store.close()


def samples(store: ShufflerStore) -> list[Sample]:
    figures = EnvelopeFigures(store.settings.store, store.clock)
    metrics = ShufflerMetrics(store.settings, store.witness_folder, figures, store.clock)
    return [SHUFFLER_UP, *read(metrics.exposition())]


def shuffler_figures(folder: Path) -> list[Sample]:
    """Return what a shuffler exports."""
    with shuffler(folder) as store:
        return samples(store)


@state("ShufflerDown")
def shuffler_down(_: Path) -> Timeline:
    timeline = Timeline([Scrape(0, [SHUFFLER_UP])])
    timeline.add(10 * MINUTE, [SHUFFLER_UP._replace(value=0)])
    return timeline


Act = Callable[[ShufflerStore], object]


def shuffler_after(alert: str, at: float = 10 * MINUTE) -> Callable[[Act], Act]:
    """Register an act that leads to the state of an alert: figures are read before and after."""

    def register(act: Act) -> Act:
        @state(alert)
        def timeline(folder: Path) -> Timeline:
            timeline = Timeline()
            with shuffler(folder / "shuffler") as store:
                timeline.add(0, samples(store))
                act(store)
                timeline.add(at, samples(store))
            return timeline

        return act

    return register


@state("ShufflerFull")
def shuffler_full(folder: Path) -> Timeline:
    """The disk has less space than it keeps free."""
    timeline = Timeline()
    with shuffler(folder / "shuffler") as store:
        timeline.add(0, samples(store))
        with patch.object(crowd_limit, "LEAST_FREE", 1 << 60):
            timeline.add(10 * MINUTE, samples(store))
    return timeline


@shuffler_after("ShufflerNotWritable")
def shuffler_not_writable(store: ShufflerStore) -> None:
    """The disk of the witness is not mounted any more: its folder is empty."""
    assert store.witness_folder is not None
    for path in store.witness_folder.iterdir():
        path.unlink()


@shuffler_after("BatchOverdue", at=3 * DAY)
def batch_overdue(store: ShufflerStore) -> None:
    """The aggregator is away since the grace of the first crowd ended."""
    store.leave()
    store.aggregator.away = True
    store.rounds()
    store.clock.advance(days=1)
    store.rounds()


@shuffler_after("CrowdLost")
def crowd_lost(store: ShufflerStore) -> None:
    """A store that knew less than its witness: `serve` records its open crowds as lost."""
    store.hand_over().end(store.crowd.crowd_id, BatchState.LOST)


@shuffler_after("ShufflerRefuses", at=DAY)
def shuffler_refuses(store: ShufflerStore) -> None:
    """Of a day's envelopes two in a hundred come from a network beyond its rate."""
    figures = EnvelopeFigures(store.settings.store, store.clock)
    for number in range(100):
        figures.count("too-many" if number < 2 else "held")
    figures.flush()
    store.clock.advance(days=1)
