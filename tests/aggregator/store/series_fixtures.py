"""Series of every kind, and reports of them in the columns that a store takes."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from veilcount_aggregator.store import (
    CODES,
    ROW_BYTES,
    VERDICTS,
    BatchChange,
    Cell,
    Codes,
    Record,
    SeriesReports,
    ServiceCounter,
    Store,
)
from veilcount_aggregator.store.series_reports import Quota
from veilcount_aggregator.store.transfer_format import content_digest
from veilcount_analysis.series.series import Series
from veilcount_shared.collection import parse_collections
from veilcount_shared.mechanisms import Mechanism, PairTables, SubsetSelection
from veilcount_shared.verdict import Verdict

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
DATES = "from = 2026-01-01\nuntil = 2026-03-05\n"  # 63 days
NUMBERS = {
    "three": 'values = ["a", "b", "c"]\nepsilon = 4',
    "mask": f"values = {[f'v{x}' for x in range(64)]}\nepsilon = 1",
    "members": f"values = {[f'v{x}' for x in range(200)]}\nepsilon = 3",
    "wide": f"values = {[f'v{x}' for x in range(700)]}\nepsilon = 7",
    "several": f"values = {[f'v{x}' for x in range(700)]}\nepsilon = 5",
    "labels": f"values = {[f'v{x}' for x in range(5000)]}\nepsilon = 6",
    "plane": f"values = {[f'v{x}' for x in range(5000)]}\nepsilon = 1",
    "mean": 'range = [0, 10]\nmeasure = "mean"\nepsilon = 1',
    "distribution": 'range = [0, 10]\nmeasure = "distribution"\nepsilon = 1',
    "ranges": 'range = [0, 10]\nmeasure = "ranges"\nepsilon = 1',
    "plain": 'values = ["a", "b", "c"]\nmodel = "central"\nbudget = 1\nadjacency = "substitute"',
    "hashes": 'values = "open"\nmodel = "central"\nbudget = 1\ndelta = 0.000001',
}
#: of the 2^40: in some pages of Redis one, in one of them several, the first and the last
HASHES: tuple[int, ...] = (
    0,
    1,
    2,
    (1 << 27) - 1,
    1 << 27,
    *range(1 << 33, 1 << 39, 1 << 33),
    (1 << 40) - 1,
)


@cache  # a plan for thousands of values takes its time
def series(what: str = "three", *keys: str, unit: str = "day", linkage: str = "period") -> Series:
    """Return a series: what is measured, how often, and what the server can link."""
    text = "\n".join(
        [
            'app = "acme"',
            "[theme]",
            'question = "Which?"',
            NUMBERS[what],
            f'unit = "{unit}"',
            f'linkage = "{linkage}"',
            *keys,
            DATES,
        ]
    )
    return Series(parse_collections(text, lambda name: Path(name).read_text().split())["theme"])


DAILY = series()
LINKED = series(linkage="collection")  # 63 slots
SPARING = series("three", "answers = 2", linkage="collection")  # two of them may be spent
UNLINKED = series(linkage="none")
ARMS = series("three", 'segments = {arm = ["A", "B"]}')
FILLED = (DAILY, LINKED, series("plane"), ARMS, series("hashes"))  # by `fill`


@dataclass(frozen=True)
class SlotReport:
    row: bytes
    period: int = 0
    slot: int | None = None  # None: the period's own
    message: int = 0
    segment: int = 0
    otherwise: Verdict = Verdict.COUNTED


def row(number: int) -> bytes:
    return random.Random(number).randbytes(ROW_BYTES)


def report(
    number: int, period: int = 0, slot: int | None = None, message: int = 0, **more: Any
) -> SlotReport:
    return SlotReport(row(number), period, slot, message, **more)


def slot_of(which: Series, sent: SlotReport) -> int:
    if sent.slot is not None:
        return sent.slot
    return sent.period if which.linked else 0


def report_columns(
    which: Series,
    reports: Iterable[SlotReport],
    limit: int = 1 << 40,
    quota: Quota | None = None,
) -> SeriesReports:
    listed = list(reports)
    width = which.collection.message_bytes
    return SeriesReports.of_one(
        series=which,
        rows=_bytes([each.row for each in listed], ROW_BYTES),
        epochs=np.array([which.epoch(each.period) for each in listed], np.int64),
        periods=np.array([each.period for each in listed], np.int64),
        segments=np.array([each.segment for each in listed], np.int64),
        slots=np.array([slot_of(which, each) for each in listed], np.int64),
        messages=_bytes([which.collection.pack(each.message) for each in listed], width),
        default_verdicts=np.array([CODES[each.otherwise] for each in listed], np.uint8),
        new_pseudonym_limit=limit,
        quota=quota,
    )


def send(
    store: Store,
    which: Series,
    *reports: SlotReport,
    limit: int = 1 << 40,
) -> list[Verdict]:
    return decode_verdicts(store.commit([report_columns(which, reports, limit)], {})[0])


def histograms(store: Store, which: Series) -> dict[int, list[int]]:
    return {epoch: rows.tolist() for epoch, rows in store.spend_histograms(which).items()}


def counts(store: Store, which: Series, *cells: Cell) -> list[int]:
    found: list[int] = store.counters(which, cells).tolist()
    return found


def digest(store: Store, *, counters: bool = True) -> str:
    """Return the digest of a store's content, without a copy's own records."""
    return content_digest(
        piece
        for piece in store.export_pieces()
        if not (piece.kind == "record" and piece.key.startswith("copy/"))
        and (counters or piece.kind != "service_counter")
    )


def fill(store: Store) -> None:
    chance = random.Random(5)
    for which in (*FILLED, series("three", "per_day = 65", unit="event")):
        reports = [
            report(n, n % 4, None, message(which, chance), segment=n % which.collection.cells)
            for n in range(150)
        ]
        send(store, which, *reports, *reports[:3])
    drop(store, DAILY, 2)
    store.close_row(LINKED, [0], row(7))
    records = [Record("key", "a/b", b"\0"), Record("audit", "1", b"")]
    store.change_records(store.generation(), records)
    store.commit([], {ServiceCounter("lost", "", -1, "a/b"): 4})
    spent = np.array([list(row(number)) for number in range(3)], np.uint8).reshape(3, ROW_BYTES)
    assert store.change_batch(LINKED, BatchChange("ab12", None, b"an entry", 3, spent))


def everything(store: Store) -> list[object]:
    """Return all that can be read of what `fill` has written."""
    return [
        *(store.report_counts(which) for which in FILLED),
        *(counts(store, which, *store.report_counts(which)) for which in FILLED),
        *(histograms(store, which) for which in FILLED),
        *(store.new_pseudonyms(which) for which in FILLED),
        store.batches(LINKED),
        store.spent_tokens(LINKED, 3, np.array([list(row(1))], np.uint8)).tolist(),
        store.service_counts(),
        store.records("key"),
        store.records("audit"),
    ]


def drop(store: Store, which: Series, epochs: int) -> int:
    """Mark epochs as dropped, whatever any clock shows."""
    return store.mark_dropped(which, epochs, LONG_AGO, LONG_AGO)


def drop_and_delete(store: Store, which: Series, epochs: int) -> None:
    drop_finally(store, which, epochs)
    while store.delete_rows(which):
        pass


def drop_finally(store: Store, which: Series, epochs: int) -> None:
    """Drop epochs for good, and leave their rows to whoever deletes them."""
    drop(store, which, epochs)
    store.finalize_dropped(which, timedelta(0), LONG_AGO)


def decode_verdicts(codes: Codes) -> list[Verdict]:
    return [VERDICTS[code] for code in codes]


def message(which: Series, chance: random.Random) -> int:
    if which.counts_hashes:
        return chance.choice(HASHES)
    return _message(which.collection.mechanism, chance)


def _message(mechanism: Mechanism, chance: random.Random) -> int:
    if isinstance(mechanism, PairTables):
        pair = chance.randrange(len(mechanism.pairs))
        return pair << 8 * mechanism.width | _message(mechanism.subsets[pair], chance)
    if not isinstance(mechanism, SubsetSelection) or mechanism.w == 1:
        return chance.randrange(mechanism.messages)
    members = chance.sample(range(mechanism.k), mechanism.w)
    if mechanism.masked:
        return sum(1 << x for x in members)
    packed = 0
    for x in sorted(members, reverse=True):
        packed = packed << mechanism.label_bits | x
    return packed


def _bytes(values: list[bytes], width: int) -> Codes:
    return np.frombuffer(b"".join(values), np.uint8).reshape(-1, width)
