"""Figures on pages: as many digits as their intervals allow, and no exponents."""

from __future__ import annotations

from math import log10

import pytest

from veilcount_aggregator.dashboard.charts import logarithmic_axis
from veilcount_aggregator.dashboard.formatting import FigureFormat
from veilcount_aggregator.text import number_format


def test_the_narrowest_interval_decides_the_digits_of_all_figures() -> None:
    shares, number, coarse, none = (
        FigureFormat.for_widths(widths, of_shares=widths != [35.0])
        for widths in ([0.2, 0.012], [35.0], [0.1], [float("nan"), 0.0])
    )

    assert (shares.figure(0.31234), shares.size(0.04)) == ("31.2%", "4.0 points")
    assert shares.ends(0.019, 0.0634) == "1.9 to 6.3"
    assert [shares.signed(each) for each in (0.041, -0.041)] == ["+4.1", "-4.1"]
    assert (number.figure(1234.56), number.size(12.3)) == ("1,235", "12")
    for almost in (0.0, 0.0001, -0.0001):
        assert (coarse.signed(almost), coarse.bare(almost)) == ("0", "0")
    assert none.figure(0.5) == FigureFormat.for_widths([], of_shares=True).figure(0.5) == "50.0%"


@pytest.mark.parametrize(
    ("half_width", "kind", "text"),
    [
        (0.0142, "share", "+/- 1.4 points"),
        (1.0, "share", "+/- 100 points"),
        (0.0, "share", "+/- 0 points"),
        (1234.0, "number", "+/- 1,230"),
        (0.0004, "number", "+/- 0.0004"),
    ],
)
def test_a_half_width_has_two_or_three_digits_and_no_exponent(
    half_width: float, kind: str, text: str
) -> None:
    assert number_format.around(half_width, of_shares=kind == "share") == text


@pytest.mark.parametrize(
    ("figures", "ticks"),
    [
        ([0.3, 20.0, None], ["0.2", "0.5", "1", "2", "5", "10", "20"]),
        ([0.41, 0.45], ["0.2", "0.5"]),
        ([0.002, 300.0], ["0.001", "0.01", "0.1", "1", "10", "100", "1,000"]),
        ([None, 0.0], ["1"]),
    ],
)
def test_a_logarithmic_axis_reaches_from_tick_to_tick(
    figures: list[float | None], ticks: list[str]
) -> None:
    drawn = logarithmic_axis("", figures)

    assert [text for _, text in drawn["ticks"]] == ticks
    assert all(drawn["range"][0] < log10(each) < drawn["range"][1] for each in figures if each)
