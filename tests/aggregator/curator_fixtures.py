"""A central collection with true answers in a store, a curator over it, and one in a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from veilcount_aggregator.errors import InsufficientBudget, ReleasesWaiting, StoreError
from veilcount_aggregator.releases.curator import Curator, ReleaseResult
from veilcount_aggregator.releases.privacy_filter import PrivacyFilter
from veilcount_aggregator.releases.release_journal import ReleaseJournal
from veilcount_aggregator.store import Store, open_store
from veilcount_analysis.series.series import Series
from veilcount_shared import SystemRandomSource, parse_collections
from veilcount_shared.verdict import Verdict

from .store.engines import ENGINES
from .store.series_fixtures import report, send

TEXT = """
app = "acme"

[age]
question = "How old?"
range = [0, 3]
unit = "day"
model = "central"
budget = 1
adjacency = "add-remove"
from = 2026-12-01
until = 2026-12-11
late = 1
"""
OPEN = TEXT.replace("[age]", "[word]").replace("range = [0, 3]", 'values = "open"') + (
    "delta = 0.000001\n"
)
OVER = datetime(2027, 1, 1, 12, tzinfo=UTC)  # the campaign's last report was long ago
PERIODS = 10
TICK_SECONDS, WAITING_SECONDS = 0.05, 30.0


def series(**changed: str) -> Series:
    """Return the collection as a store knows it; keys may be written otherwise."""
    text = TEXT
    for key, value in changed.items():
        lines = (f"{key} = {value}" if line.startswith(key) else line for line in text.split("\n"))
        text = "\n".join(lines)
    return Series(parse_collections(text, lambda _: [])["age"])


AGE = series()


def fill(store: Store, which: Series, truth: Iterable[int], period: int = 0) -> None:
    """Have each input answered so often in a period, each answer by somebody new."""
    messages = [place for place, answers in enumerate(truth) for _ in range(answers)]
    reports = [report(1000 * n + period, period, 0, each) for n, each in enumerate(messages)]

    assert set(send(store, which, *reports)) == {Verdict.COUNTED}


def fill_strings(store: Store, which: Series, truth: Mapping[str, int], period: int = 0) -> None:
    """Have each string answered so often in a period, each answer by a device of its own."""
    texts = [text for text, answers in truth.items() for _ in range(answers)]
    randomness = SystemRandomSource()
    messages = [which.collection.reveal(text, randomness) for text in texts]
    reports = [report(1000 * n + period, period, 0, each) for n, each in enumerate(messages)]

    assert set(send(store, which, *reports)) == {Verdict.COUNTED}


def day(period: int) -> str:
    return f"2026-12-{period + 1:02}"


def wanted(
    query: object, epsilon: object, first: int = 0, last: int | None = None
) -> dict[str, object]:
    """Return a request, by default of one day."""
    ends = {"from": day(first), "to": day(first if last is None else last)}
    return {"query": query, "epsilon": epsilon, **ends}


def curator(store: Store, journal: Path) -> Curator:
    return Curator(PrivacyFilter(store, ReleaseJournal(journal)))


@contextmanager
def stored(engine: str, folder: Path) -> Iterator[str]:
    """Yield the URL of a new store with six answers in each period."""
    with ENGINES[engine](folder) as empty:
        url = empty()
        store = open_store(url, make=True)
        for period in range(PERIODS):
            fill(store, AGE, [3, 2, 1, 0], period)
        yield url
        store.close()


# -- in a process of its own -----------------------------------------------------------------------


class QueryProcess:
    """A process that requests one query of a period at the whole budget, whenever it is asked."""

    def __init__(self, url: str, journal: Path, query: str) -> None:
        program = [sys.executable, "-m", "tests.aggregator.curator_fixtures"]
        self.process = subprocess.Popen(
            [*program, url, str(journal), query],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._line() == "ready"

    def go(self, period: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{period}\n")
        self.process.stdin.flush()

    def won(self) -> bool:
        return json.loads(self._line()) is True

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it: by default as a power cut ends a process."""
        self.process.send_signal(how)
        self.process.communicate(timeout=60)

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def ticks(central: Curator) -> None:
    """Confirm the store again and again, as a host's ticker does."""
    while True:
        with suppress(StoreError):
            central.filter.tick(OVER)
        time.sleep(TICK_SECONDS)


def answer(central: Curator, request: dict[str, object], who: str) -> ReleaseResult:
    """Return the answer, once the other hosts have confirmed the store."""
    ends = time.monotonic() + WAITING_SECONDS
    while True:
        try:
            return central.answer(AGE, request, OVER, who)
        except ReleasesWaiting:
            if time.monotonic() > ends:
                raise
            time.sleep(TICK_SECONDS)


def main(url: str, journal: str, query: str) -> None:
    """Release each period that is read, and print whether it was paid for."""
    store = open_store(url)
    central = curator(store, Path(journal))
    central.dry_run(AGE, wanted(query, 1))  # what draws the noise takes its time to load
    print("ready", flush=True)
    threading.Thread(target=ticks, args=(central,), daemon=True).start()
    for line in sys.stdin:
        try:
            answer(central, wanted(query, 1, int(line)), query)
        except InsufficientBudget:
            print("false", flush=True)
        else:
            print("true", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
