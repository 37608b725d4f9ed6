"""Figures of a store: each shard has a part of each, which are added up here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..interface import Cell
from ..memory_limit import PAGE
from ..series_reports import Counters
from ..service_counters import ServiceCounter
from ..transfer_format import add_padded, join_key
from .connections import pairs
from .identity import StoreIdentity
from .lua_library import call
from .shard_client import Command, ShardClient
from .tally_pages import BIG_ENDIAN, TallyPages

#: numbers that are read at once: some 64 MB of answers
AT_ONCE = 8_000_000

#: the field of all series together, among those of `memory`
TOTAL = "total"


def figure_key(base: bytes, *words: str) -> bytes:
    """Return the key of a figure in the shard of a base."""
    return b":".join([base, *map(str.encode, words)])


class ShardReader:
    """The figures of one store."""

    def __init__(self, servers: ShardClient, identity: StoreIdentity) -> None:
        self._servers = servers
        self._identity = identity
        self._pages = TallyPages(servers, identity)

    def report_counts(self, fingerprint: str) -> dict[Cell, int]:
        """Return how many reports each tally holds."""
        summed = self._summed("reports", fingerprint)
        return {cell_of(cell): reports for cell, reports in summed.items()}

    def counters(self, fingerprint: str, cells: Sequence[Cell], size: int) -> Counters:
        """Return the sum of these cells' counters, of which there are so many, or more."""
        total = np.zeros(size, np.int64)
        names = [join_key(*cell) for cell in cells]
        for _, held in self._strings("tally", fingerprint, names, min(size or PAGE, PAGE)):
            total = add_padded(total, held)
        if size and size <= PAGE:
            return total
        return self._pages.add(fingerprint, names, total)[: size or None]

    def spend_histograms(self, fingerprint: str, most: int) -> dict[int, Counters]:
        """Return per epoch how many rows have spent 1, 2, .. so many slots, or more."""
        found: dict[int, Counters] = {}
        epochs = map(str, self.epochs(fingerprint))
        for epoch, held in self._strings("spent", fingerprint, list(epochs), most):
            total = found.get(int(epoch), np.zeros(most, np.int64))
            found[int(epoch)] = add_padded(total, held)
        return found

    def epochs(self, fingerprint: str) -> list[int]:
        """Return the epochs that have rows, or had."""
        fields = {
            field for answer in self._each("HKEYS", "epochs", fingerprint) for field in answer
        }
        return sorted(map(int, fields - {b"dropped"}))

    def epochs_of_shard(self, base: bytes, fingerprint: str) -> list[int]:
        """Return the epochs that have rows in one shard."""
        words = ("HGETALL", figure_key(base, "epochs", fingerprint))
        answer = self._servers.execute_one(Command(base, words))
        states = pairs(answer).items()
        return sorted(int(epoch) for epoch, state in states if epoch != b"dropped" and state)

    def dropped(self, fingerprint: str) -> int:
        """Return the first epoch that was not dropped; a drop that was stopped midway counts."""
        commands = (
            (base, figure_key(base, "epochs", fingerprint)) for base in self._identity.bases
        )
        words = [Command(base, ("HGET", epochs, "dropped")) for base, epochs in commands]
        return max(int(answer or 0) for answer in self._servers.execute_all(words))

    def new_pseudonyms(self, fingerprint: str) -> dict[int, int]:
        """Return how many new rows each period has brought."""
        return {int(period): rows for period, rows in self._summed("new", fingerprint).items()}

    def service_counts(self) -> dict[ServiceCounter, int]:
        """Return all service counters."""
        return {_service_counter(words): times for words, times in self._summed("counts").items()}

    def memory(self) -> dict[str, int]:
        """Return the bytes that are accounted to each series."""
        return {series: held for series, held in self._summed("memory").items() if series != TOTAL}

    def measured(self, fingerprint: str) -> int:
        """Return the bytes of a series counted anew, tally by tally, by the same formula."""
        commands = [
            Command(base, call("measure_tally", base, fingerprint, cell))
            for base in self._identity.bases
            for cell in self._servers.execute_one(
                Command(base, ("HKEYS", figure_key(base, "reports", fingerprint)))
            )
        ]
        return sum(self._servers.execute_all(commands))

    def series(self) -> list[str]:
        """Return the fingerprints of which there is anything."""
        found = {each for answer in self._each("SMEMBERS", "series") for each in answer}
        return sorted(each.decode() for each in found)

    def _each(self, command: str, *words: str) -> list[list[bytes]]:
        """Return every shard's answer about one key."""
        commands = [
            Command(base, (command, figure_key(base, *words))) for base in self._identity.bases
        ]
        return self._servers.execute_all(commands)

    def _summed(self, *words: str) -> Mapping[str, int]:
        """Return the numbers of a hash, added up over all shards."""
        total: Counter[str] = Counter()
        for answer in self._each("HGETALL", *words):
            for field, number in pairs(answer).items():
                total[field.decode()] += int(number)
        return total

    def _strings(
        self, kind: str, fingerprint: str, names: Sequence[str], size: int
    ) -> Iterator[tuple[str, Counters]]:
        """Return the numbers of each name in each shard, some at a time, where there are any."""
        commands = [
            (each, Command(base, ("GET", figure_key(base, kind, fingerprint, each))))
            for each in names
            for base in self._identity.bases
        ]
        step = max(1, AT_ONCE // max(1, size))
        for first in range(0, len(commands), step):
            some = commands[first : first + step]
            answers = self._servers.execute_all([command for _, command in some])
            for (each, _), answer in zip(some, answers, strict=True):
                if answer:
                    yield each, np.frombuffer(answer, BIG_ENDIAN).astype(np.int64)


def cell_of(text: str) -> Cell:
    """Return the cell of a name."""
    period, segment = text.split("/")
    return Cell(int(period), int(segment))


def _service_counter(text: str) -> ServiceCounter:
    what, fingerprint, period, word = text.split("/", 3)
    return ServiceCounter(what, fingerprint, int(period), word)
