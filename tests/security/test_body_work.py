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
from veilcount_client.delivery.body_packing import pack
from veilcount_shared import Collection
from veilcount_shared.report import KEYLESS_BODY_PSEUDONYMS, MAX_REPORTS, Batch
from veilcount_shared.wire import BINARY_TYPE

from ..call_count import count_calls
from .hostile_bodies import Body, define, makers, report

DEFINITIONS = 20
#: calls of functions, over those of a device's request; unknown series of all widths have 8.6
MOST_TIMES = 10
FORGED = [f"forged tokens, {number}" for number in ("a thousand pseudonyms", "one pseudonym")]


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
        return BINARY_TYPE, "", pack(Batch((report(self.plain[0]),)))


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


def test_a_search_for_the_place_among_all_reports_is_noticed(
    intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted."""
    monkeypatch.setattr(decode, "EXPLAINED_REPORTS", MAX_REPORTS)

    assert "a thousand reports, wrong padding" in exceeding(intake)


def exceeding(intake: Intake) -> set[str]:
    """Return the bodies that take too much work."""
    for make in (intake.honest, *intake.makers.values()):
        intake.take(make())  # caches what is the same for all bodies
    most = MOST_TIMES * work(intake, intake.honest())
    return {name for name, make in intake.makers.items() if work(intake, make()) > most}


def verified(intake: Intake, name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many signatures a body has verified."""
    checked = []

    def check(*arguments: Any) -> bool:
        checked.append(arguments)
        return False

    monkeypatch.setattr(token_check, "_is_valid", check)
    assert not isinstance(intake.take(intake.makers[name]()), Exception)
    return len(checked)


@pytest.mark.parametrize("name", FORGED)
def test_no_body_has_more_signatures_verified_than_its_limit_of_pseudonyms(
    intake: Intake, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a device key: each is dearer than all other checks of its report."""
    assert verified(intake, name, monkeypatch) == KEYLESS_BODY_PSEUDONYMS


@pytest.mark.parametrize("name", FORGED)
def test_a_limit_that_comes_after_the_signatures_is_noticed(
    intake: Intake, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted."""
    monkeypatch.setattr(pipeline, "within_limit", lambda *_: None)

    assert verified(intake, name, monkeypatch) == 1_000


def test_a_limit_that_counts_pseudonyms_alone_is_noticed(
    intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a thousand tokens may name one."""
    monkeypatch.setattr(body_limit, "_rows", lambda group: np.zeros(group.reports, body_limit._ROW))

    assert verified(intake, "forged tokens, one pseudonym", monkeypatch) == 1_000


def test_a_body_writes_no_more_series_than_its_limit_of_pseudonyms(
    intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its thousand reports, of sixteen pseudonyms in each of twenty definitions."""
    committed: list[int] = []
    commit = intake.aggregator.store.commit

    def counting(batches: Any, counts: Any) -> Any:
        committed.append(len({batch.series.fingerprint for batch in batches}))
        return commit(batches, counts)

    monkeypatch.setattr(intake.aggregator.store, "commit", counting)
    intake.take(intake.makers["a thousand reports, all definitions"]())

    assert committed == [KEYLESS_BODY_PSEUDONYMS]


def looked_up(intake: Intake, name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many rows a body has the store look up at once."""
    rows = []
    look_up = sqlite_intake._Rows._look_up

    def counting(self: Any, epoch: int, wanted: list[bytes]) -> None:
        rows.extend(wanted)
        look_up(self, epoch, wanted)

    monkeypatch.setattr(sqlite_intake._Rows, "_look_up", counting)
    intake.take(intake.makers[name]())
    return len(rows)


def test_a_row_that_a_body_repeats_is_looked_up_once(
    intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert looked_up(intake, "a thousand reports", monkeypatch) == 1


def test_a_look_up_for_each_report_is_noticed(
    intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted."""
    monkeypatch.setattr(sqlite_intake, "unique_rows", list)

    assert looked_up(intake, "a thousand reports", monkeypatch) == MAX_REPORTS


def checked(intake: Intake, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many reports of a body that names every definition are checked."""
    sizes = []
    check = pipeline.check_reports

    def counting(series: Any, columns: Any) -> Any:
        sizes.append(len(columns))
        return check(series, columns)

    monkeypatch.setattr(pipeline, "check_reports", counting)
    intake.take(intake.makers["a thousand reports, all definitions"]())
    return sum(sizes)


def test_excess_reports_of_a_body_are_not_checked(
    intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeats = -(-MAX_REPORTS // (DEFINITIONS * KEYLESS_BODY_PSEUDONYMS))

    assert checked(intake, monkeypatch) == repeats * KEYLESS_BODY_PSEUDONYMS


def test_a_check_of_all_reports_is_noticed(intake: Intake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted."""
    monkeypatch.setattr(pipeline, "within_limit", lambda *_: None)

    assert checked(intake, monkeypatch) == MAX_REPORTS


def test_a_group_writes_the_rows_of_all_its_series_at_once(
    intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One statement for sixteen series, as for one."""
    statements: list[str] = []
    commit_group = sqlite_intake.commit_group

    def tracing(database: sqlite3.Connection, *arguments: Any) -> Any:
        database.set_trace_callback(statements.append)
        verdicts = commit_group(database, *arguments)
        database.set_trace_callback(None)
        return verdicts

    monkeypatch.setattr(sqlite_intake, "commit_group", tracing)
    intake.take(intake.makers["a thousand reports, all definitions"]())

    assert sum(each.startswith("insert into ledger") for each in statements) == 1
