"""A comparison as it is shown: what differs, the sides, and each value with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from veilcount_analysis.text.difference_words import POWER, direction, would_have_been_seen
from veilcount_analysis.text.number_format import (
    FigureFormat,
    adjacency,
    frequency,
    level,
    sentence_case,
)
from veilcount_analysis.text.result_columns import row_name, value_name
from veilcount_analysis.text.utc_days import days, in_days
from veilcount_analysis.text.view_parts import Part, Row, Table

from .comparison import NO_REPORTS, CompareResult, ComparisonRow, SideView, detectable_of_any


@dataclass(frozen=True, slots=True)
class ShownSide:
    """One side: what identifies it, its reports, and what these reveal."""

    name: str
    n: str
    reports: str
    epsilons: str
    open_period: bool


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """The conclusion, the sides, the differences and how they are to be read."""

    tone: str
    headline: str
    details: str
    overall: str
    a: ShownSide
    b: ShownSide
    table: Table | None
    note: str
    figures: FigureFormat
    reweighted: Table | None
    limits: str

    @classmethod
    def from_result(cls, result: CompareResult) -> ComparisonView:
        """Return the view of a result."""
        shares = all(row.value is not None for row in result.rows)
        widths = (row.high - row.low for row in result.rows)
        figures = FigureFormat.for_widths(widths, of_shares=shares)
        a, b = _side(result.a, result), _side(result.b, result)
        return cls(
            *_conclusion(result, figures),
            overall=result.overall.sentence if result.overall else "",
            a=a,
            b=b,
            table=_table(result, figures, a.name, b.name) if result.rows else None,
            note=" ".join(_note(result, figures)) if result.rows else "",
            figures=figures,
            reweighted=_reweighted(result, figures),
            limits=_limits(result),
        )

    @property
    def parts(self) -> Iterator[Part]:
        """What a terminal shows."""
        yield " ".join(filter(None, (self.headline, self.details, self.overall)))
        for name, side in (("A", self.a), ("B", self.b)):
            may_change = " (open period: may still change)" if side.open_period else ""
            yield f"{name}: {side.name}: {side.n} {side.reports}{may_change}; {side.epsilons}"
        if self.table:
            yield self.table
            yield self.note
        if self.reweighted:
            yield self.reweighted
        if self.limits:
            yield self.limits


def difference(row: ComparisonRow, figures: FigureFormat) -> str:
    """Return a difference with its interval."""
    return f"{figures.signed(row.difference)} ({_interval(row, figures)})"


def unit_of(result: CompareResult, figures: FigureFormat) -> str | None:
    """Return the unit of the differences; None: the definition of a number states none."""
    return "points" if figures.of_shares else result.measured_in


def _side(side: SideView, result: CompareResult) -> ShownSide:
    epsilon = side.epsilon
    return ShownSide(
        name=_name(side, result),
        n=f"n = {side.n:,}",
        reports=f"{side.counts}, {side.first} to {side.last}",
        epsilons=f"epsilon ({adjacency(epsilon.adjacency)}) {epsilon.event} an event,"
        f" {epsilon.day} a UTC day, {epsilon.user} a user",
        open_period=side.open_period,
    )


def _differs_by(result: CompareResult) -> str:
    """Return what tells the sides apart: their definitions, segments or days."""
    if result.a.fingerprint != result.b.fingerprint:
        return "definition"
    return "segments" if result.a.segments != result.b.segments else "days"


def _name(side: SideView, result: CompareResult) -> str:
    """Return what identifies a side."""
    by = _differs_by(result)
    if by == "definition":
        return f"definition {side.fingerprint[:12]}"
    if by == "days":
        return days(side.first, side.last)
    return ", ".join(f"{name} {value}" for name, value in side.segments.items()) or "everyone"


def _where(side: SideView, result: CompareResult) -> str:
    """Return a side as an adverbial: "in plan free"."""
    by, name = _differs_by(result), _name(side, result)
    if by == "days":
        return in_days(side.first, side.last)
    return f"under {name}" if by == "definition" else f"in {name}"


def _conclusion(result: CompareResult, figures: FigureFormat) -> tuple[str, str, str]:
    """Return the tone, the headline and the details."""
    if not result.rows:
        missing = "both sides need reports" if result.estimand == NO_REPORTS else result.estimand
        return "weak", result.sentence, f"{sentence_case(missing)}."
    differing = [row for row in result.rows if row.differs]
    if not differing:
        return "plain", _not_significant(result, figures), ""
    largest = max(differing, key=lambda row: abs(row.difference))
    return "good", _difference(largest, result, figures), _others(result, differing)


def _difference(row: ComparisonRow, result: CompareResult, figures: FigureFormat) -> str:
    """Return one difference as a sentence about the first side; a value keeps its spelling."""
    value = "The mean" if row.value is None else value_name(row.value)
    unit = result.measured_in
    higher = direction(row.low, row.high, of_shares=figures.of_shares, unit=unit)
    return f"{value} is {higher} {_where(result.a, result)} than {_where(result.b, result)}."


def _others(result: CompareResult, differing: Sequence[ComparisonRow]) -> str:
    if result.family == 1:
        return ""
    largest = "" if len(differing) == 1 else " This is the largest difference."
    return result.sentence + largest


def _not_significant(result: CompareResult, figures: FigureFormat) -> str:
    """Return that no value is seen to differ, with the difference that would have been seen."""
    finding = "No difference seen"
    if result.overall and result.overall.differs:
        finding = "Something differs, but no single value is seen to"
    least = detectable_of_any(result.rows)
    seen = would_have_been_seen(least, of_shares=figures.of_shares, unit=result.measured_in)
    return f"{finding}; {seen}."


def _note(result: CompareResult, figures: FigureFormat) -> Iterator[str]:
    """Yield how the table is to be read."""
    units = unit_of(result, figures) or "the number's own units"
    yield f"Differences are in {units}."
    yield (
        f"Intervals are at {level(result.level)}, one for each value, {result.estimand},"
        f" {result.validity}. Ranges made like this hold the true difference of a value chosen"
        f" beforehand {frequency(result.level)}."
    )
    if result.family > 1:
        yield (
            f"Significance is decided for all {result.family:,} values together (Holm), and p is"
            " adjusted for that family."
        )
    yield f"\u201cDetectable\u201d: a difference of this size is seen {frequency(POWER)}."
    if result.note:
        yield result.note


def _table(result: CompareResult, figures: FigureFormat, a: str, b: str) -> Table:
    head = f"A minus B, {result.measured_in}" if result.measured_in else "A minus B"
    return Table(
        f"A ({a}) minus B ({b}), each with its interval; an interval that includes 0 is not"
        " significant.",
        ("Value", f"A: {a}", f"B: {b}", head, "Interval", "p", "Detectable"),
        [_row(row, figures) for row in result.rows],
    )


def _reweighted(result: CompareResult, figures: FigureFormat) -> Table | None:
    """Return the differences of shares that are reweighted to the population."""
    if result.reweighted is None or not result.reweighted.rows:
        return None
    rows = [
        (
            row_name(row.value),
            figures.figure(row.a),
            figures.figure(row.b),
            figures.signed(row.difference),
            f"{figures.signed(row.low)} to {figures.signed(row.high)}",
        )
        for row in result.reweighted.rows
    ]
    caption = "The same shares, reweighted to the population"
    return Table(caption, ("Value", "A", "B", "A minus B", "Interval"), rows)


def _limits(result: CompareResult) -> str:
    notes = result.reweighted.notes if result.reweighted else []
    return " ".join(f"{note}." for note in notes)


def _row(row: ComparisonRow, figures: FigureFormat) -> Row:
    sides = (f"{figures.figure(s.figure)} ({figures.ends(s.low, s.high)})" for s in (row.a, row.b))
    return (
        f"{row_name(row.value)}{' (significant)' if row.differs else ''}",
        *sides,
        figures.signed(row.difference),
        _interval(row, figures),
        _p(row.holm),
        "none" if row.detectable is None else figures.bare(row.detectable),
    )


def _interval(row: ComparisonRow, figures: FigureFormat) -> str:
    return f"{figures.signed(row.low)} to {figures.signed(row.high)}"


def _p(probability: float) -> str:
    if probability < 1e-4:  # noqa: PLR2004 - smaller ones change no decision
        return "< 0.0001"
    return f"{probability:.2g}"
