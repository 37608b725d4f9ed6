"""What a device is connected to by each route, as options of its client.

By any route a body reaches one function, which replies: a sealed report arrives there opened, as
the body that it would have been. A route is a function here and a line of `NETWORKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from veilcount_client.delivery.transport import Outcome
from veilcount_client.testing import SettableClock
from veilcount_shared import Collection

from ..client.privacy.relayed_wire import RelayedWire
from .shuffler import RELAY_KEYS, EnvelopeWire

Answer = Callable[[bytes, int], Outcome]  # to a body of so many reports
STRAY = b"not by the shuffler: "  # before a body that went another way: no server can read it


@dataclass(frozen=True)
class Network:
    """The options of a client, and what is seen of the body that is being answered."""

    options: Mapping[str, Any]
    marks: Callable[[], bytes] = lambda: b""


@dataclass(frozen=True)
class Endpoints:
    """Whose device it is, what it sends, and who answers."""

    clock: SettableClock
    collections: Iterable[Collection]
    answer: Answer
    address: int = 0


def direct(ends: Endpoints) -> Network:
    return Network({"wire": SimpleNamespace(send=ends.answer)})


def by_relay(ends: Endpoints) -> Network:
    wire = RelayedWire(ends.clock, address=ends.address, answer=ends.answer)
    return Network({"wire": wire}, lambda: wire.marks)


def by_shuffler(ends: Endpoints) -> Network:
    """Answer sealed reports; what does not go by the shuffler arrives as a stray body."""
    wire = EnvelopeWire(ends.collections, ends.answer)
    past = SimpleNamespace(send=lambda body, reports: ends.answer(STRAY + body, reports))
    options = {"wire": past, "shuffler": wire, "relay_keys": RELAY_KEYS}
    return Network(options, lambda: wire.envelope)


NETWORKS: Mapping[str, Callable[[Endpoints], Network]] = {
    "direct": direct,
    "relay": by_relay,
    "shuffler": by_shuffler,
    "shuffler with covers": by_shuffler,
}
