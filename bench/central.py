"""What a central release costs: filter, store and journal, compared with OpenDP's draws.

A release is charged, drawn, kept and in the journal before it is returned, all of it on the disk;
OpenDP's draw is the noise alone, by the same mechanism. Both in turn, in one process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from statistics import median

from veilcount_aggregator.releases.curator import Curator
from veilcount_aggregator.releases.privacy_filter import PrivacyFilter
from veilcount_aggregator.releases.release_journal import ReleaseJournal
from veilcount_aggregator.store import open_store
from veilcount_analysis.releases.opendp_noise import add_noise
from veilcount_analysis.series.series import Series
from veilcount_shared import parse_collections

from .growth_fit import MOST, Growth
from .stopwatch import cpu_us
from .table import Row, Table, figure

NOTES = (
    "CPU time. A release: from the question to the durable answer, on SQLite with its journal;",
    "  draws: OpenDP's discrete Laplace for as many numbers, its mechanism made as for a release.",
    "kept: how many releases of the series there were before. Each release reads them all: the",
    "  store may have forgotten one, and no generation number shows it. It decodes none twice.",
)
SIZES = (2, 64, 1024)
KEPT = (10, 18, 32, 56, 100, 178, 316, 562, 1000)
MOST_MS = 60.0  # at a thousand kept
PERIODS, PER_DAY = 400, 10  # releases that each day's budget pays for
FILE = """
app = "bench"
[asked]
question = "Which?"
values = {values}
unit = "day"
model = "central"
budget = 1
from = 2025-01-01
until = {until}
"""
FIRST = date(2025, 1, 1)
OVER = datetime(2027, 1, 1, tzinfo=UTC)


def run(*, quick: bool) -> Table:
    """Time releases of several sizes, then releases on top of many."""
    times = 5 if quick else 21
    with tempfile.TemporaryDirectory() as name:
        rows = [row for k in SIZES for row in _compare_with_opendp(Path(name), k, times)]
        rows += _growing(Path(name), KEPT[:-1] if quick else KEPT, times)
    return Table("central: what a release costs", rows, NOTES)


@dataclass
class Releases:
    """Releases of a new store, of one day after the other, each time something new."""

    folder: Path
    k: int
    released: int = 0
    series: Series = field(init=False)
    curator: Curator = field(init=False)

    def __post_init__(self) -> None:
        """Make the store."""
        self.folder.mkdir()
        values = [f"v{place}" for place in range(self.k)]
        text = FILE.format(values=values, until=FIRST + timedelta(days=PERIODS))
        self.series = Series(parse_collections(text, lambda _: [])["asked"])
        store = open_store(f"sqlite:///{self.folder}/store.db", make=True)
        self.curator = Curator(PrivacyFilter(store, ReleaseJournal(self.folder / "journal")))

    def release(self) -> None:
        """Ask for the histogram of a day, at an epsilon that nobody asked for before."""
        day = (FIRST + timedelta(days=self.released % PERIODS)).isoformat()
        epsilon = Fraction(1 + self.released // PERIODS, 100)
        request = {"query": "histogram", "epsilon": epsilon, "from": day, "to": day}
        result = self.curator.answer(self.series, request, OVER, "bench")
        assert result.charged
        self.released += 1

    def close(self) -> None:
        """Let go of the store."""
        self.curator.filter.store.close()


def _compare_with_opendp(folder: Path, k: int, times: int) -> Iterator[Row]:
    releases, zeros = Releases(folder / f"k{k}", k), [0] * k
    releases.release()  # loads OpenDP
    pairs = [
        (cpu_us(releases.release) / 1e3, cpu_us(add_noise, zeros, 100.0) / 1e3)
        for _ in range(times)
    ]
    releases.close()
    where = f"{k:,} numbers"
    yield figure("release, ms", median(ours for ours, _ in pairs), where)
    yield figure("OpenDP's draws, ms", median(theirs for _, theirs in pairs), where)
    yield figure("release / draws", median(ours / theirs for ours, theirs in pairs), where)


def _growing(folder: Path, kept: Sequence[int], times: int) -> Iterator[Row]:
    releases, costs = Releases(folder / "kept", 64), []
    for number in kept:
        while releases.released < number:
            releases.release()
        costs.append(median(cpu_us(releases.release) / 1e3 for _ in range(min(times, number))))
        limit = MOST_MS if number == KEPT[-1] else None
        yield figure("release, ms", costs[-1], f"{number:,} kept", limit)
    releases.close()
    growth = Growth.fitted_to(kept, costs)
    yield figure("grows as kept^", growth.exponent, str(growth), MOST)
