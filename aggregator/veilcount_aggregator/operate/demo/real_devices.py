"""Real devices: `veilcount_client.Client`s, each with its own state, over HTTP.

Only the values and the clock are simulated. Each client obtains consent, records, charges its
ledger, draws its randomness from the operating system and uploads its reports. A seed fixes the
values, never the reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from veilcount_client import Client
from veilcount_client.clock import Clock
from veilcount_client.delivery.replies import HELD
from veilcount_client.delivery.transport import Delivered, HttpTransport, Later, Outcome, Transport
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
            self.verdicts.update(map(Verdict, outcome.verdicts))
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


class ShuffledRoute(NamedTuple):
    """How devices answer one question by a shuffler."""

    collection: Collection
    relay_keys: bytes
    take: Callable[[str, bytes], str]  # an address and an envelope: what the shuffler answers


class EnvelopeCall(NamedTuple):
    """The way of one device to a shuffler: a call, for the clock of a replay is no server's."""

    address: str
    take: Callable[[str, bytes], str]

    def send_envelope(self, envelope: bytes) -> Outcome:
        """Hand an envelope over."""
        answer = self.take(self.address, envelope)
        return Delivered((answer,)) if answer == HELD else Later(answer, seen=False)


class Fleet:
    """Apps that work on a few threads: hundreds share a machine, and the replay has them send."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        """Start without devices; the state of each will be in the folder."""
        self.clients: dict[int, Client] = {}
        self.recorders: dict[int, DeliveryRecorder] = {}
        self._common: dict[str, Any] = {"clock": clock, "threaded": False, "strict": True}
        self._folder, self._now = folder, clock.now
        self._threads = ThreadPoolExecutor(THREADS, "demo-device")

    def install(
        self,
        people: Mapping[int, bool],
        url: str,
        collections: Mapping[str, Collection],
        route: ShuffledRoute,
    ) -> None:
        """Install the app for these people, each of whom consents or declines."""
        collections = {**collections, route.collection.name: route.collection}

        def install(person: int) -> Client:
            transport = DeliveryRecorder(HttpTransport(url, None, self._now))
            self.recorders[person] = transport
            state = self._folder / f"device {person}"
            options = {
                "transport": transport,
                "trust_curator": True,
                "shuffler": EnvelopeCall(f"device {person}", route.take),
                "relay_keys": route.relay_keys,
                "jitter": 0.0,  # a flush sends what is due, and the replay flushes once a day
                **self._common,
            }
            return Client(collections=collections, state_dir=state, **options)

        self._install(people, install)

    def install_beta(self, people: Mapping[int, bool], route: RelayedRoute) -> None:
        """Install the app with the question that is answered over a relay."""

        def install(person: int) -> Client:
            return Client(
                collections={route.collection.name: route.collection},
                state_dir=self._folder / f"relayed device {person}",
                relay=route.relay,
                relay_keys=route.relay_keys,
                issuer=route.issuer,
                account=route.account(person),
                **self._common,
            )

        self._install(people, install)

    def _install(self, people: Mapping[int, bool], install: Callable[[int], Client]) -> None:
        self.clients.update(zip(people, self._threads.map(install, people), strict=True))
        for person, consents in people.items():
            self.clients[person].consent(consents)

    def store(self, people: Iterable[int]) -> None:
        """Have the devices of these people store what was recorded, as a thread of theirs would."""
        clients = [self.clients[person] for person in people]
        list(self._threads.map(lambda client: client.flush(until="stored"), clients))

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
