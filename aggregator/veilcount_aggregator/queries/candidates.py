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

import msgspec
import numpy as np

from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation.distinct_count import DistinctCount, Hashes
from veilcount_analysis.estimation.open_strings import DISCOVERIES, PRICES, chance
from veilcount_analysis.kinds.source import CandidateSearch, Tally
from veilcount_analysis.mechanisms.candidate_search import (
    Candidates,
    discovered,
    found_places,
    open_domain,
)
from veilcount_analysis.series.series import Series

from ..store import Record, RecordStore
from ..store.records import update_records

KIND = "candidates"
MAX_KNOWN = 1_000  # strings that are remembered, the newest
MAX_MISSING = 100  # candidates that are listed when they are not found


class CandidateRecord(msgspec.Struct, frozen=True):
    """The record of a series: the distinct tests, and the strings that were found."""

    tests: bytes = b""
    found: tuple[str, ...] = ()

    @classmethod
    def load(cls, store: RecordStore, series: Series) -> CandidateRecord:
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
        known_texts = tuple(dict.fromkeys((*texts, *self.found)))[:MAX_KNOWN]
        return CandidateRecord(self.tests, known_texts)

    def record(self, series: Series) -> Record:
        """Return the record to store."""
        return Record(KIND, series.fingerprint, zlib.compress(msgspec.msgpack.encode(self)))


@dataclass(frozen=True, slots=True)
class StoredSearches:
    """The searches among the strings of one series, counted in its record."""

    store: RecordStore
    series: Series

    def known(self) -> CandidateSearch:
        """Return the strings that were found in any test, and what a further test would cost."""
        domain, record = open_domain(self.series.collection), self._record()
        strings, tested = Candidates.from_texts(domain, record.found), record.count.estimate
        alpha, discovers = chance(min(tested, PRICES[-1][0])), bool(domain.prefixes)
        return CandidateSearch(
            strings.texts, strings.places, 0, round(tested), alpha, discovers=discovers
        )

    def test(
        self, whole: Tally, candidates: Candidates, about: Sequence[object]
    ) -> CandidateSearch:
        """Count a test of each candidate, and return those found: what is shown was paid for."""
        tested = self._count(candidates.hashes ^ _hash_of(about), PRICES)
        alpha, named = chance(tested), candidates.texts
        chosen = found_places(
            self.series.collection, whole.counters, candidates, alpha, whole.covers
        )
        texts = tuple(named[index] for index in chosen.tolist())
        self._remember(texts)
        places, few = candidates.places[chosen], named[:MAX_MISSING]
        return CandidateSearch(texts, places, len(named), round(tested), alpha, few)

    def discover(
        self, whole: Tally, dictionary: Sequence[str], about: Sequence[object]
    ) -> CandidateSearch:
        """Count a search, and return its strings; another range or dictionary is another test."""
        hashes = np.array([_hash_of((*about, *dictionary))])
        tested = self._count(hashes, DISCOVERIES)
        expected = chance(tested, DISCOVERIES)
        strings = discovered(
            self.series.collection, whole.counters, dictionary, expected, whole.covers
        )
        self._remember(strings.texts)
        return CandidateSearch(
            strings.texts, strings.places, 0, round(tested), expected, discovers=True
        )

    def _record(self) -> CandidateRecord:
        return CandidateRecord.load(self.store, self.series)

    def _count(self, hashes: Hashes, prices: Sequence[tuple[float, float]]) -> float:
        """Count tests durably, and return how many there were; refuse more than have a price."""

        def count() -> tuple[list[Record], CandidateRecord]:
            before = self._record()
            after = before.with_tests(hashes)
            return ([] if after == before else [after.record(self.series)]), after

        tested = update_records(self.store, count).count.estimate
        if tested > prices[-1][0]:
            fix = "so many were made that no further find is distinguishable from chance: remove it"
            raise QueryError("candidates", f"{tested:,.0f} tests", fix)
        return tested

    def _remember(self, texts: Sequence[str]) -> None:
        def remember() -> tuple[list[Record], None]:
            before = self._record()
            is_new = not set(texts) <= set(before.found)
            return ([before.with_found(texts).record(self.series)] if is_new else []), None

        update_records(self.store, remember)


def _hash_of(about: Sequence[object]) -> np.uint64:
    digest = hashlib.sha256(repr(tuple(about)).encode()).digest()
    return np.uint64(int.from_bytes(digest[:8], "big"))
