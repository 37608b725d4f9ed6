"""Charts as they are drawn: which marks there are, where they stand, and what they say."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations, combinations_with_replacement, pairwise
from typing import Any

import pytest
from flask import Flask, render_template_string

from veilcount_aggregator.web.dashboard import formatting
from veilcount_aggregator.web.dashboard.charts import (
    Axis,
    Bars,
    Drawing,
    HeatMap,
    Lines,
    Part,
    StackedColumns,
    curves,
    logarithmic_axis,
)
from veilcount_aggregator.web.dashboard.scales import NARROW, Tick
from veilcount_aggregator.web.dashboard.svg import Gauge, Mark, Plot, draw

LEFT = Part(values=(10.0, None), low=(5.0, 0.0), high=(20.0, 0.0), texts=("a: 10", "b"), name="l")
RIGHT = Part(values=(-20.0, 0.0), low=(-20.0, -5.0), high=(-10.0, 5.0), texts=("c", "d"), name="r")
STACKED = (
    Part(values=(1.0, 2.0), texts=("u: 1 spent", "v: 2 spent"), name="spent"),
    Part(values=(3.0, 2.0), texts=("u: 3 remain", "v: 2 remain"), name="remains", rest=True),
)

HEAT = HeatMap(
    ("<a>", "b"),
    Axis("theme", "{:.0%}".format, labels=("light", "dark", "other")),
    Part(values=(0.1, 0.2, 0.0, 0.4, -0.1, 0.3), texts=tuple("ABCDEF")),
)


def position(mark: Mark, look: str) -> dict[str, float]:
    """Return where a shape of a mark is, in percent."""
    (shape,) = [shape for shape in mark.shapes if shape.look == look]
    return {name: float(value.rstrip("%")) for name, value in shape.attributes.items()}


def line(*, logarithmic: bool = False, **more: Any) -> Lines:
    part = Part(x=(1.0, 10.0, 100.0), values=(1.0, 2.0, 3.0), texts=("A", "B", "C"))
    x = Axis("n", logarithmic=logarithmic, ends=(1.0, 100.0), ticks=((1.0, "1"), (100.0, "100")))
    return Lines((replace(part, **more),), x, Axis("y", ends=(0.0, 4.0)))


def text_of(plot: Plot) -> list[str]:
    return [mark.text for mark in plot.marks]


def test_a_bar_starts_at_zero_and_its_whisker_is_the_interval() -> None:
    right = draw(Bars(("a", "b"), (RIGHT,), Axis("x"))).marks[0]
    drawn = draw(Bars(("a", "b"), (LEFT, RIGHT), Axis("x")))
    first = drawn.marks[0]

    assert position(right, "bar")["width"] == 80  # from -20 to 0, of -20 to 5
    assert drawn.zero == position(first, "bar")["x"] == 50
    assert position(first, "bar")["width"] == 25
    assert [position(first, "whisker")[end] for end in ("x1", "x2")] == [62.5, 100]


def test_a_figure_that_is_missing_has_no_bar_and_each_part_its_colour_and_its_lane() -> None:
    drawn = draw(Bars(("a", "b"), (LEFT, RIGHT), Axis("x")))
    tops = [position(mark, "bar")["y"] for mark in drawn.marks]

    assert text_of(drawn) == ["a: 10", "c", "d"]
    assert [mark.hue for mark in drawn.marks] == ["one", "two", "two"]
    assert drawn.names == (("one", "l"), ("two", "r"))
    assert 0 < tops[0] < tops[1] < 50 < tops[2] < 100
    assert drawn.rows == ("a", "b")


def test_columns_stand_on_each_other_and_what_remains_has_no_colour() -> None:
    drawn = draw(StackedColumns(STACKED, Axis("day", labels=("u", "v")), Axis("n")))
    bars = [position(mark, "bar whole") for mark in drawn.marks]
    below, above = bars[0], bars[2]

    assert [mark.hue for mark in drawn.marks] == ["one", "one", "rest", "rest"]
    assert below["y"] + below["height"] == pytest.approx(100)
    assert above["y"] + above["height"] == pytest.approx(below["y"])
    assert above["height"] == pytest.approx(3 * below["height"], abs=0.02)
    assert [bar["x"] for bar in bars[:2]] == [3, 53]
    assert [tick.at for tick in drawn.x] == [25, 75]


def test_columns_without_a_period_are_drawn_empty() -> None:
    drawn = draw(StackedColumns((Part(values=()),), Axis("day", labels=()), Axis("n")))

    assert (drawn.marks, drawn.x) == ((), ())


def test_a_line_goes_through_its_points_on_both_kinds_of_axis() -> None:
    linear, logarithmic = draw(line()), draw(line(logarithmic=True))

    assert [path.outline for path in linear.paths] == ["M0 75L9.09 50L100 25"]
    assert [path.outline for path in logarithmic.paths] == ["M0 75L50 50L100 25"]
    assert [position(mark, "dot quiet")["cx"] for mark in logarithmic.marks] == [0, 50, 100]
    assert text_of(linear) == ["A", "B", "C"]


def test_a_band_lies_around_its_line_and_an_open_point_is_hollow() -> None:
    low, high = (0.0, 1.0, 2.0), (2.0, 3.0, 4.0)
    drawn = draw(line(low=low, high=high, dots=True, open=(False, False, True)))

    assert [path.look for path in drawn.paths] == ["band", "line"]
    assert drawn.paths[0].outline == "M0 50L9.09 25L100 0L100 50L9.09 75L0 100Z"
    assert [mark.shapes[-1].look for mark in drawn.marks] == ["dot", "dot", "dot hollow"]


def test_a_line_has_a_gap_where_a_figure_is_missing() -> None:
    drawn = draw(line(values=(1.0, None, 3.0)))

    assert drawn.paths[0].outline == "M0 75M100 25"
    assert text_of(drawn) == ["A", "C"]


def test_a_line_over_labels_has_its_points_at_them() -> None:
    parts = curves(["u", "v"], {"it": [1.0, 10.0]}, float, lambda x, name, y: f"{x} {name} {y:g}")
    drawn = draw(Lines(parts, Axis(labels=("u", "v")), logarithmic_axis("y", [1.0, 10.0])))

    assert text_of(drawn) == ["u it 1", "v it 10"]
    assert [position(mark, "hit")["cx"] for mark in drawn.marks] == [25, 75]
    assert [tick.text for tick in drawn.x] == ["u", "v"]


def test_labels_do_not_run_into_each_other() -> None:
    """Of 200 days some are named, and of these a few on a narrow screen."""
    days = tuple(f"2026-{n // 28 + 1:02}-{n % 28 + 1:02}" for n in range(200))
    part = Part(values=(1.0,) * 200, texts=days)
    ticks = draw(StackedColumns((part,), Axis("day", labels=days), Axis("n"))).x
    narrow = [tick for tick in ticks if not tick.minor]

    assert 5 <= len(ticks) <= 10
    assert 2 <= len(narrow) <= 4
    assert min(b.at - a.at for a, b in pairwise(ticks)) > 10


GAUGE_LABELS = ("trusted curator: 5,950", "shuffled: 22,000", "nobody trusted: 5 million")


def near_each_other(lines: list[tuple[Tick, int]]) -> list[tuple[Tick, Tick]]:
    """Return the labels of one line that overlap on a narrow screen."""
    return [
        (one, two)
        for (one, line), (two, other) in combinations(lines, 2)
        if line == other and one.ends(NARROW)[1] > two.ends(NARROW)[0]
    ]


def test_labels_of_a_gauge_never_overlap() -> None:
    """The planted rule, by position alone, puts two near the middle on one line."""
    planted = 0
    for places in combinations_with_replacement(range(0, 101, 4), len(GAUGE_LABELS)):
        marks = [Tick(float(at), text) for at, text in zip(places, GAUGE_LABELS, strict=True)]
        gauge = Gauge("", 0.0, marks)
        planted += bool(near_each_other([(tick, int(tick.at < 12)) for tick in marks]))

        assert near_each_other(gauge.labels) == []
        assert [tick for tick, _ in gauge.labels] == marks
        assert gauge.lines == 1 + max(line for _, line in gauge.labels)
    assert planted


def test_a_line_that_crosses_zero_has_a_rule_at_it() -> None:
    crossing = replace(line(), y=Axis("y", ends=(-1.0, 3.0)))

    assert (draw(crossing).level, draw(line()).level) == (75.0, None)


def test_a_point_without_a_text_is_not_read_out() -> None:
    assert text_of(draw(line(texts=("A", "", "C")))) == ["A", "C"]


def test_a_cell_stands_in_its_row_and_column_and_the_larger_is_darker() -> None:
    """What is below 0 by noise is as pale as 0, and every cell writes its figure."""
    marks = draw(HEAT).marks
    shades = [float(mark.shapes[0].attributes["fill-opacity"]) for mark in marks]

    assert [position(marks[4], "heat")[name] for name in ("x", "y", "height")] == [33.33, 50, 50]
    assert marks[4].middle == (50.0, 75.0)
    assert [mark.written for mark in marks] == ["10%", "20%", "0%", "40%", "-10%", "30%"]
    assert shades[2] == shades[4] < shades[0] < shades[1] < shades[5] < shades[3] <= 0.5
    assert [tick.text for tick in draw(HEAT).x] == ["light", "dark", "other"]


def test_a_heat_map_of_nothing_is_pale() -> None:
    nothing = replace(HEAT, part=replace(HEAT.part, values=(0.0,) * 6))

    assert {mark.shapes[0].attributes["fill-opacity"] for mark in draw(nothing).marks} == {"0.06"}


# -- as markup -------------------------------------------------------------------------------------


def markup(drawing: Drawing) -> str:
    app = Flask("veilcount_aggregator.web.dashboard.pages")
    app.jinja_env.filters.update(formatting.FILTERS)
    source = "{% from 'dashboard/parts.html' import plot %}{{ plot(drawing, 'How <many>') }}"
    with app.test_request_context():
        return render_template_string(source, drawing=drawing)


@pytest.mark.parametrize(
    ("drawing", "elements"),
    [
        (Bars(("<a>", "b"), (LEFT, RIGHT), Axis("x")), {"title": 3, "rect": 8, "li": 4}),
        (
            StackedColumns(STACKED, Axis(labels=("u", "v")), Axis("n")),
            {"title": 4, "rect": 6, "li": 2},
        ),
        (line(dots=True, low=(0.0,) * 3, high=(4.0,) * 3),
         {"title": 3, "circle": 6, "path": 2, "li": 0}),
        (HEAT, {"title": 6, "rect": 6, "li": 2}),
    ],
    ids=["bars", "columns", "lines", "heat map"],
)  # fmt: skip
def test_each_mark_has_a_title_and_a_page_needs_no_style(
    drawing: Drawing, elements: dict[str, int]
) -> None:
    html = markup(drawing)
    titles = re.findall("<title>(.*?)</title>", html)

    assert {tag: len(re.findall(rf"<{tag}[ >]", html)) for tag in elements} == elements
    assert titles == text_of(draw(drawing))
    assert 'role="img" aria-label="How &lt;many&gt;"' in html
    assert "style=" not in html
    assert "<a>" not in html
    assert "<script" not in html
