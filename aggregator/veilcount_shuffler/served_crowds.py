"""The crowds that a shuffler serves: computed from its own definitions and keys, and no others.

A name that a device sends is looked up here, and only here: a crowd that an aggregator divides by
another key, another definition or another size is none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from veilcount_shared import Collection
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.schedule import period_end, period_start
from veilcount_shared.shuffling.crowd import Crowd
from veilcount_shared.shuffling.times import (
    KEPT_FOR_AGGREGATOR,
    batch_rules,
    grace_end,
    hand_over_at,
)

from .crowd_folder import SECRET
from .store_settings import MOST_CROWDS, LoadedCollection, LoadedKey, StoreSettings

AHEAD = timedelta(days=1)
REMEMBERED = timedelta(days=60)  # after its grace a crowd answers that it is over
REFRESH = timedelta(minutes=10)
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
END = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ServedCrowd:
    """A crowd, with what seals a report for it and when it takes reports."""

    collection: Collection
    period: int
    config: KeyConfig
    crowd_id: bytes
    size: int  # of a sealed report
    opens: datetime
    closes: datetime
    leaves: datetime
    expires: datetime
    least: int  # reports of a batch

    @property
    def covers(self) -> int:
        """How many covers a batch has."""
        return batch_rules(self.collection).covers


class ServedCrowds:
    """The crowds of a store, by name, as of an instant."""

    def __init__(self, settings: StoreSettings, development: timedelta | None = None) -> None:
        """Read nothing yet; in `development` a crowd leaves so long after its first report.

        Of any size: whoever develops has one device.
        """
        self._settings = settings
        self._development = development
        self._crowds: dict[bytes, ServedCrowd] = {}
        self._computed = BEGINNING

    def get(self, crowd_id: bytes, period: int, now: datetime) -> ServedCrowd | None:
        """Return the crowd of a name and period; None: no such crowd is served."""
        crowd = self._current(now).get(crowd_id)
        return crowd if crowd is not None and crowd.period == period else None

    def all(self, now: datetime) -> list[ServedCrowd]:
        """List the crowds whose period ends by tomorrow and is not long past, read afresh.

        The hand-over decides for all workers, of which one may have read a later load.
        """
        self._computed = BEGINNING
        return list(self._current(now).values())

    def _current(self, now: datetime) -> dict[bytes, ServedCrowd]:
        if self._development is not None:
            return {crowd.crowd_id: crowd for crowd in self._development_crowds()}
        if abs(now - self._computed) >= REFRESH:
            self._computed = now
            self._crowds = {
                crowd.crowd_id: crowd
                for crowd in crowds_of(self._settings)
                if crowd.opens <= now + AHEAD and now < crowd.closes + REMEMBERED
            }
        return self._crowds

    def _development_crowds(self) -> Iterator[ServedCrowd]:
        """Yield crowds that take reports at once, whatever the calendar says."""
        for crowd in crowds_of(self._settings):
            secret = self._settings.crowds / crowd.crowd_id.hex() / SECRET
            leaves = END
            if secret.exists() and self._development is not None:
                leaves = datetime.fromtimestamp(secret.stat().st_mtime, UTC) + self._development
            yield replace(crowd, opens=BEGINNING, closes=END, leaves=leaves, expires=END, least=1)


def crowds_of(settings: StoreSettings) -> Iterator[ServedCrowd]:
    """Yield all crowds of a store's definitions and keys."""
    keys = settings.gateway_keys()
    for loaded in settings.collections():
        for period in range(loaded.collection.periods):
            yield from _crowds_of_period(loaded, period, keys)


def _crowds_of_period(
    loaded: LoadedCollection, period: int, keys: list[LoadedKey]
) -> Iterator[ServedCrowd]:
    collection = loaded.collection
    if grace_end(collection, period).date() <= loaded.since:
        return  # it was over before this shuffler had the definition
    first_day = period_start(collection, period).date()
    serving = [key for key in keys if key.serves(first_day)]
    for key in serving[:MOST_CROWDS]:
        yield serve_crowd(collection, period, key)


def serve_crowd(collection: Collection, period: int, key: LoadedKey) -> ServedCrowd:
    """Return the crowd of a period for the devices that have a key."""
    config = key.config
    crowd = Crowd.of_period(collection, period, key.encoded, config)
    closes = grace_end(collection, period)
    return ServedCrowd(
        collection,
        period,
        config,
        crowd.crowd_id,
        crowd.size,
        period_end(collection, period),
        closes,
        hand_over_at(collection, period),
        closes + KEPT_FOR_AGGREGATOR,
        batch_rules(collection).least,
    )
