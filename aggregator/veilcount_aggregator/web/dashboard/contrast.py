"""One question under three trust models: what each guarantees, and its error."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from flask import Response, request

from veilcount_analysis.errors import QueryError
from veilcount_analysis.privacy.trust_models import TrustComparison
from veilcount_analysis.privacy.trust_models.comparison import TrustModelRow as Model
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import level, sentence_case, unsigned_error
from veilcount_analysis.text.result_columns import row_name
from veilcount_analysis.text.utc_days import days

from ... import queries
from ...queries import ContrastQuery
from ...queries.contrasts import SeriesContrast
from ...queries.paired_comparison import MEANS, SHARES, PairedComparison, PairedFigure, PairedRow
from .charts import (
    Axis,
    Bars,
    Chart,
    Lines,
    curves,
    estimates,
    figures_of,
    logarithmic_axis,
    table_rows,
)
from .formatting import short_percent
from .pages import Content, Context, page, render, series_choice
from .scales import Tick
from .svg import Gauge

MODELS = {
    Model.LOCAL: "Local, nobody trusted",
    Model.SAME_REPORTS: "Shuffled, the same reports",
    Model.SAME_GUARANTEE: "Shuffled, the same guarantee",
    Model.CENTRAL: "Central, a trusted curator",
    Model.CENTRAL_GAUSSIAN: "Central, Gaussian noise",
}
COLUMNS = (
    "Model",
    "One report reveals",
    "The result reveals",
    "Half-width, noise alone",
    "Half-width, as a sample",
    "People for the local error",
    "People for the central error",
)
CLOSE = 88  # percent of the gauge: a label further right would cover the last one
EXACT = 10_000  # people: larger numbers are rounded on the gauge
GAUGE = {
    Model.CENTRAL: "trusted curator",
    Model.SAME_GUARANTEE: "shuffled",
    Model.LOCAL: "nobody trusted",
}
TRUST = {
    Model.LOCAL: "No trust is needed. Whoever owns the server, or breaks into it, finds randomized"
    " answers.",
    Model.SAME_REPORTS: "The error stays the same. If a shuffler that is independent of the server"
    " removes sender and time, each report is hidden among all others.",
    Model.SAME_GUARANTEE: "Each device may use a larger epsilon, because reports are hidden among"
    " each other. The error falls; the guarantee then depends on the shuffler, and on the other"
    " devices being honest.",
    Model.CENTRAL: "The curator holds every true value. The error is the smallest; a leak, a court"
    " order or a change of policy breaks the guarantee for all answers at once.",
    Model.CENTRAL_GAUSSIAN: "The same trust. Of one release the error is larger; it is smaller"
    " where many releases share a period's budget, because the noise grows with the root of their"
    " number. The definition states a delta.",
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
    (found,) = queries.contrast(snapshot, name, query).series
    comparison = found.contrast
    return content | {
        "headline": _headline(comparison),
        "details": _details(comparison),
        "gauge": _gauge(comparison),
        "columns": COLUMNS,
        "about": _about(found),
        "models": MODELS,
        "trust": TRUST,
        "comparison": comparison,
        "time_rows": list(_time_rows(comparison)),
        "chart": _chart(comparison),
        "paired": paired_view(found.twin),
    }


def _time_rows(contrast: TrustComparison) -> Iterator[tuple[str, ...]]:
    for line in contrast.over_time.lines if contrast.over_time else ():
        total = number_format.significant(line.total, 3)
        yield MODELS[Model(line.model)], number_format.share(line.share), total, line.strategy


def _headline(contrast: TrustComparison) -> str:
    times = contrast.line(Model.LOCAL).devices_as_central / contrast.n
    return (
        f"Without a trusted curator, this question needs {number_format.significant(times, 2)}"
        " times the people for the same accuracy"
    )


def _details(contrast: TrustComparison) -> str:
    needed = contrast.line(Model.LOCAL).devices_as_central
    return (
        f"A curator who is trusted with every true value needs n = {contrast.n:,}; with nobody"
        f" trusted, the same root mean square error of the noise takes n = {needed:,}."
    )


def _gauge(contrast: TrustComparison) -> Gauge:
    """Return the people that each model needs for the curator's error, on a logarithmic scale."""
    needed = {row: contrast.line(row).devices_as_central for row in GAUGE}
    most = max(needed.values())
    places = {row: _place(people, contrast.n, most) for row, people in needed.items()}
    every = [Tick(places[row], f"{GAUGE[row]}: {_people(needed[row])}") for row in GAUGE]
    text = "; ".join(tick.text for tick in every)
    apart = [tick for tick in every[:-1] if tick.at <= CLOSE]
    marks = [*apart, every[-1]]
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


