"""Candidates among open strings: their places, and which of them were reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcount_shared import Collection
from veilcount_shared.domain import OpenStrings, normalized

from ..estimation.confidence_intervals import Counts
from ..estimation.open_strings import HalfSupports, find
from .handler import share_handler
from .hashed_strings import HashedStringsHandler

MAX_CANDIDATES = 1_000_000  # at a time
BLOCK = 1 << 14  # candidates hashed together


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Distinct strings as a device hashes them; a place is the first bits of a hash."""

    texts: tuple[str, ...]
    hashes: NDArray[np.uint64]
    place_bits: int
    unreadable: tuple[str, ...] = ()

    @classmethod
    def from_texts(cls, domain: OpenStrings, texts: Sequence[str]) -> Candidates:
        """Return candidates; `unreadable` are those that no device can report."""
        known: dict[str, None] = {}
        unreadable = []
        for each in texts:
            text = normalized(each)
            if text is None:
                unreadable.append(each)
            else:
                known[text] = None
        found = tuple(known)
        hashes = np.empty(len(found), np.uint64)
        for begin in range(0, len(found), BLOCK):
            part = found[begin : begin + BLOCK]
            digests = b"".join(map(domain.digest, part))
            read = np.frombuffer(digests, ">u8").reshape(len(part), -1)
            hashes[begin : begin + len(part)] = read[:, 0]
        return cls(found, hashes, 2 * domain.bucket_bits, tuple(unreadable))

    @property
    def places(self) -> Counts:
        """The place of each."""
        return (self.hashes >> np.uint64(64 - self.place_bits)).astype(np.int64)


def open_handler(collection: Collection) -> HashedStringsHandler:
    """Return the handler of a collection of open strings, or refuse any other."""
    handler = share_handler(collection)
    if not isinstance(handler, HashedStringsHandler):
        raise TypeError(f"{collection.name}: values are listed, so there are no candidates")
    return handler


def found_places(
    collection: Collection, counters: Counts, candidates: Candidates, alpha: float
) -> Counts:
    """Return the indices of the candidates that were found, the most frequent first.

    Noise alone finds each with probability `alpha` (`estimation.open_strings.chance`).
    """
    handler = open_handler(collection)
    supports, mechanism = handler.bucket_supports(counters), handler.mechanism
    sizes = handler.halves(counters).sum(axis=1)
    scores = HalfSupports(sizes, supports, handler.response, mechanism.k).scores()
    buckets = handler.buckets(candidates.places)
    chosen = find(scores, buckets, alpha)
    held = np.stack([row[places[chosen]] for row, places in zip(supports, buckets, strict=True)])
    shares = HalfSupports(sizes, held, handler.response, mechanism.k).points
    return chosen[np.argsort(-shares, kind="stable")]
