"""CSV, Arrow and Parquet have the figures of JSON; alerts look at whole intervals."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from veilcount_aggregator import queries
from veilcount_aggregator.queries import export
from veilcount_aggregator.queries.export import (
    ArrowUnavailable,
    stream_arrow,
    stream_csv,
    stream_parquet,
)
from veilcount_analysis.errors import QueryError
from veilcount_analysis.text import arrow_tables, result_columns
from veilcount_shared.installing import install

from ..web.api.deployment_fixtures import Deployment
from .simulated_reports import compare, estimate

QUERIES: list[tuple[str, dict[str, str | list[str]]]] = [
    ("theme", {"by": "month"}),
    ("theme", {"segment": "arm:A"}),
    ("plan", {}),
    ("quiet", {}),
    ("minutes", {}),
    ("spread", {}),
    ("ranges", {"values": ["0..25", "25..100"]}),
    ("opened", {"by": "week", "view": "consistent"}),
    ("once", {"values": "1"}),
]


def rendered(answer: object) -> tuple[list[str], list[dict[str, Any]]]:
    """The result in JSON, as columns and rows."""
    found = result_columns.columns_of(queries.plain(answer))
    rows = [dict.fromkeys(found.names) | row for row in found.rows]
    return list(found.names), [{**row, **_days(row)} for row in rows]


def _days(row: dict[str, Any]) -> dict[str, date]:
    """The days of a row as dates: text in JSON and CSV, dates in Arrow and Parquet."""
    return {name: date.fromisoformat(row[name]) for name in ("from", "to") if name in row}


def from_csv(raw: bytes) -> tuple[list[str], list[dict[str, Any]]]:
    """The result in CSV, each cell read by its column's type."""
    reader = csv.DictReader(io.StringIO(raw.decode(), newline=""))
    rows = [{name: _read(name, cell) for name, cell in row.items()} for row in reader]
    return list(reader.fieldnames or ()), rows


def _read(name: str, cell: str) -> Any:
    if cell == "":
        return None
    kind = result_columns.kind_of(name)
    if kind is date:
        return date.fromisoformat(cell)
    return cell == "true" if kind is bool else kind(cell)


@pytest.mark.parametrize("small", [False, True], ids=["pyarrow", "arro3"])
@pytest.mark.parametrize("rows_of_a_part", [1, export.ROWS])
@pytest.mark.parametrize(("name", "params"), QUERIES, ids=str)
def test_csv_arrow_and_parquet_have_the_figures_of_json_in_parts_of_any_size(
    stocked: Deployment,
    name: str,
    params: dict[str, str | list[str]],
    rows_of_a_part: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    small: bool,
) -> None:
    """To the last digit; Arrow and Parquet with the promises in their metadata."""
    monkeypatch.setattr(arrow_tables, "_has_arro3_alone", lambda: small)
    monkeypatch.setattr(export, "ROWS", rows_of_a_part)
    answer = estimate(stocked, name, **params)
    streamed = pa.ipc.open_stream(b"".join(stream_arrow(answer))).read_all()
    filed = pyarrow.parquet.read_table(io.BytesIO(b"".join(stream_parquet(answer))))
    names, rows = rendered(answer)

    assert from_csv(b"".join(stream_csv(answer))) == (names, rows)
    for table in (streamed, filed):
        assert table.column_names == names
        assert table.to_pylist() == rows
        promises = json.loads(table.schema.metadata[b"veilcount.promises"])
        assert promises[answer.series[0].fingerprint] == answer.series[0].promise


def test_a_comparison_is_a_table_too(stocked: Deployment) -> None:
    answer = compare(stocked, "plan", a="..2026-11-30", b="2026-12-01..")
    arms = compare(stocked, "theme", a="arm:A", b="arm:B")
    names, rows = rendered(arms)

    assert from_csv(b"".join(stream_csv(arms))) == (names, rows)
    assert pa.ipc.open_stream(b"".join(stream_arrow(arms))).read_all().to_pylist() == rows
    assert rows[0]["a"] == "arm:A"
    assert rows[0]["a_figure"] - rows[0]["b_figure"] == pytest.approx(rows[0]["difference"])
    assert from_csv(b"".join(stream_csv(answer)))[1] == []