def _about(found: SeriesContrast) -> str:
    contrast = found.contrast
    when = f" ({days(found.first, found.last)}, UTC)" if found.first and found.last else ""
    return (
        f"The error of the {contrast.quantity} at n = {contrast.n:,}: {found.n_source}{when}."
        f" {sentence_case(contrast.basis)}, at {level(contrast.level)}; each"
        f" protects one answer of one {contrast.unit}, by"
        f" {number_format.adjacency(contrast.adjacency)}."
    )


def _chart(contrast: TrustComparison) -> Chart:
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
    return Chart(
        "scaling",
        Lines(parts, x, y, rule=(contrast.n, f"n = {contrast.n:,}")),
        "Both axes are logarithmic. Local error falls with the square root of n (slope -1/2),"
        " central error with n itself (slope -1).",
        ("Reports", "Local", "Shuffled, same guarantee", "Central"),
        table_rows(sizes, named, lambda error: unsigned_error(error, contrast.quantity)),
    )


PAIRED_COLUMNS = ("Value", "Local", "Central")
CAPTION = "The same question to two halves of the devices, each estimate with its interval."


def paired_view(pair: PairedComparison | None) -> Content | None:
    """Return both sides of a pair; without a drawing in its chart there is only the table."""
    if pair is None:
        return None
    rows = [_paired_row(row, pair) for row in pair.rows]
    same_units = pair.units in {SHARES, MEANS} and all(row.central for row in pair.rows)
    drawing = _paired_drawing(pair) if same_units else None
    chart = Chart("paired", drawing, CAPTION, PAIRED_COLUMNS, rows)
    return {"about": _about_pair(pair), "units": pair.units, "chart": chart}


def _about_pair(pair: PairedComparison) -> str:
    central_n = "" if pair.central_n is None else f" (n = {pair.central_n:,})"
    about = (
        f"{pair.local} (n = {pair.n:,}) uses local privacy, {pair.central}{central_n} a trusted"
        f" curator, {days(pair.first, pair.last)} (UTC). Devices were assigned at random"
        f" beforehand. Intervals at {level(pair.level)}, {pair.estimand}"
    )
    if pair.central_epsilon is None or pair.central_level is None:
        return f"{about}."
    return (
        f"{about}; the curator's at {level(pair.central_level)}, of a release that cost epsilon"
        f" {pair.central_epsilon} by {number_format.adjacency(pair.adjacency or '')}."
    )


def _paired_row(row: PairedRow, pair: PairedComparison) -> tuple[str, str, str]:
    shares = row.value is not None
    central = row.central and _figure(row.central, of_shares=shares and pair.units == SHARES)
    return row_name(row.value), _figure(row.local, of_shares=shares), central or "not released"


def _figure(side: PairedFigure, *, of_shares: bool) -> str:
    if side.figure is None:
        return "no reports yet"
    interval = number_format.interval(side.low, side.high, of_shares=of_shares)
    return f"{number_format.figure(side.figure, of_shares=of_shares)} ({interval})"


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
            f"{value}, {name}: {_figure(side, of_shares=shares)}"
            for value, side in zip(values, column, strict=True)
        )
        parts.append(estimates(column, lambda side: side.figure, texts, name))
    x = Axis("share", short_percent) if shares else Axis("mean")
    return Bars(values, tuple(parts), x)
