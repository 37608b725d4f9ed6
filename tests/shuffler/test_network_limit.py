"""The rate of a network: counted in memory under a name that nobody can read, for a day."""

from __future__ import annotations

import pytest

from veilcount_shuffler.network_limit import NetworkLimit, network, sender

from .parties import HandClock


@pytest.fixture
def clock() -> HandClock:
    """A clock that a test sets."""
    return HandClock()


def test_a_network_has_its_rate_an_hour(clock: HandClock) -> None:
    now = [0.0]
    limit = NetworkLimit(1000, 2, clock, lambda: now[0])
    statuses = [limit.wait("192.0.2.1") for _ in range(501)]

    assert statuses[:500] == [0] * 500
    assert statuses[500] == 8  # seconds: this worker has half of the rate
    assert limit.wait("192.0.2.200") > 0
    assert limit.wait("192.0.3.1") == 0
    now[0] += 8
    assert limit.wait("192.0.2.1") == 0


def test_without_a_rate_everybody_is_admitted(clock: HandClock) -> None:
    limit = NetworkLimit(0, 1, clock, lambda: 0.0)

    assert {limit.wait("192.0.2.1") for _ in range(5000)} == {0}


def test_a_day_leaves_nothing_of_the_day_before(clock: HandClock) -> None:
    """Neither the key nor what was counted under it; no address is ever a key."""
    limit = NetworkLimit(1, 1, clock, lambda: 0.0)
    assert [limit.wait("192.0.2.1"), limit.wait("192.0.2.1")] == [0, 3600]
    key, names = limit._key, set(limit._limits._buckets)
    clock.advance(days=1)
    assert limit.wait("192.0.2.1") == 0

    assert limit._key != key
    assert not names & set(limit._limits._buckets)
    assert all(len(name) == 64 for name in names)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.255", True),
        ("192.0.2.1", "192.0.3.1", False),
        ("2001:db8:1:2::3", "2001:db8:1:ffff::9", True),
        ("2001:db8:1::", "2001:db8:2::", False),
        ("::ffff:192.0.2.1", "192.0.2.9", True),
        ("nobody", "", True),
    ],
)
def test_a_network_is_a_24_or_a_48(one: str, other: str, is_same: object) -> None:
    assert (network(one) == network(other)) is is_same


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("198.51.100.7:4711", "", "198.51.100.7"),
        ("198.51.100.7:4711", "192.0.2.1", "198.51.100.7"),  # a device says so, no proxy
        ("127.0.0.1:80", "192.0.2.9, 192.0.2.1", "192.0.2.1"),
        ("[::1]:80", "192.0.2.1", "192.0.2.1"),
        ("unix:", "192.0.2.1", "192.0.2.1"),
        ("127.0.0.1:80", "", "127.0.0.1"),
    ],
)
def test_only_a_proxy_on_this_machine_names_a_sender(
    peer: str, forwarded: str, expected: str
) -> None:
    assert sender(peer, forwarded) == expected
