"""How much any body makes a worker do: signatures, calls, and bytes that are decoded.

Counted, not timed. `./dev bench worst-body` measures what it takes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from veilcount_aggregator.intake import body_limit, pipeline, token_check
from veilcount_aggregator.intake.decode import RequestBody, decode
from veilcount_aggregator.intake.group_intake import IntakeRequest
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.sql import intake as sqlite_intake
from veilcount_aggregator.store.sqlite.store import SqliteStore
from veilcount_client.delivery.padded_bodies import encode_padded
from veilcount_shared import Collection
from veilcount_shared.report import KEYLESS_BODY_PSEUDONYMS, MAX_REPORTS, Batch
from veilcount_shared.wire import BINARY_TYPE

from ..call_count import count_calls
from .hostile_bodies import Body, define, makers, report

DEFINITIONS = 20
#: calls of functions, over those of a device's request; unknown series of all widths have 8.6
MOST_TIMES = 10
Counted = tuple[Any, str, Callable[..., int]]
Plant = tuple[Any, str, Any]


@dataclass(frozen=True)
class Intake:
    aggregator: Aggregator
    plain: list[Collection]
    makers: dict[str, Callable[[], Body]]

    def take(self, body: Body) -> Any:
        """Return what a request without a device key gets."""
        request = IntakeRequest(RequestBody(*body), "", "", Future())
        (outcome,) = self.aggregator.take_group([request])
        return outcome

    def honest(self) -> Body:
        return BINARY_TYPE, "", encode_padded(Batch((report(self.plain[0]),)))


@pytest.fixture(scope="module")
def intake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Intake]:
    folder = tmp_path_factory.mktemp("work")
    plain, tokens = define(folder / "bench.toml", DEFINITIONS)
    url = f"sqlite:///{folder}/store.db?durability=relaxed"
    open_store(url, make=True).close()
    with closing(Aggregator.open(Settings(url, (folder / "bench.toml",)))) as aggregator:
        yield Intake(aggregator, plain, makers(plain, tokens))


def work(intake: Intake, body: Body) -> int:
    """Return how many calls a body takes."""
    return count_calls(lambda: intake.take(body))


def test_no_body_makes_a_worker_do_much_more_than_a_device_does(intake: Intake) -> None:
    assert not exceeding(intake)


def test_a_search_among_all_is_noticed(intake: Intake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted."""
    monkeypatch.setattr(decode, "EXPLAINED_REPORTS", MAX_REPORTS)

    assert "a thousand reports, wrong padding" in exceeding(intake)


def exceeding(intake: Intake) -> set[str]:
    """Return the bodies that take too much work."""
    for make in (intake.honest, *intake.makers.values()):
        intake.take(make())  # caches what is the same for all bodies
    most = MOST_TIMES * work(intake, intake.honest())
    return {name for name, make in intake.makers.items() if work(intake, make()) > most}


#: what is counted: where, of which function, and what one call of it counts for
SIGNATURES: Counted = (token_check, "is_valid_token", lambda *_: 1)
ROWS: Counted = (sqlite_intake._Rows, "_look_up", lambda _, __, wanted: len(wanted))
CHECKS: Counted = (
    pipeline, "check_reports", lambda _, parts: sum(len(columns) for _, columns in parts)
)  # fmt: skip
SERIES: Counted = (
    SqliteStore,
    "commit",
    lambda _, group, __: len({part.series.fingerprint for table in group for part in table.parts}),
)

THOUSAND, ALL = "a thousand reports", "a thousand reports, all definitions"
LONE, MANY = "forged tokens, one pseudonym", "forged tokens, a thousand pseudonyms"
NO_LIMIT: Plant = (pipeline, "within_limit", lambda *_: None)
NO_ROWS: Plant = (body_limit, "_rows", lambda group: np.zeros(group.reports, body_limit._ROW))
REPEATS = -(-MAX_REPORTS // (DEFINITIONS * KEYLESS_BODY_PSEUDONYMS))

#: what a body makes of what is counted, and what the same count sees where something is planted
COUNTS: dict[str, tuple[Counted, str, int, list[Plant]]] = {
    "signatures, of one pseudonym": (
        SIGNATURES, LONE, KEYLESS_BODY_PSEUDONYMS, [NO_LIMIT, NO_ROWS],
    ),
    "signatures, of a thousand": (SIGNATURES, MANY, KEYLESS_BODY_PSEUDONYMS, [NO_LIMIT]),
    "rows that are looked up": (ROWS, THOUSAND, 1, [(sqlite_intake, "unique_rows", list)]),
    "reports that are checked": (CHECKS, ALL, REPEATS * KEYLESS_BODY_PSEUDONYMS, [NO_LIMIT]),
    "series that are written": (SERIES, ALL, KEYLESS_BODY_PSEUDONYMS, []),
}  # fmt: skip


def count(intake: Intake, counted: Counted, name: str, *plants: Plant) -> int:
    """Return what a body makes of what is counted."""
    owner, function, weight = counted
    original, found = getattr(owner, function), list[int]()

    def counting(*arguments: Any) -> Any:
        found.append(weight(*arguments))
        return original(*arguments)

    with pytest.MonkeyPatch.context() as patches:
        for plant in plants:
            patches.setattr(*plant)
        patches.setattr(owner, function, counting)
        assert not isinstance(intake.take(intake.makers[name]()), Exception)
    return sum(found)


@pytest.mark.parametrize("case", COUNTS)
def test_a_body_costs_what_its_limit_of_pseudonyms_allows(intake: Intake, case: str) -> None:
    """Of its thousand reports; planted, a limit that comes late or counts less: of all of them."""
    counted, name, most, plants = COUNTS[case]

    assert count(intake, counted, name) == most
    for plant in plants:
        assert count(intake, counted, name, plant) == MAX_REPORTS


def test_a_group_writes_all_rows_at_once(intake: Intake, monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement for sixteen series, as for one."""
    statements: list[str] = []
    commit_group = sqlite_intake.commit_group

    def tracing(database: sqlite3.Connection, *arguments: Any, **options: Any) -> Any:
        database.set_trace_callback(statements.append)
        verdicts = commit_group(database, *arguments, **options)
        database.set_trace_callback(None)
        return verdicts

    monkeypatch.setattr(sqlite_intake, "commit_group", tracing)
    intake.take(intake.makers[ALL]())

    assert sum(each.startswith("insert or fail into ledger") for each in statements) == 1
