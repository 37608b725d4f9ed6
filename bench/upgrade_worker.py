"""A client of whichever version is on the path: `python -m bench.upgrade_worker URL FILE FOLDER`.

Persons answer and their reports are sent until SIGTERM; then what is left is delivered. A line of
JSON for each body goes to stdout: when it was answered (monotonic), after how many seconds, the
body, and its verdicts or why there are none. The last line states how many reports were recorded.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from itertools import count

from veilcount_client import Client
from veilcount_client.delivery.transport import Delivered, HttpTransport, Outcome
from veilcount_client.testing import SettableClock

PERSONS = 4
PAUSE = 0.15  # between two rounds: latencies are compared, the server is not exhausted
PATIENCE = 2.0
TRIES = 100
BEFORE = timedelta(hours=36)  # the clock of a client whose server is away moves on, to now at most


class MeasuredTransport:
    """Sends with the version's own transport, and writes down what became of each body."""

    def __init__(self, url: str, clock: SettableClock) -> None:
        """Send to a URL."""
        self._onward = HttpTransport(url, None, clock.now)

    def send(self, body: bytes, reports: int) -> Outcome:
        """Post a batch of so many reports."""
        begun = time.monotonic()
        outcome = self._onward.send(body, reports)
        ended = time.monotonic()
        if reports:
            verdicts = list(outcome.verdicts) if isinstance(outcome, Delivered) else []
            why = "" if isinstance(outcome, Delivered) else outcome.why
            write(at=ended, seconds=ended - begun, body=body.hex(), verdicts=verdicts, why=why)
        return outcome


def write(**line: object) -> None:
    """Write a line in one piece: bodies are sent by several threads."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def answer(client: Client, round_number: int) -> int:
    """Have new persons answer all questions of a day; return how many reports that makes."""
    for number in range(PERSONS):
        person = client.person(f"{round_number}.{number}")
        person.consent(True)
        person.record("theme", "dark")
        for _ in range(4):
            person.record("opened", "key", arm="A")
    return PERSONS * 5


def delivered(client: Client, clock: SettableClock) -> bool:
    """Send what waits; after a failure the device's clock moves on, past the longest back-off."""
    done = client.flush(timeout=PATIENCE)
    if not done:
        clock.advance(minutes=10)
    return done


def main(url: str, definitions: str, folder: str) -> None:
    """Answer and send until SIGTERM."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    clock, recorded = SettableClock(datetime.now(UTC) - BEFORE), 0
    with Client(
        url,
        collections=definitions,
        state_dir=folder,
        persons=True,
        jitter=0,
        clock=clock,
        strict=True,
        transport=MeasuredTransport(url, clock),
    ) as client:
        for number in count():
            if stopping.wait(PAUSE):
                break
            recorded += answer(client, number)
            delivered(client, clock)
        settled = any(delivered(client, clock) for _ in range(TRIES))
    write(recorded=recorded, settled=settled)


if __name__ == "__main__":
    main(*sys.argv[1:])
