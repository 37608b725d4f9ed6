"""Devices that are honest: they keep what was not acknowledged, and send it again as it was.

Each tells at once of an answer that no aggregator may give: a report that was acknowledged and is
counted again, or one that was never sent before and is called a duplicate.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, decode_verdicts, encode_binary

from ..server import wait_until
from .campaign import Campaign

HOST = "127.0.0.1"
PATIENCE = 2.0  # seconds a device waits for an answer
PAUSE = 0.03
RETRY = 0.2  # far sooner than a real device: the harder test
REPLAYED = 0.2  # the share of batches that hold again what was acknowledged
SUCCESS = {Verdict.COUNTED, Verdict.DUPLICATE}
PERSONS = 2  # whose answers become a batch


@dataclass
class Device:
    """A client of some persons."""

    campaign: Campaign
    port: int
    seed: int
    patience: float = PATIENCE
    key: str = ""  # of the app; one that was revoked is answered with 401
    waiting: list[Report] = field(default_factory=list)
    acknowledged: set[Report] = field(default_factory=set)
    tried: set[Report] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    answered: float = 0.0  # when it was last told anything, by the monotonic clock
    failed: int = 0  # how often it was not

    def __post_init__(self) -> None:
        self._randomness = SeededRandomSource(self.seed)
        self._chance = random.Random(self.seed)
        self._learnt: list[Report] = []  # the same, in the order of their acknowledgement
        self._connection: http.client.HTTPConnection | None = None

    def live(self, stopped: threading.Event) -> None:
        """Answer, send, and now and then send again what was acknowledged.

        All devices send at the same moments, so that their requests become groups.
        """
        while not stopped.wait(PAUSE - time.monotonic() % PAUSE):
            if len(self.waiting) < 100:
                for _ in range(PERSONS):
                    self.waiting += self.campaign.person(self._randomness)
            self._chance.shuffle(self.waiting)
            again = self._learnt[-3:] if self._chance.random() < REPLAYED else []
            if not self.send([*self.waiting[: self._chance.randint(1, 40)], *again]):
                stopped.wait(RETRY)

    def settle(self) -> None:
        """Send what waits, as long as that is answered."""
        while self.waiting and self.send(self.waiting[:500]):
            pass

    def send(self, reports: list[Report]) -> bool:
        """Send a batch once; say whether all of it was answered. What was postponed waits."""
        fresh = set(reports) - self.tried
        self.tried |= fresh
        verdicts = self.post(reports)
        if verdicts is None:
            self.failed += 1
            return False
        whole = Verdict.EARLY not in verdicts  # of a shard that was away; others were counted
        for report, verdict in zip(reports, verdicts, strict=True):
            if verdict is not Verdict.EARLY:
                self._learn(report, verdict, fresh=report in fresh)
        self.waiting = [each for each in self.waiting if each not in self.acknowledged]
        if whole:
            self.answered = time.monotonic()
        self.failed += not whole
        return whole

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _learn(self, report: Report, verdict: Verdict, *, fresh: bool) -> None:
        if verdict not in SUCCESS:
            self.wrong.append(f"a good report was called {verdict}")
        if verdict is Verdict.COUNTED and report in self.acknowledged:
            self.wrong.append("a report was acknowledged, and counted again")
        if verdict is Verdict.DUPLICATE and fresh:
            self.wrong.append("a report was called a duplicate when it came first")
        if report not in self.acknowledged:
            self.acknowledged.add(report)
            self._learnt.append(report)

    def post(self, reports: list[Report]) -> tuple[Verdict, ...] | None:
        """Return what was answered, or None: anything but whole good news is no news."""
        body, headers = encode_binary(Batch(tuple(reports))), {"Content-Type": BINARY_TYPE}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if self._connection is None:
            self._connection = http.client.HTTPConnection(HOST, self.port, timeout=self.patience)
        try:
            self._connection.request("POST", "/v1/reports", body, headers)
            reply = self._connection.getresponse()
            content = reply.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return None
        if reply.status >= 400:
            if reply.status not in ({401, 502, 503} if self.key else {502, 503}):
                self.wrong.append(f"a good batch was answered with {reply.status}: {content!r}")
            if reply.status == 503 and not reply.getheader("Retry-After"):
                self.wrong.append(f"nobody said when to come back: {content!r}")
            return None
        return tuple(map(Verdict, decode_verdicts(content, len(reports))))


@dataclass
class Population:
    """Some devices, each in a thread of its own while they live."""

    devices: list[Device]

    @classmethod
    def create(cls, campaign: Campaign, port: int, seed: int, devices: int = 3) -> Population:
        """Gather devices with answers of their own."""
        return cls([Device(campaign, port, 1000 * seed + each) for each in range(devices)])

    @contextmanager
    def living(self) -> Iterator[None]:
        """Have all devices answer and send, for so long as this lasts."""
        stopped = threading.Event()
        threads = [threading.Thread(target=each.live, args=(stopped,)) for each in self.devices]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stopped.set()
            for thread in threads:
                thread.join()

    def await_answers(self, seconds: float = 60.0) -> float:
        """Wait until every device was answered again; return how long the last one waited."""
        now = time.monotonic()
        return wait_until(lambda: all(device.answered > now for device in self.devices), seconds)

    def settle(self, seconds: float) -> None:
        """Have everything acknowledged that was ever tried, within so many seconds."""
        ends = time.monotonic() + seconds
        while any(device.waiting for device in self.devices):
            for device in self.devices:
                device.settle()
            assert time.monotonic() < ends, f"not settled after {seconds:g} s"
            time.sleep(0.1)

    @property
    def acknowledged(self) -> list[Report]:
        return [report for device in self.devices for report in device.acknowledged.copy()]

    @property
    def tried(self) -> set[Report]:
        return {report for device in self.devices for report in device.tried.copy()}

    @property
    def failed(self) -> int:
        """How often any of them was not answered."""
        return sum(device.failed for device in self.devices)

    @property
    def wrong(self) -> list[str]:
        """Every answer that no aggregator may give."""
        return [result for device in self.devices for result in device.wrong]

    def close(self) -> None:
        for device in self.devices:
            device.close()
