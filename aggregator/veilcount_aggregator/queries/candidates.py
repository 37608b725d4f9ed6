"""Candidates for open strings: how many were ever tested in a series, and which were found.

Who tests a million candidates finds some by chance, at once or one by one, on one range of days or
on many. So every test of a candidate on a range and a segment is counted durably, once, and each
call spends a part of a budget: both set how far above noise a string must be
(`estimation.find_budget`). The same call again costs nothing. Strings that were found are
remembered by name, so that a page shows them without a candidate.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from msgspec.structs import replace

from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation.distinct_count import DistinctCount, Hashes
from veilcount_analysis.estimation.find_budget import (
    BY_CALL,
    DISCOVERIES,
    PRICES,
    chance,
    chance_of_call,
    spent_by,
)
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
MAX_CALLS = 1_000  # that are remembered, the newest: an older one is paid for again
MOST_TESTS = PRICES[-1][0]


class CandidateRecord(msgspec.Struct, frozen=True):
    """The record of a series: the distinct tests, what they spent, and the strings found.

    A call is the digest of its tests, with the chance at which it made them.
    """

    tests: bytes = b""
    found: tuple[str, ...] = ()
    left: float = BY_CALL
    calls: tuple[tuple[bytes, float], ...] = ()

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
        return replace(self, tests=self.count.with_hashes(hashes).to_bytes())

    def with_call(self, hashes: Hashes) -> tuple[CandidateRecord, float]:
        """Return the record with a call's tests, and the chance at which they are made."""
        distinct = np.unique(hashes)
        digest = hashlib.sha256(distinct.data).digest()[:16]
        for paid, alpha in self.calls:
            if paid == digest:
                return self, alpha
        record, candidates = self.with_tests(distinct), max(len(distinct), 1)
        tested = min(max(record.count.estimate, candidates), MOST_TESTS)
        alpha = chance_of_call(candidates, self.left, tested)
        left = self.left - spent_by(candidates, self.left)
        calls = ((digest, alpha), *self.calls)[:MAX_CALLS]
        return replace(record, left=left, calls=calls), alpha

    def with_found(self, texts: Sequence[str]) -> CandidateRecord:
        """Return the record with some strings remembered, the newest first."""
        known_texts = tuple(dict.fromkeys((*texts, *self.found)))[:MAX_KNOWN]
        return replace(self, found=known_texts)

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
        alpha = chance_of_call(1, record.left, min(tested + 1, MOST_TESTS))
        return CandidateSearch(
            tuple(strings.texts),
            strings.places,
            0,
            round(tested),
            alpha,
            discovers=bool(domain.prefixes),
        )

    def test(
        self, whole: Tally, candidates: Candidates, about: Sequence[object]
    ) -> CandidateSearch:
        """Count a test of each candidate, and return those found: what is shown was paid for."""
        named = candidates.texts
        tested, alpha = self._pay(candidates.hashes ^ _hash_of(about))
        chosen = found_places(
            self.series.collection, whole.counters, candidates, alpha, whole.covers
        )
        texts = tuple(named[index] for index in chosen.tolist())
        self._remember(texts)
        places, few = candidates.places_at(chosen), tuple(named[:MAX_MISSING])
        return CandidateSearch(texts, places, len(named), round(tested), alpha, few)

    def discover(
        self, whole: Tally, dictionary: Sequence[str], about: Sequence[object]
    ) -> CandidateSearch:
        """Count a search, and return its strings; another range or dictionary is another test."""
        hashes = np.array([_hash_of((*about, *dictionary))])
        tested = self._count(hashes)
        expected = chance(tested, DISCOVERIES)
        strings = discovered(
            self.series.collection, whole.counters, dictionary, expected, whole.covers
        )
        self._remember(strings.texts)
        return CandidateSearch(
            tuple(strings.texts), strings.places, 0, round(tested), expected, discovers=True
        )

    def _record(self) -> CandidateRecord:
        return CandidateRecord.load(self.store, self.series)

    def _pay(self, hashes: Hashes) -> tuple[float, float]:
        """Count a call durably; return how many tests there were, and the chance of its own."""

        def pay() -> tuple[list[Record], tuple[CandidateRecord, float]]:
            before = self._record()
            after, alpha = before.with_call(hashes)
            return ([] if after is before else [after.record(self.series)]), (after, alpha)

        record, alpha = update_records(self.store, pay)
        return _priced(record.count.estimate, MOST_TESTS), alpha

    def _count(self, hashes: Hashes) -> float:
        """Count discoveries durably, and return how many there were."""

        def count() -> tuple[list[Record], CandidateRecord]:
            before = self._record()
            after = before.with_tests(hashes)
            return ([] if after == before else [after.record(self.series)]), after

        return _priced(update_records(self.store, count).count.estimate, DISCOVERIES[-1][0])

    def _remember(self, texts: Sequence[str]) -> None:
        def remember() -> tuple[list[Record], None]:
            before = self._record()
            is_new = not set(texts) <= set(before.found)
            return ([before.with_found(texts).record(self.series)] if is_new else []), None

        update_records(self.store, remember)


def _priced(tested: float, most: float) -> float:
    """Return how many tests there were, or refuse more than have a price."""
    if tested > most:
        fix = "so many were made that no further find is distinguishable from chance: remove it"
        raise QueryError("candidates", f"{tested:,.0f} tests", fix)
    return tested


def _hash_of(about: Sequence[object]) -> np.uint64:
    digest = hashlib.sha256(repr(tuple(about)).encode()).digest()
    return np.uint64(int.from_bytes(digest[:8], "big"))
