"""Results of the reader as tables of pandas, polars and Arrow, as text, HTML and drawings."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from matplotlib import pyplot as plt

from veilcount_analysis.text import arrow_tables
from veilcount_reader import Reader

mpl.use("agg")


def test_an_estimate_is_a_table(reader: Reader) -> None:
    """A row a figure, with what it protects and counts; days are dates."""
    estimate = reader.estimate("theme", by="month", from_="2026-11-01")
    frame = estimate.to_pandas()

    assert list(frame["of"]) == ["dark", "system", "light", "light", "system", "dark"]
    assert list(frame["n"]) == [4000] * 6
    assert frame["from"].iloc[0] == pd.Timestamp("2026-11-01")
    assert set(frame["epsilon_user"]) == {"24"}
    assert (frame["low"] < frame["figure"]).all()
    assert frame["figure"].dtype == np.float64
    assert frame["at"].isna().all()


def test_arrow_and_pandas_hold_the_same(reader: Reader) -> None:
    estimate = reader.estimate("plan")
    table = estimate.to_arrow()

    assert table.column("of.plan").to_pylist() == ["paid", "free"] * 2
    assert table.column("figure").to_pylist() == estimate.to_pandas()["figure"].tolist()
    assert table.column_names == list(estimate.to_pandas().columns)


def test_frames_of_one_kind_are_tidy(reader: Reader) -> None:
    """In pandas and polars, as documented; days are dates."""
    common = ["collection", "series", "from", "to", "n", "usable"]
    spread = reader.estimate("spread")
    theme = reader.estimate("theme", by="month", from_="2026-11-01")
    figure = ["kind", "of", "at", "figure", "low", "high", "fake_low", "fake_high"]
    figure += ["answers", "count", "simultaneous_low", "simultaneous_high"]
    for kind in ("mean", "bucket", "curve", "quantile"):
        frame = spread.to_pandas(kind)
        assert list(frame.columns) == [*common, *figure] == spread.to_polars(kind).columns
        assert len(frame) == len(spread.to_polars(kind)) > 0
    shares = theme.to_pandas("share")
    assert shares["figure"].tolist() == theme.to_polars("share")["figure"].to_list()
    assert theme.to_polars()["from"].dtype == pl.Date
    assert "of.plan" in reader.estimate("plan").to_pandas("share").columns
    with pytest.raises(ValueError, match="kind = 'shares': the result has share"):
        theme.to_pandas("shares")


def test_a_parquet_file_holds_the_same(reader: Reader, tmp_path: Path) -> None:
    estimate = reader.estimate("theme")
    estimate.to_parquet(tmp_path / "theme.parquet")

    assert pd.read_parquet(tmp_path / "theme.parquet")["low"].tolist() == list(estimate.low)


def test_days_are_dates_in_every_table(reader: Reader, tmp_path: Path) -> None:
    """As text, a range of days would have to be parsed again, or be sorted as words."""
    estimate = reader.estimate("theme", by="month", from_="2026-11-01")
    days = [date(2026, 11, 1)] * 3 + [date(2026, 12, 1)] * 3
    table, polars = estimate.to_arrow(), estimate.to_polars()
    estimate.to_parquet(tmp_path / "theme.parquet")
    pandas = pd.read_parquet(tmp_path / "theme.parquet")

    assert table.column("from").to_pylist() == polars["from"].to_list() == days
    assert pandas["from"].tolist() == days
    assert [day.date() for day in estimate.to_pandas()["from"]] == days


def test_the_segments_that_a_figure_covers_are_columns(reader: Reader) -> None:
    """Two filtered frames can be put together and tell their arms."""
    arms = [reader.estimate("theme", segment=f"arm:{arm}") for arm in "AB"]
    frame = pd.concat([arm.to_pandas("share") for arm in arms])

    assert frame["segments.arm"].tolist() == ["A"] * 3 + ["B"] * 3
    assert arms[0].to_arrow().column("segments.arm").to_pylist() == ["A"] * 3
    assert "segments.arm" not in reader.estimate("theme").to_pandas().columns


def test_arro3_takes_the_place_of_pyarrow(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same columns, types and cells, in memory and in a file."""
    estimate = reader.estimate("plan")
    expected = estimate.to_arrow()
    monkeypatch.setattr(arrow_tables, "_has_arro3_alone", lambda: True)
    table = estimate.to_arrow()
    estimate.to_parquet(tmp_path / "plan.parquet")

    assert type(table).__module__.startswith("arro3")
    assert pa.table(table).equals(expected)
    assert pyarrow.parquet.read_table(tmp_path / "plan.parquet").equals(expected)


def test_a_result_is_one_screen_of_text(reader: Reader) -> None:
    """A line of a notebook or shell that ends in a result must not print thousands of figures."""
    theme, words, spread = (reader.estimate(name) for name in ("theme", "word", "spread"))
    compared = reader.compare("theme", "arm:A", "arm:B")

    assert "light" in repr(theme)
    assert theme.adequacy.split()[0] in repr(theme)
    assert "differ" in repr(compared)
    for result in (
        theme,
        words,
        spread,
        compared,
        reader.budget("theme"),
        reader.plan(epsilon=1, devices=100),
    ):
        lines = repr(result).splitlines()
        assert 2 <= len(lines) <= 30
        assert max(map(len, lines)) <= 100


def test_html_is_a_table_below_the_verdict(reader: Reader) -> None:
    shown, few = reader.estimate("theme")._repr_html_(), reader.estimate("word")._repr_html_()
    compared = reader.compare("theme", "arm:A", "arm:B")._repr_html_()

    assert '<th scope="row" style="text-align: left">light</th>' in shown
    assert "0.95 intervals, one for each value" in shown
    assert "Figures would be noise" in few
    assert "%" not in few.partition("<table>")[2]
    assert "differ" in compared


def test_drawings_show_each_figure_with_its_interval(reader: Reader) -> None:
    """Of values dots, of a distribution its curve, over time small multiples."""
    estimate = reader.estimate("theme")
    axes = estimate.plot()
    (whiskers,) = axes.collections
    drawn = [(low, high) for (low, _), (high, _) in whiskers.get_segments()]
    assert [label.get_text() for label in axes.get_yticklabels()] == estimate.of
    assert drawn == list(zip(estimate.low, estimate.high, strict=True))

    panels = reader.estimate("theme", by="month", from_="2026-11-01").plot()
    assert sorted(each.get_title(loc="left") for each in panels) == ["dark", "light", "system"]
    assert "680 more values" in reader.estimate("word").plot().get_xlabel()
    (curve,) = reader.estimate("spread").plot().lines
    assert len(curve.get_xdata()) == 257
    plt.close("all")
