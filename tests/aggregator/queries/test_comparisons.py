"""Comparisons of two sides, value by value: differences and what would have been detected."""

from __future__ import annotations

import pytest

from veilcount_analysis.errors import QueryError

from ..web.api.deployment_fixtures import Deployment
from .simulated_reports import (
    FILE,
    LISTS,
    NOVEMBER,
    compare,
    counted,
    estimate,
    figures_of,
    only,
    send,
)


def test_two_segments_differ_where_their_populations_do(stocked: Deployment) -> None:
    """Light and dark were swapped by a quarter; system is the same in both."""
    answer = compare(stocked, "theme", a="arm:A", b="arm:B", **NOVEMBER)
    light, dark, system = answer.rows
    _, side = only(estimate(stocked, "theme", segment="arm:B", **NOVEMBER))

    assert (answer.a.n, answer.b.n, answer.family) == (4000, 4000, 3)
    assert (answer.a.label, answer.b.label) == ("arm:A", "arm:B")
    assert answer.a.segments == {"arm": "A"}
    assert light.low < -0.25 < light.high < 0
    assert 0 < dark.low < 0.25 < dark.high
    assert system.low < 0 < system.high
    assert [row.differs for row in answer.rows] == [True, True, False]
    assert answer.sentence == "Of 3 values compared, 2 differ, taken all together: light, dark."
    assert answer.overall is not None
    assert answer.overall.differs
    assert answer.overall.sentence.startswith("Something differs (p = ")
    assert answer.overall.sentence.endswith("one test of all 3 values at once).")
    assert "light: arm:A is 21 to 28 of 100 lower than arm:B" in light.sentence
    assert "would have been seen 4 times in 5" in system.sentence
    for row, single in zip(answer.rows, figures_of(side), strict=True):
        assert (row.b.figure, row.b.low, row.b.high) == (single.figure, single.low, single.high)
        assert row.difference == pytest.approx(row.a.figure - row.b.figure)


def test_two_ranges_of_days_are_compared(stocked: Deployment) -> None:
    """In each, one answer a person: the same people may be on both sides, and it says so."""
    answer = compare(stocked, "theme", a="2026-10-01..2026-10-31", b=["2026-11-01..2026-11-30"])
    arms = compare(stocked, "theme", a="arm:A", b="arm:B", **NOVEMBER)
    days = compare(stocked, "opened", a="..2026-11-20", b="2026-11-21..")
    nobody = compare(stocked, "minutes", a="..2026-11-08", b="2026-11-09..")

    assert (answer.a.n, answer.b.n) == (4000, 8000)
    assert answer.estimand == "of everybody who could have been asked"
    assert "worst correlation" in answer.note
    assert answer.overall is None  # of independent sides only
    assert "No person is on both sides" in arms.note
    assert "system" in answer.sentence
    assert "none is seen to differ" in days.sentence
    assert "of 100 would have been seen 4 times in 5" in days.sentence
    assert not nobody.rows
    assert nobody.sentence == (
        "Nothing to compare: 8,000 reports of ..2026-11-08, 0 of 2026-11-09..."
    )


def test_a_comparison_for_every_look_is_wider_and_says_so(stocked: Deployment) -> None:
    one, every = (
        compare(stocked, "theme", a="arm:A", b="arm:B", looks=looks, **NOVEMBER)
        for looks in ("one", "every")
    )

    assert (one.validity, every.validity) == ("valid at one planned look", "valid at every look")
    assert "valid at every look" in every.rows[0].sentence
    assert every.overall is None
    for planned, anytime in zip(one.rows, every.rows, strict=True):
        assert anytime.low < planned.low < planned.high < anytime.high
        assert anytime.a.low < planned.a.low
        assert anytime.p >= planned.p
        assert anytime.detectable is not None
        assert planned.detectable is not None
        assert anytime.detectable > planned.detectable


def test_a_side_may_be_several_words(stocked: Deployment) -> None:
    one, other = ["arm:A", "2026-11-01..2026-11-30"], ["arm:B", "level:2", "2026-12-01.."]
    answer = compare(stocked, "theme", a=one, b=other)

    assert answer.a.label == "arm:A, 2026-11-01..2026-11-30"
    assert answer.b.segments == {"arm": "B", "level": "2"}
    assert (answer.a.n, answer.b.n) == (4000, 1000)


def test_two_series_are_compared_by_the_values_of_both(empty: Deployment) -> None:
    """The newer one has one more, which only it could say."""
    old = empty.series("once").fingerprint
    counted(send(empty, "once", [1000, 3000]))
    empty.push(FILE.replace("values = [1, 2]", "values = [3, 2, 1]"), **LISTS)
    new = empty.series("once").fingerprint
    counted(send(empty, "once", [1000, 2000, 2000]))
    answer = compare(empty, "once", a=f"series:{new}", b=f"series:{old[:12]}")

    assert [row.value for row in answer.rows] == [2, 1]
    assert [row.difference for row in answer.rows] == pytest.approx([-0.35, 0.15], abs=0.1)
    assert answer.a.label == f"series:{new[:12]}"


def test_means_of_numbers_are_compared_too(stocked: Deployment) -> None:
    """The second arm's numbers are half as large: 28.57 and 14.29."""
    answer = compare(stocked, "ranges", a="arm:A", b="arm:B")
    (row,) = answer.rows

    assert row.value is None
    assert row.low < 14.29 < row.high
    assert row.differs
    assert row.sentence.startswith("the mean: arm:A is 8.9 to 16.0 higher than arm:B (")


def test_of_a_large_domain_the_frequent_values_are_compared_in_the_family_of_all(
    empty: Deployment,
) -> None:
    held = [4000, 3000, 0] + [0] * 697
    counted(send(empty, "word", held))
    counted(send(empty, "word", [3000, 4000, 0] + [0] * 697, period=1))
    answer = compare(empty, "word", a="..2026-11-30", b="2026-12-01..", top="2")
    hundred = compare(empty, "word", a="..2026-11-30", b="2026-12-01..")
    requested = compare(empty, "word", a="..2026-11-30", b="2026-12-01..", values="w2")

    assert {str(row.value) for row in answer.rows} == {"w0", "w1"}
    assert answer.family == 700
    assert answer.sentence.startswith("Of 2 of 700 values compared, 2 differ")
    assert len(hundred.rows) == 100
    assert [row.value for row in requested.rows] == ["w2"]


def test_sides_of_different_kinds_are_refused(empty: Deployment) -> None:
    old = empty.series("minutes").fingerprint
    counted(send(empty, "minutes", [100, 100]))
    empty.push(FILE.replace('range = [0, 100]\nmeasure = "mean"', "boolean = true"), **LISTS)
    counted(send(empty, "minutes", [100, 100]))
    new = empty.series("minutes").fingerprint
    with pytest.raises(QueryError, match="one side is of a number"):
        compare(empty, "minutes", a=f"series:{old}", b=f"series:{new}")
