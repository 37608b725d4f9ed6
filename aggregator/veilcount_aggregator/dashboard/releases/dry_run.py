"""A dry run in words: what a release would cost, how far it would be off, and what is in its way.

From the definition and the journal alone: no answer is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...api.release_views import dry_run_response
from ...central.budget_ledger import StoredRelease, load_releases
from ...central.curator import DryRun
from ...central.privacy_filter import require_budget, require_closed_periods
from ...errors import ReleaseRefused
from ...queries import Snapshot
from ...series.series import Series
from . import release_text


@dataclass(frozen=True, slots=True)
class Foresaid:
    """A dry run."""

    asked: str
    days: str
    off: str
    noise: str
    epsilon: str
    person_epsilon: str
    spent: str
    remaining: str
    after: str
    obstacle: str
    earlier: int  # the place in the journal of the same question; 0: it is new


def foresay(snapshot: Snapshot, series: Series, foreseen: DryRun) -> Foresaid:
    """Return a dry run in words."""
    kept = load_releases(snapshot.store, series.fingerprint)
    told = dry_run_response(series, foreseen)
    least = min(foreseen.accounts, key=lambda account: account.remaining)
    after = max(Fraction(0), least.remaining - foreseen.question.epsilon)
    return Foresaid(
        release_text.asked(told.query),
        release_text.days(told.first, told.last),
        release_text.off(told.noise[0]),
        release_text.noise(told.noise, told.level),
        release_text.epsilon(told.epsilon),
        release_text.epsilon(told.person_epsilon),
        release_text.epsilon(told.spent),
        release_text.epsilon(told.remaining),
        release_text.epsilon(after),
        _obstacle(snapshot, series, foreseen, kept),
        place_of(kept, foreseen.question.canonical),
    )


def _obstacle(
    snapshot: Snapshot, series: Series, foreseen: DryRun, kept: Sequence[StoredRelease]
) -> str:
    """Return why a release would be refused, as things stand."""
    charges = foreseen.question.charges
    try:
        require_closed_periods(series, charges, snapshot.today)
        require_budget(series, charges, kept)
    except ReleaseRefused as refused:
        return release_text.refused(series.collection, refused)
    return ""


def place_of(kept: Sequence[StoredRelease], canonical: str) -> int:
    """Return the place of a question in the journal, from 1; 0: it was never asked."""
    same = [place for place, each in enumerate(kept, 1) if each.canonical == canonical]
    return same[0] if same else 0
