"""What is not among the answers: reports that were refused, and losses on devices, in words."""

from __future__ import annotations

from collections import Counter

from veilcount_shared.verdict import Verdict

from ...queries.estimate_schema import SeriesEstimate
from ..intake_summary import WHY

MEANS = {
    Verdict.DUPLICATE: "the same answer again; it counts once, and nothing is lost",
    Verdict.OVER_BUDGET: "a device refuses these itself: an altered client, or somebody's games",
    Verdict.STALE: "devices were offline for longer than `late` allows",
    Verdict.CLOSED: "an operator has closed the collection",
    Verdict.MALFORMED: "a client that is not ours, or was altered",
    Verdict.FULL: "a limit is reached, on new pseudonyms or on memory of counters; they try again",
    Verdict.UNKNOWN_COLLECTION: "apps ship a definition that was never pushed",
    Verdict.EARLY: "clocks of devices are ahead; they try again",
}


def refused(series: SeriesEstimate) -> list[tuple[str, str, str]]:
    """Return reports that were not counted: how many, why, and what it means; all segments."""
    found: Counter[str] = Counter(series.unplaced)
    for time_range in series.time_ranges:
        found.update(time_range.verdicts)
    return [
        (f"{number:,}", WHY[Verdict(word)], MEANS[Verdict(word)])
        for word, number in found.most_common()
    ]


def lost(series: SeriesEstimate) -> list[str]:
    """Return what devices say they lost."""
    return [each.text for each in series.losses]
