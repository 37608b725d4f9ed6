"""What a client costs a device that is idle: its import, wake-ups, and the log of its state.

Imports are timed by turns, each in a process of its own with compiled modules, as pip leaves them,
and compared with `import requests`, which many an app has anyway.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from veilcount_client.testing import ClientHarness

from . import separate
from .client import Figures, Processes, client_of, collection, definition, worker_of
from .table import Row, Table, figure

NOTES = (
    "import: CPU time, the median of {} processes; x: the median of ratios in one round.",
    "wake-ups: rounds of the client's thread on a day on which nothing is recorded.",
    "log: SQLite's log of the state, while the client runs.",
)
DAY = 86_400.0
RECORDS = 1_000
MOST_WAKES, MOST_LOG_KB, MOST_RATIO = 29, 200, 0.6
REQUESTS, CLIENT = "import requests", "import veilcount"
OPENED = """import veilcount
veilcount.Client("http://127.0.0.1:9", collections="{0}/bench.toml", state_dir="{0}/state")
"""


def run(*, quick: bool) -> Table:
    """Measure each in processes of their own."""
    times = 5 if quick else 21
    with tempfile.TemporaryDirectory() as name:
        processes = Processes(Path(name))
        rows = [
            *_imports(processes, times),
            figure("wake-ups a day", separate.run(wakes), "a daily question", MOST_WAKES),
            *_log(processes.run(log, "http://127.0.0.1:9", RECORDS)),
        ]
    notes = tuple(note.format(times) for note in NOTES)
    return Table("device: what a client costs one that is idle", rows, notes)


def _imports(processes: Processes, times: int) -> Iterator[Row]:
    (processes.folder / "bench.toml").write_text(definition("day"), encoding="utf-8")
    codes = (REQUESTS, CLIENT, OPENED.format(processes.folder))
    rounds = [[processes.cpu_ms(code) for code in codes] for _ in range(times + 1)][1:]
    names = (REQUESTS, CLIENT, f"{CLIENT}, and a Client")
    for place, name in enumerate(names):
        yield figure("import, ms", median(turn[place] for turn in rounds), name)
    for place, most in ((1, MOST_RATIO), (2, None)):
        ratio = median(turn[place] / turn[0] for turn in rounds)
        yield figure(f"x {REQUESTS}", ratio, names[place], most)


def _log(kilobytes: Figures) -> Iterator[Row]:
    yield figure("log, kB", kilobytes["at once"], f"{RECORDS:,} records at once")
    yield figure("log, kB", kilobytes["later"], "and one more", MOST_LOG_KB)


def wakes() -> int:
    """Count the rounds of a day, each when the thread would wake."""
    with ClientHarness() as veilcount:
        client = veilcount.client({"bench": collection("day")})
        client.record("bench", True)
        client.flush()
        worker, rounds, ends = worker_of(client), 0, veilcount.clock.now() + DAY
        while veilcount.clock.now() + (pause := worker._pause()) < ends:
            veilcount.clock.advance(seconds=pause)
            worker.work()
            rounds += 1
    return rounds


def log(url: str, folder: str, records: int) -> Figures:
    """Store many records at once, then one more; measure the log while the client runs."""
    client, sizes = client_of(url, folder, collection("event", records + 1), 0), []
    for number in (records, 1):
        for _ in range(number):
            client.record("bench", True)
        assert client.flush(until="stored")
        sizes.append(sum(path.stat().st_size for path in Path(folder).glob("*-wal")) / 1e3)
    return {"at once": sizes[0], "later": sizes[1]}
