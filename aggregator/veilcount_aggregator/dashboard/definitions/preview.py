"""What a definitions file would change, before it does: what is new, what is otherwise, remarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from veilcount_shared import Collection, lint
from veilcount_shared.collection import Model

from ...analysis.counter_memory import memory_remarks
from ...catalog.definitions import Catalog, DefinitionSource
from ...series.series import Series
from ...text.privacy_guarantees import PrivacyFigures, epsilons
from ..collection.definition_history import changes

DIGITS = 12  # of a fingerprint


class News(StrEnum):
    """What pushing a definition does."""

    NEW = "new"
    SERIES = "new definition"
    TEXTS = "texts only"
    KNOWN = "known"


SAYS = {
    News.NEW: "Nobody was asked this before.",
    News.SERIES: "A new series begins: its answers stand beside those of before, and are never"
    " summed with them. Apps that ship the definition of before are still counted under it.",
    News.TEXTS: "Privacy and meaning stay: it is the same series, told with other words.",
    News.KNOWN: "Word for word what is known already.",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One collection of the file."""

    name: str
    question: str
    news: News
    fingerprint: str
    trusted: bool  # true values, to a curator
    asked: str
    epsilon: PrivacyFigures
    changes: Sequence[str]
    remarks: Sequence[str]

    @property
    def says(self) -> str:
        """What pushing it does, in a sentence."""
        return SAYS[self.news]


def preview(source: DefinitionSource, known: Catalog, answers: int) -> list[Item]:
    """Return what each collection of a file would change, or refuse the file as a device would."""
    return [
        _item(collection, known.by_name.get(name, ()), answers)
        for name, collection in source.collections().items()
    ]


def _item(collection: Collection, series: Sequence[Series], answers: int) -> Item:
    before = _before(collection, series)
    return Item(
        collection.name,
        collection.question,
        _news(collection, before),
        collection.fingerprint[:DIGITS],
        collection.model is Model.CENTRAL,
        f"each {collection.unit}, from {collection.start} until {collection.until}",
        epsilons(collection),
        changes(before, collection) if before else [],
        [
            f"{remark.key}: {remark.text}"
            for remark in (*lint(collection, answers), *memory_remarks(collection))
        ],
    )


def _before(collection: Collection, series: Sequence[Series]) -> Collection | None:
    """Return the definition to compare with: of the same series, else the newest."""
    same = [each for each in series if each.fingerprint == collection.fingerprint]
    found = (*same, *series)
    return found[0].collection if found else None


def _news(collection: Collection, before: Collection | None) -> News:
    if before is None:
        return News.NEW
    if before.fingerprint != collection.fingerprint:
        return News.SERIES
    return News.KNOWN if before == collection else News.TEXTS
