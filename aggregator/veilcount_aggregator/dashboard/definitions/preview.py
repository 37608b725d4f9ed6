"""What a definitions file would change: new collections, changed definitions, remarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from veilcount_shared import Collection, lint

from ...analysis.counter_memory import memory_remarks
from ...catalog.definitions import Catalog, DefinitionSource
from ...series.series import Series
from ...text.privacy_guarantees import PrivacyFigures, epsilons
from ..collection.definition_history import changes


class Change(StrEnum):
    """What pushing a definition changes."""

    NEW = "new"
    SERIES = "new definition"
    TEXTS = "texts only"
    NONE = "known"


EFFECTS = {
    Change.NEW: "A new collection.",
    Change.SERIES: "A new series begins: its results are shown next to those of earlier"
    " definitions, and are never added to them. Apps that ship an earlier definition are still"
    " counted under it.",
    Change.TEXTS: "Privacy and meaning stay: it is the same series with other texts.",
    Change.NONE: "Identical to the known definition.",
}


@dataclass(frozen=True, slots=True)
class PreviewItem:
    """One collection of the file."""

    collection: Collection
    change: Change
    epsilon: PrivacyFigures
    changes: Sequence[str]
    remarks: Sequence[str]

    @property
    def effect(self) -> str:
        """What pushing it does."""
        return EFFECTS[self.change]


def preview(source: DefinitionSource, known: Catalog, reports: int) -> list[PreviewItem]:
    """Return what each collection of a file would change, or refuse the file as a device would."""
    return [
        _item(collection, known.by_name.get(name, ()), reports)
        for name, collection in source.collections().items()
    ]


def _item(collection: Collection, series: Sequence[Series], reports: int) -> PreviewItem:
    before = _before(collection, series)
    remarks = (*lint(collection, reports), *memory_remarks(collection))
    return PreviewItem(
        collection,
        _change(collection, before),
        epsilons(collection),
        changes(before, collection) if before else [],
        [f"{remark.key}: {remark.text}" for remark in remarks],
    )


def _before(collection: Collection, series: Sequence[Series]) -> Collection | None:
    """Return the definition to compare with: of the same series, else the newest."""
    same = [each for each in series if each.fingerprint == collection.fingerprint]
    found = (*same, *series)
    return found[0].collection if found else None


def _change(collection: Collection, before: Collection | None) -> Change:
    if before is None:
        return Change.NEW
    if before.fingerprint != collection.fingerprint:
        return Change.SERIES
    return Change.NONE if before == collection else Change.TEXTS
