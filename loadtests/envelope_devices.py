"""What locust runs in a load through a shuffler: devices that send the next sealed envelope.

What settled nothing is sent again, the same bytes, as a device does: also while the shuffler is
killed, until every envelope is held.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections import Counter, deque
from http import HTTPStatus
from pathlib import Path
from typing import Any

from locust import FastHttpUser, events, task
from locust.exception import StopUser

FOLDER = "VEILCOUNT_LOAD"
ENVELOPES, RESULT = "envelopes", "result"
HEADERS = {"Content-Type": "application/vnd.veilcount.envelope"}
PAUSE_SECONDS = 0.2
folder = Path(os.environ[FOLDER])
queue: deque[bytes] = deque(pickle.loads((folder / ENVELOPES).read_bytes()))  # noqa: S301 - ours
answers: Counter[int] = Counter()
milliseconds: list[float] = []
ended: list[bool] = []


class Device(FastHttpUser):
    """Sends one envelope after the other."""

    network_timeout = 30.0
    connection_timeout = 5.0

    @task
    def send(self) -> None:
        """Send the next envelope; one that is not held goes to the end of the queue."""
        if not queue:
            finish(self.environment.runner)
            raise StopUser
        envelope = queue.popleft()
        begun = time.perf_counter()
        raw: Any = envelope  # bytes do, though the signature does not say so
        response = self.client.post("/v1/envelopes", data=raw, headers=HEADERS)
        answers[response.status_code] += 1
        if response.status_code == HTTPStatus.ACCEPTED:
            milliseconds.append(1000 * (time.perf_counter() - begun))
        else:
            queue.append(envelope)
            time.sleep(PAUSE_SECONDS)


def finish(runner: Any) -> None:
    """End the run: there is nothing left to send."""
    if not ended:
        ended.append(True)
        threading.Thread(target=runner.quit).start()  # it waits for all users


def save(**_: Any) -> None:
    """Write what came of it."""
    result = dict(answers), sorted(milliseconds), len(queue)
    (folder / RESULT).write_bytes(pickle.dumps(result))


events.test_stop.add_listener(save)  # type: ignore[no-untyped-call] # locust's
