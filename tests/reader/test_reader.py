"""The notebook's reader, against real endpoints on a real port."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from matplotlib import pyplot as plt

from veilcount_aggregator.records.api_keys import Role
from veilcount_analysis.text import arrow_tables, result_pages
from veilcount_reader import (
    AnswerRefused,
    KeyRefused,
    NotConfirmed,
    NotFound,
    Reader,
    ReaderError,
    Unreachable,
)
from veilcount_reader.reader import spelled

from ..aggregator.operate.cli.server_fixtures import listening
from ..aggregator.queries.simulated_reports import (
    FILE,
    LISTS,
    WORDS,
    counted,
    send,
    send_inputs,
    send_numbers,
)
from ..aggregator.web.api.deployment_fixtures import Deployment, deployment
from ..system.server import free_port

mpl.use("agg")


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    now = datetime(2026, 12, 5, tzinfo=UTC)
    with deployment(tmp_path_factory.mktemp("read"), now=now) as made:
        made.push(FILE, **LISTS)
        counted(send(made, "theme", [1000, 2000, 1000], period=1))
        counted(send(made, "theme", [2000, 1000, 1000], period=2, segment=2))
        counted(send(made, "plan", [100, 200, 300, 400]))
        counted(send_numbers(made, "spread", np.random.default_rng(20).random(2000)))
        counted(send_inputs(made, "word", np.full(300, 7)))
        yield made


@pytest.fixture(scope="module")
def url(stocked: Deployment) -> Iterator[str]:
    with listening(stocked.app.wsgi_app) as address:
        yield address


@pytest.fixture
def reader(url: str, stocked: Deployment) -> Reader:
    return Reader(url, stocked.key(Role.ANALYST))


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


def test_its_arrays_are_of_the_last_time_range_of_the_newest_series(reader: Reader) -> None:
    estimate = reader.estimate("theme", by="month", level=0.99)
    last = estimate.to_pandas().tail(3)

    assert estimate.of == list(last["of"])
    assert last["figure"].is_monotonic_decreasing
    for name in ("figure", "low", "high"):
        assert getattr(estimate, name).tolist() == last[name].tolist()
    assert (estimate.n, estimate.level, estimate.collection) == (4000, 0.99, "theme")
    assert estimate.epsilon == {"event": "2", "day": "2", "user": "24", "adjacency": "substitute"}
    assert estimate.unit == "month"
    assert estimate.estimand == "of everybody who could have been asked"


def test_numbers_have_a_mean(reader: Reader) -> None:
    estimate = reader.estimate("spread")
    frame = estimate.to_pandas()

    assert estimate.of == [None]
    assert estimate.low[0] < 50 < estimate.high[0]
    assert frame["kind"].value_counts().to_dict() == {
        "curve": 257,
        "bucket": 256,
        "quantile": 7,
        "mean": 1,
    }


def test_arrow_and_pandas_hold_the_same(reader: Reader) -> None:
    estimate = reader.estimate("plan")
    table = estimate.to_arrow()

    assert table.column("of.plan").to_pylist() == ["paid", "free"] * 2
    assert table.column("figure").to_pylist() == estimate.to_pandas()["figure"].tolist()
    assert table.column_names == list(estimate.to_pandas().columns)


def test_values_of_python_become_parameters(reader: Reader) -> None:
    """Objects for crossed values, several words for lists, exact numbers."""
    estimate = reader.estimate("plan", values=[{"answer": "dark", "plan": "paid"}])
    empty = reader.estimate("once", values=[1, 2])

    assert estimate.of == [{"answer": "dark", "plan": "paid"}]
    assert (empty.of, empty.n) == ([1, 2], 0)
    assert np.isnan(empty.figure).all()
    assert empty.to_pandas()["figure"].isna().all()
    assert spelled(argument=True) == ["true"]
    assert spelled(pd.Timestamp("2026-11-01")) == spelled(date(2026, 11, 1)) == ["2026-11-01"]
    assert (spelled(None), spelled(Fraction(1, 2)), spelled(Fraction(3))) == ([], ["0.5"], ["3"])


def test_all_values_of_a_large_domain_are_there_the_largest_share_first(reader: Reader) -> None:
    """700 values are seven pages of the endpoint."""
    frame = reader.estimate("word", to="2026-11-30").to_pandas()

    assert sorted(frame["of"]) == sorted(f"w{place}" for place in range(WORDS))
    assert frame["of"].iloc[0] == "w7"
    assert frame["figure"].is_monotonic_decreasing
    assert reader.estimate("word", top=2).of[0] == "w7"
    assert len(reader.estimate("word", size=5).of) == 5


def test_pages_of_different_moments_are_never_put_together(
    reader: Reader, stocked: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report that arrives between two pages starts the reading anew, a few times."""
    monkeypatch.setattr(result_pages, "MOST_FIGURES", 400)
    query, requests = reader._query, list[int]()
    arriving = 2

    def query_as_a_report_arrives(*arguments: Any) -> Any:
        requests.append(len(requests))
        if len(requests) - 1 in range(2, 2 + 2 * arriving, 2):
            counted(send_inputs(stocked, "word", np.array([7]), seed=len(requests)))
        return query(*arguments)

    monkeypatch.setattr(reader, "_query", query_as_a_report_arrives)
    before = reader.estimate("word", values=["w1"]).n
    requests.clear()
    estimate = reader.estimate("word")
    assert (estimate.n, len(estimate.of)) == (before + arriving, WORDS)

    requests.clear()
    arriving = 100
    with pytest.raises(ReaderError, match="give `to`, a day before the open period"):
        reader.estimate("word")


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


