"""`/metrics` of a shuffler: crowds by state, what is overdue, disk and witness, answers by the day.

No figure is of an address, and none moves at the instant at which a device sends: a crowd counts as
open while the calendar says so, not from its first report on, and free space has coarse steps.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from veilcount_shared.shuffling.batch_record import BatchState

from .crowd_limit import DiskLimit
from .crowd_states import CrowdRow, CrowdState, CrowdStates
from .disk import Disk
from .envelope_figures import HELD, EnvelopeFigures
from .errors import ShufflerError
from .problems import SHUFFLER_PROBLEMS
from .served_crowds import crowds_of
from .store_settings import StoreSettings
from .witness import Witness

PREFIX = "veilcount_shuffler_"
DISK_STEP = 64 << 20
WAITING = (CrowdState.OPEN, CrowdState.SEALED, CrowdState.SHUFFLED)
STATES = tuple(state.name.lower() for state in (*WAITING, *BatchState))


@dataclass(frozen=True, slots=True)
class ShufflerMetrics:
    """The figures of one store, over all its processes."""

    settings: StoreSettings
    witness: Path | None
    figures: EnvelopeFigures
    clock: Callable[[], datetime]
    disk: Disk = field(default_factory=Disk)

    def exposition(self) -> str:
        """Return the figures in the Prometheus text format."""
        with closing(CrowdStates(self.settings.crowds, self.disk)) as states:
            rows = states.rows()
        return "".join([*self._answers(), *self._crowds(rows, self.clock()), *self._places()])

    def _answers(self) -> Iterator[str]:
        totals = self.figures.totals()
        text = "Envelopes held, of the days that are over, each day's number in two digits."
        yield from _metric("held_total", text, {"": totals[HELD]}, "counter")
        yield from _metric(
            "refused_total",
            "Envelopes refused, by problem type, of the days that are over.",
            {f'problem="{name}"': totals[name] for name in SHUFFLER_PROBLEMS},
            "counter",
        )

    def _crowds(self, rows: list[CrowdRow], now: datetime) -> Iterator[str]:
        overdue = [row for row in rows if row.outcome is None and now >= row.closes]
        numbers = Counter(map(_state, overdue))
        numbers.update(_state(row) for row in rows if row.outcome is not None)
        numbers["open"] += self._taking(rows, now)
        yield from _metric(
            "crowds",
            "Crowds by state; open: those of the calendar, whether or not anybody sent.",
            {f'state="{state}"': numbers[state] for state in STATES},
        )
        yield from _metric(
            "oldest_undelivered_days",
            "Whole days since the grace of the oldest crowd that has not left; 0: there is none.",
            {"": max((now.date() - row.closes.date()).days for row in overdue) if overdue else 0},
        )
        yield from _metric(
            "aggregator_away_days",
            "Days on which the aggregator was away from a crowd that has not left.",
            {"": max((row.days_waited for row in overdue), default=0)},
        )

    def _taking(self, rows: list[CrowdRow], now: datetime) -> int:
        """Return how many crowds take reports by the calendar."""
        ended = {row.crowd_id for row in rows if row.outcome is not None}
        return sum(
            crowd.opens <= now < crowd.closes and crowd.crowd_id not in ended
            for crowd in crowds_of(self.settings)
        )

    def _places(self) -> Iterator[str]:
        disk = os.statvfs(self.settings.crowds)
        free = disk.f_bavail * disk.f_frsize // DISK_STEP * DISK_STEP
        yield from _metric("disk_free_bytes", "Free space, in steps of 64 MiB.", {"": free})
        yield from _metric(
            "takes_envelopes",
            "0: the disk is too full, and envelopes are answered 503.",
            {"": DiskLimit(self.settings.crowds).has_space},
        )
        writable = {'place="store"': _is_writable(self.settings.crowds, self.disk)}
        if self.witness is not None or self.settings.witness_id:
            writable['place="witness"'] = self._has_witness()
        text = "0: nothing can be written there, or it is not the witness; envelopes get 503."
        yield from _metric("writable", text, writable)

    def _has_witness(self) -> bool:
        try:
            Witness(self.witness, self.disk, self.settings.witness_id)
        except (ShufflerError, OSError):
            return False
        return self.witness is not None and _is_writable(self.witness, self.disk)


def _state(row: CrowdRow) -> str:
    return (row.state if row.outcome is None else row.outcome).name.lower()


def _is_writable(folder: Path, disk: Disk) -> bool:
    """Write a file durably, and remove it."""
    probe = folder / f"probe.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        disk.create(probe, b"")
    except OSError:
        return False
    finally:
        for file in folder.glob(f"{probe.name}*"):
            with suppress(OSError):
                file.unlink()
    return True


def _metric(
    name: str, help_text: str, values: Mapping[str, int], kind: str = "gauge"
) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {help_text}\n# TYPE {PREFIX}{name} {kind}\n"
    for labels, number in sorted(values.items()):
        yield f"{PREFIX}{name}{{{labels}}} {int(number)}\n"
