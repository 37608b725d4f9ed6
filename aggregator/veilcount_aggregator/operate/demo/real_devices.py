"""Real devices: `veilcount_client.Client`s, each with its own state, over HTTP.

Only the values and the clock are simulated. Each client obtains consent, records, charges its
ledger, draws its randomness from the operating system and uploads its reports. A seed fixes the
values, never the reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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


class NotDelivered(VeilcountError):
    """A device of the demo could not deliver."""


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


class RelayedRoute(NamedTuple):
    """How devices answer one question over a relay and with tokens."""

    collection: Collection
    relay: str
    relay_keys: bytes
    issuer: str
    account: Callable[[int], str]  # the token of a person's account


@dataclass(frozen=True, slots=True)
class Installer:
    """Installs apps without threads: hundreds share a machine, and the replay has them send."""

    folder: Path
    clock: Clock
    recorders: dict[int, DeliveryRecorder] = field(default_factory=dict)  # by person

    def direct(
        self, number: int, url: str, collections: Mapping[str, Collection], *, consents: bool
    ) -> Client:
        """Install the app of a person, who answers the consent question."""
        self.recorders[number] = DeliveryRecorder(HttpTransport(url, None, self.clock.now))
        client = Client(
            collections=collections,
            state_dir=self.folder / f"device {number}",
            transport=self.recorders[number],
            trust_curator=True,
            clock=self.clock,
            threaded=False,
            strict=True,
        )
        client.consent(consents)
        return client

    def relayed(self, number: int, route: RelayedRoute) -> Client:
        """Install the app of a person in the beta, who consents."""
        client = Client(
            collections={route.collection.name: route.collection},
            state_dir=self.folder / f"relayed device {number}",
            relay=route.relay,
            relay_keys=route.relay_keys,
            issuer=route.issuer,
            account=route.account(number),
            clock=self.clock,
            threaded=False,
            strict=True,
        )
        client.consent(True)
        return client


class Fleet:
    """Apps that are installed together and work on a few threads."""

    def __init__(self) -> None:
        """Start without devices."""
        self.clients: dict[int, Client] = {}
        self._threads = ThreadPoolExecutor(THREADS, "demo-device")

    def install(self, people: Iterable[int], install: Callable[[int], Client]) -> None:
        """Install the app for these people."""
        people = list(people)
        self.clients.update(zip(people, self._threads.map(install, people), strict=True))

    def deliver(self, people: Iterable[int]) -> None:
        """Have the devices of these people send all reports that are due."""
        clients = [self.clients[person] for person in people]
        if not all(self._threads.map(Client.flush, clients)):
            raise NotDelivered("a device of the demo could not deliver its reports: try again")

    def close(self) -> None:
        """Close every app."""
        try:
            list(self._threads.map(lambda client: client.close(0), self.clients.values()))
        finally:
            self._threads.shutdown(cancel_futures=True)
