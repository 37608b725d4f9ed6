"""One question under three trust models: what each guarantees, and its error."""

from __future__ import annotations

from math import log

from flask import Response, request

from veilcount_analysis.errors import QueryError
from veilcount_analysis.privacy.trust_models import TrustComparison
from veilcount_analysis.privacy.trust_models.comparison import TrustModelRow as Model
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import unsigned_error
from veilcount_analysis.text.result_columns import row_name
from veilcount_analysis.text.view_parts import Table

from ... import queries
from ...queries import ContrastQuery
from ...queries.contrast_view import ContrastView, paired_figure
from ...queries.paired_comparison import MEANS, SHARES, PairedComparison
from .charts import Axis, Bars, Chart, Lines, curves, estimates, figures_of, logarithmic_axis
from .formatting import short_percent
from .pages import Content, Context, page, render, series_choice
from .scales import Tick
from .svg import Gauge

CAPTION = "The same question to two halves of the devices, each estimate with its interval."
EXACT = 10_000  # people: larger numbers are rounded on the gauge
GAUGE = {
    Model.CENTRAL: "trusted curator",
    Model.SAME_GUARANTEE: "shuffled",
    Model.LOCAL: "nobody trusted",
}


@page("/collections/<name>/contrast", tab="Contrast", order=4, computes=True)
def contrast(context: Context, name: str) -> Response | Content:
    """Compare the trust models for a collection."""
    snapshot = context.aggregator.snapshot()
    content = series_choice("contrast", snapshot.named(name))
    n = request.args.get("n", "").strip()
    content["typed"] = n
    try:
        query = ContrastQuery.parse({"n": [n], "series": [content["series"].fingerprint]})
    except QueryError as error:
        return render("contrast", 400, **content, wrong=error)
    (series,) = queries.contrast(snapshot, name, query).series
    view = ContrastView.from_series(series)
    return content | {
        "view": view,
        "gauge": _gauge(series.contrast),
        "chart": _chart(series.contrast, view.scaling),
        "paired": series.twin and view.paired and _paired(series.twin, view.paired),
    }


def _gauge(contrast: TrustComparison) -> Gauge:
    """Return the people that each model needs for the curator's error, on a logarithmic scale."""
    needed = {row: contrast.line(row).devices_as_central for row in GAUGE}
    most = max(needed.values())
    places = {row: _place(people, contrast.n, most) for row, people in needed.items()}
    marks = [Tick(places[row], f"{GAUGE[row]}: {_people(needed[row])}") for row in GAUGE]
    text = "; ".join(tick.text for tick in marks)
    legend = "People needed for the error of a trusted curator, on a logarithmic scale."
    return Gauge(f"{legend} {text}", places[Model.LOCAL], marks, legend)


def _place(people: int, least: int, most: int) -> float:
    """Return a place on a logarithmic scale, in percent."""
    return round(100 * log(people / least) / log(most / least), 2) if most > least else 0.0


def _people(number: int) -> str:
    if number < EXACT:
        return f"{number:,}"
    million = number >= number_format.MILLION
    scaled = number / number_format.MILLION if million else number
    return number_format.significant(scaled, 2) + (" million" if million else "")


def _chart(contrast: TrustComparison, table: Table) -> Chart:
    shares, points = contrast.quantity not in number_format.NUMBERS, contrast.scaling
    scale, sizes = 100 if shares else 1, [point.n for point in points]
    named = {
        "local: halved by 4 times n": [point.local for point in points],
        "shuffled, the same guarantee": [point.shuffled for point in points],
        "central: halved by twice n": [point.central for point in points],
    }
    parts = curves(
        sizes,
        named,
        lambda error: scale * error,
        lambda n, name, error: (
            f"{n:,} reports, {name.partition(':')[0]}: error"
            f" {unsigned_error(error, contrast.quantity)}"
        ),
        dots=True,
    )
    x = Axis("reports", logarithmic=True, ticks=tuple((n, f"{n:,}") for n in sizes))
    y = logarithmic_axis(f"root mean square error{', points' if shares else ''}", figures_of(parts))
    rule = (contrast.n, f"n = {contrast.n:,}")
    return Chart.from_table("scaling", table, Lines(parts, x, y, rule=rule))


def _paired(pair: PairedComparison, table: Table) -> Chart:
    """Return both sides of a pair; drawn where they have the same units."""
    same_units = pair.units in {SHARES, MEANS} and all(row.central for row in pair.rows)
    drawing = _paired_drawing(pair) if same_units else None
    return Chart("paired", drawing, CAPTION, table.columns, table.rows)


def _paired_drawing(pair: PairedComparison) -> Bars:
    shares = pair.units == SHARES
    values = tuple(row_name(row.value) for row in pair.rows)
    sides = (
        ("local", [row.local for row in pair.rows]),
        ("central", [row.central for row in pair.rows if row.central]),
    )
    parts = []
    for name, column in sides:
        texts = (
            f"{value}, {name}: {paired_figure(side, of_shares=shares)}"
            for value, side in zip(values, column, strict=True)
        )
        parts.append(estimates(column, lambda side: side.figure, texts, name))
    x = Axis("share", short_percent) if shares else Axis("mean")
    return Bars(values, tuple(parts), x)
