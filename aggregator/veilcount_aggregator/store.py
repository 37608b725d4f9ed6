"""Where tallies and spent slots live: the contract, and a store in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from veilcount_shared import Collection

from .counting import Counters, tally


@dataclass(frozen=True, slots=True)
class Spend:
    """One checked report: which slot it spends, and what is counted if the slot is free."""

    collection: Collection
    period: int
    segment: int
    epoch: int
    pseudonym: bytes
    slot: int
    message: int


class Store(Protocol):
    """What the intake needs of a store."""

    def spent(self, spend: Spend) -> bool:
        """Whether the slot was spent before."""

    def commit(self, spends: Iterable[Spend]) -> list[bool]:
        """Spend each slot and count its message, once; say which were counted."""


@dataclass
class MemoryStore:
    """A store that lasts as long as its process."""

    _slots: set[tuple[str, int, bytes, int]] = field(default_factory=set)
    _counters: dict[tuple[str, int, int], Counters] = field(default_factory=dict)

    def spent(self, spend: Spend) -> bool:
        """Whether the slot was spent before."""
        return _slot(spend) in self._slots

    def commit(self, spends: Iterable[Spend]) -> list[bool]:
        """Spend each slot and count its message, once; say which were counted."""
        counted = []
        groups: dict[tuple[Collection, int, int], list[int]] = defaultdict(list)
        for spend in spends:
            counted.append(_slot(spend) not in self._slots)
            if counted[-1]:
                self._slots.add(_slot(spend))
                groups[spend.collection, spend.period, spend.segment].append(spend.message)
        for (collection, period, segment), messages in groups.items():
            key = (collection.fingerprint, period, segment)
            self._counters[key] = self._counters.get(key, np.int64(0)) + tally(collection, messages)
        return counted

    def counters(self, collection: Collection) -> Counters:
        """Return the sum of a series' counters, over its periods and segments."""
        found = [
            counters
            for (fingerprint, _, _), counters in self._counters.items()
            if fingerprint == collection.fingerprint
        ]
        return sum(found, tally(collection, []))


def _slot(spend: Spend) -> tuple[str, int, bytes, int]:
    return spend.collection.fingerprint, spend.epoch, spend.pseudonym, spend.slot
