"""Candidates among open strings: their places, and which of them were reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from veilcount_shared import Collection
from veilcount_shared.domain import HALVES, OpenStrings, normalized

from ..estimation.confidence_intervals import Bools, Counts, Floats
from ..estimation.letter_model import LetterModel
from ..estimation.open_strings import find, part_scores, possible
from ..estimation.string_tree import discover
from ..packed_texts import PackedTexts
from .handler import refuse_true_values, typed_handler
from .hashed_strings import BucketCounts, HashedStringsHandler

MAX_CANDIDATES = 1_000_000  # at a time
LISTED = "values are listed, so there are no candidates"
BLOCK = 1 << 14  # candidates that are looked up together


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Distinct strings as a device hashes them; a place is the first bits of a hash."""

    texts: Sequence[str]
    hashes: NDArray[np.uint64]
    place_bits: int
    unreadable: tuple[str, ...] = ()

    @classmethod
    def from_texts(cls, domain: OpenStrings, texts: Iterable[str]) -> Candidates:
        """Read candidates one after the other; `unreadable` are those that no device can report."""
        unreadable: list[str] = []
        readable = PackedTexts.from_texts(_normalized(texts, unreadable))
        last = domain.prefixes[-1] if domain.prefixes else 0
        bits = domain.bucket_bits if domain.prefixes else HALVES * domain.bucket_bits
        digests = b"".join(
            b"".join(domain.digest(text, last)[:8] for text in block)
            for block in readable.in_blocks()
        )
        hashes = np.frombuffer(digests, ">u8").astype(np.uint64)
        distinct = _first_of_each(readable, hashes)
        if not distinct.all():
            readable = PackedTexts.from_texts(compress(readable, distinct.tolist()))
            hashes = hashes[distinct]
        return cls(readable, hashes, bits, tuple(unreadable))

    @property
    def places(self) -> Counts:
        """The place of each."""
        return self.places_at(slice(None))

    def places_at(self, rows: slice | Counts) -> Counts:
        """Return the places of some."""
        return (self.hashes[rows] >> np.uint64(64 - self.place_bits)).astype(np.int64)


def _normalized(texts: Iterable[str], unreadable: list[str]) -> Iterator[str]:
    """Yield texts as devices report them, and append to `unreadable` what none can report."""
    for candidate in texts:
        text = normalized(candidate)
        if text is None:
            unreadable.append(candidate)
        else:
            yield text


def _first_of_each(texts: PackedTexts, hashes: NDArray[np.uint64]) -> Bools:
    """Mark the first of the same texts: only those are compared whose hashes are the same."""
    ordered = np.sort(hashes)
    recurring = np.isin(hashes, ordered[1:][ordered[1:] == ordered[:-1]])
    seen: set[str] = set()
    for place, text in compress(enumerate(texts), recurring.tolist()):
        recurring[place] = text in seen
        seen.add(text)
    return ~recurring


def open_handler(collection: Collection) -> HashedStringsHandler:
    """Return the handler of a collection of open strings, or refuse any other."""
    refuse_true_values(collection)
    return typed_handler(collection, HashedStringsHandler, LISTED)


def found_places(
    collection: Collection, counters: Counts, candidates: Candidates, alpha: float, covers: int = 0
) -> Counts:
    """Return the indices of the candidates that were found, the most frequent first.

    Noise alone finds each with probability `alpha` (`estimation.find_budget`). So many
    reports are a shuffler's covers.
    """
    read = ReadBuckets.from_counters(open_handler(collection), counters, covers)
    return read.found(candidates, alpha)


def discovered(
    collection: Collection,
    counters: Counts,
    dictionary: Sequence[str],
    expected: float,
    covers: int = 0,
) -> Candidates:
    """Return the strings found without candidates; a dictionary tells which are likely.

    At most `expected` of them are expected by chance.
    """
    domain = open_domain(collection)
    read = ReadBuckets.from_counters(open_handler(collection), counters, covers)

    def scores(part: int, texts: Sequence[str]) -> Floats:
        length = domain.prefixes[part]
        digests = b"".join(domain.digest(text, length)[:8] for text in texts)
        buckets = np.frombuffer(digests, ">u8") >> np.uint64(64 - domain.bucket_bits)
        scores: Floats = read.scores[part, buckets.astype(np.int64)]
        return scores

    strings = discover(domain.prefixes, scores, LetterModel(dictionary), expected)
    named = Candidates.from_texts(domain, strings)
    order = read.falling([named.places])
    texts = tuple(named.texts[place] for place in order.tolist())
    return Candidates(texts, named.hashes[order], named.place_bits)


@dataclass(frozen=True, slots=True, eq=False)
class ReadBuckets:
    """The supports of all buckets of each part, and their scores."""

    handler: HashedStringsHandler
    sizes: Counts
    supports: BucketCounts
    scores: Floats
    covers: int = 0

    @classmethod
    def from_counters(
        cls, handler: HashedStringsHandler, counters: Counts, covers: int = 0
    ) -> ReadBuckets:
        """Decode the counters of each part."""
        sizes, supports = handler.parts(counters).sum(axis=1), handler.bucket_supports(counters)
        received = handler.received(int(sizes.sum()) - covers, covers)
        scores = part_scores(supports, sizes, received)
        return cls(handler, sizes, supports, scores, covers)

    def found(self, candidates: Candidates, alpha: float) -> Counts:
        """Return the indices of the candidates that are found, a block of them at a time."""
        every, buckets = len(candidates.hashes), self.handler.buckets
        blocks = (slice(begin, begin + BLOCK) for begin in range(0, every + 1, BLOCK))
        near = np.concatenate([
            block.start + possible(self.scores, buckets(candidates.places_at(block)), alpha)
            for block in blocks
        ])  # fmt: skip
        pairs = buckets(candidates.places_at(near))
        chosen = find(self.scores, pairs, alpha, every)
        return near[chosen][self.falling([row[chosen] for row in pairs])]

    def falling(self, buckets: Sequence[Counts]) -> Counts:
        """Return the order of strings by their shares, by their buckets in the last parts."""
        rows = zip(self.supports[-len(buckets) :], buckets, strict=True)
        counts = [row[at].astype(np.int64) for row, at in rows]
        shares = self.handler.evidence_of(self.sizes, counts, self.covers).points
        return np.argsort(-shares, kind="stable")


def open_domain(collection: Collection) -> OpenStrings:
    """Return the domain of a collection of open strings, or refuse any other."""
    if not isinstance(collection.domain, OpenStrings):
        raise TypeError(f"{collection.name}: {LISTED}")
    return collection.domain
