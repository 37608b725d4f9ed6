"""Row-close requests: they close the rows of forgotten persons, each at its own time.

Together they would reveal, in the last moment, which pseudonyms were one person's. Few people
forget at once, so an hour would not hide one among others: a row is closed after a day of running
on the average. The time has no memory (it is exponential), so that a process which ends in between,
and draws again, changes nothing about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from veilcount_shared import RandomSource

from ..state import ClientState, RowClose

MEAN_CLOSE = 86_400.0  # seconds that the process runs, on the average, until a row is closed
MOST_LEASED = 2000
GRAIN = 1_000_000


@dataclass(frozen=True)
class RowCloses:
    """Decides which rows are to be closed now, and keeps which were."""

    state: ClientState
    randomness: RandomSource
    now: Callable[[], float]
    hurried: bool  # in development: close each at once

    def next_due(self) -> float | None:
        """Return when the next row is closed, or its time is to be drawn."""
        return self.state.next_row_close()

    def due(self, lease: float, grace: float) -> list[RowClose]:
        """Return the rows to be closed now; until the lease ends they are not returned again.

        What was due while nothing could leave, or has no time yet, gets a new one.
        """
        now = self.now()
        due = self.state.row_closes(now, MOST_LEASED)
        late = [each for each in due if each.due < now - grace and not self.hurried]
        ready = [each for each in due if each not in late]
        times = {(each.series, each.pseudonym): self._later(now) for each in late}
        times |= {(each.series, each.pseudonym): now + lease for each in ready}
        if times:
            self.state.schedule_row_closes(times)
        return self.randomness.shuffled(ready)

    def finish(self, row: RowClose, *, done: bool) -> None:
        """Keep that a row was closed; or else when it is tried again."""
        if done:
            self.state.finish_row_close(row.series, row.pseudonym)
        else:
            times = {(row.series, row.pseudonym): self._later(self.now())}
            self.state.schedule_row_closes(times)

    def _later(self, start: float) -> float:
        return start - MEAN_CLOSE * math.log((1 + self.randomness.below(GRAIN)) / GRAIN)
