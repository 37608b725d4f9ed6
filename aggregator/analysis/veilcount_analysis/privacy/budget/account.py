"""One collection's budget: promised, spent, and what it means to someone who tries to guess.

Counted epsilon is a lower bound on what was received: an answer that arrived and was refused, or
was lost on the server's side of the wire, is in no bitmap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.collection import Linkage

from .composition import DELTA, ComposedEpsilon, Guess, compose_campaign, guessing_curve
from .privacy_levels import PrivacyLevels, answers, figures
from .windows import WindowEpsilon, window_epsilons

FLOOR = 20  # pseudonyms in a bar, at least: a smaller one points at people


@dataclass(frozen=True, slots=True)
class HistogramBar:
    """So many pseudonyms have spent from `least` to `most` slots: at most `epsilon` each."""

    least: int
    most: int
    epsilon: Fraction
    pseudonyms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendHistogram:
    """The counted spend of one series; empty where too few pseudonyms are there to be shown.

    `worst` is the figure of whoever has spent most: one pseudonym may be all there is behind it.
    """

    pseudonyms: int
    floor: int
    bars: tuple[HistogramBar, ...]
    mean: Fraction | None
    worst: Fraction | None
    cap: Fraction


def count_spending(
    collection: Collection, histogram: Sequence[int], floor: int = FLOOR
) -> SpendHistogram:
    """Return the spend of histogram[j] pseudonyms with j slots spent each."""
    if collection.linkage is not Linkage.COLLECTION:
        raise ValueError(
            f"{collection.name}: linkage is {collection.linkage}, so no two periods of a person are"
            " joined: state the cap instead"
        )
    if min(histogram, default=0) < 0 or sum(map(bool, histogram[collection.slots + 1 :])):
        raise ValueError(f"give the pseudonyms for 0 to {collection.slots} spent slots")
    price, pseudonyms = collection.unit_epsilon, sum(histogram)
    shown = pseudonyms >= max(floor, 1)
    slots = sum(j * count for j, count in enumerate(histogram))
    worst = max((j for j, count in enumerate(histogram) if count), default=0)
    return SpendHistogram(
        pseudonyms=pseudonyms,
        floor=floor,
        bars=tuple(_bars(histogram, price, floor)) if shown else (),
        mean=price * slots / pseudonyms if shown else None,
        worst=price * worst if shown else None,
        cap=collection.epsilon_user,
    )


def _bars(histogram: Sequence[int], price: Fraction, floor: int) -> Iterator[HistogramBar]:
    """Yield neighbours joined until each bar is large enough; what is left joins the last."""
    counted = [(j, count) for j, count in enumerate(histogram) if count]
    while counted:
        size = _enough(counted, floor)
        rest = counted[size:]
        if sum(count for _, count in rest) < floor:
            size, rest = len(counted), []
        bar, counted = counted[:size], rest
        least, most = bar[0][0], bar[-1][0]
        yield HistogramBar(least, most, price * most, sum(count for _, count in bar))


def _enough(counted: Sequence[tuple[int, int]], floor: int) -> int:
    """Return how many of the first cells hold the floor together."""
    covered = 0
    for size, (_, count) in enumerate(counted, 1):
        covered += count
        if covered >= floor:
            return size
    return len(counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionBudget:
    """What stands on the budget page of one collection."""

    collection: str
    fingerprint: str
    figures: PrivacyLevels
    spent: SpendHistogram | None  # None: not joinable by the server, or not requested
    composition: ComposedEpsilon
    guessing_curve: tuple[Guess, ...]  # empty for a trusted curator, who need not guess
    windows: tuple[WindowEpsilon, ...]


def budget(
    collection: Collection,
    histogram: Sequence[int] | None = None,
    *,
    delta: Fraction = DELTA,
    floor: int = FLOOR,
) -> CollectionBudget:
    """Return the account; with `histogram[j]` pseudonyms of j spent slots, what was counted too."""
    return CollectionBudget(
        collection=collection.name,
        fingerprint=collection.fingerprint,
        figures=figures(collection),
        spent=None if histogram is None else count_spending(collection, histogram, floor),
        composition=compose_campaign(collection, delta),
        guessing_curve=()
        if collection.trust.reveals
        else guessing_curve(collection.randomizer, answers(collection)),
        windows=window_epsilons(collection),
    )
