"""Candidates in a central release of open strings: naming them is free, whoever tries how many.

A release holds buckets, a string is one in each half. A candidate that nobody has may share both of
its buckets with released ones: the expected number of these is stated. The two halves of a string
differ by chance alone, so a candidate whose halves differ by more shares a bucket with another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation.confidence_intervals import Counts
from veilcount_analysis.estimation.open_strings import APART
from veilcount_analysis.kinds.kind import NAMED
from veilcount_analysis.kinds.strings import candidates_of
from veilcount_analysis.mechanisms.candidate_search import Candidates, open_domain
from veilcount_analysis.releases import Release
from veilcount_analysis.releases.noise import noise_distribution
from veilcount_analysis.releases.query import count_interval
from veilcount_analysis.releases.query_types.strings_query import StringsQuery
from veilcount_shared import Collection

from .api_types import Count


class NamedString(Struct):
    """A candidate in a release: how many answers are it, and the interval of its noise."""

    text: str
    figure: int
    low: int
    high: int


class NamedStrings(Struct):
    """The candidates that are in a release, the most frequent first."""

    found: list[NamedString]
    candidates: Count
    unnamed: Count  # buckets of the release that are of no candidate
    by_chance: float  # the expected number of candidates found though nobody has them, at most


def release_candidates(
    collection: Collection, query: object, words: Sequence[str]
) -> Candidates | None:
    """Return the candidates of a release's request, or refuse them; None: it has none."""
    if not words:
        return None
    if query != StringsQuery.kind or not collection.true_cells.hash_parts:
        fix = 'only of a "strings" release of a collection with values = "open": remove it'
        raise QueryError("candidates", list(words[:NAMED]), fix)
    return candidates_of(open_domain(collection), words)


def name_strings(collection: Collection, release: Release, candidates: Candidates) -> NamedStrings:
    """Return the candidates of which both buckets were released, and their counts."""
    noise = release.noise[0]
    distribution = noise_distribution(noise.distribution, noise.scale)
    buckets, released = _buckets(collection, candidates), _released(collection, release)
    counts = [half[column] for half, column in zip(released, buckets, strict=True)]
    total, apart = counts[0] + counts[1], np.abs(counts[0] - counts[1])
    spread = np.sqrt(np.maximum(total, 0) + 2 * distribution.deviation**2)
    is_found = (np.minimum(*counts) > 0) & (apart <= APART * spread)
    chosen = np.flatnonzero(is_found)
    chosen = chosen[np.argsort(-total[chosen], kind="stable")]
    half_width = distribution.difference_half_width(1 - release.level)  # of a sum as well
    return NamedStrings(
        [
            NamedString(candidates.texts[value], *map(int, count_interval(count, half_width)))
            for value, count in zip(chosen.tolist(), total[chosen].tolist(), strict=True)
        ],
        len(candidates.texts),
        sum(_left(half, column[chosen]) for half, column in zip(released, buckets, strict=True)),
        _by_chance(released, len(candidates.texts)),
    )


def _buckets(collection: Collection, candidates: Candidates) -> tuple[Counts, Counts]:
    bits = open_domain(collection).bucket_bits
    return candidates.places >> bits, candidates.places & (1 << bits) - 1


def _released(collection: Collection, release: Release) -> Counts:
    """Return the released count of each bucket of each half; 0: it is below the threshold."""
    counts = np.zeros(collection.inputs, np.int64)
    places, figures = release.noised[0][::2], release.noised[0][1::2]
    counts[list(places)] = figures
    return counts.reshape(collection.true_cells.hash_parts, -1)


def _left(half: Counts, named: Counts) -> int:
    """Return how many released buckets have no name."""
    return int(np.count_nonzero(half)) - len(np.unique(named))


def _by_chance(released: Counts, candidates: int) -> float:
    one, two = np.count_nonzero(released, axis=1) / released.shape[1]
    return float(candidates * one * two)
