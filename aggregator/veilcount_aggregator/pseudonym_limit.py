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
from dataclasses import dataclass

from .errors import StoreUnavailable
from .promises import counts_are_public
from .series import Series
from .shelf import change
from .store import Record, Store

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
        if not self.secret(series):
            return self.most
        message = f"{series.fingerprint} {period}".encode()
        drawn = int.from_bytes(hmac.digest(self.key(), message, "sha256"))
        return self.most - drawn % max(1, self.most // 2)


def stored_key(store: Store) -> Key:
    """Return what reads the store's key, made by whoever needs it first; read once."""
    known: list[bytes] = []

    def key() -> bytes:
        if not known:
            known.append(_read_key(store))
        return known[0]

    return key


def _read_key(store: Store) -> bytes:
    """Return the key, or the copy of it while the records are away."""
    try:
        return change(store, lambda: _key(store))
    except StoreUnavailable:
        _, copied = store.replica(KIND)
        if NAME not in copied:
            raise
        return copied[NAME]


def _key(store: Store) -> tuple[list[Record], bytes]:
    kept = store.records(KIND).get(NAME)
    if kept is not None:
        return [], kept
    made = secrets.token_bytes(KEY_BYTES)
    return [Record(KIND, NAME, made)], made
