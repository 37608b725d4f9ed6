"""Real devices: `veilcount_client.Client`s, each with its own state, over HTTP.

Only the values and the clock are simulated. Each client obtains consent, records, charges its
ledger, draws its randomness from the operating system and uploads its reports. A seed fixes the
values, never the reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from veilcount_client import Client
from veilcount_client.clock import Clock
from veilcount_client.delivery.transport import Delivered, HttpTransport, Outcome, Transport
from veilcount_shared import Collection
from veilcount_shared.errors import VeilcountError
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import decode_binary

THREADS = 4  # a device mostly waits for the disk
FILES_EACH = 3  # of a client's state
DAYS_BETWEEN = 21  # uploads: there is no network in the hills, and reports may be 30 days late


class NotDelivered(VeilcountError):
    """A device of the demo could not deliver."""


@dataclass(frozen=True, slots=True)
class AppEvent:
    """One recording of the app: a value, and its segments, which are sent in clear."""

    name: str
    value: object
    segments: Mapping[str, str] = field(default_factory=dict)


class DeliveryRecorder:
    """A transport that records which periods' reports were counted, not their values.

    The demo needs it to select the true values behind the counted reports.
    """

    def __init__(self, onward: Transport) -> None:
        """Wrap a transport."""
        self.counted: Counter[tuple[str, int]] = Counter()  # by fingerprint and period
        self.verdicts: Counter[Verdict] = Counter()
        self._onward = onward

    def send(self, body: bytes, reports: int) -> Outcome:
        """Post a batch of so many reports."""
        outcome = self._onward.send(body, reports)
        if isinstance(outcome, Delivered):
            self.verdicts.update(outcome.verdicts)
            for report, verdict in zip(decode_binary(body).reports, outcome.verdicts, strict=True):
                self.counted[report.fingerprint, report.period] += verdict is Verdict.COUNTED
        return outcome


class RealDevice:
    """A device with the app installed."""

    def __init__(
        self, url: str, collections: Mapping[str, Collection], folder: Path, clock: Clock
    ) -> None:
        """Install the app."""
        self.recorder = DeliveryRecorder(HttpTransport(url, None, clock.now))
        self._client = Client(
            collections=collections,
            state_dir=folder,
            transport=self.recorder,
            trust_curator=True,
            clock=clock,
            threaded=False,  # hundreds share a machine, and the replay decides when they send
            strict=True,
        )
        self._was_used = False

    def ask_for_consent(self, *, answer: bool) -> None:
        """Answer the consent question, once."""
        if self._client.must_ask:
            self._client.consent(answer, only="new")

    def use(self, events: Iterable[AppEvent]) -> None:
        """Open the app, and record."""
        self._was_used = True
        for event in events:
            self._client.record(event.name, event.value, **event.segments)

    def deliver(self) -> None:
        """Send all reports that are due, if the app was open since the last time."""
        used, self._was_used = self._was_used, False
        if used and not self._client.flush():
            raise NotDelivered("a device of the demo could not deliver its reports: try again")

    def close(self) -> None:
        """Close the app."""
        self._client.close(0)


class RealDevices:
    """All real devices, which work on a few threads."""

    def __init__(self, make: Callable[[int], RealDevice]) -> None:
        """Start without devices; `make` installs the app for a person."""
        self._make = make
        self._of: dict[int, RealDevice] = {}
        self._threads = ThreadPoolExecutor(THREADS, "demo-device")

    def use(self, day: int, events: Mapping[int, list[AppEvent]], consents: Iterable[bool]) -> None:
        """Record the events of a day, and deliver what is due on it."""
        new = [person for person in events if person not in self._of]
        self._of.update(zip(new, self._threads.map(self._make, new), strict=True))
        for (person, recorded), answer in zip(events.items(), consents, strict=True):
            self._of[person].ask_for_consent(answer=answer)
            self._of[person].use(recorded)
        due = [each for person, each in self._of.items() if (person + day) % DAYS_BETWEEN == 0]
        list(self._threads.map(RealDevice.deliver, due))

    def deliver(self) -> None:
        """Send everything that is left."""
        list(self._threads.map(RealDevice.deliver, self._of.values()))

    @property
    def recorders(self) -> Mapping[int, DeliveryRecorder]:
        """The recorder of each device, by person."""
        return {person: device.recorder for person, device in self._of.items()}

    def close(self) -> None:
        """Close every app."""
        try:
            list(self._threads.map(RealDevice.close, self._of.values()))
        finally:
            self._threads.shutdown(cancel_futures=True)


class RelayedRoute(NamedTuple):
    """How devices answer one question over a relay and with tokens."""

    collection: Collection
    relay: str
    relay_keys: bytes
    issuer: str
    account: Callable[[int], str]  # the token of a person's account


class RelayedDevices:
    """The devices of a beta: each answers one question, over a relay and with a token."""

    def __init__(self, route: RelayedRoute, values: Sequence[bool], folder: Path, clock: Clock):
        """Install no app yet."""
        self._route, self._values, self._folder, self._clock = route, values, folder, clock
        self._clients: list[Client] = []
        self._threads = ThreadPoolExecutor(THREADS, "demo-device")

    def install(self) -> None:
        """Install the app; everyone consents, and asks for tokens within a day."""
        self._clients = list(self._threads.map(self._install, range(len(self._values))))
        for client in self._clients:
            client.consent(True)

    def record(self) -> None:
        """Have everyone record, whose device answers on one of the days."""
        for client, value in zip(self._clients, self._values, strict=True):
            client.record(self._route.collection.name, value)

    def deliver(self, order: Iterable[int]) -> None:
        """Request what tokens are due, and send what reports are, one device after the other."""
        for place in order if self._clients else ():
            self._clients[place].flush()

    def close(self) -> None:
        """Close every app."""
        try:
            list(self._threads.map(Client.close, self._clients))
        finally:
            self._threads.shutdown(cancel_futures=True)

    def _install(self, number: int) -> Client:
        route = self._route
        return Client(
            collections={route.collection.name: route.collection},
            state_dir=self._folder / f"relayed device {number}",
            relay=route.relay,
            relay_keys=route.relay_keys,
            issuer=route.issuer,
            account=route.account(number),
            clock=self._clock,
            threaded=False,
            strict=True,
        )
