"""The load of `ingest`: bodies as a device packs them, sent by wrk, each once."""

from __future__ import annotations

import json
import resource
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from veilcount_client.delivery.body_packing import pack
from veilcount_shared import Collection, parse_collections
from veilcount_shared.report import Batch, Report
from veilcount_shared.wire import BINARY_TYPE

from .ingest_servers import Served

SCRIPT = Path(__file__).with_suffix(".lua")
CONNECTIONS = 32
FILE = """
app = "bench"
[bench]
question = "Which of 64?"
values = {values}
epsilon = 4
unit = "event"
per_day = {slots}
from = {first}
until = {last}
"""
_LATE = 20.0  # seconds after which wrk gives a reply up


def definitions(slots: int) -> str:
    """Return a question of 64 answers, asked so many times a day; an epoch is a day."""
    today = datetime.now(UTC).date()
    first, last = today - timedelta(days=1), today + timedelta(days=5)
    values = json.dumps([f"v{place}" for place in range(64)])
    return FILE.format(values=values, slots=slots, first=first, last=last)


def question(slots: int) -> Collection:
    """Return the same, read."""
    return parse_collections(definitions(slots), lambda _: [])["bench"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a body holds: so many reports, of one pseudonym (as devices send) or of one each."""

    reports: int
    mixed: bool = False

    @property
    def name(self) -> str:
        """What it is called."""
        return f"n = {self.reports}{', mixed' if self.mixed else ''}"


@dataclass(frozen=True, slots=True)
class Heard:
    """What a run cost, in CPU microseconds a request, and how soon its replies came."""

    requests: int
    a_second: float
    app: float
    store: float
    generator: float
    p50: float
    p99: float

    @property
    def share(self) -> float:
        """The generator's cost as a share of the servers'."""
        return self.generator / (self.app + self.store)


def bodies(collection: Collection, shape: Shape, number: int, chance: np.random.Generator) -> bytes:
    """Return so many bodies, end to end: a real one again and again, with pseudonyms of its own.

    A message of a 64-fold choice is any number below 64, and nearly uniform at that.
    """
    reports = tuple(_report(collection, shape, place) for place in range(shape.reports))
    template = pack(Batch(reports))
    rows = np.tile(np.frombuffer(template, np.uint8), (number, 1))
    size = len(template)
    first = template.index(_PSEUDONYM)
    step = 22 + collection.message_bytes
    own = chance.integers(0, 256, (number, 16 * (shape.reports if shape.mixed else 1)), np.uint8)
    for place in range(shape.reports):
        begin = first + place * step
        mine = 16 * place if shape.mixed else 0
        rows[:, begin : begin + 16] = own[:, mine : mine + 16]
        rows[:, begin + 21] = chance.integers(0, 64, number, np.uint8)
    assert rows.shape == (number, size)
    return rows.tobytes()


_PSEUDONYM = b"a pseudonym's 16"


def _report(collection: Collection, shape: Shape, place: int) -> Report:
    slot = 0 if shape.mixed else place
    return Report(collection.fingerprint, 1, 0, _PSEUDONYM, slot, collection.pack(0))


@dataclass(frozen=True, slots=True)
class BodyFile:
    """A file of bodies of one length, behind the head of their requests."""

    file: Path
    head: int
    size: int
    reports: int

    @classmethod
    def write(
        cls,
        file: Path,
        collection: Collection,
        shape: Shape,
        number: int,
        chance: np.random.Generator,
    ) -> BodyFile:
        """Make it anew."""
        raw = bodies(collection, shape, number, chance)
        size = len(raw) // number
        head = (
            "POST /v1/reports HTTP/1.1\r\nHost: bench\r\n"
            f"Content-Type: {BINARY_TYPE}\r\n"
            f"Content-Length: {size}\r\n\r\n"
        ).encode()
        file.write_bytes(head + raw)
        return cls(file, len(head), size, shape.reports)


def load(server: Served, body_file: BodyFile, seconds: float) -> Heard:
    """Send for so long, or until there is no body left."""
    before, own = server.seconds(), _children()
    figures = _wrk(server.url, body_file, seconds)
    app, store = (b - a for a, b in zip(before, server.seconds(), strict=True))
    answered = int(figures["answered"])
    if figures["refused"] or figures["broken"] or not answered:
        raise RuntimeError(f"not everything was answered: {figures}")
    each = 1e6 / answered
    return Heard(
        answered,
        answered / figures["seconds"],
        app * each,
        store * each,
        (_children() - own) * each,
        figures["p50"],
        figures["p99"],
    )


def _wrk(url: str, body_file: BodyFile, seconds: float) -> dict[str, float]:
    done = subprocess.run(
        [
            *("wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", f"--timeout={_LATE:g}s"),
            *(
                "-s",
                str(SCRIPT),
                url,
                "--",
                str(body_file.file),
                str(body_file.head),
                str(body_file.size),
            ),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=seconds + 60,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("figures "))
    figures: dict[str, float] = json.loads(line.removeprefix("figures "))
    return figures


def _children() -> float:
    """Return the CPU seconds of the processes that we started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
