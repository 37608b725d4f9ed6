"""Pages of large tallies: listed by an index, read in batches, added up.

The index of a tally has two bits for each page; what a page is, a hash or a string, is looked at in
the call that reads it, since a hash becomes a string when it has enough entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..memory_limit import COUNTER_BYTES, PAGE, PAGES_A_BYTE, SPARSE
from ..series_reports import Counters, Numbers
from .identity import StoreIdentity
from .lua_library import call, pack
from .shard_client import Command, ShardClient

#: pages that one call reads: a MiB, and less than a millisecond of Redis's time
A_CALL = 64
#: calls whose answers are held together: some 16 MiB
CALLS = 16
#: a page of one string
WHOLE = COUNTER_BYTES * PAGE

#: BITFIELD keeps numbers in network order, and `pages` gives entries likewise
BIG_ENDIAN = np.dtype(">i8")


class PageBody(NamedTuple):
    """A page as it is kept: all its counters, or the places and counts of those that are not 0."""

    number: int
    held: bytes | list[int]


class TallyPages:
    """The pages of one store."""

    def __init__(self, servers: ShardClient, identity: StoreIdentity) -> None:
        self._servers = servers
        self._identity = identity

    def add(self, fingerprint: str, cells: Sequence[str], total: Counters) -> Counters:
        """Return a total with the pages of these cells added; it grows as far as they reach."""
        found = list(self._found(fingerprint, cells))
        reach = max((int(numbers[-1]) + 1 for _, _, numbers in found), default=0)
        grown = np.zeros(max(len(total), reach * PAGE), np.int64)
        grown[: len(total)] = total
        calls = list(_calls(fingerprint, found))
        for first in range(0, len(calls), CALLS):
            some = calls[first : first + CALLS]
            answers = self._servers.execute_all([command for command, _ in some])
            for (_, numbers), pages in zip(some, answers, strict=True):
                _add(grown, numbers, pages)
        return grown

    def _found(
        self, fingerprint: str, cells: Sequence[str]
    ) -> Iterator[tuple[bytes, str, Numbers]]:
        """Return the numbers of the pages of each cell in each shard, where it has any."""
        requests = [
            (base, cell, Command(base, ("GET", index_key(base, fingerprint, cell))))
            for cell in cells
            for base in self._identity.bases
        ]
        answers = self._servers.execute_all([command for _, _, command in requests])
        for (base, cell, _), index in zip(requests, answers, strict=True):
            if index:
                yield base, cell, _numbers(index)


def index_key(base: bytes, fingerprint: str, cell: str) -> bytes:
    """Return the key of the index of a cell's pages."""
    return b"%b:pages:%b:%b" % (base, fingerprint.encode(), cell.encode())


def split(counters: Counters) -> list[PageBody]:
    """Return the pages of counters, each in the form that it has in a store."""
    padded = np.zeros(-(-len(counters) // PAGE) * PAGE, np.int64)
    padded[: len(counters)] = counters
    by_page = padded.reshape(-1, PAGE)
    return [_body(int(number), by_page[number]) for number in np.flatnonzero(by_page.any(axis=1))]


def _body(number: int, page: Counters) -> PageBody:
    places = np.flatnonzero(page)
    if len(places) > SPARSE:
        return PageBody(number, page.astype(BIG_ENDIAN).tobytes())
    entries = np.stack([places, page[places]], axis=1)
    return PageBody(number, entries.ravel().tolist())


def _numbers(index: bytes) -> Numbers:
    """Return the numbers of the pages that an index has, the first in its highest bits."""
    bits = np.unpackbits(np.frombuffer(index, np.uint8)).reshape(-1, PAGES_A_BYTE, 2)
    return np.flatnonzero(bits.any(axis=2).ravel())


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
        held = np.frombuffer(b"".join(pages[at] for at in whole), BIG_ENDIAN)
        total[: len(total) // PAGE * PAGE].reshape(-1, PAGE)[numbers[whole]] += held.reshape(
            -1, PAGE
        )
    sparse = [at for at, page in enumerate(pages) if len(page) != WHOLE]
    if sparse:
        held = np.frombuffer(b"".join(pages[at] for at in sparse), BIG_ENDIAN).reshape(-1, 2)
        sizes = [len(pages[at]) // (2 * COUNTER_BYTES) for at in sparse]
        places = np.repeat(numbers[sparse] * PAGE, sizes) + held[:, 0]
        total[places] += held[:, 1]
