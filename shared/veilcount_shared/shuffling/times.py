"""When a report of a period is sealed, sent, handed over and taken: by the definition alone.

A device sends at an instant of the first third of the grace, drawn whatever happened in the period;
a shuffler hands a crowd over once, at a fixed hour after the grace.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from ..collection import Collection
from ..definition_record import BatchRules
from ..schedule import SecretRandomSource, period_end

HAND_OVER_HOUR = timedelta(hours=2)  # after the grace, which ends at midnight UTC
#: of a crowd whose aggregator stays away, from the end of the grace
KEPT_FOR_AGGREGATOR = timedelta(days=30)
TAKEN_FOR = timedelta(days=35)  # a batch by its aggregator
UNFINISHED_FOR = timedelta(days=40)  # a batch of which parts are missing
SENDING_SHARE = 3  # of the grace, the first third
KEY_AHEAD = timedelta(days=90)  # how long before its first day a key is shipped


def batch_rules(collection: Collection) -> BatchRules:
    """Return the rules of a collection that travels by shuffler; any other has none."""
    if collection.batch is None:
        raise TypeError(f"{collection.name}: its reports travel alone")
    return collection.batch


def draw_sending_instant(secret: bytes, collection: Collection, period: int) -> datetime:
    """Return when a device sends its report of a period, uniform over its seconds."""
    randomness = SecretRandomSource(secret, "sending", collection.fingerprint, period)
    seconds = batch_rules(collection).time_to_send // timedelta(seconds=SENDING_SHARE)
    return period_end(collection, period) + timedelta(seconds=randomness.below(seconds))


def grace_end(collection: Collection, period: int) -> datetime:
    """Return the first instant at which no report of a period is taken any more."""
    return period_end(collection, period) + batch_rules(collection).time_to_send


def hand_over_at(collection: Collection, period: int) -> datetime:
    """Return the earliest instant at which the crowd of a period is handed over."""
    return grace_end(collection, period) + HAND_OVER_HOUR
