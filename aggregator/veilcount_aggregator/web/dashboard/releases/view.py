"""Releases and dry runs as the page shows them: texts, rows, charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from msgspec import to_builtins

from veilcount_analysis.releases.prefix_sums import BRANCHES, tree_name
from veilcount_analysis.releases.query import describe_query
from veilcount_analysis.releases.query_types.count_query import spell_label
from veilcount_analysis.releases.query_types.strings_query import StringsQuery
from veilcount_analysis.releases.release import SELECTIONS
from veilcount_analysis.series.series import Series
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import sentence_case
from veilcount_analysis.text.utc_days import days
from veilcount_shared import Collection
from veilcount_shared.errors import VeilcountError, format_value

from ....errors import InsufficientBudget, ReleaseRefused
from ....queries import Snapshot
from ....queries.releases import (
    CountQuery,
    NoiseView,
    ReleasedFigure,
    ReleaseView,
    SeriesReleases,
    days_of,
    dry_run_response,
)
from ....releases.budget_ledger import StoredRelease, load_releases, require_budget
from ....releases.curator import DryRun
from ....releases.privacy_filter import require_closed_periods
from .. import charts
from ..formatting import short_epsilon
from ..pages import Content

STRINGS = StringsQuery.kind
DRAWN = ("histogram", "running_total")  # queries with a figure for each of many values
LABELLED = ("most_frequent", "variance", "quantiles")  # queries whose figures need their names
MOST_ROWS = 30  # figures of one release that are drawn and listed
PARTS = {  # as texts name them
    "distances": "sums of distances from both ends of the range",
    "squared distances": "sums of their squares and products",
    "histogram": "count of each value",
    "summed": "last total, each period's value summed",
    **{tree_name(b): f"last total, from a {tree_name(b)}" for b in BRANCHES},
    "square root": "last total, by the square root",
    "strings": "count of each string",
    "selection": "most frequent value's count",
    "quantile": "quantile's rank",
    "tree of values": "counts of a tree over the values",
}
COLUMNS = ("Value", "Released", "From", "To")


# -- texts -----------------------------------------------------------------------------------------


def query_text(query: str | CountQuery) -> str:
    """Return a query as a headline."""
    return sentence_case(describe_query(to_builtins(query)))


def amount(figure: float) -> str:
    """Return a count or a sum; a mean to six digits."""
    if float(figure).is_integer():
        return f"{int(figure):,}"
    return number_format.figure(figure, of_shares=False)


def noise_text(parts: list[NoiseView], level: float) -> str:
    """Return the error of each part of a release."""
    errors = [_error(part) for part in parts]
    return f"{' and '.join(errors)}, at level {level:.0%}"


def cost_text(release: ReleaseView) -> str:
    """Return what a release costs one unit."""
    if release.epsilon is not None:
        return f"epsilon {short_epsilon(release.epsilon)}"
    return f"rho {short_epsilon(release.rho or '0')}"


def person_text(release: ReleaseView) -> str:
    """Return what a release reveals of all units of one person."""
    if release.person_epsilon is not None:
        return f"epsilon {short_epsilon(release.person_epsilon)}"
    return f"rho {short_epsilon(release.person_rho or '0')}"


def _error(part: NoiseView) -> str:
    name = PARTS.get(part.name, part.name)
    error = f"{_half_width(part)} {'of' if part.distribution in SELECTIONS else 'on'} the {name}"
    if part.threshold is None:
        return error
    return f"{error}, released from {part.threshold:,} on at delta {part.delta:.3g}"


def _half_width(part: NoiseView) -> str:
    if part.distribution in SELECTIONS:
        return f"within {part.half_width:,} answers"
    return f"+/- {part.half_width:,}"


def refusal_text(collection: Collection, error: VeilcountError) -> str:
    """Return why a release is refused; a period is named by its days."""
    if not isinstance(error, InsufficientBudget):
        return str(error)
    requested, rest = format_value(error.requested), format_value(error.remaining)
    return (
        f"{days(*days_of(collection, error.period))} has {error.unit} {rest} left, and {requested}"
        " is requested: request less, or other days"
    )


# -- releases --------------------------------------------------------------------------------------


def release_entry(place: int, release: ReleaseView) -> Content:
    """Return a release of the journal, where its place counts from 1.

    A histogram is drawn; of very many figures the largest. Hashes of open strings are counted.
    """
    figures, dates = _shown(release), days(release.first, release.last)
    rows = [_row(figure) for figure in figures]
    drawing = _drawing(figures, rows) if release.query in DRAWN else None
    caption = f"Released counts with their intervals, {dates}"
    return {
        "place": place,
        "release": release,
        "query": query_text(release.query),
        "days": dates,
        "cost": cost_text(release),
        "person": person_text(release),
        "noise": noise_text(release.noise, release.level),
        "chart": charts.Chart("figures", drawing, caption, COLUMNS, rows),
        "labelled": release.query in LABELLED,
        "hashes": len(release.figures) if release.query == STRINGS else None,
        "left_out": len(release.figures) - len(figures) if release.query != STRINGS else 0,
    }


def release_text(release: ReleaseView) -> str:
    """Return a release in a line: its figure, of totals the last one, of several the largest."""
    text, dates = query_text(release.query), days(release.first, release.last)
    if release.query == STRINGS or not release.figures:
        return f"{text}: {len(release.figures):,} are released, {dates}"
    figures = release.figures[-1:] if release.query == "running_total" else release.figures
    figure = max(figures, key=lambda one: one.figure) if release.query in DRAWN else figures[0]
    value, number, low, high = _row(figure)
    name = f"{value} " if release.query in {*DRAWN, "most_frequent"} else ""
    return f"{text}: {name}{number}, {low} to {high}, {dates}"


def _shown(release: ReleaseView) -> list[ReleasedFigure]:
    """Return all figures; of very many the largest, or totals at equal distances."""
    if release.query == STRINGS:
        return []
    if release.query != "running_total":
        return _largest(release.figures)
    step = -(-len(release.figures) // MOST_ROWS)
    return release.figures[::-1][::step][::-1]


def _largest(figures: list[ReleasedFigure]) -> list[ReleasedFigure]:
    """Return all figures in their order; of very many the largest released ones."""
    if len(figures) <= MOST_ROWS:
        return figures
    return sorted(figures, key=lambda figure: -figure.figure)[:MOST_ROWS]


def _row(figure: ReleasedFigure) -> tuple[str, ...]:
    numbers = (amount(number) for number in (figure.figure, figure.low, figure.high))
    return (spell_label(figure.value), *numbers)


def _drawing(figures: Sequence[ReleasedFigure], rows: Sequence[tuple[str, ...]]) -> charts.Bars:
    texts = (f"{value}: {figure} answers, {low} to {high}" for value, figure, low, high in rows)
    part = charts.estimates(figures, lambda figure: figure.figure, texts)
    return charts.Bars(tuple(row[0] for row in rows), (part,), charts.Axis("answers"))


# -- the budget ------------------------------------------------------------------------------------


def budget_chart(ledger: SeriesReleases, open_until: Sequence[str], budget: str) -> charts.Chart:
    """Draw the spent and the remaining budget of each period."""
    periods = ledger.periods
    rows = [
        (
            days(period.first, period.last),
            short_epsilon(period.spent),
            short_epsilon(period.remaining),
            state or "closed: can be released",
        )
        for period, state in zip(periods, open_until, strict=True)
    ]
    spent = charts.counts(
        (float(Fraction(period.spent)) for period in periods),
        (f"{day}: {figure} spent" for day, figure, _, _ in rows),
        "spent",
    )
    remains = charts.counts(
        (float(Fraction(period.remaining)) for period in periods),
        (f"{day}: {figure} remains" for day, _, figure, _ in rows),
        "remains",
    )
    x = charts.Axis(
        "UTC day on which the period begins", labels=tuple(str(period.first) for period in periods)
    )
    drawing = charts.StackedColumns(
        (spent, replace(remains, rest=True)), x, charts.Axis(ledger.unit)
    )
    caption = f"{sentence_case(ledger.unit)} spent and remaining, of {budget} in each period"
    columns = ("UTC days", "Spent", "Remains", "State")
    return charts.Chart("budget", drawing, caption, columns, rows)


# -- the dry run -----------------------------------------------------------------------------------


def dry_run_view(snapshot: Snapshot, series: Series, dry_run: DryRun) -> Content:
    """Return a dry run: from the definition and the journal, without looking at answers."""
    kept = load_releases(snapshot.store, series.fingerprint)
    result, question = dry_run_response(series, dry_run), dry_run.question
    least = min(account.remaining for account in dry_run.accounts)
    return {
        "expected": result,
        "query": query_text(result.query),
        "days": days(result.first, result.last),
        "half_width": _half_width(result.noise[0]),
        "noise": noise_text(result.noise, result.level),
        "price": f"{result.unit} {short_epsilon(result.requested)}",
        "person": person_text(result),
        "after": max(Fraction(0), least - question.requested),
        "obstacle": _obstacle(snapshot, series, dry_run, kept),
        "earlier": place_of(kept, question.canonical),
    }


def _obstacle(
    snapshot: Snapshot, series: Series, dry_run: DryRun, kept: Sequence[StoredRelease]
) -> str:
    """Return why the release would be refused now."""
    charges = dry_run.question.charges
    try:
        require_closed_periods(series, charges, snapshot.today)
        require_budget(series, charges, kept)
    except ReleaseRefused as refused:
        return refusal_text(series.collection, refused)
    return ""


def place_of(kept: Sequence[StoredRelease], canonical: str) -> int:
    """Return the place of a query in the journal, from 1; 0: it was never released."""
    same = [place for place, released in enumerate(kept, 1) if released.canonical == canonical]
    return same[0] if same else 0
