"""Groups over many series get the verdicts that their reports get one at a time.

Beside each engine: every report by itself, checked against its definition as the protocol has it,
and counted by the engine that shares no rule with the others.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilcount_aggregator.intake import definition_check
from veilcount_aggregator.intake.decode import (
    DecodedGroup,
    RequestBody,
    SeriesColumns,
    decode_group,
)
from veilcount_aggregator.intake.decode.columns import join_columns
from veilcount_aggregator.intake.definition_check import RulesOfDay, SeriesRules
from veilcount_aggregator.intake.pipeline import IntakeDays, IntakePipeline
from veilcount_aggregator.intake.pseudonym_limit import PseudonymLimit, RequestOrigin
from veilcount_aggregator.records.service_counters import ServiceCounters
from veilcount_aggregator.store import (
    CODES,
    COUNTED,
    ROW_BYTES,
    SeriesReports,
    Store,
    open_store,
    slot_rules,
)
from veilcount_aggregator.store.memory.store import MemoryStore
from veilcount_aggregator.store.redis import group_table
from veilcount_aggregator.store.series_reports import HOURLY_FULL, Quota
from veilcount_aggregator.store.sql import intake as sql_intake
from veilcount_analysis.series.series import Series
from veilcount_shared.errors import ReportError
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, encode_binary

from ...engines import CLUSTER, REDIS, SQLITE, engine
from ...report_check import check_report, verdict_from_error
from .series_fixtures import ARMS, DAILY, LINKED, SPARING, UNLINKED, digest, series

DAY = date(2026, 2, 1)
TODAY = 31  # the number of its period
PERIODS = (0, TODAY - 40 % TODAY, TODAY - 2, TODAY - 1, TODAY, TODAY, TODAY, TODAY + 1, 62, 63, 70)
PUBLIC = [
    *(DAILY, LINKED, SPARING, UNLINKED, ARMS),
    *(series("three", f"per_day = {each}", unit="event") for each in (2, 3)),
    *(series("mask"), series("mask", linkage="collection"), series("members"), series("wide")),
    replace(series("three", "late = 3"), closed=True),
]
#: each of their periods has a limit of its own
SECRET = [series("plain"), series("plain", 'segments = {arm = ["A", "B", "C"]}')]
ONE_EPOCH = [
    *(LINKED, SPARING, series("mask", linkage="collection")),
    *(series("three", f"answers = {each}", linkage="collection") for each in (1, 5, 9)),
    series("three", 'segments = {arm = ["A", "B"]}', linkage="collection"),
    replace(series("three", "late = 3", linkage="collection"), closed=True),
]
UNKNOWN = series("mean")
ORIGINS = (RequestOrigin(7, "a"), RequestOrigin(7, "b"), None)
Case = tuple[PseudonymLimit, Sequence[Series]]
#: of several epochs, an engine chooses which one an hour's quota serves first: so there is none
BY_PERIOD: Case = (PseudonymLimit(3, lambda: bytes(32)), [*PUBLIC, *SECRET])
BY_HOUR: Case = (PseudonymLimit(3, lambda: bytes(32), hourly=2), ONE_EPOCH)
LOOSE: Case = (PseudonymLimit(1 << 40, lambda: bytes(32), hourly=1 << 40), [*PUBLIC, *SECRET])


def report(which: Series, chance: random.Random) -> Report:
    """Return a report of few devices, in which anything may be wrong."""
    collection, period = which.collection, chance.choice(PERIODS)
    slot = period * collection.per_day if which.linked else 0
    message = collection.pack(chance.randrange(3))
    good = Report(which.fingerprint, period, 0, bytes([chance.randrange(9)]) * 16, slot, message)
    changes: list[dict[str, Any]] = [{}] * 12
    changes += [
        {"slot": slot + chance.randrange(1, 4)},
        {"slot": max(0, slot - 1)},
        {"segment": chance.randrange(4)},
        {"message": chance.randbytes(len(message))},
        {"message": bytes([255]) * len(message)},
    ]
    return replace(good, **chance.choice(changes))


def body(chance: random.Random, known: Sequence[Series]) -> RequestBody:
    """Return a body of one series, or of several."""
    some = chance.sample([*known, UNKNOWN], chance.choice([1, 1, 1, 1, 3]))
    reports = [report(which, chance) for which in some for _ in range(chance.choice([1, 1, 2, 4]))]
    if chance.random() < 0.05:  # a message of another mechanism
        reports = [replace(each, message=each.message + b"\1") for each in reports]
    return RequestBody(BINARY_TYPE, "", encode_binary(Batch(tuple(reports))))


Group = list[tuple[RequestOrigin | None, DecodedGroup]]


def groups(chance: random.Random, known: Sequence[Series]) -> Iterator[Group]:
    for _ in range(5):
        yield [
            (origin, decode_group([body(chance, known) for _ in range(24)], takes_tests=False))
            for origin in ORIGINS
        ]


@dataclass(frozen=True)
class OneByOne:
    """What each report gets by itself."""

    limit: PseudonymLimit
    known: Mapping[str, Series]
    store: MemoryStore = field(default_factory=MemoryStore)

    def verdicts(self, group: Group) -> list[list[int]]:
        return [self._of_bodies(origin, decoded) for origin, decoded in group]

    def _of_bodies(self, origin: RequestOrigin | None, decoded: DecodedGroup) -> list[int]:
        codes = {}
        for columns in decoded.series_columns:
            for row, place in enumerate(columns.places.tolist()):
                codes[place] = self._code(columns, row, origin)
        return [codes[place] for place in range(decoded.reports)]

    def _code(self, columns: SeriesColumns, row: int, origin: RequestOrigin | None) -> int:
        which = self.known.get(columns.fingerprint)
        if which is None:
            return int(CODES[Verdict.UNKNOWN_COLLECTION])
        sent = _report(columns, row)
        try:
            check_report(sent, which.collection)
        except ReportError as error:
            return int(CODES[verdict_from_error(error)])
        limit = self.limit.for_period(which, sent.period)
        one = _one(which, sent, limit, self.limit.quota(which, origin))
        ((code,),) = self.store.commit([one], {})
        return int(code)


def _report(columns: SeriesColumns, row: int) -> Report:
    return Report(
        columns.fingerprint,
        int(columns.periods[row]),
        int(columns.segments[row]),
        columns.pseudonyms[row].tobytes(),
        int(columns.slots[row]),
        columns.messages[row].tobytes(),
    )


def _one(which: Series, sent: Report, limit: int, quota: Quota | None) -> SeriesReports:
    oldest, newest = which.open_periods(DAY)
    otherwise = COUNTED
    if which.closed:
        otherwise = CODES[Verdict.CLOSED]
    elif not oldest <= sent.period <= newest:
        otherwise = CODES[Verdict.STALE if sent.period < oldest else Verdict.EARLY]
    epoch, period, segment, slot = (
        np.array([number], np.int64)
        for number in (which.epoch(sent.period), sent.period, sent.segment, sent.slot)
    )
    return SeriesReports.of_one(
        which,
        rows=np.frombuffer(sent.pseudonym[:ROW_BYTES], np.uint8)[np.newaxis],
        epochs=epoch,
        periods=period,
        segments=segment,
        slots=slot,
        messages=np.frombuffer(sent.message, np.uint8)[np.newaxis],
        default_verdicts=np.array([otherwise]),
        new_pseudonym_limit=limit,
        quota=quota,
    )


def compare(store: Store, case: Case, seed: int) -> set[int]:
    """Require the same of a store and of the reports one by one; return the verdicts seen."""
    limit, listed = case
    known = {each.fingerprint: each for each in listed}
    model, seen = OneByOne(limit, known), set[int]()
    pipeline = IntakePipeline(
        lambda reports: store.commit(reports, {}), ServiceCounters(lambda: 0.0), limit
    )
    for group in groups(random.Random(seed), listed):
        outcomes = pipeline.process(group, known, IntakeDays(DAY, DAY))
        codes = [[code for each in bodies for code in _codes(each)] for bodies in outcomes]

        assert codes == model.verdicts(group)
        seen.update(*codes)
    assert digest(store) == digest(model.store)
    return seen


def _codes(outcome: object) -> Sequence[int]:
    assert isinstance(outcome, np.ndarray), outcome
    codes: list[int] = outcome.tolist()
    return codes


EVERY = {int(code) for code in CODES.values()}


@pytest.mark.parametrize("case", [BY_PERIOD, BY_HOUR], ids=["by period", "by hour"])
@pytest.mark.parametrize("seed", range(3))
def test_groups_over_many_series_get_what_their_reports_get_one_by_one(
    store: Store, case: Case, seed: int
) -> None:
    """Every verdict occurs, in groups of several origins, bodies of several series."""
    hourly = {int(HOURLY_FULL)} if case is BY_HOUR else set()

    assert compare(store, case, seed) >= EVERY | hourly


def test_so_do_those_that_shards_divide(memory: Path) -> None:
    """Each shard has its share of a limit, so there is none here."""
    with (
        engine(CLUSTER, memory / "shards", "?shards=12") as server,
        closing(open_store(server.url)) as store,
    ):
        assert compare(store, LOOSE, 1) == EVERY - {int(CODES[Verdict.FULL])}


PLANTS: dict[str, tuple[Any, str, Any]] = {
    "a table in another order than its series": (
        definition_check, "join_columns", lambda parts: join_columns(parts[::-1]),
    ),
    "one series' limits for all": (
        RulesOfDay, "of", lambda _, which, day: SeriesRules.of(DAILY, day)._replace(series=which),
    ),
    "one part's reports for another's": (
        sql_intake, "reports_of", lambda table: slot_rules.reports_of(table)[::-1],
    ),
    "no quota": (group_table, "_charged", lambda *_: 0),
    "one quota for all origins": (
        group_table, "_charged", lambda quota, quotas: len(quotas or [quotas.append(quota)]),
    ),
    "no limit, where reports are few": (slot_rules, "_limited", lambda *_: int(COUNTED)),
}  # fmt: skip


@pytest.mark.parametrize("plant", PLANTS)
def test_a_mistake_would_be_noticed(
    plant: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted."""
    owner, name, wrong = PLANTS[plant]
    monkeypatch.setattr(owner, name, wrong)
    kind = REDIS if owner is group_table else SQLITE
    with (
        engine(kind, memory / plant) as server,
        closing(open_store(server.url)) as store,
        pytest.raises(AssertionError),
    ):
        compare(store, BY_HOUR, 0)
