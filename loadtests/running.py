"""One run: a population, a server of its own, locust, and the judgement of what the store holds."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import requests
from tests.system.server import Server

from veilcount_aggregator.store import open_store

from . import engines
from .cost import cpu_seconds
from .engines import Engine
from .errand import FOLDER, HEADERS, PLACE, Diary, Errand
from .judging import judge
from .population import draw, order
from .questions import definitions, questions
from .report import Costs, Outcome
from .told import Told

HERE = Path(__file__).resolve().parent
STOP_SECONDS = 30  # for sends that are on their way when the time is over
TRIES = 3  # of what is still not acknowledged then


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of a run."""

    store: str
    users: int
    seconds: int
    workers: int
    devices: int
    seed: int
    p99: float | None = None  # milliseconds
    told_to_locust: tuple[str, ...] = ()


def run(plan: Plan, folder: Path) -> Outcome:
    """Load a server with a population; return what came of it."""
    now = datetime.now(UTC)
    parcels = draw(questions(now.date()), now, plan.devices, plan.seed)
    errand = Errand([parcel.body for parcel in parcels], order(len(parcels), plan.seed))
    errand.save(folder)
    file = folder / "collections.toml"
    file.write_text(definitions(now.date()), encoding="utf-8")
    with engines.made(plan.store, folder) as engine:
        with _server(engine, plan, file) as server:
            diary, costs = _load(server, engine, plan, folder)
            told = Told.of(parcels, diary)
            _settle(server, errand, told)
        store = open_store(engine.url)
        try:
            wrong = judge(store, told)
        finally:
            store.close()
    outcome = Outcome(told, diary, costs, tuple(wrong))
    return replace(outcome, failures=(*wrong, *_slow(outcome, plan)))


def _server(engine: Engine, plan: Plan, file: Path) -> Server:
    flags = ("--collections", str(file), "--workers", str(plan.workers))
    return Server(engine.url, file.parent, *flags)


def _load(server: Server, engine: Engine, plan: Plan, folder: Path) -> tuple[Diary, Costs]:
    """Let locust send; return what it wrote down, and what everyone computed meanwhile."""
    before = _spent(server), cpu_seconds(engine.pids)
    _locust(server.url, plan, folder)
    after = _spent(server), cpu_seconds(engine.pids)
    diary = Diary.load(folder)
    if not diary.bodies:
        raise RuntimeError("locust sent nothing")
    return diary, Costs(after[0] - before[0], after[1] - before[1], diary.cpu)


def _spent(server: Server) -> float:
    return cpu_seconds([server.pid, *server.workers()])


def _locust(url: str, plan: Plan, folder: Path) -> None:
    command = [
        *(sys.executable, "-m", "locust", "--locustfile", str(HERE / "locustfile.py")),
        *("--headless", "--only-summary", "--host", url, "--exit-code-on-error", "0"),
        *("--users", str(plan.users), "--spawn-rate", str(plan.users)),
        *("--run-time", f"{plan.seconds}s", "--stop-timeout", str(STOP_SECONDS)),
        *plan.told_to_locust,
    ]
    environ = os.environ | {FOLDER: str(folder), "PYTHONPATH": str(HERE.parent)}
    said = folder / "locust.log"
    with said.open("wb") as log:
        ended = subprocess.run(command, env=environ, stdout=log, stderr=log, check=False)
    if ended.returncode:
        why = said.read_text(encoding="utf-8")
        raise RuntimeError(f"locust ended with {ended.returncode}:\n{why}")


def _settle(server: Server, errand: Errand, told: Told) -> None:
    """Send again what was never acknowledged, as a device does: now it is known what counts."""
    for place in told.open:
        for _ in range(TRIES):
            told.hear(place, _reply(server, errand.bodies[place]))
            if place in told.replies:
                break


def _reply(server: Server, body: bytes) -> bytes:
    try:
        reply = server.ask("POST", PLACE, data=body, headers=HEADERS)
    except requests.RequestException:
        return b""
    return reply.content if reply.status_code == HTTPStatus.OK else b""


def _slow(outcome: Outcome, plan: Plan) -> list[str]:
    took = outcome.milliseconds(99)
    if plan.p99 is None or took <= plan.p99:
        return []
    return [f"p99 is {took:.1f} ms, and {plan.p99:g} ms were promised"]
