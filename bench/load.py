"""Servers of the bench, and their load: bodies as a device packs them, sent by wrk, each once."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import urlsplit

import numpy as np
from tests.engines import Engine
from tests.processes import cpu_seconds, family, wait_until
from tests.system.server import LIMITS, Server, listens

from veilcount_analysis.series.series import Series
from veilcount_client.delivery.padded_bodies import encode_padded
from veilcount_shared.report import Batch, Report
from veilcount_shared.wire import BINARY_TYPE

from .definitions import questions

SCRIPT = Path(__file__).with_suffix(".lua")
CONNECTIONS = 32
PSEUDONYM = b"a pseudonym's 16"
#: what nginx adds (`deploy/nginx.conf`)
PROXIED = (
    "X-Veilcount-Request-Id: 5f1d7a84-7db7-4f5e-8b9c-000000000000\r\n"
    "X-Veilcount-Source-Class: 12\r\n"
)
MESSAGE_AT = 21  # bytes from a report's pseudonym to its message
LATE = 20  # seconds after which wrk gives a reply up


# -- servers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Served:
    """A server that takes reports, and the store behind it."""

    url: str
    pid: int
    engine: Engine

    def seconds(self) -> tuple[float, float]:
        """Return the CPU seconds of the server with all its workers, and of the store's own."""
        return cpu_seconds(*family(self.pid)), cpu_seconds(*self.engine.pids())


@contextmanager
def served(
    engine: Engine, definitions: Path, workers: int = 1, *, bare: str = "", limited: bool = False
) -> Iterator[Served]:
    """Serve a store, or what counts nothing: one of `bare.KINDS`.

    Not limited: a benchmark may send in one body, and in an hour, what devices send in many.
    """
    flags = ("--collections", str(definitions), "--workers", str(workers))
    program = ("bench.bare", bare) if bare else ("veilcount_aggregator",)
    limits = {} if limited else LIMITS
    with Server(engine.url, definitions.parent, *flags, program=program, limits=limits) as server:
        wait_until(lambda: listens(server.port))
        yield Served(f"{server.url}/v1/reports", server.pid, engine)


# -- bodies ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shape:
    """What a body holds: so many reports, of one pseudonym (as devices send) or of one each."""

    reports: int
    mixed: bool = False
    connections: int = CONNECTIONS
    questions: int = 1  # a body is of one, in turn
    proxied: bool = False  # with the heads that nginx sends, each with an id of its own

    def __str__(self) -> str:
        many = "" if self.connections == CONNECTIONS else f", {self.connections} connections"
        several = "" if self.questions == 1 else f", {self.questions} collections"
        proxied = ", nginx's heads" if self.proxied else ""
        return f"n = {self.reports}{', mixed' if self.mixed else ''}{many}{several}{proxied}"


def bodies(series: Series, shape: Shape, number: int, chance: np.random.Generator) -> list[bytes]:
    """Return so many bodies of one length: a real one, each time with pseudonyms of its own.

    A message of a 64-fold choice is any number below 64, and nearly uniform at that.
    """
    template = encode_padded(
        Batch(tuple(_report(series, shape, slot) for slot in range(shape.reports)))
    )
    rows = np.tile(np.frombuffer(template, np.uint8), (number, 1))
    step = MESSAGE_AT + 1 + series.collection.message_bytes
    drawn = chance.integers(0, 256, (number, 16 * (shape.reports if shape.mixed else 1)), np.uint8)
    for place in range(shape.reports):
        begin, own = template.index(PSEUDONYM) + place * step, 16 * place * shape.mixed
        rows[:, begin : begin + 16] = drawn[:, own : own + 16]
        rows[:, begin + MESSAGE_AT] = chance.integers(0, 64, number, np.uint8)
    return [row.tobytes() for row in rows]


def bodies_in_turn(
    series: Sequence[Series], shape: Shape, number: int, chance: np.random.Generator
) -> list[bytes]:
    """Return so many bodies, or a few more, of several questions in turn."""
    each = -(-number // len(series))
    drawn = [bodies(one, shape, each, chance) for one in series]
    return [body for turn in zip(*drawn, strict=True) for body in turn]


def _report(series: Series, shape: Shape, place: int) -> Report:
    slot, message = 0 if shape.mixed else place, series.collection.pack(0)
    return Report(series.fingerprint, 1, 0, PSEUDONYM, slot, message)


# -- wrk -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Costs:
    """What a run cost, in CPU microseconds a request, and how soon its replies came."""

    requests: int
    a_second: float
    app: float
    store: float
    generator: float
    p99: float

    @property
    def share(self) -> float:
        """The generator's cost as a share of the servers'."""
        return self.generator / (self.app + self.store)


def load(server: Served, slots: int, shape: Shape, most: int, seconds: float) -> Costs:
    """Send new bodies for so long, at most so many a second; divide out what a request cost."""
    series = questions(slots, shape.questions)
    raw = bodies_in_turn(series, shape, round(most * seconds), np.random.default_rng())
    before, own = server.seconds(), _own_seconds()
    head = f"Content-Type: {BINARY_TYPE}\r\n" + PROXIED * shape.proxied
    figures = send(server.url, head, raw, seconds, shape.connections)
    app, store = (b - a for a, b in zip(before, server.seconds(), strict=True))
    answered = int(figures["answered"])
    if figures["refused"] or figures["broken"] or not answered:
        raise RuntimeError(f"not everything was answered: {figures}")
    us = 1e6 / answered
    return Costs(
        answered,
        answered / figures["seconds"],
        app * us,
        store * us,
        (_own_seconds() - own) * us,
        figures["p99"],
    )


def send(
    url: str, fields: str, raw: list[bytes], seconds: float, connections: int
) -> dict[str, float]:
    """Post bodies with these fields in their heads; twelve zeros there are each request's own."""
    head = (
        f"POST {urlsplit(url).path} HTTP/1.1\r\nHost: bench\r\n"
        f"{fields}Content-Length: {len(raw[0])}\r\n\r\n"
    ).encode()
    lengths = (str(len(head)), str(len(raw[0])), str(max(head.find(b"0" * 12), 0)))
    options = ("-t1", f"-c{connections}", f"-d{seconds:g}s", f"--timeout={LATE}s", "-s", SCRIPT)
    with NamedTemporaryFile() as file:
        file.write(b"".join([head, *raw]))
        file.flush()
        done = subprocess.run(
            ["wrk", *options, url, "--", file.name, *lengths],
            check=True,
            capture_output=True,
            text=True,
            timeout=seconds + 60,
        )
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("figures "))
    figures: dict[str, float] = json.loads(line.removeprefix("figures "))
    return figures


def _own_seconds() -> float:
    """Return the CPU seconds of the processes that we started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
