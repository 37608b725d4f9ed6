"""Which WSGI server suits the aggregator, and with how many threads: `python -m bench.servers`.

The real application on SQLite, one worker, 32 connections, one report a request, each new: the CPU
of a request, the memory of a server that has answered, and what becomes of requests in flight when
it is asked to end while a commit is slow.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
import requests
from tests.system.server import HOST, free_port, listens, wait_until

from veilcount_aggregator.settings import Settings
from veilcount_shared.wire import BINARY_TYPE

from .ingest_load import BodyFile, Heard, Shape, bodies, definitions, load, question
from .ingest_servers import Engine, Served, _environment, _family, engine
from .table import Row, Table

COLUMNS = {
    "server": "",
    "threads": "d",
    "us": ".0f",
    "requests/s": ",.0f",
    "p99, ms": ".1f",
    "MB": ".0f",
    "answered of 8": "d",
    "ends in, s": ".2f",
}
APP = "veilcount_aggregator.server.wsgi:app"
SUBJECTS = (("granian", 8), ("granian", 32), ("granian", 64), ("gunicorn", 32))
ROUNDS, SECONDS, MOST = 3, 3, 12_000
IN_FLIGHT = 8
SLOTS = 128
ALONE = Shape(1)

Command = Callable[[int, int], list[str]]


def _granian(port: int, threads: int) -> list[str]:
    return [
        *("-m", "granian", "--interface", "wsgi", "--http", "1", "--no-ws", "--no-log"),
        *("--port", str(port), "--blocking-threads", str(threads), APP),
    ]


def _gunicorn(port: int, threads: int) -> list[str]:
    return [
        *("-m", "gunicorn", "--worker-class", "gthread", "--threads", str(threads)),
        *("--bind", f"{HOST}:{port}", "--keep-alive", "60", "--no-control-socket"),
        *("--worker-tmp-dir", "/dev/shm", APP),  # noqa: S108 - as it advises
    ]


COMMANDS: dict[str, Command] = {"granian": _granian, "gunicorn": _gunicorn}


@contextmanager
def serving(name: str, threads: int, store: Engine, file: Path) -> Iterator[Served]:
    """Serve a store in this way."""
    port = free_port()
    settings = Settings(store.url, (file,))
    with file.with_suffix(".log").open("ab") as log:
        command = [sys.executable, *COMMANDS[name](port, threads)]
        process = subprocess.Popen(command, env=_environment(settings), stdout=log, stderr=log)
    wait_until(lambda: listens(port), 60)
    requests.get(f"http://{HOST}:{port}/readyz", timeout=60)
    try:
        yield Served(f"http://{HOST}:{port}/v1/reports", process.pid, store)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def run() -> Table:
    """Measure each, round after round."""
    heard: dict[tuple[str, int], list[tuple[Heard, float]]] = {each: [] for each in SUBJECTS}
    ends = {}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        file = place / "collections.toml"
        file.write_text(definitions(SLOTS), encoding="utf-8")
        for turn in range(ROUNDS):
            for each in SUBJECTS:
                folder = place / f"{each[0]}-{each[1]}-{turn}"
                with engine("sqlite", folder) as store:
                    with serving(*each, store, file) as served:
                        heard[each].append((_loaded(served, folder), _megabytes(served.pid)))
                    if not turn:
                        ends[each] = _drained(*each, store, file, folder)
    rows = [_row(each, heard[each], ends[each]) for each in SUBJECTS]
    return Table("servers: one report a request, SQLite, durable", COLUMNS, rows)


def _loaded(served: Served, folder: Path) -> Heard:
    chance = np.random.default_rng(len(folder.name))
    body_folder = folder / "errand"
    number = MOST * (SECONDS + 1)
    load(served, BodyFile.write(body_folder, question(SLOTS), ALONE, number, chance), 1)
    return load(
        served, BodyFile.write(body_folder, question(SLOTS), ALONE, number, chance), SECONDS
    )


def _drained(name: str, threads: int, store: Engine, file: Path, folder: Path) -> tuple[int, float]:
    """Return how many of the requests in flight are answered, and how soon the server has ended."""
    raw = bodies(question(SLOTS), ALONE, IN_FLIGHT, np.random.default_rng(7))
    size = len(raw) // IN_FLIGHT
    single = [raw[place * size :][:size] for place in range(IN_FLIGHT)]
    with ThreadPoolExecutor(IN_FLIGHT) as devices:
        with (
            (folder / "bench.db-lock").open("ab") as lock,
            serving(name, threads, store, file) as s,
        ):
            fcntl.flock(lock, fcntl.LOCK_EX)
            waiting = [devices.submit(_status, s.url, each) for each in single]
            time.sleep(0.5)
            os.kill(s.pid, signal.SIGTERM)
            time.sleep(0.5)
            fcntl.flock(lock, fcntl.LOCK_UN)
            released = time.monotonic()
        return sum(each.result() == 200 for each in waiting), time.monotonic() - released


def _status(url: str, body: bytes) -> int:
    try:
        return requests.post(
            url, body, headers={"Content-Type": BINARY_TYPE}, timeout=30
        ).status_code
    except requests.RequestException:
        return 0


def _megabytes(pid: int) -> float:
    """Return the memory of a server and its workers, what they share counted once."""
    maps = (Path(f"/proc/{each}/smaps_rollup").read_text("ascii") for each in _family(pid))
    found = (re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE) for text in maps)
    return sum(int(each[1]) for each in found if each) / 1024


def _row(each: tuple[str, int], heard: list[tuple[Heard, float]], ended: tuple[int, float]) -> Row:
    return {
        "server": each[0],
        "threads": each[1],
        "us": median(one.app for one, _ in heard),
        "requests/s": median(one.requests for one, _ in heard) / SECONDS,
        "p99, ms": median(one.p99 for one, _ in heard) / 1000,
        "MB": median(size for _, size in heard),
        "answered of 8": ended[0],
        "ends in, s": ended[1],
    }


if __name__ == "__main__":
    print(run())
