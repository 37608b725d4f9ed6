"""What queries read: the definitions and a store, as of a UTC day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches

from veilcount_analysis.counts.counters_source import OPEN_STRINGS
from veilcount_analysis.errors import CountsError, QueryError
from veilcount_analysis.kinds.source import Searches
from veilcount_analysis.series.series import Series
from veilcount_shared.errors import VeilcountError, format_value

from ..records.definitions import Catalog
from ..records.shuffled_batches.batch_states import covers_of_periods
from ..store import CounterReader, Store
from .candidates import StoredSearches

LEAST_DIGITS = 6  # of a fingerprint that is cut
RELEASES = (
    "its model is central, so it has releases instead of estimates: "
    "GET /v1/collections/{name}/releases"
)


class CollectionNotFound(VeilcountError, LookupError):
    """No definition has this name; `near` are those that look like it."""

    def __init__(self, name: str, near: Sequence[str]) -> None:
        meant = f": did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"no collection is named {format_value(name)}{meant}")
        self.name = name
        self.near = tuple(near)


@dataclass(frozen=True, slots=True)
class Tallies:
    """Definitions and counters, as of a day: what estimates and comparisons read."""

    catalog: Catalog
    store: CounterReader
    today: date

    def named(self, name: str) -> tuple[Series, ...]:
        """Return a collection's series, the newest first."""
        series_of_name = self.catalog.by_name.get(name)
        if series_of_name is None:
            raise CollectionNotFound(name, get_close_matches(name, list(self.catalog.by_name), 3))
        return series_of_name

    def local(self, name: str, fingerprints: Sequence[str] = ()) -> list[Series]:
        """Return the series of a collection that estimates can be made of, the newest first.

        Those of the given fingerprints (their first digits will do), or all.
        """
        everyone = self.named(name)
        query = [
            series_by_fingerprint(everyone, fingerprint) for fingerprint in fingerprints
        ] or list(everyone)
        local_series = [
            one_series for one_series in query if not one_series.collection.trust.releases
        ]
        if not local_series or (fingerprints and len(local_series) < len(query)):
            raise QueryError("collection", name, RELEASES.replace("{name}", name))
        return [one_series for one_series in everyone if one_series in local_series]

    def reports(self, series: Series) -> int:
        """Return how many reports a series holds."""
        return sum(self.store.report_counts(series).values())

    def covers(self, series: Series, periods: range) -> int:  # noqa: ARG002 - of a store
        """Return the cover reports of periods: none, as nothing of a shuffler is published."""
        return 0

    def searches(self, series: Series) -> Searches:
        """Refuse a search among open strings: each is counted, and counters alone count none."""
        raise CountsError("collection", series.collection.name, OPEN_STRINGS)


@dataclass(frozen=True, slots=True)
class Snapshot(Tallies):
    """The definitions and the store, as of a day."""

    store: Store

    def covers(self, series: Series, periods: range) -> int:
        """Return how many cover reports are in the tallies of these periods."""
        return covers_of_periods(self.store, series, periods)

    def searches(self, series: Series) -> Searches:
        """Return the searches among open strings, which are counted."""
        return StoredSearches(self.store, series)


def series_by_fingerprint(series: Sequence[Series], fingerprint: str) -> Series:
    """Return the series of a fingerprint, or of its first digits."""
    matches = [
        one_series for one_series in series if one_series.fingerprint.startswith(fingerprint)
    ]
    if len(fingerprint) < LEAST_DIGITS or len(matches) != 1:
        known = ", ".join(one_series.fingerprint[:12] for one_series in series)
        raise QueryError(
            "series", fingerprint, f"give the first {LEAST_DIGITS} digits or more of one of {known}"
        )
    return matches[0]
