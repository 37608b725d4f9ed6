"""Whether a store's books are right: each acknowledged report is in them once, and nothing else."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing

import numpy as np

from veilcount_aggregator.intake.group_intake import GROUP
from veilcount_aggregator.store import ROW_BYTES, Cell, Store, TransferPiece, open_store
from veilcount_analysis.mechanisms import tally
from veilcount_analysis.series.series import Series
from veilcount_shared.report import Report

from .campaign import Campaign

Bit = tuple[str, int, bytes, int]  # fingerprint, epoch, row, slot


def groups_of_several(url: str) -> int:
    """Return how many groups of more than one request a store counted."""
    with closing(open_store(url)) as store:
        counts = store.service_counts().items()
    return sum(n for counter, n in counts if counter.what == GROUP and counter.word != "1")


def assert_consistent(url: str, campaign: Campaign, acknowledged: Iterable[Report]) -> None:
    """Hold a store at rest against what was acknowledged, all of it and nothing else."""
    result = list(acknowledged)
    with closing(open_store(url)) as store:
        bits = list(spent(store.export_pieces()))
        expected = bits_of(campaign, result)

        assert len(expected) == len(result), "two devices drew the same slot"
        assert expected - set(bits) == set(), "acknowledged, and missing"
        assert set(bits) - expected == set(), "in the ledger, and never acknowledged"
        for series in campaign.series:
            own = [report for report in result if report.fingerprint == series.fingerprint]
            _assert_counters(store, series, own)
            _assert_spread(store, series, own)


def _assert_counters(store: Store, series: Series, result: list[Report]) -> None:
    """Each cell's counters are the tally of its messages, each message once."""
    cells: dict[Cell, list[int]] = defaultdict(list)
    for report in result:
        message = int.from_bytes(report.message, "big")
        cells[Cell(report.period, report.segment)].append(message)

    assert store.report_counts(series) == {cell: len(held) for cell, held in cells.items()}
    for cell, held in cells.items():
        assert np.array_equal(store.counters(series, [cell]), tally(series.collection, held)), cell


def _assert_spread(store: Store, series: Series, result: list[Report]) -> None:
    """As many rows have spent j slots as persons sent j reports."""
    rows = Counter(bit(series, report)[1:3] for report in result)
    expected: dict[int, Counter[int]] = defaultdict(Counter)
    for (epoch, _), reports in rows.items():
        expected[epoch][reports] += 1
    found = {
        epoch: Counter({j: rows for j, rows in enumerate(held.tolist(), 1) if rows})
        for epoch, held in store.spend_histograms(series).items()
    }

    assert found == expected
    assert sum(j * n for held in found.values() for j, n in held.items()) == len(result)


def bit(series: Series, report: Report) -> Bit:
    row = report.pseudonym[:ROW_BYTES]
    return series.fingerprint, series.epoch(report.period), row, report.slot


def bits_of(campaign: Campaign, reports: Iterable[Report]) -> set[Bit]:
    series = {each.fingerprint: each for each in campaign.series}
    return {bit(series[each.fingerprint], each) for each in reports}


def spent(pieces: Iterable[TransferPiece]) -> Iterator[Bit]:
    """Return all bits that are set in a store's ledgers."""
    for piece in pieces:
        if piece.kind != "rows":
            continue
        fingerprint, epoch, width, _ = piece.key.split("/")
        size = ROW_BYTES + int(width)
        for first in range(0, len(piece.body), size):
            row = piece.body[first : first + ROW_BYTES]
            bitmap = int.from_bytes(piece.body[first + ROW_BYTES : first + size], "little")
            for slot in range(bitmap.bit_length()):
                if bitmap >> slot & 1:
                    yield fingerprint, int(epoch), row, slot
