"""Planning canaries: which periods have some, how many, when each leaves, each sealed at once.

A canary is sealed and timed by the functions that devices have. It is of the newest gateway key, as
the reports of apps that are up to date are. Its message is zeros: it is known by its mark, and
counted nowhere.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from veilcount_analysis.privacy.shuffled.shuffler_conduct import batches_needed
from veilcount_analysis.series.series import Series
from veilcount_serving.errors import SettingsError
from veilcount_shared.collection import Collection
from veilcount_shared.limits import PSEUDONYM_BYTES
from veilcount_shared.oblivious_http.key_file import RelayKey, decode_key_file, key_for
from veilcount_shared.schedule import SECRET_BYTES, period_end, period_start
from veilcount_shared.shuffling.crowd import Crowd, sealed_size
from veilcount_shared.shuffling.envelope import Envelope
from veilcount_shared.shuffling.plain_report import PlainReport, plain_size
from veilcount_shared.shuffling.sealed_report import seal_report
from veilcount_shared.shuffling.times import KEY_AHEAD, draw_sending_instant, grace_end

from ...intake.shuffled_batches.batch_checks import token_bytes
from ...records.gateway_keys import GatewayKey, key_file
from ...records.shuffler_canary_plans import MOST_PERCENT, CanaryPlan, most_canaries
from .canary_file import Canary, CanaryBatch

ENOUGH = 30  # in all: a tenth that is dropped is seen with .96


def default_canaries(series: Series) -> int:
    """Return how many canaries a batch has by default, or refuse a series that can have none."""
    collection = series.collection
    if collection.batch is None:
        fix = "its reports travel alone: canaries are for collections with a `batch`"
        raise SettingsError("NAME", collection.name, fix)
    most = most_canaries(series)
    if not most:
        fix = f"{MOST_PERCENT} % of `least` = {collection.batch.least} is less than one canary"
        raise SettingsError("NAME", collection.name, fix)
    return min(most, ENOUGH)


def enough_batches(canaries: int) -> int:
    """Return in how many batches so many canaries each show an order and a tenth dropped."""
    return max(batches_needed(canaries) or 1, math.ceil(ENOUGH / canaries))


def gateway_keys(keys: Sequence[GatewayKey]) -> list[RelayKey]:
    """Return the keys as devices have them, the newest first."""
    if not keys:
        raise SettingsError("gateway key", "", "there is none: `veilcount relay-keys create`")
    return decode_key_file(key_file(keys))


def draw_plan(
    series: Series, keys: Sequence[RelayKey], canaries: int, batches: int, now: datetime
) -> CanaryPlan:
    """Return a plan for the next batches of a series, with a fresh key."""
    collection = series.collection
    numbers = (
        number
        for number in range(collection.periods)
        if _can_be_planned(collection, keys, number, now)
    )
    periods = list(islice(numbers, batches))
    if not periods:
        fix = (
            f"it has no period that ends from now on, begins within {KEY_AHEAD.days} days, and has"
            " a gateway key: `veilcount relay-keys list`"
        )
        raise SettingsError("NAME", collection.name, fix)
    return CanaryPlan.draw(series, range(periods[0], periods[-1] + 1), canaries)


def _can_be_planned(
    collection: Collection, keys: Sequence[RelayKey], period: int, now: datetime
) -> bool:
    """Whether a period is not over, and its key certain: one is shipped so long before its day."""
    start = period_start(collection, period)
    is_near = start <= now + KEY_AHEAD and now < period_end(collection, period)
    return is_near and key_for(keys, start.date()) is not None


def seal_canaries(
    series: Series, plan: CanaryPlan, keys: Sequence[RelayKey]
) -> Iterator[CanaryBatch]:
    """Yield the batches of a plan with their sealed canaries."""
    collection, token = series.collection, token_bytes(series)
    size = sealed_size(plain_size(token))
    message = bytes(collection.message_bytes)
    pseudonym = bytes(PSEUDONYM_BYTES if token else 0)
    for period in plan.periods:
        key = key_for(keys, period_start(collection, period).date())
        assert key is not None  # noqa: S101 - or the period would not be planned
        aead = key.config.aeads[0]
        crowd_id = Crowd(series.fingerprint, period, key.encoded, aead, size).crowd_id
        canaries = []
        for number, mark in enumerate(plan.marks(crowd_id)):
            plain = PlainReport(message, pseudonym, bytes(token), mark).encode()
            sealed = seal_report(key.config, crowd_id, period, plain)
            due = draw_sending_instant(secrets.token_bytes(SECRET_BYTES), collection, period)
            envelope = Envelope(crowd_id, period, sealed).encode()
            canaries.append(Canary(number, due, envelope.hex()))
        ends = grace_end(collection, period)
        yield CanaryBatch(period, crowd_id.hex(), ends, canaries)