def test_a_release_is_made_when_it_is_confirmed(reader: Reader) -> None:
    """Not confirmed, it costs nothing and the price is stated; the same again is free."""
    query: dict[str, Any] = {"query": "histogram", "epsilon": Fraction(1, 2), "from_": "2026-10-01"}
    with pytest.raises(NotConfirmed, match=r"spends epsilon 0\.5 .* 1 remains: confirm=True"):
        reader.release("curated", **query)
    assert len(reader.releases("curated")) == 0

    first, again = (reader.release("curated", **query, confirm=True) for _ in range(2))

    assert (first["charged"], again["charged"]) == (True, False)
    assert again.to_pandas().equals(first.to_pandas())
    assert list(first.to_pandas().columns) == ["value", "figure", "low", "high"]
    (past,) = reader.releases("curated")
    assert past["figures"] == first["figures"]
    assert reader.releases("curated").remaining()["remaining"].tolist() == ["0.5"]
    assert "histogram" in reader.releases("curated")._repr_html_()


def test_sides_are_compared(reader: Reader) -> None:
    compared = reader.compare("theme", "arm:A", "arm:B", looks="every")

    assert "differ" in compared.sentence
    assert compared.overall == ""  # at one look alone
    assert "all 3 values at once" in reader.compare("theme", "arm:A", "arm:B").overall
    assert compared.difference.shape == compared.low.shape == compared.high.shape == (3,)
    assert (compared.holm <= 1).all()
    assert list(compared.to_pandas()["a"]) == ["arm:A"] * 3
    assert set(compared.columns["looks"]) == {"every"}


def test_budgets_contrasts_plans_and_names_are_documents(reader: Reader) -> None:
    assert [each["name"] for each in reader.collections()][:2] == ["theme", "opened"]
    assert reader.budget("theme")["series"][0]["budget"]["figures"]["user"] == "24"
    assert len(reader.contrast("theme", n=1000)["series"][0]["contrast"]["lines"]) == 5
    assert reader.plan(devices=1000, epsilon=Fraction(7, 10))["epsilon"] == "0.7"


# -- what goes wrong -------------------------------------------------------------------------------


def test_a_refused_key_names_the_fix_and_is_never_printed(url: str, stocked: Deployment) -> None:
    device, analyst = stocked.key(Role.DEVICE), stocked.key(Role.ANALYST)
    for key, fix in (("nonsense", "veilcount keys create"), (device, "role analyst")):
        with pytest.raises(KeyRefused, match=fix):
            Reader(url, key).collections()

    assert analyst not in repr(Reader(url, analyst))
    assert "Bearer" not in repr(Reader(url, analyst))


def test_a_refused_query_names_the_parameter_and_the_fix(reader: Reader) -> None:
    with pytest.raises(AnswerRefused, match="one of day, week, month, all") as refused:
        reader.estimate("theme", by="year")

    assert (refused.value.field, refused.value.status) == ("by", 400)
    for name, text in (("thme", "did you mean theme"), ("../theme", "path")):
        with pytest.raises(NotFound, match=text):
            reader.estimate(name)


def test_an_address_without_an_aggregator_is_named(url: str) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Unreachable, match=nowhere):
        Reader(nowhere, "key").collections()
    with pytest.raises(Unreachable, match="is no aggregator"):
        Reader(f"{url}/docs?", "key").collections()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://stats.example.org", "in clear"),
        ("http://10.0.0.7:8420", "in clear"),
        ("stats.example.org", "give an address"),
        ("ftp://x", "give an address"),
    ],
)
def test_a_wrong_or_unencrypted_address_is_refused_at_once(address: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Reader(address, "key")


# -- what it needs ---------------------------------------------------------------------------------

ALONE = """
import sys
from importlib.abc import MetaPathFinder

NEEDED = {"requests", "numpy", "urllib3", "idna", "certifi", "charset_normalizer", "chardet"}
OURS = {"veilcount_reader", "veilcount_analysis", "veilcount_shared"}

class Nothing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top = name.split(".")[0]
        if top not in NEEDED | OURS | sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)

sys.meta_path.insert(0, Nothing())
for name in [name for name in sys.modules if name.split(".")[0] not in sys.stdlib_module_names]:
    if not name.startswith("_") and name != "__main__":
        del sys.modules[name]

from veilcount_reader import Estimate, Reader

Reader("http://127.0.0.1:1", "key")
time_range = {"from": "2026-12-01", "to": "2026-12-31", "open_period": False, "n": 0,
    "first_period": 0, "last_period": 0,
    "usable": False, "estimand": "", "contributions": 1, "figures": [], "bands": ""}
series = {"fingerprint": "f", "question": "?", "unit": "day", "counts": "answers", "facts": {},
    "epsilon": {"event": "1", "day": "1", "user": "1"}, "ranges": [time_range]}
empty = Estimate({"collection": "c", "level": 0.95, "view": "raw",
    "looks": "one", "fakes": 0.01, "segments": {}, "series": [series]})
assert empty.figure.shape == (0,)
for table in (empty.to_pandas, empty.to_polars, empty.to_arrow, empty.plot):
    try:
        table()
    except ModuleNotFoundError as missing:
        print(missing)
loaded = {name.split(".")[0] for name in sys.modules}
print(sorted(loaded & {"flask", "msgspec", "scipy", "redis", "opendp"}))
"""


def test_it_needs_requests_and_numpy_alone() -> None:
    """With everything else out of reach; what is missing is named when it is asked for."""
    run = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "to_pandas needs pandas: pip install pandas",
        "to_polars needs polars: pip install polars",
        "to_arrow needs pyarrow, or arro3-core and arro3-io: pip install arro3-core arro3-io",
        "plot needs matplotlib: pip install matplotlib",
        "[]",
    ]
