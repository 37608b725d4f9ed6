"""Candidates for open strings: how many were ever tested in a series, and which were found.

Who tests a million candidates finds some by chance, at once or one by one, on one range of days or
on many. So every test of a candidate on a range and a segment is counted durably, once, and the
count sets how far above noise a string must be (`estimation.open_strings.chance`). Strings that
were found are remembered by name, so that a page shows them without a candidate.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import msgspec
import numpy as np

from veilcount_aggregator.store import Record, Store
from veilcount_aggregator.store.records import update_records
from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation.confidence_intervals import Counts
from veilcount_analysis.estimation.distinct_count import DistinctCount, Hashes
from veilcount_analysis.estimation.open_strings import DISCOVERIES, PRICES, chance
from veilcount_analysis.mechanisms.candidate_search import (
    MAX_CANDIDATES,
    Candidates,
    discovered,
    found_places,
    open_domain,
)
from veilcount_analysis.series.series import Series
from veilcount_shared import Collection
from veilcount_shared.domain import MAX_LABEL, OpenStrings

KIND = "candidates"
MAX_KNOWN = 1_000  # strings that are remembered, the newest
MAX_MISSING = 100  # candidates that are listed when they are not found
NAMED = 3  # in an error


class CandidateRecord(msgspec.Struct, frozen=True):
    """The record of a series: the distinct tests, and the strings that were found."""

    tests: bytes = b""
    found: tuple[str, ...] = ()

    @classmethod
    def load(cls, store: Store, series: Series) -> CandidateRecord:
        """Read the record; without one, nothing was tested."""
        kept = store.records_at(KIND, [series.fingerprint]).get(series.fingerprint)
        return cls() if kept is None else msgspec.msgpack.decode(zlib.decompress(kept), type=cls)

    @property
    def count(self) -> DistinctCount:
        """The count of distinct tests."""
        return DistinctCount.from_bytes(self.tests)

    def with_tests(self, hashes: Hashes) -> CandidateRecord:
        """Return the record with some tests added."""
        counted = self.count.with_hashes(hashes).to_bytes()
        return CandidateRecord(counted, self.found)

    def with_found(self, texts: Sequence[str]) -> CandidateRecord:
        """Return the record with some strings remembered, the newest first."""
        found = tuple(dict.fromkeys((*texts, *self.found)))[:MAX_KNOWN]
        return CandidateRecord(self.tests, found)

    def record(self, series: Series) -> Record:
        """Return the record to store."""
        return Record(KIND, series.fingerprint, zlib.compress(msgspec.msgpack.encode(self)))


@dataclass(frozen=True, slots=True, eq=False)
class CandidateSearch:
    """One test of candidates: those found, the most frequent first, and what a test costs now."""

    texts: tuple[str, ...]
    places: Counts
    candidates: int
    tested: int
    alpha: float
    named: tuple[str, ...] = ()
    discovers: bool = False


def check_listed(words: Sequence[str]) -> NoReturn:
    """Refuse a search where values are listed."""
    fix = "this collection lists its values: give values, or none for all"
    raise QueryError("candidates" if words else "discover", list(words[:NAMED]) or True, fix)


def check_search(domain: OpenStrings, words: Sequence[str], *, discover: bool) -> None:
    """Refuse candidates where strings are found without them, and the other way round."""
    if words and domain.prefixes and not discover:
        fix = "strings are found without them: give discover=true, which takes them as a dictionary"
        raise QueryError("candidates", list(words[:NAMED]), fix)
    if discover and not domain.prefixes:
        fix = "only where the definition has discover = true: give candidates"
        raise QueryError("discover", True, fix)


def check_candidates(
    collection: Collection, words: Sequence[str], name: str = "candidates"
) -> Candidates:
    """Return the candidates of a query, or refuse them."""
    if len(words) > MAX_CANDIDATES:
        fix = f"at most {MAX_CANDIDATES:,} at a time"
        raise QueryError(name, f"{len(words):,} strings", fix)
    found = Candidates.from_texts(open_domain(collection), words)
    if found.unreadable:
        fix = f"give strings of 1 to {MAX_LABEL} visible characters"
        raise QueryError(name, list(found.unreadable[:NAMED]), fix)
    return found


def search_candidates(
    store: Store, series: Series, counters: Counts, candidates: Candidates, about: Sequence[object]
) -> CandidateSearch:
    """Test candidates on some counters; `about` is what tells this range of reports from others.

    The tests are counted before they are made: what is shown was paid for.
    """
    tested = _count(store, series, candidates.hashes ^ _hash_of(about), PRICES)
    alpha, named = chance(tested), candidates.texts
    chosen = found_places(series.collection, counters, candidates, alpha)
    texts = tuple(named[index] for index in chosen.tolist())
    _remember(store, series, texts)
    places, few = candidates.places[chosen], named[:MAX_MISSING]
    return CandidateSearch(texts, places, len(named), round(tested), alpha, few)


def discover_strings(
    store: Store,
    series: Series,
    counters: Counts,
    dictionary: Sequence[str],
    about: Sequence[object],
) -> CandidateSearch:
    """Find strings without candidates; another range or dictionary is another test."""
    check_candidates(series.collection, dictionary)
    hashes = np.array([_hash_of((*about, *dictionary))])
    tested = _count(store, series, hashes, DISCOVERIES)
    expected = chance(tested, DISCOVERIES)
    found = discovered(series.collection, counters, dictionary, expected)
    _remember(store, series, found.texts)
    return CandidateSearch(found.texts, found.places, 0, round(tested), expected, discovers=True)


def _count(
    store: Store, series: Series, hashes: Hashes, prices: Sequence[tuple[float, float]]
) -> float:
    """Count tests durably, and return how many there were; refuse more than have a price."""

    def count() -> tuple[list[Record], CandidateRecord]:
        before = CandidateRecord.load(store, series)
        after = before.with_tests(hashes)
        return ([] if after == before else [after.record(series)]), after

    tested = update_records(store, count).count.estimate
    if tested > prices[-1][0]:
        fix = "so many were made that no further find is distinguishable from chance: remove it"
        raise QueryError("candidates", f"{tested:,.0f} tests", fix)
    return tested


def known_strings(store: Store, series: Series) -> tuple[Candidates, CandidateSearch]:
    """Return the strings that were found in any test, and what a further test would cost."""
    domain, kept = open_domain(series.collection), CandidateRecord.load(store, series)
    known, tested = Candidates.from_texts(domain, kept.found), kept.count.estimate
    alpha, discovers = chance(min(tested, PRICES[-1][0])), bool(domain.prefixes)
    search = CandidateSearch(
        known.texts, known.places, 0, round(tested), alpha, discovers=discovers
    )
    return known, search


def _remember(store: Store, series: Series, texts: Sequence[str]) -> None:
    def remember() -> tuple[list[Record], None]:
        before = CandidateRecord.load(store, series)
        new = not set(texts) <= set(before.found)
        return ([before.with_found(texts).record(series)] if new else []), None

    update_records(store, remember)


def _hash_of(about: Sequence[object]) -> np.uint64:
    digest = hashlib.sha256(repr(tuple(about)).encode()).digest()
    return np.uint64(int.from_bytes(digest[:8], "big"))
