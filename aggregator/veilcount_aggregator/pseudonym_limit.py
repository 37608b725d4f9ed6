"""How many new pseudonyms a period may bring; where their number is secret, a secret limit.

Whoever fills a period with invented pseudonyms is answered `full`, and knows how many were there
before him: the limit less what he sent. Where n must not leave, the limit is therefore drawn for
each (series, period), uniformly from the upper half of the setting: what `full` reveals of n is
within half the setting, and one person more or less shifts the outcome's distribution by a total
variation of 2 / setting. All workers derive the same limit, from a secret that the store keeps:
fresh draws, after a restart or in another worker, would average out.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from .promises import counts_are_public
from .series import Series
from .shelf import change
from .store import MemoryLimits, Record, Store

KIND = "secret"
NAME = "pseudonym-limit"
KEY_BYTES = 32

Key = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class PseudonymLimit:
    """The limit of each period of each series."""

    most: int  # the operator's setting
    key: Key

    def secret(self, series: Series) -> bool:
        """Whether each period of a series has a limit of its own."""
        return not counts_are_public(series.collection)

    def of(self, series: Series, period: int) -> int:
        """Return how many new pseudonyms a period may bring."""
        return self._drawn(series, str(period), self.most)

    def memory(self, series: Series, limits: MemoryLimits) -> MemoryLimits:
        """Return what the counters may take: `full` tells how much they took before, likewise."""
        if not self.secret(series):
            return limits
        return replace(limits, series=self._drawn(series, "memory", limits.series))

    def _drawn(self, series: Series, what: str, most: int) -> int:
        """Return a limit; where n is secret, one from the upper half of the setting."""
        if not self.secret(series):
            return most
        message = f"{series.fingerprint} {what}".encode()
        drawn = int.from_bytes(hmac.digest(self.key(), message, "sha256"))
        return most - drawn % max(1, most // 2)


def stored_key(store: Store) -> Key:
    """Return what reads the store's key, made by whoever needs it first; read once."""
    known: list[bytes] = []

    def key() -> bytes:
        if not known:
            known.append(change(store, lambda: _key(store)))
        return known[0]

    return key


def _key(store: Store) -> tuple[list[Record], bytes]:
    kept = store.records(KIND).get(NAME)
    if kept is not None:
        return [], kept
    made = secrets.token_bytes(KEY_BYTES)
    return [Record(KIND, NAME, made)], made
