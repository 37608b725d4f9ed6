"""The notebook's reader, against real endpoints on a real port."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from veilcount_analysis.text import result_pages
from veilcount_reader import NotConfirmed, Reader, ReaderError
from veilcount_reader.reader import spelled

from ..aggregator.queries.simulated_reports import WORDS, counted, send_inputs
from ..aggregator.web.api.deployment_fixtures import Deployment


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
