"""`veilcount` with a wrong clock: `python -m tests.system.shifted_serve FILE serve ...`.

The file holds the seconds by which the wall clock is ahead; it is read at each look at the clock,
so a test can shift a server that runs; what each run of the retention dropped is written to a file
next to it. Nothing settles here: what has to be shown is what a host
with a wrong clock does, not that it waits for a quarter of an hour with it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.server import background, serve, wsgi
from veilcount_aggregator.store.retention import retention_guard
from veilcount_analysis.series.series import Series


def main(shift: Path, arguments: list[str]) -> int:
    """Run a command in which every worker's clock is shifted."""

    def now() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(shift.read_text()))

    retain = retention_guard.RetentionGuard.run

    def run_and_report(self: retention_guard.RetentionGuard, series: Collection[Series]) -> int:
        found = retain(self, series)
        with shift.with_suffix(".runs").open("a") as runs:
            runs.write(f"{found}\n")
        return found

    retention_guard.RetentionGuard.run = run_and_report  # type: ignore[method-assign]
    serve.app = wsgi.LazyApplication(os.environ, time.monotonic, now)  # type: ignore[attr-defined] # not exported
    retention_guard.SETTLING_SECONDS = 0.0  # type: ignore[attr-defined] # not exported
    background.CLOCK_SECONDS = 0.1
    background.RETENTION_SECONDS = 0.5
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
