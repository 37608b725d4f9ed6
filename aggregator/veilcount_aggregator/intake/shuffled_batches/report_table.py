"""The plain reports of a part as one table: which can be read, and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilcount_analysis.mechanisms import tally, valid_messages
from veilcount_analysis.series.series import Series
from veilcount_shared.limits import PSEUDONYM_BYTES
from veilcount_shared.shuffling.plain_report import VERSION

from ...store.series_reports import ROW_BYTES, Bytes, Counters, Flags
from ..token_check import is_valid_token
from .batch_checks import token_bytes
from .opening import OpenedPart


@dataclass(frozen=True, slots=True)
class ReportTable:
    """The reports of one part. `readable` says which are reports of the definition."""

    series: Series
    messages: Bytes
    readable: Flags
    rows: Bytes  # of their tokens; none where there are no tokens

    def __len__(self) -> int:
        return len(self.readable)

    def counters(self, counted: Flags) -> Counters:
        """Tally the counted reports."""
        return tally(self.series.collection, self.messages[counted])


def read_table(series: Series, period: int, part: OpenedPart) -> ReportTable:
    """Return the table of an opened part."""
    opened = np.frombuffer(part.opened, np.bool_)
    table = np.frombuffer(part.plain, np.uint8).reshape(len(opened), -1)
    token = token_bytes(series)
    start = 1 + (PSEUDONYM_BYTES + token if token else 0)
    end = start + series.collection.message_bytes
    messages = np.ascontiguousarray(table[:, start:end])
    # The zeros at the end are the padding, and the place of a canary's mark: no canary is sent yet.
    zeros = ~table[:, end:].any(axis=1)
    readable = opened & (table[:, 0] == VERSION) & zeros
    readable &= valid_messages(series.collection, messages)
    if not token:
        return ReportTable(series, messages, readable, np.zeros((len(opened), 0), np.uint8))
    rows = np.ascontiguousarray(table[:, 1 : 1 + ROW_BYTES])
    for place in np.flatnonzero(readable).tolist():
        pseudonym = table[place, 1 : 1 + PSEUDONYM_BYTES].tobytes()
        signature = table[place, 1 + PSEUDONYM_BYTES : start].tobytes()
        readable[place] = is_valid_token(series, period, pseudonym, signature)
    readable &= _first_of_each(rows, readable)  # of those whose token is valid
    return ReportTable(series, messages, readable, rows)


def _first_of_each(rows: Bytes, readable: Flags) -> Flags:
    """Return which readable reports are the first of their token."""
    places = np.flatnonzero(readable)
    _, first = np.unique(rows[places], axis=0, return_index=True)
    flags = np.zeros(len(rows), np.bool_)
    flags[places[first]] = True
    return flags
