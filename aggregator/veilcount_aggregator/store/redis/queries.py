"""Figures of a store: each shard has a part of each, which are added up here.

The pages of large tallies are listed by an index, of two bits for each page, and read in batches.
What a page is, a hash or a string, is looked at in the call that reads it, since a hash becomes a
string when it has enough entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from veilcount_analysis.series.hash_counts import merge_hash_counts

from ..interface import Cell
from ..series_reports import Counters, Numbers, ServiceCounter
from ..tally_size import COUNTER_BYTES, HASH_PAGE, PAGE, PAGES_A_BYTE, SPARSE
from ..transfer_format import add_padded, join_key
from .connections import pairs
from .identity import StoreIdentity
from .lua_library import call, pack
from .row_permutation import RowPermutation
from .shard_client import Command, ShardClient

#: pages that one call reads: a MiB, and less than a millisecond of Redis's time
A_CALL = 64
#: calls whose answers are held together: some 16 MiB
CALLS = 16
#: the index of the pages of hashes
HASHES = "hashes"
#: a page of one string
WHOLE = COUNTER_BYTES * PAGE

#: BITFIELD keeps numbers in network order, and `pages` gives entries likewise
BIG_ENDIAN = np.dtype(">i8")


class PageBody(NamedTuple):
    """A page as it is kept: all its counters, or the places and counts of those that are not 0."""

    number: int
    held: bytes | list[int]


def split(counters: Counters) -> list[PageBody]:
    """Return the pages of counters, each in the form that it has in a store."""
    padded = np.zeros(-(-len(counters) // PAGE) * PAGE, np.int64)
    padded[: len(counters)] = counters
    by_page = padded.reshape(-1, PAGE)
    return [_body(int(number), by_page[number]) for number in np.flatnonzero(by_page.any(axis=1))]


def split_hashes(counters: Counters, permutation: RowPermutation) -> list[PageBody]:
    """Return the pages of a tally of hashes."""
    kept, counts = permutation.apply_hashes(counters[0]), counters[1]
    order = np.argsort(kept)
    kept, counts = kept[order], counts[order]
    numbers, starts = np.unique(kept // HASH_PAGE, return_index=True)
    entries = np.split(np.stack([kept % HASH_PAGE, counts], axis=1), starts[1:])
    return [
        PageBody(number, page.ravel().tolist())
        for number, page in zip(numbers.tolist(), entries, strict=False)
    ]


def _body(number: int, page: Counters) -> PageBody:
    places = np.flatnonzero(page)
    if len(places) > SPARSE:
        return PageBody(number, page.astype(BIG_ENDIAN).tobytes())
    entries = np.stack([places, page[places]], axis=1)
    return PageBody(number, entries.ravel().tolist())


def _numbers(index: bytes, pages_a_byte: int) -> Numbers:
    """Return the numbers of the pages that an index has, the first in its highest bits."""
    bits = np.unpackbits(np.frombuffer(index, np.uint8)).reshape(-1, 8 // pages_a_byte)
    return np.flatnonzero(bits.any(axis=1))


def _calls(
    fingerprint: str, found: Sequence[tuple[bytes, str, Numbers]]
) -> Iterator[tuple[Command, Numbers]]:
    for base, cell, numbers in found:
        for first in range(0, len(numbers), A_CALL):
            some = numbers[first : first + A_CALL]
            words = call("read_pages", base, fingerprint, cell, pack(some.tolist()))
            yield Command(base, words), some


def _add(total: Counters, numbers: Numbers, pages: Sequence[bytes]) -> None:
    """Add pages to a total of whole pages; each number stands here once."""
    whole = [at for at, page in enumerate(pages) if len(page) == WHOLE]
    if whole:
        whole_pages = np.frombuffer(b"".join(pages[at] for at in whole), BIG_ENDIAN)
        total[: len(total) // PAGE * PAGE].reshape(-1, PAGE)[numbers[whole]] += whole_pages.reshape(
            -1, PAGE
        )
    sparse = [at for at, page in enumerate(pages) if len(page) != WHOLE]
    if sparse:
        places, counts = _entries(numbers[sparse], [pages[at] for at in sparse], PAGE)
        total[places] += counts


def _entries(numbers: Numbers, pages: Sequence[bytes], width: int) -> Counters:
    """Return the places and the counts of packed pages of so many counters."""
    offsets, counts = np.frombuffer(b"".join(pages), BIG_ENDIAN).astype(np.int64).reshape(-1, 2).T
    sizes = [len(page) // (2 * COUNTER_BYTES) for page in pages]
    return np.stack([np.repeat(numbers * width, sizes) + offsets, counts])


#: numbers that are read at once: some 64 MB of answers
AT_ONCE = 8_000_000


def figure_key(base: bytes, *words: str) -> bytes:
    """Return the key of a figure in the shard of a base."""
    return b":".join([base, *map(str.encode, words)])


class ShardReader:
    """The figures of one store."""

    def __init__(self, servers: ShardClient, identity: StoreIdentity) -> None:
        self._servers = servers
        self._identity = identity

    def report_counts(self, fingerprint: str) -> dict[Cell, int]:
        """Return how many reports each tally holds."""
        summed = self._summed("reports", fingerprint)
        return {cell_of(cell): reports for cell, reports in summed.items()}

    def counters(self, fingerprint: str, cells: Sequence[Cell], size: int) -> Counters:
        """Return the sum of these cells' counters, of which there are so many, or more."""
        total = np.zeros(size, np.int64)
        names = [join_key(*cell) for cell in cells]
        for _, page_bytes in self._strings("tally", fingerprint, names, min(size or PAGE, PAGE)):
            total = add_padded(total, page_bytes)
        if size and size <= PAGE:
            return total
        return self._add_pages(fingerprint, names, total)[: size or None]

    def hash_counts(self, fingerprint: str, cells: Sequence[Cell]) -> Counters:
        """Return the hashes in these cells, and their counts."""
        stored_pages = list(self._found(HASHES, fingerprint, [join_key(*cell) for cell in cells]))
        entries = []
        for numbers, pages in self._read_pages(fingerprint, stored_pages):
            kept, counts = _entries(numbers, pages, HASH_PAGE)
            entries.append(np.stack([self._identity.permutation.invert_hashes(kept), counts]))
        return merge_hash_counts(entries)

    def spend_histograms(self, fingerprint: str, most: int) -> dict[int, Counters]:
        """Return per epoch how many rows have spent 1, 2, .. so many slots, or more."""
        histograms: dict[int, Counters] = {}
        epochs = map(str, self.epochs(fingerprint))
        for epoch, epoch_bytes in self._strings("spent", fingerprint, list(epochs), most):
            total = histograms.get(int(epoch), np.zeros(most, np.int64))
            histograms[int(epoch)] = add_padded(total, epoch_bytes)
        return histograms

    def epochs(self, fingerprint: str) -> list[int]:
        """Return the epochs that have rows, or had."""
        fields = {
            field for answer in self._each("HKEYS", "epochs", fingerprint) for field in answer
        }
        return sorted(map(int, fields - {b"dropped"}))

    def dropped_epochs_of_shard(self, base: bytes, fingerprint: str) -> list[int]:
        """Return the dropped epochs that have rows in one shard."""
        words = ("HGETALL", figure_key(base, "epochs", fingerprint))
        answer = self._servers.execute_one(Command(base, words))
        states = pairs(answer)
        dropped = int(states.pop(b"dropped", 0))
        return sorted(
            int(epoch) for epoch, state in states.items() if state and int(epoch) < dropped
        )

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
        counted = ((key.split("/", 3), times) for key, times in self._summed("counts").items())
        return {
            ServiceCounter(what, fingerprint, int(period), word): times
            for (what, fingerprint, period, word), times in counted
        }

    def series(self) -> list[str]:
        """Return the fingerprints of which there is anything."""
        fingerprints = {
            fingerprint for answer in self._each("SMEMBERS", "series") for fingerprint in answer
        }
        return sorted(fingerprint.decode() for fingerprint in fingerprints)

    def _each(self, command: str, *words: str) -> list[list[bytes]]:
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
            (name, Command(base, ("GET", figure_key(base, kind, fingerprint, name))))
            for name in names
            for base in self._identity.bases
        ]
        step = max(1, AT_ONCE // max(1, size))
        for first in range(0, len(commands), step):
            some = commands[first : first + step]
            answers = self._servers.execute_all([command for _, command in some])
            for (page, _), answer in zip(some, answers, strict=True):
                if answer:
                    yield page, np.frombuffer(answer, BIG_ENDIAN).astype(np.int64)

    def _add_pages(self, fingerprint: str, cells: Sequence[str], total: Counters) -> Counters:
        """Return a total with the pages of these cells added; it grows as far as they reach."""
        stored_pages = list(self._found("pages", fingerprint, cells))
        reach = max((int(numbers[-1]) + 1 for _, _, numbers in stored_pages), default=0)
        grown = np.zeros(max(len(total), reach * PAGE), np.int64)
        grown[: len(total)] = total
        for numbers, pages in self._read_pages(fingerprint, stored_pages):
            _add(grown, numbers, pages)
        return grown

    def _read_pages(
        self, fingerprint: str, stored_pages: Sequence[tuple[bytes, str, Numbers]]
    ) -> Iterator[tuple[Numbers, Sequence[bytes]]]:
        calls = list(_calls(fingerprint, stored_pages))
        for first in range(0, len(calls), CALLS):
            some = calls[first : first + CALLS]
            answers = self._servers.execute_all([command for command, _ in some])
            for (_, numbers), pages in zip(some, answers, strict=True):
                yield numbers, pages

    def _found(
        self, index: str, fingerprint: str, cells: Sequence[str]
    ) -> Iterator[tuple[bytes, str, Numbers]]:
        """Return the numbers of the pages of each cell in each shard, where it has any."""
        pages_a_byte = 8 if index == HASHES else PAGES_A_BYTE
        requests = [
            (base, cell, Command(base, ("GET", figure_key(base, index, fingerprint, cell))))
            for cell in cells
            for base in self._identity.bases
        ]
        answers = self._servers.execute_all([command for _, _, command in requests])
        for (base, cell, _), states in zip(requests, answers, strict=True):
            if states:
                yield base, cell, _numbers(states, pages_a_byte)


def cell_of(text: str) -> Cell:
    """Return the cell of a name."""
    period, segment = text.split("/")
    return Cell(int(period), int(segment))
