"""Devices as light as they can be: each sends the next body that was packed before the run.

A body that is not acknowledged stands in the queue again, as it would stay in a device's outbox.
Locust has patched the standard library by now: threads are greenlets, and `sleep` lets others run.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

from loadtests.errand import FOLDER, HEADERS, PLACE, Diary, Errand
from locust import FastHttpUser, events, task
from locust.exception import StopUser

PAUSE_SECONDS = 0.1  # after a send that failed

folder = Path(os.environ[FOLDER])
errand = Errand.load(folder)
queue = deque(errand.order)
sent: list[tuple[int, bytes, float]] = []
times: list[float] = []


class Device(FastHttpUser):
    """Sends one body after the other, on a connection that it keeps."""

    network_timeout = 30.0
    connection_timeout = 10.0

    @task
    def send(self) -> None:
        """Send the next body, and write down what came back."""
        if not queue:
            threading.Thread(target=self.environment.runner.quit).start()  # it waits for all users
            raise StopUser
        body = queue.popleft()
        begun = time.perf_counter()
        raw: Any = errand.bodies[body]  # bytes do, though the signature does not say so
        response = self.client.post(PLACE, data=raw, headers=HEADERS)
        took = time.perf_counter() - begun
        if response.status_code == HTTPStatus.OK and response.content:
            sent.append((body, response.content, took))
        else:
            sent.append((body, b"", took))
            queue.append(body)
            time.sleep(PAUSE_SECONDS)


def clocks() -> tuple[float, float]:
    """Return what the clock and this process's own work show."""
    return time.perf_counter(), time.process_time()


def catch_up(**_: Any) -> None:
    """Let gevent look at its clock. It has not since before all this was loaded, and the run's
    seconds would count from then.
    """
    time.sleep(0.001)


def begin(**_: Any) -> None:
    """Look at the clocks."""
    times.extend(clocks())


def end(**_: Any) -> None:
    """Write the diary, once every user has stopped."""
    lasted, cpu = (after - before for before, after in zip(times, clocks(), strict=True))
    bodies, replies, seconds = zip(*sent, strict=True) if sent else ((), (), ())
    Diary(bodies, replies, seconds, lasted, cpu).save(folder)


HOOKS: tuple[tuple[Any, Callable[..., None]], ...] = (
    (events.init, catch_up),
    (events.test_start, begin),
    (events.test_stop, end),
)
for event, listener in HOOKS:
    event.add_listener(listener)
