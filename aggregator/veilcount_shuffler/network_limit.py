"""A rate for each network that sends envelopes, in memory alone.

A network is a /24 or a /48; it is known by an HMAC whose key is drawn every day and never stored,
so what is in memory says of no address that it sent, and nothing of yesterday is left.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from datetime import date, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from veilcount_serving.rate_limit import RateLimits

RATE = 1000  # envelopes an hour
HOUR = 3600
_KEY_BYTES = 16
_PREFIXES = {4: 24, 6: 48}


class NetworkLimit:
    """The limits of one worker, which has its share of the rate."""

    def __init__(
        self, rate: int, workers: int, clock: Callable[[], datetime], seconds: Callable[[], float]
    ) -> None:
        """Admit `rate` envelopes an hour at all workers together; 0: no limit."""
        self._rate = rate / workers
        self._clock = clock
        self._seconds = seconds
        self._day = date.min
        self._begin(clock().date())

    def wait(self, address: str) -> int:
        """Admit an envelope and return 0, or return after how many seconds to come back."""
        if not self._rate:
            return 0
        if (today := self._clock().date()) != self._day:
            self._begin(today)
        return self._limits.wait(hmac.digest(self._key, network(address), "sha256").hex())

    def _begin(self, today: date) -> None:
        self._day = today
        self._key = os.urandom(_KEY_BYTES)
        self._limits = RateLimits(self._rate / HOUR, self._seconds, burst=max(1.0, self._rate))


def network(address: str) -> bytes:
    """Return the network of an address; of what is none, one for all."""
    try:
        host: IPv4Address | IPv6Address = ip_address(address)
    except ValueError:
        return b""
    if isinstance(host, IPv6Address) and host.ipv4_mapped is not None:
        host = host.ipv4_mapped
    prefix = ip_network((host, _PREFIXES[host.version]), strict=False)
    return prefix.network_address.packed


def sender(peer: str, forwarded: str) -> str:
    """Return who sends: the peer, or whom a proxy on this machine names last."""
    host = peer.rpartition(":")[0].strip("[]")
    try:
        is_proxy = ip_address(host).is_loopback
    except ValueError:  # a Unix socket
        is_proxy = True
    return forwarded.rpartition(",")[2].strip() if is_proxy and forwarded else host
