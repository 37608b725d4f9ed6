"""The audit of batches: small ones enumerated, covers recomputed, and planted faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from veilcount_analysis.audit.batch_bugs import BATCH_BUGS
from veilcount_analysis.audit.small_batches import (
    MOST_OUTCOMES,
    BatchCheck,
    TooManyOutcomesError,
    check_batches,
)
from veilcount_analysis.audit.support_classes import audit_classes
from veilcount_analysis.privacy.shuffled import least_covers
from veilcount_analysis.text.view_parts import Part, Table
from veilcount_shared import Collection, SystemRandomSource

BATCH_COLUMNS = ("batches of", "covers", "needed", "enumerated", "refuted", "closest to its bound")
PLANTED_COLUMNS = ("planted in a batch", "claimed delta", "exact", "detected", "fixed")
ENUMERATED = (
    "batches of up to 3 covers are enumerated over every outcome of device and shuffler: exact"
    " delta is at most the bound by which covers are counted, or the bound is refuted"
)
BY_CLASSES = (
    f"by classes: beyond {MOST_OUTCOMES:,} outcomes of one report, messages are counted by which of"
    " two values they support: exact by the sizes that the mechanism states, against which reports"
    " and covers are sampled"
)
_YES_NO = {True: "yes", False: "no"}


def audited_batches(collection: Collection, samples: int, alpha: float) -> dict[str, Any]:
    """Return the checks of a shuffled collection's small batches, and of its number of covers."""
    rules = collection.batch
    assert rules is not None, "shuffled"  # noqa: S101 - narrows the type
    assert rules.epsilon is not None, "shuffled"  # noqa: S101 - narrows the type
    assert rules.delta is not None, "shuffled"  # noqa: S101 - narrows the type
    needed = least_covers(collection.mechanism, rules.epsilon, rules.delta)
    facts: dict[str, Any] = {"name": collection.name, "covers": rules.covers, "needed": needed}
    counted_by, deviation = "outcomes", ""
    try:
        checks = check_batches(collection)
    except TooManyOutcomesError as error:
        audited = audit_classes(collection, SystemRandomSource(), samples, alpha)
        if audited is None:
            broken = rules.covers < needed
            return facts | {"counted_by": "", "checks": [], "broken": broken, "closest": str(error)}
        counted_by, checks, deviation = "classes", audited.checks, audited.deviation
    broken = rules.covers < needed or bool(deviation) or not all(check.holds for check in checks)
    closest = _sentence(max(checks, key=_closeness))
    return facts | {
        "counted_by": counted_by,
        "deviation": deviation,
        "checks": [asdict(check) for check in checks],
        "broken": broken,
        "closest": f"{deviation} have another distribution" if deviation else closest,
    }


def _closeness(check: BatchCheck) -> float:
    return check.exact / check.bound if check.bound else float(check.exact > 0)


def _sentence(check: BatchCheck) -> str:
    return (
        f"{check.devices} report{'s' * (check.devices > 1)}, {check.covers} covers, epsilon"
        f" {check.epsilon:g}: delta {check.exact:.9f}, bound {check.bound:.9f}"
    )


def refuted(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the problems of each collection that has any, by name."""
    return [
        f"batches of {row['name']} ({row['covers']:,} covers, {row['needed']:,} needed)"
        for row in rows
        if row["broken"]
    ]


def batch_parts(rows: Sequence[Mapping[str, Any]], alpha: float) -> Iterator[Part]:
    """Yield the table of batches, and what it says."""
    cells = [
        (
            row["name"],
            f"{row['covers']:,}",
            f"{row['needed']:,}",
            f"{len(row['checks'])}{' by classes' * (row['counted_by'] == 'classes')}",
            _YES_NO[row["broken"]],
            row["closest"],
        )
        for row in rows
    ]
    yield Table("", BATCH_COLUMNS, cells)
    yield ENUMERATED
    if any(row["counted_by"] == "classes" for row in rows):
        yield f"{BY_CLASSES} (alpha = {alpha:g})"


def planted_batch(name: str) -> dict[str, Any]:
    """Return what the enumeration finds of a planted fault, and of its repair."""
    bug = BATCH_BUGS[name]
    planted, mended = bug.check(repaired=False), bug.check(repaired=True)
    return {
        "bug": name,
        "claimed": planted.claimed,
        "measured": planted.exact,
        "caught": planted.broken,
        "repaired": {"measured": mended.exact, "broken": mended.broken},
    }


def planted_parts(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return the table of planted faults."""
    cells = [
        (
            row["bug"],
            f"{row['claimed']:.3f}",
            f"{row['measured']:.3f}",
            _YES_NO[row["caught"]],
            f"{row['repaired']['measured']:.3f}",
        )
        for row in rows
    ]
    return Table("", PLANTED_COLUMNS, cells)
