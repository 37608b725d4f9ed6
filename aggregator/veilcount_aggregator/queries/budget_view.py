"""A privacy budget as it is shown: what a person reveals, who enforces it, and what was spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from veilcount_analysis.privacy.budget import CollectionBudget, HistogramBar, UnitComparison
from veilcount_analysis.privacy.trust_models import ErrorEstimate
from veilcount_analysis.text.number_format import (
    adjacency,
    decimal,
    delta,
    epsilon,
    error_bar,
    level,
    sentence_case,
)
from veilcount_analysis.text.view_parts import Part, Row, Table
from veilcount_shared.collection import Adjacency
from veilcount_shared.composition import guessing_probability
from veilcount_shared.guessing import percent

from .budgets import BudgetResult, PersonLossView, SeriesBudget

NOT_COUNTED = (
    "No spend is counted: the aggregator cannot, or must not, link the reports of one person."
)
TOO_SMALL = "too small to report"
EPSILONS = ("", "Epsilon", "Of", "")
WINDOWS = ("Within any", "Epsilon", "In as long a time from any moment on")
SPENT = ("Answers spent", "Epsilon, at most", "Pseudonyms")
GUESSES = ("Answers seen", "Fresh, any mechanism", "Fresh, this mechanism", "Frozen")
UNITS = (
    "Unit",
    "Answers",
    "Epsilon each",
    "Local, campaign",
    "Local, one period",
    "Central, campaign",
    "Central, one period",
    "All answers guessed",
)
RATIOS = {
    Adjacency.SUBSTITUTE: "for one true value than for another",
    Adjacency.ADD_REMOVE: "with a person's answer than without it; between two answers, epsilon"
    " counts twice",
}


@dataclass(frozen=True, slots=True)
class BudgetView:
    """The conclusion, the three epsilons, and what follows from them."""

    headline: str
    scope: str
    epsilons: tuple[Row, ...]  # each with what it is of, and what an attacker learns
    adjacency: str
    windows: Table | None
    enforcement: tuple[tuple[str, str], ...]  # who, and what
    spend: str
    spent: Table | None
    composition: str
    guesses: Table | None
    units: Table

    @classmethod
    def from_result(cls, result: BudgetResult, series: SeriesBudget) -> BudgetView:
        """Return the view of one series."""
        account = series.budget
        figures, kind = account.figures, adjacency(account.figures.adjacency)
        return cls(
            headline=_headline(account),
            scope=f"It protects {figures.scope}.",
            epsilons=tuple(_epsilons(account)),
            adjacency=f"Epsilon by {kind}, for all three figures: e to the power of epsilon bounds"
            f" how much more likely any report is {RATIOS[figures.adjacency]}. The unit is"
            f" {figures.unit}.",
            windows=_windows(account),
            enforcement=tuple(_enforcement(result, account)),
            spend=_spend(series),
            spent=_spent(account),
            composition=_composition(account),
            guesses=_guesses(account),
            units=_units(series.levels, series.n_source),
        )

    @property
    def parts(self) -> Iterator[Part]:
        """What a terminal shows."""
        yield f"{self.headline} {self.scope}"
        yield Table("", EPSILONS, self.epsilons)
        yield self.adjacency
        yield from filter(None, [self.windows])
        yield from (f"{who}: {what}" for who, what in self.enforcement)
        yield self.spend
        yield from filter(None, [self.spent])
        yield self.composition
        yield from filter(None, [self.guesses])
        yield self.units


def bar_slots(bar: HistogramBar) -> str:
    """Return the numbers of answers of a bar."""
    return f"{bar.least:,}" if bar.least == bar.most else f"{bar.least:,} to {bar.most:,}"


def bar_text(bar: HistogramBar) -> str:
    """Return a bar as text."""
    answers = "answer" if bar.most == 1 else "answers"
    return f"{bar_slots(bar)} {answers}, at most epsilon {epsilon(bar.epsilon)} each"


def _headline(account: CollectionBudget) -> str:
    user = decimal(account.figures.user)
    if not account.guessing_curve:
        return f"Releases reveal at most epsilon {user} of one person in the whole campaign."
    return (
        f"One person can reveal at most epsilon {user} in the whole campaign: from"
        f" {account.figures.user_is}, a constant yes or no is guessed right at most"
        f" {percent(account.guessing_curve[-1].mechanism)} of the time."
    )


def _epsilons(account: CollectionBudget) -> Iterator[Row]:
    figures = account.figures
    a_day = int(figures.day / figures.event)
    yield "event", decimal(figures.event), "one answer", _guessed(account, 1)
    yield "day", decimal(figures.day), figures.day_is, _guessed(account, a_day)
    user = _guessed(account, account.guessing_curve[-1].answers) if account.guessing_curve else ""
    yield "user", decimal(figures.user), figures.user_is, user


def _guessed(account: CollectionBudget, seen: int) -> str:
    """Return what an attacker guesses; of a number without a point, whatever the mechanism."""
    if not account.guessing_curve:
        return ""
    chances = {point.answers: point.mechanism for point in account.guessing_curve}
    chance = chances.get(seen) or guessing_probability(account.figures.event, seen)
    whose = "it" if seen == 1 else f"all {seen:,}"
    return (
        f"Whoever sees {whose} guesses a constant yes or no right with at most {percent(chance)}."
    )


def _windows(account: CollectionBudget) -> Table | None:
    rows = [
        (window.window, decimal(window.epsilon), decimal(window.at_any_moment))
        for window in account.windows
    ]
    caption = "The most that one person reveals within a window of time"
    return Table(caption, WINDOWS, rows) if rows else None


def _enforcement(result: BudgetResult, account: CollectionBudget) -> Iterator[tuple[str, str]]:
    yield "The device", f"{sentence_case(account.figures.device)}."
    yield "The aggregator", f"{sentence_case(account.figures.server)}."
    app = result.cross_collection
    for total in app.totals if len(app.collections) > 1 else ():
        parts = [f"epsilon {epsilon(total.worst)} a user at most"]
        if total.delta:
            parts.append(f" with delta {delta(total.delta)}")
        if total.worst != total.plain:
            drawn = "nobody is in two cohorts, or answers two questions of a group"
            parts.append(f"; {epsilon(total.plain)} in sum, but {drawn}")
        yield (
            f"All {len(app.collections)} collections of the app, {total.model}",
            f"{sentence_case(adjacency(total.adjacency))}: {''.join(parts)}.",
        )
    for loss in result.released:
        yield f"Central releases, by {adjacency(loss.adjacency)}", _released(loss)


def _released(loss: PersonLossView) -> str:
    rho = "" if loss.rho == "0" else f" and rho {epsilon(Fraction(loss.rho))}"
    at_delta = f" with delta {loss.delta}" if loss.delta else ""
    return (
        f"Of one person, over all periods of {', '.join(loss.collections)}: epsilon"
        f" {epsilon(Fraction(loss.epsilon))}{rho} so far; at most epsilon"
        f" {epsilon(Fraction(loss.most_epsilon))}{at_delta} when all budgets are spent."
    )


# -- the counted spend -----------------------------------------------------------------------------


def _spend(series: SeriesBudget) -> str:
    spent = series.budget.spent
    if spent is None:
        return NOT_COUNTED
    if spent.mean is None or spent.worst is None:
        return f"Nothing is shown yet: {series.bars}."
    text = (
        f"{spent.pseudonyms:,} pseudonyms have spent epsilon {epsilon(spent.mean)} on average,"
        f" {epsilon(spent.worst)} at most, of the maximum {epsilon(spent.cap)}."
    )
    if not spent.bars:
        return f"{text} Only admins see the distribution."
    return f"{text} All of them: {bar_text(spent.bars[0])}." if len(spent.bars) == 1 else text


def _spent(account: CollectionBudget) -> Table | None:
    bars = account.spent.bars if account.spent else ()
    if len(bars) < 2:  # noqa: PLR2004 - a sentence is enough for one
        return None
    return Table(
        "How many pseudonyms have spent how many answers; each bar has at least 20 of them.",
        SPENT,
        [(bar_slots(bar), epsilon(bar.epsilon), f"{bar.pseudonyms:,}") for bar in bars],
    )


# -- what follows ----------------------------------------------------------------------------------


def _composition(account: CollectionBudget) -> str:
    composition, number = account.composition, account.composition.answers
    whole = f"{number:,} answers together cost" if number > 1 else "One answer costs"
    text = f"{whole} epsilon {decimal(composition.plain)} in sum, which is enforced"
    if composition.specific is None or composition.optimal is None or number == 1:
        return f"{text}."
    return (
        f"{text}; {epsilon(composition.optimal)} by any mechanism and"
        f" {epsilon(composition.specific)} by this one at delta {decimal(composition.delta)}, on a"
        " schedule fixed in advance."
    )


def _guesses(account: CollectionBudget) -> Table | None:
    curve = account.guessing_curve
    if len(curve) < 2:  # noqa: PLR2004 - two points make a line
        return None
    return Table(
        "The probability of guessing a constant yes or no right after so many answers of one"
        " person; one half is a blind guess.",
        GUESSES,
        [
            (
                f"{point.answers:,}",
                *map(percent, (point.fresh, point.mechanism, curve[0].mechanism)),
            )
            for point in curve
        ],
    )


def _units(levels: UnitComparison, n_source: str) -> Table:
    def error(estimate: ErrorEstimate | None) -> str:
        return error_bar(estimate.half_width, levels.quantity) if estimate else ""

    return Table(
        f"Error of the {levels.quantity} over the whole campaign by unit at epsilon"
        f" {epsilon(levels.user)} a user ({adjacency(levels.adjacency)}), for n = {levels.n:,}"
        f" persons ({n_source}), at {level(levels.level)}.",
        UNITS,
        [
            (
                row.unit,
                f"{row.answers:,}",
                TOO_SMALL if row.epsilon is None else epsilon(row.epsilon),
                error(row.local_campaign),
                error(row.local_period),
                error(row.central_campaign),
                error(row.central_period),
                "" if row.guess_all is None else percent(row.guess_all),
            )
            for row in levels.rows
        ],
    )
