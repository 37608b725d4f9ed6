"""Real devices: the client that apps embed, each with a state and a thread of its own.

In a process of their own. Under locust's patched standard library the client works too, but each
wait of its state for the disk stops all that share the process: half a second, where 40 ms were
measured here.

Each attempt of a device is logged: its time, the response, and the delay that the server requested.
Each device has one value a question, so the true value of every report is known.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from veilcount_client import Client
from veilcount_client.clock import SystemClock
from veilcount_client.delivery.transport import Delivered, HttpTransport, Later, Outcome
from veilcount_shared import Collection, load_collections
from veilcount_shared.domain import Boolean

from .device_log import DEVICE_LOG, DEVICE_TASK, Attempt, DeviceLog, DeviceTask, FinalState
from .ipc import load, save
from .questions import VALUE_DISTRIBUTIONS

BACKOFF_SECONDS = 60.0  # after the run: real devices wait, and wait longer each time
READY, GO = "devices-ready", "devices-go"
TICK = 0.05
#: reasons of a loss that are no failure: it was not selected, or has answered
NO_LOSS = ("not_selected", "frozen")


class LoggingTransport:
    """Sends bodies over HTTP, and logs each attempt with its outcome."""

    def __init__(self, device: int, url: str, attempts: list[Attempt]) -> None:
        """Log into the attempts of all devices."""
        self._device = device
        self._attempts = attempts
        self._transport = HttpTransport(url, None, SystemClock.now)

    def send(self, body: bytes, reports: int) -> Outcome:
        """Post a batch of so many reports."""
        at = time.perf_counter()
        outcome = self._transport.send(body, reports)
        took = time.perf_counter() - at
        verdicts = tuple(outcome.verdicts) if isinstance(outcome, Delivered) else ()
        delay = outcome.seconds if isinstance(outcome, Later) else 0.0
        why = "" if isinstance(outcome, Delivered) else outcome.why
        refused = not isinstance(outcome, Delivered | Later)
        attempt = Attempt(self._device, at, took, body, verdicts, delay, why, refused)
        self._attempts.append(attempt)
        return outcome


class Device:
    """One app with the client in it, and a person who holds one value a question."""

    def __init__(
        self, number: int, task: DeviceTask, folder: Path, attempts: list[Attempt]
    ) -> None:
        """Install the app."""
        collections = load_collections(task.collections)
        chance = Random(task.seed * 1_000_003 + number)
        self.number = number
        self.starts = 0.0 if task.herd else task.seconds * chance.random()
        self._held = {
            name: distribution(chance)
            for name, distribution in VALUE_DISTRIBUTIONS.items()
            if name in collections
        }
        self._collections = collections
        self._flushed = False
        self._client = Client(
            collections=collections,
            state_dir=folder / f"device-{number}",
            jitter=task.jitter,
            transport=LoggingTransport(number, task.url, attempts),
            strict=True,
        )
        self._client.consent(True)

    def record(self) -> None:
        """Record a value of every question."""
        for name, held in self._held.items():
            collection = self._collections[name]
            value = bool(held) if isinstance(collection.domain, Boolean) else held
            for _ in range(collection.per_day):
                self._client.record(name, value, **_segments(collection, self.number))

    def is_drained(self) -> bool:
        """Whether the queue and the outbox are empty."""
        worker = self._client._session.worker
        return worker is not None and not worker._queue and worker.state.next_due() is None

    def flush(self) -> None:
        """Have the client send at once what is queued."""
        self._flushed = True
        self._client.flush(timeout=10)

    def end(self) -> FinalState:
        """Close the client, and return its final state."""
        receipt, left = self._client.receipt(), self.is_drained()
        losses = {name: n for name, n in receipt.losses.items() if not name.startswith(NO_LOSS)}
        drawn = sum(entry.answers or 0 for entry in receipt.entries)
        self._client.close(0)
        return FinalState(self.number, self._held, drawn, left, self._flushed, losses)


def _segments(collection: Collection, number: int) -> dict[str, str]:
    """Return segments that go round with the devices' numbers."""
    return {name: str(values[number % len(values)]) for name, values in collection.segments}


def run_devices(task: DeviceTask, folder: Path) -> DeviceLog:
    """Have all of them record, and wait until everything has left or patience ends."""
    device_log = DeviceLog()
    devices = [Device(number, task, folder, device_log.attempts) for number in range(task.devices)]
    (folder / READY).touch()
    while not (folder / GO).exists():
        time.sleep(TICK)
    begun = time.monotonic()
    for device in sorted(devices, key=lambda each: each.starts):
        time.sleep(max(0.0, begun + device.starts - time.monotonic()))
        device.record()
    _wait(devices, begun + task.seconds + BACKOFF_SECONDS)
    for device in devices:
        if not device.is_drained():
            device.flush()
    device_log.ends = [device.end() for device in devices]
    return device_log


def _wait(devices: Sequence[Device], until: float) -> None:
    for device in devices:
        while time.monotonic() < until and not device.is_drained():
            time.sleep(TICK)


def main() -> None:
    """Run the devices of the folder's task, and leave their log there."""
    folder = Path(sys.argv[1])
    save(folder, DEVICE_LOG, run_devices(load(folder, DEVICE_TASK), folder))


if __name__ == "__main__":
    main()
