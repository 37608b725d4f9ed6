"""Real devices: the client that apps embed, each with a state and a thread of its own.

In a process of their own. Under locust's patched standard library the client works too, but each
wait of its state for the disk stops all that share the process: half a second, where 40 ms were
measured here.

What a device says of its tries is written down: when, what it was answered, and when it was asked
to come back. Each has one value a question: whoever reads its reports knows what is true of them.
"""

from __future__ import annotations

import json
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from veilcount_client import Client
from veilcount_client.clock import SystemClock
from veilcount_client.delivery.transport import Delivered, HttpTransport, Later, Outcome
from veilcount_shared import Collection, load_collections
from veilcount_shared.domain import Boolean

from .questions import VALUE_DISTRIBUTIONS

BACKOFF_SECONDS = 60.0  # after the run: real devices wait, and wait longer each time
FILE = "devices.json"
STORY = "devices.jsonl"
READY, GO = "devices-ready", "devices-go"
TICK = 0.05
#: reasons of a loss that are no failure: it was not selected, or has answered
NO_LOSS = ("not_selected", "frozen")


@dataclass(frozen=True, slots=True)
class DeviceTask:
    """The parameters of the process of real devices."""

    url: str
    collections: str
    devices: int
    seconds: float  # within which they record
    jitter: float
    seed: int
    herd: bool = False  # whether all record at once

    def save(self, folder: Path) -> None:
        """Leave it for the process."""
        (folder / FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> DeviceTask:
        """Take it up."""
        return cls(**json.loads((folder / FILE).read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Try:
    """One request of a device, and what came of it."""

    device: int
    at: float  # by the machine's monotonic clock
    took: float
    body: bytes
    verdicts: tuple[str, ...]
    delay: float = 0.0  # the seconds that the server requested
    why: str = ""  # if it was not delivered
    refused: bool = False

    def line(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self) | {"body": b64encode(self.body).decode()})


@dataclass(frozen=True, slots=True)
class End:
    """The final state of a device."""

    device: int
    held: Mapping[str, int]
    drawn: int  # answers
    left: bool  # whether all of it left
    hurried: bool  # whether it had to be made to send
    losses: Mapping[str, int]


@dataclass(slots=True)
class Story:
    """The log of all real devices."""

    tries: list[Try] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Leave it for the run."""
        ends = [json.dumps(asdict(end)) for end in self.ends]
        lines = [*ends, *(each.line() for each in sorted(self.tries, key=lambda each: each.at))]
        (folder / STORY).write_text("\n".join(lines), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Story:
        """Read it."""
        story = cls()
        for line in (folder / STORY).read_text(encoding="utf-8").splitlines():
            fields = json.loads(line)
            if "held" in fields:
                story.ends.append(End(**fields))
            else:
                body, verdicts = b64decode(fields["body"]), tuple(fields["verdicts"])
                story.tries.append(Try(**(fields | {"body": body, "verdicts": verdicts})))
        return story


class Witness:
    """Passes bodies on, and writes down what becomes of them."""

    def __init__(self, device: int, url: str, tries: list[Try]) -> None:
        """Stand between a client and the network."""
        self._device = device
        self._tries = tries
        self._onward = HttpTransport(url, None, SystemClock.now)

    def send(self, body: bytes, reports: int) -> Outcome:
        """Post a batch of so many reports."""
        at = time.perf_counter()
        outcome = self._onward.send(body, reports)
        took = time.perf_counter() - at
        verdicts = tuple(outcome.verdicts) if isinstance(outcome, Delivered) else ()
        delay = outcome.seconds if isinstance(outcome, Later) else 0.0
        why = "" if isinstance(outcome, Delivered) else outcome.why
        refused = not isinstance(outcome, Delivered | Later)
        attempt = Try(self._device, at, took, body, verdicts, delay, why, refused)
        self._tries.append(attempt)
        return outcome


class Device:
    """One app with the client in it, and a person who holds one value a question."""

    def __init__(self, number: int, task: DeviceTask, folder: Path, tries: list[Try]) -> None:
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
        self._hurried = False
        self._client = Client(
            collections=collections,
            state_dir=folder / f"device-{number}",
            jitter=task.jitter,
            transport=Witness(number, task.url, tries),
            strict=True,
        )
        self._client.consent(True)

    def record(self) -> None:
        """Say everything that there is to say today."""
        for name, held in self._held.items():
            collection = self._collections[name]
            value = bool(held) if isinstance(collection.domain, Boolean) else held
            for _ in range(collection.per_period):
                self._client.record(name, value, **_segments(collection, self.number))

    def has_left(self) -> bool:
        """Whether nothing waits any more."""
        worker = self._client._session.worker
        return worker is not None and not worker._queue and worker.state.next_due() is None

    def hurry(self) -> None:
        """Have it send at once what it still holds."""
        self._hurried = True
        self._client.flush(timeout=10)

    def end(self) -> End:
        """Close the app, and say how it was."""
        receipt, left = self._client.receipt(), self.has_left()
        losses = {name: n for name, n in receipt.losses.items() if not name.startswith(NO_LOSS)}
        drawn = sum(entry.answers or 0 for entry in receipt.entries)
        self._client.close(0)
        return End(self.number, self._held, drawn, left, self._hurried, losses)


def _segments(collection: Collection, number: int) -> dict[str, str]:
    """Return segments that go round with the devices' numbers."""
    return {name: str(values[number % len(values)]) for name, values in collection.segments}


def live(task: DeviceTask, folder: Path) -> Story:
    """Have all of them record, and wait until everything has left or patience ends."""
    story = Story()
    devices = [Device(number, task, folder, story.tries) for number in range(task.devices)]
    (folder / READY).touch()
    while not (folder / GO).exists():
        time.sleep(TICK)
    begun = time.monotonic()
    for device in sorted(devices, key=lambda each: each.starts):
        time.sleep(max(0.0, begun + device.starts - time.monotonic()))
        device.record()
    _wait(devices, begun + task.seconds + BACKOFF_SECONDS)
    for device in devices:
        if not device.has_left():
            device.hurry()
    story.ends = [device.end() for device in devices]
    return story


def _wait(devices: Sequence[Device], until: float) -> None:
    for device in devices:
        while time.monotonic() < until and not device.has_left():
            time.sleep(TICK)


def main() -> None:
    """Run the devices of the folder's task, and leave their log there."""
    folder = Path(sys.argv[1])
    live(DeviceTask.load(folder), folder).save(folder)


if __name__ == "__main__":
    main()
