"""Devices as light as they can be: each sends the next body that was packed before the run.

A body that is not acknowledged is sent again as soon as its device may come back; meanwhile others
go on. Locust has patched the standard library by now: threads
are greenlets, and `sleep` lets others run.

All devices are there from the beginning, and those beyond the run's shape wait: locust's own shapes
look at the clock once a second, and a spike may be shorter.
"""

from __future__ import annotations

import heapq
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

from loadtests.ipc import (
    ASSIGNMENT,
    FOLDER,
    HEADERS,
    REFUSED,
    REPORTS_PATH,
    REQUEST_LOG,
    STARTED,
    STOP,
    Assignment,
    RequestLog,
    load,
    save,
)
from loadtests.load_profiles import HERD
from locust import FastHttpUser, events, task
from locust.exception import StopUser
from locust.runners import MasterRunner, WorkerRunner

PAUSE_SECONDS = 0.1  # after a send that failed
TICK = 0.1
DONE = "done"  # what a generator tells the master that has nothing left to send

folder = Path(os.environ[FOLDER])
assignment: Assignment = load(folder, ASSIGNMENT)
terms, shape = assignment.terms, assignment.terms.course
queue: deque[int] = deque()
aside: list[tuple[float, int]] = []  # refused bodies, by when they may be sent again
sent: list[tuple[int, bytes, float, int, float]] = []
clocks: list[float] = []
ranks = count()
finished: list[str] = []  # this generator; for a master, each that is done


class Device(FastHttpUser):
    """Sends one body after the other, on a connection that it keeps."""

    network_timeout = 30.0
    connection_timeout = 10.0

    def on_start(self) -> None:
        """Take a place in the line: the first go to work first."""
        place = next(ranks) * terms.generators + generator(self.environment.runner)
        self.rank = place % terms.users  # whoever starts a run again on locust's page starts anew
        self.next_send = begun() + terms.pace * self.rank / terms.users

    def wait_time(self) -> float:
        """Return the seconds until the shape has this device at work, and its pace lets it send."""
        now = time.perf_counter()
        opens = shape.opens((now - begun()) / terms.seconds, self.rank, terms.users)
        if opens == inf:
            raise StopUser
        return max(0.0, begun() + opens * terms.seconds - now, self.next_send - now)

    @task
    def send(self) -> None:
        """Send the next body, unless it is too early, and write down what came back."""
        if self.wait_time():
            return  # locust waits, and calls again
        body = next_body()
        if body is None:
            if aside:
                time.sleep(TICK)  # what was refused is not due yet
                return
            finish(self.environment.runner)
            raise StopUser
        at = time.perf_counter()
        self.next_send = at + terms.pace
        raw: Any = assignment.bodies[body]  # bytes do, though the signature does not say so
        response = self.client.post(REPORTS_PATH, data=raw, headers=HEADERS)
        took = time.perf_counter() - at
        counted = response.status_code == HTTPStatus.OK and response.content
        reply: bytes = response.content if counted else b""
        sent.append((body, reply, took, response.status_code, at))
        if not reply and response.status_code not in REFUSED:
            put_aside(body, requested_delay(response))


def next_body() -> int | None:
    """Return what is to be sent now: first what was refused and is due again."""
    if aside and (aside[0][0] <= time.perf_counter()):
        return heapq.heappop(aside)[1]
    return queue.popleft() if queue else None


def put_aside(body: int, seconds: float) -> None:
    """Have a body sent again when its device may come back; in a herd, nobody else sends meanwhile.

    Devices wait by themselves: one whose shard is away keeps no other from sending.
    """
    wait = max(PAUSE_SECONDS, seconds)
    heapq.heappush(aside, (time.perf_counter() + wait, body))
    time.sleep(wait if terms.shape == HERD else PAUSE_SECONDS)


def begun() -> float:
    """Return when this generator began."""
    return clocks[0]


def requested_delay(response: Any) -> float:
    """Return the seconds after which a device may come back, by `Retry-After`."""
    header = response.headers.get("Retry-After") if response.headers else None
    return float(header or 0)


def generator(runner: Any) -> int:
    """Return which one this is, of those that share the assignment."""
    return int(runner.worker_index) if isinstance(runner, WorkerRunner) else 0


def finish(runner: Any) -> None:
    """Say once that there is nothing left to send."""
    if finished or terms.patient:
        return
    finished.append(DONE)
    if isinstance(runner, WorkerRunner):
        runner.send_message(DONE)
    else:
        threading.Thread(target=runner.quit).start()  # it waits for all users


def end_at_mark(runner: Any) -> None:
    """End a run that the clock does not end: what was down may take its time to come back."""
    while not (folder / STOP).exists():
        time.sleep(TICK)
    runner.quit()


def one_is_done(environment: Any, msg: Any, **_: Any) -> None:
    """End the run once all generators are done."""
    finished.append(str(msg.node_id))
    if len(finished) == terms.generators:
        threading.Thread(target=environment.runner.quit).start()


def prepare(environment: Any, **_: Any) -> None:
    """Listen to generators, if this is their master. And let gevent look at its clock: it has not
    since before all this was loaded, and the run's seconds would count from then.
    """
    if isinstance(environment.runner, MasterRunner):
        environment.runner.register_message(DONE, one_is_done)
    time.sleep(0.001)


def begin(environment: Any, **_: Any) -> None:
    """Take this generator's part of the assignment, and look at the clocks."""
    runner = environment.runner
    if not isinstance(runner, MasterRunner):
        queue.extend(assignment.order[generator(runner) :: terms.generators])
    clocks[:] = [time.perf_counter(), time.process_time()]
    (folder / STARTED).touch()
    if not isinstance(runner, WorkerRunner):
        threading.Thread(target=end_at_mark, args=(runner,), daemon=True).start()


def end(environment: Any, **_: Any) -> None:
    """Write the log of requests, once every user has stopped. A master has none."""
    if isinstance(environment.runner, MasterRunner):
        return
    lasted, cpu = time.perf_counter() - clocks[0], time.process_time() - clocks[1]
    columns = zip(*sent, strict=True) if sent else ((), (), (), (), ())
    bodies, replies, seconds, statuses, at = columns
    request_log = RequestLog(bodies, replies, seconds, lasted, cpu, statuses, at)
    save(folder, f"{REQUEST_LOG}{generator(environment.runner)}", request_log)


HOOKS: tuple[tuple[Any, Callable[..., None]], ...] = (
    (events.init, prepare),
    (events.test_start, begin),
    (events.test_stop, end),
)
for event, listener in HOOKS:
    event.add_listener(listener)
