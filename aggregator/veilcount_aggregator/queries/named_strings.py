"""Candidates in a central release of open strings: naming them is free, whoever tries how many.

A release holds hashes of 40 bits. A candidate that nobody has may have the hash of a string that
many have: the expected number of these is stated.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from veilcount_analysis.errors import QueryError
from veilcount_analysis.kinds.kind import NAMED
from veilcount_analysis.kinds.strings import candidates_of
from veilcount_analysis.mechanisms.candidate_search import Candidates, open_domain
from veilcount_analysis.releases import Release
from veilcount_analysis.releases.query_types.strings_query import StringsQuery
from veilcount_shared import Collection

from ..json_results import Count


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
    unnamed: Count  # hashes of the release that are of no candidate
    by_chance: float  # the expected number of candidates found though nobody has them, at most


def release_candidates(
    collection: Collection, query: object, words: Sequence[str]
) -> Candidates | None:
    """Return the candidates of a release's request, or refuse them; None: it has none."""
    if not words:
        return None
    if query != StringsQuery.kind or not collection.true_cells.is_hashed:
        fix = 'only of a "strings" release of a collection with values = "open": remove it'
        raise QueryError("candidates", list(words[:NAMED]), fix)
    return candidates_of(open_domain(collection), words)


def name_strings(collection: Collection, release: Release, candidates: Candidates) -> NamedStrings:
    """Return the candidates whose hashes were released, and their counts."""
    columns = zip(release.values, release.low, release.high, strict=True)
    counts = dict(zip(release.labels, columns, strict=True))
    pairs = zip(candidates.texts, candidates.places.tolist(), strict=True)
    matches = [(text, place) for text, place in pairs if place in counts]
    named = [NamedString(text, *map(int, counts[place])) for text, place in matches]
    return NamedStrings(
        sorted(named, key=lambda string: -string.figure),
        len(candidates.texts),
        len(counts) - len({place for _, place in matches}),
        len(candidates.texts) * len(counts) / collection.inputs,
    )
