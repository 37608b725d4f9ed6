"""The gateway's log joins no device's reports (b); the relay's and the gateway's together do (c).

The gateway has every opened request: instant, method, fields, key id, length and body, no address.
The joiner of `test_joiner` uses all of it, at its level ALPHA of one way of joining. With the
relay's log as well it needs no skill: each request is in both, and the relay knows the address.
That is what a relay cannot protect from, and why it must be another party's.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from veilcount_client.testing import SettableClock

from ..device_fixtures import at, file
from .relayed_wire import RelayedWire, own_header, own_keys
from .test_joiner import DEVICES, HIDDEN, Row, best, chance, few_and_many, population

DELAY = 1.0  # seconds
COLLECTIONS = file(
    a={"values": ["x", "y", "z"]},
    b={"range": [0, 9], "measure": "mean"},
    c={"unit": "event", "per_day": 1, "linkage": "none"},
    d={"unit": "event", "per_day": 1, "linkage": "none"},
    hidden={"presence": "hidden"},
    hidden_too={"presence": "hidden"},
)


class Relayed:
    """Makes the devices' networks, each with an address of its own; keeps them for the relay."""

    def __init__(self) -> None:
        self.wires: list[RelayedWire] = []
        self.errors: list[float] = []  # by how much each device's clock is off

    def __call__(self, clock: SettableClock, person: int) -> RelayedWire:
        self.wires.append(RelayedWire(clock, address=f"2001:db8::{person:x}"))
        self.errors.append(clock.now() - at(0))
        return self.wires[-1]

    def log(self) -> list[tuple[float, object]]:
        """Return the relay's log by its own clock: a request takes up to DELAY to the gateway."""
        delays = Random(1)
        return [
            (each.instant - error - delays.uniform(0, DELAY), each.address)
            for wire, error in zip(self.wires, self.errors, strict=True)
            for each in wire.relay_log
        ]


@few_and_many
def test_nobody_joins_reports_by_the_gateways_log(devices: int) -> None:
    """Over collections and over days, of linkage by period and of none."""
    rows = population(devices, COLLECTIONS, days=2, wire=Relayed(), defined=COLLECTIONS)

    assert all(len(rows[name, day]) == devices for name in COLLECTIONS for day in range(2))
    for one, other, day in (
        ("a", "b", 0), ("c", "d", 0), ("c", "c", 1), ("a", "c", 0), ("a", "a", 1), (*HIDDEN, 0),
    ):  # fmt: skip
        assert best(rows, (one, 0), (other, day)) <= chance(), (one, other, day)


PLANTED: dict[str, dict[str, Any]] = {
    "a key of its own": {"plant": own_keys},
    "a field that identifies": {"plant": own_header},
    "all at once": {"jitter": 1e-9},
}


@pytest.mark.parametrize("leak", PLANTED)
def test_a_planted_leak_joins_them(leak: str) -> None:
    rows = population(wire=Relayed(), **PLANTED[leak])
    found = best(rows, ("a", 0), ("b", 0))

    assert found > 2 * chance(), f"{found} of {DEVICES}"


def test_both_logs_join_nearly_everything() -> None:
    """The rate of joins that collusion gives, printed: this is no defence, but its limit."""
    relayed = Relayed()
    rows = population(wire=relayed)
    log = relayed.log()
    owners = {address_at(log, other): other.person for other in rows["b", 0]}
    right = sum(owners.get(address_at(log, one)) == one.person for one in rows["a", 0])
    alone = best(rows, ("a", 0), ("b", 0))
    print(f"joined of {DEVICES} devices: {right} with both logs, {alone} with the gateway's")

    assert right >= 0.8 * DEVICES
    assert alone <= chance()


def address_at(log: Sequence[tuple[float, object]], row: Row) -> object:
    """Return the address whose request the relay had last before this one arrived."""
    return max(entry for entry in log if entry[0] <= row.instant)[1]
