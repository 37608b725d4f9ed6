"""The search for the most revealing event.

It only decides how much is found, never whether the bound holds: that is taken from messages which
the search has not seen. Of those it may see, the first part proposes features and orders their
values by likelihood ratio, the second decides how many of those values make the event and which two
events to join. So a set that fits the noise of the first part does not win.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..estimation import clopper_pearson
from .events import (
    Codes,
    Conjunction,
    Event,
    FeatureInSet,
    MessageFeature,
    MessageLength,
    MessageTable,
    SymbolAtPlace,
    SymbolCount,
    SymbolGrid,
    WholeMessage,
)

KEPT = 32  # features of one family, and events of one order, that are followed up
CUTS = 256  # sizes that are tried for a set of values
SLACK = 0.01  # of epsilon: less than this is noise, and a shorter event is worth more
DENSE = 1 << 20  # up to this code a table of counts is quicker than sorting


@dataclass(frozen=True, slots=True)
class MessagePair:
    """Messages of the two inputs, the one that is to make the event likely first."""

    more: MessageTable
    less: MessageTable

    def part(self, begin: int, end: int) -> MessagePair:
        """Return the same part of both."""
        return MessagePair(self.more.part(begin, end), self.less.part(begin, end))

    def swapped(self) -> MessagePair:
        """Return the pair in the other order."""
        return MessagePair(self.less, self.more)

    def happened(self, event: Event) -> tuple[int, int]:
        """Return how often the event happened from either input."""
        more, less = event.happened(self.more), event.happened(self.less)
        return int(more.sum()), int(less.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """An event, and what it proves on the messages that chose it."""

    event: Event
    bound: float
    swapped: bool


def most_revealing(
    seen: MessagePair, grids: list[SymbolGrid], alpha: float, more: Iterable[MessageFeature] = ()
) -> Candidate:
    """Return the event with the highest lower bound on epsilon, in either order of the inputs.

    `more` are features to look at besides those that are read off the bytes.
    """
    middle = len(seen.more) // 2
    first, second = seen.part(0, middle), seen.part(middle, len(seen.more))
    features = [*more, *proposed(first, grids)]
    candidates: list[Candidate] = []
    for swapped in (False, True):
        ranking, cutting = (first.swapped(), second.swapped()) if swapped else (first, second)
        singles = [
            cut(feature, ranked(feature, ranking), cutting, alpha, swapped=swapped)
            for feature in features
        ]
        candidates += [*singles, joined(singles, cutting, alpha, swapped=swapped)]
    return shortest_of_best(candidates)


def shortest_of_best(found: list[Candidate]) -> Candidate:
    """Return the shortest of the candidates that prove about as much as the best."""
    enough = max(candidate.bound for candidate in found) - SLACK
    near = [candidate for candidate in found if candidate.bound >= enough]
    return min(near, key=lambda candidate: len(str(candidate.event)))


# -- features: where to look -----------------------------------------------------------------------


def proposed(pair: MessagePair, grids: list[SymbolGrid]) -> Iterator[MessageFeature]:
    """Yield the features worth a look: message, length, and the places and symbols that differ."""
    yield WholeMessage()
    yield MessageLength()
    for grid in grids:
        more, less = (side.symbols(grid).astype(np.int64) for side in (pair.more, pair.less))
        places = more.shape[1]
        offsets = np.arange(places, dtype=np.int64) << grid.width
        for place in most_different(more + offsets, less + offsets, grid.width):
            yield SymbolAtPlace(grid, place)
        if places > 1:
            for symbol in most_different(more, less):
                yield SymbolCount(grid, symbol)


def most_different(more: Codes, less: Codes, shift: int = 0) -> list[int]:
    """Return the codes (less their low bits) whose counts differ most.

    By chi-square, less its mean and in standard deviations, were there no difference.
    """
    values, hits, misses = tally(more.ravel(), less.ravel())
    distance = (hits - misses) ** 2 / (hits + misses) - 1
    groups, where = np.unique(values >> shift, return_inverse=True)
    score = np.bincount(where, distance) / np.sqrt(2 * np.bincount(where))
    return [int(group) for group in groups[np.argsort(-score, kind="stable")[:KEPT]]]


def tally(more: Codes, less: Codes) -> tuple[Codes, Codes, Codes]:
    """Return the values that occur, and how often in either."""
    low, high = min(more.min(), less.min()), max(more.max(), less.max())
    if low >= 0 and high < DENSE:
        hits, misses = (np.bincount(side, minlength=int(high) + 1) for side in (more, less))
        values = np.flatnonzero(hits + misses)
        return values, hits[values], misses[values]
    values, where = np.unique(np.concatenate([more, less]), return_inverse=True)
    hits = np.bincount(where[: len(more)], minlength=len(values))
    return values, hits, np.bincount(where[len(more) :], minlength=len(values))


# -- events: what to say of a feature --------------------------------------------------------------


def ranked(feature: MessageFeature, pair: MessagePair) -> Codes:
    """Return a feature's values, the most revealing first.

    By log likelihood ratio less one standard error, so that a value seen once does not lead.
    """
    values, hits, misses = tally(feature.read(pair.more), feature.read(pair.less))
    more, less = hits + 0.5, misses + 0.5
    score = np.log(more / less) - np.sqrt(1 / more + 1 / less)
    return values[np.argsort(-score, kind="stable")]


def cut(
    feature: MessageFeature, values: Codes, pair: MessagePair, alpha: float, *, swapped: bool
) -> Candidate:
    """Return the event that the feature is one of the first values, as few as prove enough."""
    more, less = (
        np.cumsum(np.bincount(_rank(feature.read(side), values), minlength=len(values) + 1))
        for side in (pair.more, pair.less)
    )
    sizes = np.unique(np.linspace(0, len(values) - 1, min(CUTS, len(values))).astype(np.int64))
    proven = clopper_pearson.epsilon(more[sizes], less[sizes], len(pair.more), alpha)
    best = int(np.argmax(proven >= proven.max() - SLACK))  # the first that is true
    return Candidate(FeatureInSet(feature, values[: sizes[best] + 1]), float(proven[best]), swapped)


def _rank(codes: Codes, values: Codes) -> Codes:
    """Return the index of each code in `values`, or len(values) if absent."""
    order = np.argsort(values)
    ascending = values[order]
    near = np.minimum(np.searchsorted(ascending, codes), len(values) - 1)
    return np.where(ascending[near] == codes, order[near], len(values))


def joined(
    singles: list[Candidate], pair: MessagePair, alpha: float, *, swapped: bool
) -> Candidate:
    """Return the two events that prove most together, as presence of x and absence of x' do."""
    best = sorted(singles, key=lambda candidate: -candidate.bound)[:KEPT]
    events = [candidate.event for candidate in best]
    more, less = _together(events, pair.more), _together(events, pair.less)
    proven = clopper_pearson.epsilon(more, less, len(pair.more), alpha)
    words = np.array([len(str(event)) for event in events])
    near = np.where(proven >= proven.max() - SLACK, words + words[:, None], np.inf)
    one, two = divmod(int(np.argmin(near)), len(events))
    return Candidate(Conjunction(events[one], events[two]), float(proven[one, two]), swapped)


def _together(events: list[Event], messages: MessageTable) -> Codes:
    """Return how often each two events happened at once, as one matrix product."""
    # float32 has fast products and counts exactly up to 2^24 messages
    flags = np.array([event.happened(messages) for event in events], np.float32)
    return np.asarray(flags @ flags.T, np.int64)
