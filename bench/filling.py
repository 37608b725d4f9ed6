"""What it costs a stranger to fill a period with invented pseudonyms.

A real server on SQLite with an open intake, without limits (but a period's) and with those that it
has by default; bodies of new pseudonyms over keep-alive connections, for some seconds. What was
let in, and the quota of an hour, give the requests and the hours until a period is full.
"""

from __future__ import annotations

import http.client
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from tests.engines import SQLITE, engine

from veilcount_aggregator.settings import MAX_NEW_PSEUDONYMS, MAX_NEW_PSEUDONYMS_PER_HOUR
from veilcount_shared.report import KEYLESS_BODY_PSEUDONYMS, MAX_REPORTS
from veilcount_shared.wire import BINARY_TYPE

from .definitions import definitions, question
from .load import Shape, bodies, served
from .table import Row, Table

SLOTS, CONNECTIONS, SECONDS, BODIES = 4, 4, 5.0, 2_000
SIZES = (1, KEYLESS_BODY_PSEUDONYMS, MAX_REPORTS)


@dataclass(frozen=True, slots=True)
class Flood:
    """What came of some seconds of a flood."""

    requests: int
    seconds: float
    verdicts: Counter[str]

    @property
    def admitted(self) -> int:
        """How many new pseudonyms were counted."""
        return self.verdicts["counted"]


def run(*, quick: bool) -> Table:
    """Flood one server after the other, with bodies of each size."""
    seconds = 1.0 if quick else SECONDS
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        file = place / "collections.toml"
        file.write_text(definitions(SLOTS), encoding="utf-8")
        rows = [
            _row(size, _flooded(size, place, file, seconds, limited=limited), limited=limited)
            for limited in (False, True)
            for size in SIZES
        ]
    return Table(
        f"filling a period of {MAX_NEW_PSEUDONYMS:,} with invented pseudonyms, SQLite",
        rows,
    )


def _flooded(size: int, place: Path, file: Path, seconds: float, *, limited: bool) -> Flood:
    with (
        engine(SQLITE, place / f"{size}-{limited}") as store,
        served(store, file, limited=limited) as server,
    ):
        return flood(server.url, size, seconds)


def flood(url: str, size: int, seconds: float) -> Flood:
    """Post bodies of so many new pseudonyms each, over some connections at once."""
    begun = time.monotonic()
    with ThreadPoolExecutor(CONNECTIONS) as attackers:
        work = [attackers.submit(_attack, url, size, seconds, seed) for seed in range(CONNECTIONS)]
        replies = [reply for each in work for reply in each.result()]
    verdicts = Counter(verdict for reply in replies for verdict in json.loads(reply)["verdicts"])
    return Flood(len(replies), time.monotonic() - begun, verdicts)


def _attack(url: str, size: int, seconds: float, seed: int) -> list[bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=60)
    ends, replies = time.monotonic() + seconds, []
    for body in _bodies(size, seed):
        connection.request("POST", parts.path, body, {"Content-Type": BINARY_TYPE})
        replies.append(connection.getresponse().read())
        if time.monotonic() > ends:
            break
    connection.close()
    return replies


def _bodies(size: int, seed: int) -> Iterator[bytes]:
    """Yield bodies without end, some thousand pseudonyms made at once."""
    chance, number = np.random.default_rng(seed), max(1, BODIES // size)
    while True:
        yield from bodies(question(SLOTS), Shape(size, mixed=True), number, chance)


def _row(size: int, found: Flood, *, limited: bool) -> Row:
    each = found.admitted / found.requests
    pace = found.admitted / found.seconds
    hours = MAX_NEW_PSEUDONYMS / pace / 3600
    return {
        "limits": "default" if limited else "none",
        "pseudonyms a body": size,
        "let in a body": each,
        "let in a second": pace,
        "requests to fill": MAX_NEW_PSEUDONYMS / each,
        "hours to fill": max(hours, MAX_NEW_PSEUDONYMS / MAX_NEW_PSEUDONYMS_PER_HOUR)
        if limited
        else hours,
    }
