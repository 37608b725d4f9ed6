"""Limits of new pseudonyms: of a period, of an hour and a source, of a body.

A period's limit bounds what a flood can write. An hour's quota bounds how fast it can: each pair of
a device key and a class of networks has one of its own, so that a flood of one class, or under one
extracted key, leaves the others alone. A collection with tokens needs no quota: nobody invents a
pseudonym without a token of an account. The limit of a body bounds what one request can bring to an
intake that asks for no key: a device's body has one pseudonym.

Where the number of pseudonyms is secret, so are the limits of periods and hours.

Whoever fills a period with invented pseudonyms is answered `full`, and knows how many were there
before him: the limit less what he sent. Where n must not leave, the limit is therefore drawn for
each (series, period), and for each (series, hour, source), uniformly from the upper half of the
setting: what `full` reveals of n is within half the setting, and one person more or less shifts the
outcome's distribution by a total variation of 2 / setting. All workers derive the same limit, from
a secret that the store keeps: fresh draws, after a restart or in another worker, would average out.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_shared.report import MAX_REPORTS

from ..errors import StoreUnavailable
from ..records.cache import LIMIT_SECRET
from ..store import Quota, Record, Store
from ..store.records import update_records

NAME = "pseudonym-limit"
KEY_BYTES = 32
ANY = "any"  # the class of whoever comes from none that the operator has named

Key = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """What the limits need to know of a request: never an address."""

    hour: int  # since 1970
    key: str = ""  # the id of its device key; "": the intake asks for none
    network: str = ANY  # its class, of the operator's closed list

    @property
    def source(self) -> str:
        """Return the name under which its new pseudonyms are counted."""
        return f"{self.key}/{self.network}"


@dataclass(frozen=True, slots=True)
class PseudonymLimit:
    """The limits of each series; the numbers are the operator's settings."""

    most: int  # a period
    key: Key
    hourly: int = 0  # an hour and a source; 0: no quota
    per_body: int = MAX_REPORTS  # a body, where no key is asked for

    def is_secret(self, series: Series) -> bool:
        """Whether each period, and each quota, of a series has a limit of its own."""
        return not counts_are_public(series.collection)

    def for_period(self, series: Series, period: int) -> int:
        """Return how many new pseudonyms a period may bring."""
        if not self.is_secret(series):
            return self.most
        return self._drawn(self.most, f"{series.fingerprint} {period}")

    def quota(self, series: Series, origin: RequestOrigin | None) -> Quota | None:
        """Return what a request may charge its new pseudonyms to."""
        if not self.hourly or origin is None or series.has_tokens:
            return None
        hour, source, limit = origin.hour, origin.source, self.hourly
        if self.is_secret(series):
            limit = self._drawn(limit, f"{series.fingerprint} hour {hour} {source}")
        return Quota(hour, source, limit)

    def for_body(self, origin: RequestOrigin | None) -> int | None:
        """Return how many pseudonyms a body may name; None: as many as it has reports."""
        return None if origin is None or origin.key else self.per_body

    def _drawn(self, most: int, of: str) -> int:
        """Return a limit from the upper half: the same for all who have the key."""
        drawn = int.from_bytes(hmac.digest(self.key(), of.encode(), "sha256"))
        return most - drawn % max(1, most // 2)


def limit_secret_reader(store: Store) -> Key:
    """Return what reads the store's key, made by whoever needs it first; read once."""
    keys: list[bytes] = []

    def key() -> bytes:
        if not keys:
            keys.append(_read_key(store))
        return keys[0]

    return key


def _read_key(store: Store) -> bytes:
    """Return the key, or the copy of it while the records are away."""
    try:
        return update_records(store, lambda: _key(store))
    except StoreUnavailable:
        _, copied = store.replica(LIMIT_SECRET)
        if NAME not in copied:
            raise
        return copied[NAME]


def _key(store: Store) -> tuple[list[Record], bytes]:
    stored_key = store.records(LIMIT_SECRET).get(NAME)
    if stored_key is not None:
        return [], stored_key
    new_key = secrets.token_bytes(KEY_BYTES)
    return [Record(LIMIT_SECRET, NAME, new_key)], new_key
