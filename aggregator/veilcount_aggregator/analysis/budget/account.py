"""One collection's budget: promised, spent, and what it means to someone who tries to guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.collection import Model

from .averaging_attack import Guess, guessing_curve
from .composition import DELTA, ComposedEpsilon, compose_campaign
from .privacy_levels import PrivacyLevels, answers, figures
from .spend_histogram import FLOOR, SpendHistogram, count_spending


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionBudget:
    """What stands on the budget page of one collection."""

    collection: str
    fingerprint: str
    figures: PrivacyLevels
    spent: SpendHistogram | None  # None: not joinable by the server, or not requested
    composition: ComposedEpsilon
    guessing_curve: tuple[Guess, ...]  # empty for a trusted curator, who need not guess


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
        if collection.model is Model.CENTRAL
        else guessing_curve(collection.randomizer, answers(collection)),
    )
