"""What a store in memory holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from ..interface import Cell
from ..series_reports import Counters, ServiceCounter


@dataclass(slots=True)
class SeriesContent:
    """What is stored of one series."""

    dropped: int = 0  # the first epoch that was not
    final: int = 0  # the first epoch that can be restored
    drops: dict[int, datetime] = field(default_factory=dict)  # epochs, and when they were marked
    rows: dict[int, dict[bytes, bytes]] = field(default_factory=lambda: defaultdict(dict))
    new_rows: Counter[int] = field(default_factory=Counter)
    charged: Counter[tuple[int, str]] = field(default_factory=Counter)  # of an hour's quotas
    spent_rows: dict[int, Counters] = field(default_factory=dict)
    reports: Counter[Cell] = field(default_factory=Counter)
    tallies: dict[Cell, Counters] = field(default_factory=dict)
    batches: dict[str, bytes] = field(default_factory=dict)
    tokens: dict[int, set[bytes]] = field(default_factory=lambda: defaultdict(set))


@dataclass(slots=True)
class StoreContent:
    """What is stored."""

    series: dict[str, SeriesContent] = field(default_factory=lambda: defaultdict(SeriesContent))
    service_counters: Counter[ServiceCounter] = field(default_factory=Counter)
    records: dict[str, dict[str, bytes]] = field(default_factory=lambda: defaultdict(dict))
    generation: int = 0
    generations: dict[str, int] = field(default_factory=dict)
    read_only: bool = False
    incarnation: int = 0
