"""The plain reports of a part as one table: which can be read, and what they add up to.

A report ends in zeros. In their place a canary of the operator has its mark, by which it is known
and left out of everything that is counted; any other mark makes a report unreadable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from veilcount_analysis.mechanisms import tally, valid_messages
from veilcount_analysis.series.series import Series
from veilcount_shared.limits import PSEUDONYM_BYTES
from veilcount_shared.shuffling.plain_report import MARK_BYTES, VERSION

from ...store.series_reports import ROW_BYTES, Bytes, Counters, Flags
from ..token_check import is_valid_token
from .batch_checks import token_bytes
from .opening import OpenedPart


@dataclass(frozen=True, slots=True)
class ReportTable:
    """The reports of one part. `readable` says which are reports of the definition: no canary."""

    series: Series
    messages: Bytes
    readable: Flags
    rows: Bytes  # of their tokens; none where there are no tokens
    canaries: Mapping[int, int] = field(default_factory=dict)  # their places, by their numbers

    def __len__(self) -> int:
        return len(self.readable)

    def counters(self, counted: Flags) -> Counters:
        """Tally the counted reports."""
        return tally(self.series.collection, self.messages[counted])


def read_table(
    series: Series, period: int, part: OpenedPart, marks: Sequence[bytes] = ()
) -> ReportTable:
    """Return the table of an opened part; `marks` are those of the canaries of its crowd."""
    opened = np.frombuffer(part.opened, np.bool_)
    table = np.frombuffer(part.plain, np.uint8).reshape(len(opened), -1)
    token = token_bytes(series)
    start = 1 + (PSEUDONYM_BYTES + token if token else 0)
    end = start + series.collection.message_bytes
    messages = np.ascontiguousarray(table[:, start:end])
    padded = opened & (table[:, 0] == VERSION) & ~table[:, end:-MARK_BYTES].any(axis=1)
    marked = table[:, -MARK_BYTES:].any(axis=1)
    canaries = _canaries(table, padded & marked, marks)
    readable = padded & ~marked & valid_messages(series.collection, messages)
    if not token:
        rows = np.zeros((len(opened), 0), np.uint8)
        return ReportTable(series, messages, readable, rows, canaries)
    rows = np.ascontiguousarray(table[:, 1 : 1 + ROW_BYTES])
    for place in np.flatnonzero(readable).tolist():
        pseudonym = table[place, 1 : 1 + PSEUDONYM_BYTES].tobytes()
        signature = table[place, 1 + PSEUDONYM_BYTES : start].tobytes()
        readable[place] = is_valid_token(series, period, pseudonym, signature)
    readable &= _first_of_each(rows, readable)  # of those whose token is valid
    return ReportTable(series, messages, readable, rows, canaries)


def _canaries(table: Bytes, marked: Flags, marks: Sequence[bytes]) -> dict[int, int]:
    """Return the places of the canaries among marked reports, the first of each number."""
    numbers = {mark: number for number, mark in enumerate(marks)}
    places: dict[int, int] = {}
    for place in np.flatnonzero(marked).tolist() if marks else ():
        number = numbers.get(table[place, -MARK_BYTES:].tobytes())
        if number is not None:
            places.setdefault(number, place)
    return places


def _first_of_each(rows: Bytes, readable: Flags) -> Flags:
    """Return which readable reports are the first of their token."""
    places = np.flatnonzero(readable)
    _, first = np.unique(rows[places], axis=0, return_index=True)
    flags = np.zeros(len(rows), np.bool_)
    flags[places[first]] = True
    return flags
