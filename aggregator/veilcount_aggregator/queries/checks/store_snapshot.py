"""An open store and its contents, read once for all checks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property

from veilcount_analysis.series.series import Series, utc_day
from veilcount_analysis.text.privacy_guarantees import counts_are_public

from ...records.api_keys import ApiKeys, load_api_keys
from ...records.definitions import Catalog, load_catalog
from ...releases.release_journal import ReleaseJournal
from ...settings import Settings
from ...store import Store, StoreHealth


@dataclass
class StoreSnapshot:
    """An open store at an instant."""

    settings: Settings
    store: Store
    now: datetime

    @property
    def today(self) -> date:
        """The UTC day."""
        return utc_day(self.now)

    @cached_property
    def health(self) -> StoreHealth:
        """Its health."""
        return self.store.health()

    @cached_property
    def catalog(self) -> Catalog:
        """Its definitions."""
        return load_catalog(self.store)

    @cached_property
    def api_keys(self) -> ApiKeys:
        """Its keys."""
        return load_api_keys(self.store)

    @cached_property
    def journal(self) -> ReleaseJournal | None:
        """The journal of its releases, if one is set."""
        return ReleaseJournal.from_settings(self.settings)

    @property
    def open_series(self) -> list[Series]:
        """The newest definition of each collection that accepts reports now or later."""
        newest = [series[0] for series in self.catalog.by_name.values()]
        return [
            one_series
            for one_series in newest
            if not (one_series.closed or has_ended(one_series, self.today))
        ]

    @property
    def secret(self) -> bool:
        """Whether some counts are not public."""
        everything = self.catalog.series.values()
        return not all(counts_are_public(one_series.collection) for one_series in everything)


def has_ended(series: Series, day: date) -> bool:
    """Whether a series accepts no more reports, late ones included."""
    late = timedelta(days=series.collection.late)
    return series.collection.until + late <= day
