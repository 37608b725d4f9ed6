"""A group of reports to calls of the library, one for each shard; and back to verdicts.

What to add to which counter depends on which reports count. That only Redis can say; adding up is
done far faster here. So a call carries what to add if everything is as expected, which it nearly
always is. If not, nothing was written, the answer has the true verdicts, and they are expected
next. That ends: each time, another group was committed in between, and moved a verdict of this one
further on its only way, from counted over full and over budget to duplicate to stale.

Where counters need memory beyond a limit, nothing was written either, and the answer names their
pages. What touches them is `full` from then on unless its slot is spent. A refusal may let another
report of the same row count, which may be refused next: after `PAGE_BY_PAGE` such answers, a row is
refused whole, so that no device uses up the tries of its group. It may also leave a period's room
to another row: after `ROW_BY_ROW` answers, all of an epoch are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...counting import only_places, touched
from ...errors import StoreError, StoreUnavailable
from ..contract import (
    COUNTED,
    MEMORY_FULL,
    ROW_BYTES,
    UNDECIDED,
    Codes,
    Notes,
    Numbers,
    Quota,
    Spends,
    refusal_notes,
)
from ..joining import concatenated
from ..memory import PAGE, share
from ..pieces import name, width
from .connections import Wait
from .library import call, pack, raw
from .limits import Limits, ShardLimits
from .root import Root
from .scatter import Names, shards
from .servers import Asked, Command

TRIES = 50
PAGE_BY_PAGE, ROW_BY_ROW = 3, 12

Chosen = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Sheet:
    """All reports of one series in a group, and what is expected of each."""

    spends: Spends
    rooms: Numbers  # of each report's request
    quotas: Sequence[Quota]
    charged: Numbers  # each report's quota, counted from 1; 0: none
    names: Names
    otherwise: Codes  # the verdict if the slot is free: learnt where memory ends
    expected: Codes  # learnt from the answers


@dataclass(frozen=True, slots=True)
class Leaf:
    """Those of one epoch and shard, in their order."""

    sheet: Sheet
    epoch: int
    chosen: Chosen

    def page(self, shards: int) -> list[Any]:
        """Return what is asked of the epoch. Each shard has its share of a limit, rounded up.

        Rows are spread evenly, so that a period is full at about its limit; sharing the number
        itself would take a transaction over all shards.
        """
        spends, chosen = self.sheet.spends, self.chosen
        return [
            spends.series.fingerprint,
            self.epoch,
            spends.series.most,
            width(spends.series.bits),
            (-(-self.sheet.rooms[chosen] // shards)).tolist(),
            [[each.hour, each.source, -(-each.limit // shards)] for each in self.sheet.quotas],
            self.sheet.charged[chosen].tolist(),
            raw(self.sheet.names.fields[chosen].tobytes()),
            self.sheet.names.places[chosen].tolist(),
            spends.slots[chosen].tolist(),
            spends.periods[chosen].tolist(),
            self.sheet.otherwise[chosen].tolist(),
            self.sheet.expected[chosen].tolist(),
        ]

    def cells(self) -> Iterator[tuple[str, Chosen]]:
        """Return the reports that count, cell by cell."""
        spends = self.sheet.spends
        counted = self.chosen[self.sheet.expected[self.chosen] == COUNTED]
        for period, of_period in _by_number(spends.periods, counted):
            for segment, of_cell in _by_number(spends.segments, of_period):
                yield name(period, segment), of_cell

    def tally(self, cell: str, chosen: Chosen, shards: int, most: int) -> list[Any]:
        """Return what to add to the counters of a cell, and the shard's share of the limit."""
        spends, series = self.sheet.spends, self.sheet.spends.series
        limit = min(share(spends.memory.series, shards), most)
        figures = touched(series.collection, spends.messages[chosen])
        return [series.fingerprint, series.counters, limit, cell, len(chosen), *figures]

    def refusals(self) -> Iterator[str | int]:
        """Return a note, and how often, for those that are not counted."""
        spends, expected = self.sheet.spends, self.sheet.expected
        refused = self.chosen[expected[self.chosen] != COUNTED]
        for period, of_period in _by_number(spends.periods, refused):
            for code, reports in _by_number(expected, of_period):
                notes = refusal_notes(spends.series.fingerprint, period, code, len(reports))
                for note, times in notes.items():
                    yield from (name(*note), times)

    def learn(self, verdicts: Codes | np.uint8) -> None:
        """Expect what was answered."""
        self.sheet.expected[self.chosen] = verdicts

    def touching(self, chosen: Chosen, pages: set[int]) -> Chosen:
        """Return those of a cell whose counters are in some of its pages."""
        spends = self.sheet.spends
        places = only_places(spends.series.collection, spends.messages[chosen])
        if places is None:
            return chosen
        # Nearly always a handful, which lists are faster for.
        return chosen[[page in pages for page in (places // PAGE).tolist()]]

    def of_rows(self, chosen: Chosen) -> Chosen:
        """Return all that are of the same rows."""
        names = np.ascontiguousarray(self.sheet.names.fields).view(f"V{ROW_BYTES}").ravel()
        rows = set(names[chosen].tolist())
        return self.chosen[[row in rows for row in names[self.chosen].tolist()]]

    def refuse(self, chosen: Chosen) -> None:
        """Expect `full` for those that were to be counted."""
        counted = chosen[self.sheet.otherwise[chosen] == COUNTED]
        self.sheet.otherwise[counted] = MEMORY_FULL
        self.sheet.expected[counted] = MEMORY_FULL


@dataclass(slots=True)
class Part:
    """What one shard gets of a group."""

    shard: int
    leaves: Sequence[Leaf]
    notes: Notes
    limits: ShardLimits
    refusals: int = 0  # answers that memory ended

    def command(self, root: Root) -> Command:
        """Return the call, on what is expected by now."""
        pages = [leaf.page(root.shards) for leaf in self.leaves]
        tallies = [
            leaf.tally(cell, chosen, root.shards, self.limits.series)
            for leaf, cell, chosen in self._cells()
        ]
        notes: list[str | int] = [note for leaf in self.leaves for note in leaf.refusals()]
        for note, times in self.notes.items():
            notes += (name(*note), times) if times else ()
        base = root.bases[self.shard]
        given = pack([pages, tallies, notes, self.limits.total])
        return Command(base, call("commit", base, root.store, given))

    def learn(self, answer: int | bytes | list[int]) -> bool:
        """Take an answer; say whether nothing was written, and it is to be asked again."""
        if isinstance(answer, int):
            return False
        if isinstance(answer, list):
            self._refuse(answer)
            return True
        verdicts, first = np.frombuffer(answer, np.uint8), 0
        for leaf in self.leaves:
            leaf.learn(verdicts[first : first + len(leaf.chosen)])
            first += len(leaf.chosen)
        return True

    def give_up(self) -> None:
        """Leave its reports undecided."""
        for leaf in self.leaves:
            leaf.learn(UNDECIDED)

    def _cells(self) -> list[tuple[Leaf, str, Chosen]]:
        """Return the cells that are counted in, by their first reports: those have memory first."""
        found = [(leaf, *cell) for leaf in self.leaves for cell in leaf.cells()]
        return sorted(found, key=lambda each: int(each[2][0]))

    def _refuse(self, unfit: list[int]) -> None:
        """Refuse what touches pages that do not fit, each given by its tally and its number."""
        self.refusals += 1
        pages: dict[int, set[int]] = {}
        for tally, page in zip(unfit[::2], unfit[1::2], strict=True):
            pages.setdefault(tally, set()).add(page)
        cells = self._cells()
        for tally, numbers in pages.items():
            leaf, _, chosen = cells[tally]
            refused = leaf.touching(chosen, numbers)
            if self.refusals > ROW_BY_ROW:
                refused = leaf.chosen
            elif self.refusals > PAGE_BY_PAGE:
                refused = leaf.of_rows(refused)
            leaf.refuse(refused)


def commit(
    servers: Asked, root: Root, limits: Limits, group: Sequence[Spends], notes: Notes
) -> list[Codes]:
    """Judge and count a group; each shard's part of it in one step, which fails by itself."""
    members = _by_series(group)
    sheets = [_sheet(root, [group[at] for at in places]) for places in members.values()]
    alone = 0 if group else _answering(servers, root)
    by_shard = limits.by_shard(group[0].memory.store if group else None)
    parts = list(_parts(root, by_shard, sheets, notes, alone))
    errors = _commit(servers, root, parts)
    if parts and len(errors) == len(parts):
        raise next(iter(errors.values()))
    if notes and 0 in errors:  # the first part had them
        kept = next(part.shard for at, part in enumerate(parts) if at not in errors)
        only_notes = Part(kept, [], notes, by_shard[kept])
        servers.ask_each([only_notes.command(root)], Wait.COMMIT)
    return _verdicts(group, members, sheets)


def _commit(servers: Asked, root: Root, parts: Sequence[Part]) -> dict[int, StoreError]:
    """Write each part; return the errors of those that failed, by their places."""
    errors: dict[int, StoreError] = {}
    left = dict(enumerate(parts))
    for _ in range(TRIES):
        answers = servers.ask_each([part.command(root) for part in left.values()], Wait.COMMIT)
        asked, left = list(zip(left.items(), answers, strict=True)), {}
        for (at, part), answer in asked:
            if isinstance(answer, StoreError):
                errors[at] = answer
            elif part.learn(answer):
                left[at] = part
        if not left:
            break
    contested = StoreUnavailable("too many writers on the same rows at once; ask again")
    errors |= dict.fromkeys(left, contested)
    for at in errors:
        parts[at].give_up()
    return errors


def _answering(servers: Asked, root: Root) -> int:
    """Return a shard that answers, as far as is known."""
    found = (shard for shard, base in enumerate(root.bases) if servers.answers(base))
    return next(found, 0)


def _by_series(group: Sequence[Spends]) -> Mapping[str, list[int]]:
    members: dict[str, list[int]] = {}
    for at, spends in enumerate(group):
        members.setdefault(spends.series.fingerprint, []).append(at)
    return members


def _sheet(root: Root, group: Sequence[Spends]) -> Sheet:
    spends = concatenated(group)
    rooms = np.repeat([each.room for each in group], [len(each) for each in group])
    names = root.scatter.names(spends.rows)
    quotas = list(dict.fromkeys(each.quota for each in group if each.quota is not None))
    numbers = [0 if each.quota is None else 1 + quotas.index(each.quota) for each in group]
    charged = np.repeat(numbers, [len(each) for each in group])
    otherwise = spends.otherwise
    return Sheet(spends, rooms, quotas, charged, names, otherwise.copy(), otherwise.copy())


def _parts(
    root: Root,
    limits: Sequence[ShardLimits],
    sheets: Sequence[Sheet],
    notes: Notes,
    alone: int,
) -> Iterator[Part]:
    """Notes stand in any shard: they go where something goes anyway, or alone to this one."""
    leaves: dict[int, list[Leaf]] = {}
    for sheet in sheets:
        everything = np.arange(len(sheet.spends))
        for shard, chosen in _by_number(shards(sheet.names.places, root.shards), everything):
            for epoch, of_epoch in _by_number(sheet.spends.epochs, chosen):
                leaves.setdefault(shard, []).append(Leaf(sheet, epoch, of_epoch))
    if notes and not leaves:
        leaves[alone] = []
    for shard, of_shard in leaves.items():
        yield Part(shard, of_shard, notes, limits[shard])
        notes = {}


def _by_number(column: Numbers | Codes, chosen: Chosen) -> Iterator[tuple[int, Chosen]]:
    """Return the chosen places by what stands there, in their order."""
    numbers = column[chosen]
    found = set(numbers.tolist())
    if len(found) == 1:  # nearly always
        yield found.pop(), chosen
        return
    for number in sorted(found):
        yield number, chosen[numbers == number]


def _verdicts(
    group: Sequence[Spends], members: Mapping[str, list[int]], sheets: Sequence[Sheet]
) -> list[Codes]:
    """Return each sheet's verdicts to the columns it was joined from."""
    verdicts: dict[int, Codes] = {}
    for places, sheet in zip(members.values(), sheets, strict=True):
        first = 0
        for at in places:
            verdicts[at] = sheet.expected[first : first + len(group[at])]
            first += len(group[at])
    return [verdicts[at] for at in range(len(group))]
