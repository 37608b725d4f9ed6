"""One collection's account: promised, counted, and what it means to someone who tries to guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.mechanisms import Plain

from .averaging_attack import Guess, guesses
from .composition import DELTA, Together, together
from .privacy_levels import Figures, answers, figures
from .spend_histogram import FLOOR, Spent
from .spend_histogram import spent as counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What stands on the budget page of one collection."""

    collection: str
    fingerprint: str
    figures: Figures
    spent: Spent | None  # None: not joinable by the server, or not asked for
    together: Together
    guesses: tuple[Guess, ...]  # empty for a trusted curator, who need not guess


def budget(
    collection: Collection,
    histogram: Sequence[int] | None = None,
    *,
    delta: Fraction = DELTA,
    floor: int = FLOOR,
) -> Budget:
    """Return the account; with `histogram[j]` pseudonyms of j spent slots, what was counted too."""
    design = collection.design
    return Budget(
        collection=collection.name,
        fingerprint=collection.fingerprint,
        figures=figures(collection),
        spent=None if histogram is None else counted(collection, histogram, floor),
        together=together(collection, delta),
        guesses=() if isinstance(design, Plain) else guesses(design, answers(collection)),
    )
