"""Grouping of reports into request bodies, and their padding.

One body carries one pseudonym of a person, goes out on a connection of its own, and has one of a
few lengths.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from veilcount_shared import RandomSource
from veilcount_shared.report import KEYLESS_BODY_PSEUDONYMS, MAX_PADDING, Batch
from veilcount_shared.wire import encode_binary

from ..state import QueuedReport

MOST_IN_BODY = 500
SIZES = (1 << 10, 1 << 12, 1 << 14)  # of bodies; longer ones are multiples of the padding's limit

Row = tuple[bytes, str, bytes]  # person, series, pseudonym


def row_of(queued_report: QueuedReport) -> Row:
    """Return whose row at the aggregator a report belongs to."""
    return queued_report.person, queued_report.report.fingerprint, queued_report.report.pseudonym


def group_into_bodies(
    queued_reports: list[QueuedReport],
    randomness: RandomSource,
    *,
    persons: bool,
    keyed: bool = True,
) -> list[list[QueuedReport]]:
    """Return bodies of one pseudonym each or, of many persons, at most one of each person.

    Without a key, a body of many persons has no more pseudonyms than an open intake accepts.
    """
    most_rows = MOST_IN_BODY if keyed else KEYLESS_BODY_PSEUDONYMS
    rows: dict[Row, list[QueuedReport]] = defaultdict(list)
    for queued_report in queued_reports:
        rows[row_of(queued_report)].append(queued_report)
    pieces = [
        row[first : first + MOST_IN_BODY]
        for row in rows.values()
        for first in range(0, len(row), MOST_IN_BODY)
    ]
    shuffled = randomness.shuffled(pieces)
    if not persons:
        return shuffled
    mixed: list[list[QueuedReport]] = []
    row_counts: list[int] = []  # how many rows each body has
    turn: dict[bytes, int] = defaultdict(int)  # the body that a person's next row may go into
    for row in shuffled:
        person = row[0].person
        place = turn[person]
        while place < len(mixed) and (
            len(mixed[place]) + len(row) > MOST_IN_BODY or row_counts[place] == most_rows
        ):
            place += 1
        if place == len(mixed):
            mixed.append([])
            row_counts.append(0)
        mixed[place] += row
        row_counts[place] += 1
        turn[person] = place + 1
    return [randomness.shuffled(body) for body in mixed]


def encode_padded(batch: Batch) -> bytes:
    """Return a batch padded to the next of a few sizes."""
    bare = len(encode_binary(batch))
    long = -(-bare // (MAX_PADDING + 1)) * (MAX_PADDING + 1)
    size = next((size for size in SIZES if size >= bare), long)
    return encode_binary(replace(batch, padding=size - bare))