def test_every_row_states_its_guarantee_and_n(stocked: Deployment) -> None:
    """A figure that is copied out of its table takes its meaning along."""
    terms = "epsilon_event epsilon_day epsilon_user unit n counts estimand level view series fakes"
    _, rows = rendered(estimate(stocked, "theme", by="month"))

    for row in rows:
        assert all(row[name] is not None for name in [*terms.split(), "open_period"])


def test_counts_and_probabilities_give_the_raw_share(stocked: Deployment) -> None:
    """The simultaneous interval is the wider of the two, and a sum of values has no count."""
    answer = estimate(stocked, "theme", segment="arm:A")
    _, rows = rendered(answer)
    _, ratios = rendered(estimate(stocked, "quiet", among="answered"))
    _, (mean,) = rendered(estimate(stocked, "minutes"))

    assert {row["segments"] for row in rows} == {"arm:A"}
    for row in rows:
        raw = (row["count"] / row["n"] - row["Q"]) / (row["P"] - row["Q"])
        assert row["figure"] == pytest.approx(raw)
        assert row["simultaneous_low"] < row["low"] < row["high"] < row["simultaneous_high"]
    assert {row["count"] for row in ratios} == {None}
    assert (mean["P"], mean["Q"], mean["count"], mean["segments"]) == (None,) * 4
    assert (rows[0]["first_period"], rows[0]["last_period"]) == (0, 2)


def test_every_column_is_documented() -> None:
    text = result_columns.__doc__ or ""

    for name in (*result_columns.ESTIMATE, *result_columns.COMPARISON):
        assert name.removeprefix("a_").removeprefix("b_") in text


def test_without_arrow_it_says_what_is_missing(
    stocked: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of pyarrow and arro3 one suffices."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert b"".join(stream_arrow(estimate(stocked, "once")))
    monkeypatch.setitem(sys.modules, "arro3.core", None)

    with pytest.raises(ArrowUnavailable, match=re.escape(install("arrow"))):
        list(stream_arrow(estimate(stocked, "once")))


# -- alerts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "written", "fires"),
    [
        ("once", "2 > 0.6", True),  # three quarters
        ("once", "2 > 0.74", False),  # the estimate is, the interval is not
        ("once", "2 < 0.8", True),
        ("once", "2 < 0.7", False),
        ("minutes", "mean > 20", True),
        ("minutes", "mean<20", False),
    ],
)
def test_an_alert_fires_only_when_the_whole_interval_is_past_the_bound(
    stocked: Deployment, name: str, written: str, *, fires: bool
) -> None:
    alarm = queries.Alert.parse(written).evaluate(estimate(stocked, name))

    assert alarm.fires is fires
    assert alarm.sentence.startswith("ALARM" if fires else "No alarm")
    assert "95 % interval, n = " in alarm.sentence


def test_without_answers_no_alert_fires(stocked: Deployment) -> None:
    empty = estimate(stocked, "plan", from_="2026-12-01")
    alert = queries.Alert.parse("gone > 0.1")

    with pytest.raises(QueryError, match="the result has no such value"):
        alert.evaluate(empty)
    answer = estimate(stocked, "opened", from_="2026-12-31")
    assert not queries.Alert.parse("true > 0.1").evaluate(answer).fires


@pytest.mark.parametrize("written", ["dark", "dark = 0.6", "> 0.6", "dark > much", ""])
def test_an_alert_that_is_none_is_refused(written: str) -> None:
    with pytest.raises(QueryError) as refused:
        queries.Alert.parse(written)

    assert refused.value.field == "alert"
