"""The figures of a time range, in the panels of its kind: dots, lines and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from veilcount_analysis.kinds.kind import Kind
from veilcount_analysis.kinds.panels import Form, Panel
from veilcount_analysis.kinds.results import Figure
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import fake_share, in_unit, level
from veilcount_analysis.text.result_columns import value_name
from veilcount_analysis.text.utc_days import days

from ....queries.estimate_schema import EstimateResult, RangeResult, SeriesResult
from ..charts import SMALL, Axis, Chart, HeatMap, LinePlot, Lines, Part
from ..formatting import short_number, short_percent
from ..pages import Content
from ..scales import Scale
from ..svg import DotPlot, DotRow

TABLE_ROWS = 32  # of a curve; the file has all
CURVE_TOP = 1.05  # of the height: a band that ends at 1 is seen to end
AT = ("Share below", "Number")  # the columns of rows at a share; those at a number in reverse


def panel_views(
    kind: Kind[Any, Any],
    answer: EstimateResult,
    figures: Sequence[Figure],
    before: RangeResult | None,
) -> Iterator[PanelView]:
    """Yield the panels that have figures; `before` are those of an earlier time."""
    for panel in kind.panels:
        rows = panel.rows(figures)
        if panel.form is not Form.TABLE:
            rows = [row for row in rows if row.figure is not None]
        if rows:
            unit = kind.collection.measured_in
            yield PanelView(answer, panel, rows, None if panel.band else before, unit)


@dataclass(frozen=True, slots=True)
class PanelView:
    """One panel of a time range, which has figures."""

    answer: EstimateResult
    panel: Panel
    rows: Sequence[Figure]
    before: RangeResult | None
    unit: str | None

    @property
    def dots(self) -> DotPlot:
        """A dot and its interval for each figure, which has its unit: a phone shows no heads."""
        scale, first = self._scale(), "Value" if self.panel.of_shares else "Figure"
        write = short_percent if self.panel.of_shares else short_number
        rows = [self._dot_row(scale, row) for row in self.rows]
        head, *columns = self._columns()
        heads = first, head.removesuffix(f", {self.unit}"), *columns
        return DotPlot(self.panel.title, heads, scale.x_ticks(write), rows)

    @property
    def line(self) -> LinePlot:
        """A curve with its band."""
        edges = [row.at or 0.0 for row in self.rows]
        part = Part(
            x=tuple(edges),
            values=tuple(row.figure for row in self.rows),
            low=tuple(row.interval[0] for row in self.rows),
            high=tuple(row.interval[1] for row in self.rows),
            texts=tuple(self._point_texts()),
        )
        x = Axis(self.unit or "", ends=(edges[0], edges[-1]))
        y = Axis(write=short_percent, ends=(0.0, CURVE_TOP))
        return LinePlot(self.panel.title, "", Lines((part,), x, y, height=SMALL))

    def _point_texts(self) -> Iterator[str]:
        """Yield what is read out of a curve, at the numbers that its table has."""
        step = self._step()
        for place, row in enumerate(self.rows):
            label = self.panel.label(row, value_name)
            yield "" if place % step else f"below {label}: {self._share(row)}"

    def _step(self) -> int:
        """Of so many rows of a curve one is shown."""
        return max(1, (len(self.rows) - 1) // TABLE_ROWS)

    @property
    def grids(self) -> Iterator[Chart]:
        """A heat map of each two questions, with its table."""
        for grid in self.panel.grids(self.rows):
            columns, caption = grid.answers[1], f"{grid.one} (rows) and {grid.two} (columns)"
            part = Part(
                values=tuple(row.figure for row in grid.figures),
                texts=tuple(self._cell_text(row) for row in grid.figures),
            )
            axis = Axis(grid.two, number_format.share, labels=columns)
            rows = [(answer, *map(self._share, figures)) for answer, figures in grid.rows()]
            yield Chart(
                f"{self.panel.figures[0]}-{grid.one}-{grid.two}",
                HeatMap(grid.answers[0], axis, part),
                caption,
                (grid.one, *columns),
                rows,
            )

    def _share(self, row: Figure) -> str:
        return f"{self.panel.figure_text(row)} ({self.panel.interval_text(row)})"

    def _cell_text(self, row: Figure) -> str:
        """Return what is read out of a cell."""
        fakes = f"; if {fake_share(self.answer.fakes)} were fake, {self.panel.fakes_text(row)}"
        return f"{value_name(row.of)}: {self._share(row)}{fakes if self._has_fakes else ''}"

    @property
    def table(self) -> Chart:
        """The figures as a table; of a curve some."""
        columns = ("Figure", *self._columns())
        if self.rows[0].at is not None:
            heads = AT[0], self._with_unit(AT[1])
            columns = (*(heads[::-1] if self.panel.of_shares else heads), columns[-1])
        rows = [(self.panel.label(row, value_name), *self._cells(row)) for row in self.rows]
        shown = rows
        if self.panel.form is Form.LINE:
            shown = rows[:: self._step()]
        return Chart("", None, self.panel.title, columns, shown)

    @property
    def _has_fakes(self) -> bool:
        return bool(self.answer.fakes) and not self.panel.band

    @property
    def _has_answers(self) -> bool:
        return self.panel.of_shares and any(row.answers is not None for row in self.rows)

    def _columns(self) -> Iterator[str]:
        yield "Share" if self.panel.of_shares else self._with_unit("Estimate")
        at_level = level(self.answer.level)
        yield f"Band at {at_level}" if self.panel.band else f"{at_level} interval"
        if self._has_answers:
            yield "Answers"
        if self.before and self.panel.form is Form.DOTS:
            yield f"Before, {days(self.before.first, self.before.last)}"
        if self._has_fakes:
            yield f"If {fake_share(self.answer.fakes)} were fake"

    def _with_unit(self, head: str) -> str:
        return f"{head}, {self.unit}" if self.unit else head

    def _cells(self, row: Figure) -> Iterator[str]:
        yield self.panel.figure_text(row)
        yield self.panel.interval_text(row)
        if self._has_answers:
            yield f"{row.answers or 0.0:,.0f}"
        if self.before and self.panel.form is Form.DOTS:
            past = self._past(row)
            yield (
                f"{self.panel.figure_text(past)} ({self.panel.interval_text(past)})" if past else ""
            )
        if self._has_fakes:
            yield self.panel.fakes_text(row)

    def _past(self, row: Figure) -> Figure | None:
        """Return the same figure of the earlier time."""
        rows = self.panel.rows(self.before.figures) if self.before else []
        same = (past for past in rows if (past.kind, past.of) == (row.kind, row.of))
        return next(same, None)

    def _scale(self) -> Scale:
        ends = [end for row in self.rows for end in (row.figure or 0.0, *row.interval)]
        bands = [row.fake_band for row in self.rows if self._has_fakes]
        ends += [end for band in bands if band for end in band]
        pasts = [past.figure for row in self.rows if (past := self._past(row))]
        ends += [figure for figure in pasts if figure is not None]
        is_mean = self.rows[0].of is None
        return Scale.covering(ends if is_mean else [0.0, *ends])

    def _dot_row(self, scale: Scale, row: Figure) -> DotRow:
        past, (figure, *cells) = self._past(row), self._cells(row)
        return DotRow.on(
            scale,
            self.panel.label(row, value_name),
            (row.figure or 0.0, *row.interval),
            [figure if self.panel.of_shares else in_unit(figure, self.unit), *cells],
            band=row.fake_band if self._has_fakes else None,
            before=past.figure if past else None,
        )


def candidate_panel(series: SeriesResult, time_range: RangeResult) -> Content | None:
    """Return what was looked for among open strings, and what was not found."""
    facts = series.facts
    if "least_share" not in facts:
        return None
    shares = [row.figure or 0.0 for row in time_range.figures]
    shown = min(max(sum(shares), 0.0), 1.0)
    return {
        **facts,
        "listed": len(shares),
        "least": number_format.share(facts["least_share"] or 1.0),
        "shown": number_format.share(shown),
        "rest": number_format.share(1 - shown),
    }
