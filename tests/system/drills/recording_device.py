"""A device of whichever version is on the path: `python recording_device.py URL FILE STATE DAY`.

Its persons answer everything on a day, twice; what is recorded again is never sent again. It prints
how many reports the aggregator has acknowledged.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from veilcount_client import Client
from veilcount_client.delivery.transport import Delivered, HttpTransport, Outcome
from veilcount_client.testing import SettableClock

PERSONS = 10
TRIES = 100


class CountingTransport:
    """Sends by HTTP, and counts the verdicts."""

    def __init__(self, url: str, clock: SettableClock) -> None:
        self._onward = HttpTransport(url, None, clock.now)
        self.verdicts: list[str] = []

    def send(self, body: bytes, reports: int) -> Outcome:
        outcome = self._onward.send(body, reports)
        if isinstance(outcome, Delivered):
            self.verdicts += outcome.verdicts
        return outcome


def main(url: str, definitions: str, state: str, day: str) -> None:
    """Answer on the day so many days ago, and deliver everything."""
    clock = SettableClock(datetime.now(UTC) - timedelta(days=int(day)))
    transport = CountingTransport(url, clock)
    with Client(
        url,
        collections=definitions,
        state_dir=state,
        persons=True,
        jitter=0,
        clock=clock,
        strict=True,
        transport=transport,
    ) as client:
        for number in range(2 * PERSONS):
            person = client.person(f"person {number % PERSONS}")
            person.consent(True)
            person.record("theme", "dark")
        for _ in range(TRIES):
            if client.flush(timeout=2.0):
                break
            clock.advance(minutes=10)  # past the longest back-off
    assert set(transport.verdicts) <= {"counted", "duplicate"}, transport.verdicts
    sys.stdout.write(f"{len(transport.verdicts)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
