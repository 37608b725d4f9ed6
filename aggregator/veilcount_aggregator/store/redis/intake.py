"""A group of reports to calls of the library, one for each shard; and back to verdicts.

What to add to which counter depends on which reports count. That only Redis can say; adding up is
done far faster here. So a call carries what to add if everything is as expected, which it nearly
always is. If not, nothing was written, the answer has the true verdicts, and they are expected
next. That ends: each time, another group was committed in between, and moved a verdict of this one
further on its only way, from counted over full and over budget to duplicate to stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...counting import touched
from ...errors import StoreUnavailable
from ..contract import COUNTED, VERDICT, VERDICTS, Codes, Note, Notes, Numbers, Spends
from ..joining import concatenated
from ..pieces import name, width
from .library import call, pack, raw
from .root import Root
from .scatter import Names, shards
from .servers import Asked, Command

TRIES = 50

Chosen = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Sheet:
    """All reports of one series in a group, and what is expected of each."""

    spends: Spends
    rooms: Numbers  # of each report's request
    names: Names
    expected: Codes  # learnt from the answers


@dataclass(frozen=True, slots=True)
class Leaf:
    """Those of one epoch and shard, in their order."""

    sheet: Sheet
    epoch: int
    chosen: Chosen

    def page(self, shards: int) -> list[Any]:
        """Return what is asked of the epoch. Each shard has its share of the room, rounded up.

        Rows are spread evenly, so that a period is full at about its room; sharing the number
        itself would take a transaction over all shards.
        """
        spends, chosen = self.sheet.spends, self.chosen
        return [
            spends.series.fingerprint,
            self.epoch,
            spends.series.most,
            width(spends.series.bits),
            (-(-self.sheet.rooms[chosen] // shards)).tolist(),
            raw(self.sheet.names.fields[chosen].tobytes()),
            self.sheet.names.places[chosen].tolist(),
            spends.slots[chosen].tolist(),
            spends.periods[chosen].tolist(),
            spends.otherwise[chosen].tolist(),
            self.sheet.expected[chosen].tolist(),
        ]

    def tallies(self) -> Iterator[list[Any]]:
        """Return what to add to the counters of each cell."""
        spends, series = self.sheet.spends, self.sheet.spends.series
        counted = self.chosen[self.sheet.expected[self.chosen] == COUNTED]
        for period, of_period in _by_number(spends.periods, counted):
            for segment, of_cell in _by_number(spends.segments, of_period):
                figures = touched(series.collection, spends.messages[of_cell])
                yield [series.fingerprint, name(period, segment), len(of_cell), *figures]

    def refusals(self) -> Iterator[str | int]:
        """Return a note, and how often, for those that are not counted."""
        spends, expected = self.sheet.spends, self.sheet.expected
        refused = self.chosen[expected[self.chosen] != COUNTED]
        for period, of_period in _by_number(spends.periods, refused):
            for code, reports in _by_number(expected, of_period):
                note = Note(VERDICT, spends.series.fingerprint, period, VERDICTS[code])
                yield from (name(*note), len(reports))

    def learn(self, verdicts: Codes) -> None:
        """Expect what was answered."""
        self.sheet.expected[self.chosen] = verdicts


@dataclass(frozen=True, slots=True)
class Part:
    """What one shard gets of a group."""

    shard: int
    leaves: Sequence[Leaf]
    notes: Notes

    def command(self, root: Root) -> Command:
        """Return the call, on what is expected by now."""
        pages = [leaf.page(root.shards) for leaf in self.leaves]
        tallies = [tally for leaf in self.leaves for tally in leaf.tallies()]
        notes: list[str | int] = [note for leaf in self.leaves for note in leaf.refusals()]
        for note, times in self.notes.items():
            notes += (name(*note), times) if times else ()
        base = root.bases[self.shard]
        return Command(base, call("commit", base, root.store, pack([pages, tallies, notes])))

    def learn(self, answer: int | bytes) -> bool:
        """Take an answer; say whether nothing was written since other verdicts were expected."""
        if isinstance(answer, int):
            return False
        verdicts, first = np.frombuffer(answer, np.uint8), 0
        for leaf in self.leaves:
            leaf.learn(verdicts[first : first + len(leaf.chosen)])
            first += len(leaf.chosen)
        return True


def commit(servers: Asked, root: Root, group: Sequence[Spends], notes: Notes) -> list[Codes]:
    """Judge and count a group; each shard's part of it in one step."""
    members = _by_series(group)
    sheets = [_sheet(root, [group[at] for at in places]) for places in members.values()]
    parts = list(_parts(root, sheets, notes))
    for _ in range(TRIES):
        answers = servers.ask([part.command(root) for part in parts])
        asked = zip(parts, answers, strict=True)
        parts = [part for part, answer in asked if part.learn(answer)]
        if not parts:
            return _verdicts(group, members, sheets)
    raise StoreUnavailable("too many writers on the same rows at once; ask again")


def _by_series(group: Sequence[Spends]) -> Mapping[str, list[int]]:
    members: dict[str, list[int]] = {}
    for at, spends in enumerate(group):
        members.setdefault(spends.series.fingerprint, []).append(at)
    return members


def _sheet(root: Root, group: Sequence[Spends]) -> Sheet:
    spends = concatenated(group)
    rooms = np.repeat([each.room for each in group], [len(each) for each in group])
    names = root.scatter.names(spends.rows)
    return Sheet(spends, rooms, names, spends.otherwise.copy())


def _parts(root: Root, sheets: Sequence[Sheet], notes: Notes) -> Iterator[Part]:
    """Notes stand in any shard: they go where something goes anyway."""
    leaves: dict[int, list[Leaf]] = {}
    for sheet in sheets:
        everything = np.arange(len(sheet.spends))
        for shard, chosen in _by_number(shards(sheet.names.places, root.shards), everything):
            for epoch, of_epoch in _by_number(sheet.spends.epochs, chosen):
                leaves.setdefault(shard, []).append(Leaf(sheet, epoch, of_epoch))
    if notes and not leaves:
        leaves[0] = []
    for shard, of_shard in leaves.items():
        yield Part(shard, of_shard, notes)
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
