"""Whose batch it is, who signed it, and whether it is taken now.

The aggregator computes every crowd itself, from its own definitions and keys: a shuffler that was
given others is refused before a report is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_analysis.series.series import Series
from veilcount_shared.errors import BadField
from veilcount_shared.limits import TOKEN_BYTES
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.schedule import period_start
from veilcount_shared.shuffling.crowd import Crowd, sealed_size
from veilcount_shared.shuffling.part import BatchHead
from veilcount_shared.shuffling.plain_report import plain_size
from veilcount_shared.shuffling.times import TAKEN_FOR, batch_rules, grace_end

from ...errors import BatchTooEarly, BatchTooLate
from ...records.shuffler_keys import ShufflerKeys


@dataclass(frozen=True, slots=True)
class BatchOrigin:
    """What a crowd is of: a series, a period and the key that its reports are sealed to."""

    series: Series
    period: int
    key_id: int
    secret: X25519PrivateKey

    @property
    def plain_size(self) -> int:
        """The length of its reports once they are open."""
        return plain_size(token_bytes(self.series))


def token_bytes(series: Series) -> int:
    """Return the length of the token in each report of a series."""
    return TOKEN_BYTES if series.has_tokens else 0


def find_origin(
    all_series: Iterable[Series],
    secrets: Mapping[int, X25519PrivateKey],
    crowd_id: bytes,
    period: int,
) -> BatchOrigin:
    """Find the series, period and key of a crowd, or refuse an unknown one."""
    for series in all_series:
        if series.collection.batch is None or period >= series.collection.periods:
            continue
        size = sealed_size(plain_size(token_bytes(series)))
        for key_id, secret in secrets.items():
            config = KeyConfig(key_id, secret.public_key().public_bytes_raw())
            crowd = Crowd(series.fingerprint, period, config.encode(), config.aeads[0], size)
            if crowd.crowd_id == crowd_id:
                return BatchOrigin(series, period, key_id, secret)
    raise BadField("crowd", "no definition and gateway key of this aggregator have this crowd")


def require_signature(
    keys: ShufflerKeys, origin: BatchOrigin, signed: bytes, signature: bytes
) -> None:
    """Refuse what the trusted shuffler of the collection did not sign."""
    collection = origin.series.collection
    public = keys.trusted(collection.name, period_start(collection, origin.period).date())
    if public is None:
        fix = f"no shuffler is trusted for {collection.name}: `veilcount shuffler trust FILE`"
        raise BadField("signature", fix)
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, signed)
    except InvalidSignature:
        fix = f"it is not that of the shuffler that is trusted for {collection.name}"
        raise BadField("signature", fix) from None


def require_numbers(origin: BatchOrigin, head: BatchHead, *, any_size: bool = False) -> None:
    """Refuse a batch whose numbers are not those of its definition."""
    rules = batch_rules(origin.series.collection)
    if head.size != sealed_size(origin.plain_size):
        raise BadField("size", f"give {sealed_size(origin.plain_size)}")
    if head.covers != rules.covers:
        raise BadField("covers", f"the definition has {rules.covers}")
    if head.reports < rules.least and not any_size:
        raise BadField("reports", f"fewer than {rules.least} are never handed over")


def require_time(origin: BatchOrigin, now: datetime, *, at_once: bool = False) -> None:
    """Refuse a batch that devices may still add to, and one that comes too late."""
    end = grace_end(origin.series.collection, origin.period)
    if now < end and not at_once:
        raise BatchTooEarly(f"the grace of this period ends at {end.isoformat()}")
    if now >= end + TAKEN_FOR:
        raise BatchTooLate(f"batches of this period were taken until {end + TAKEN_FOR}")
