"""Trust models side by side, as they are shown: what each reveals, errs and requires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from veilcount_analysis.privacy.trust_models import TrustComparison
from veilcount_analysis.privacy.trust_models.comparison import ErrorPoint, TrustModelLine
from veilcount_analysis.privacy.trust_models.comparison import TrustModelRow as Model
from veilcount_analysis.text.number_format import (
    adjacency,
    delta,
    epsilon,
    error_bar,
    figure,
    interval,
    level,
    sentence_case,
    share,
    significant,
    unsigned_error,
)
from veilcount_analysis.text.result_columns import row_name
from veilcount_analysis.text.utc_days import days
from veilcount_analysis.text.view_parts import Part, Row, Table

from .contrasts import SeriesContrast
from .paired_comparison import SHARES, PairedComparison, PairedFigure, PairedRow

MODELS = {
    Model.LOCAL: "Local, nobody trusted",
    Model.SAME_REPORTS: "Shuffled, the same reports",
    Model.SAME_GUARANTEE: "Shuffled, the same guarantee",
    Model.CENTRAL: "Central, a trusted curator",
    Model.CENTRAL_GAUSSIAN: "Central, Gaussian noise",
    Model.RUN_COVERS: "Shuffled, run: covers alone",
    Model.RUN_HONEST: "Shuffled, run: if reports are honest",
}
WAYS = (
    "Model",
    "One report reveals",
    "The result reveals",
    "Half-width, noise alone",
    "Half-width, as a sample",
    "People for the local error",
    "People for the central error",
)
OVER_TIME = ("Model", "A period's share", "Running total, in answers", "Strategy")
SCALING = ("Reports", "Local", "Shuffled, same guarantee", "Central")
PAIRED = ("Value", "Local", "Central")
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
    Model.RUN_COVERS: "This is how the collection is run. The error has the covers' part in it. Of"
    " the shuffler it takes that it keeps its word; of other devices nothing. If it does not, the"
    " epsilon of the report is left.",
    Model.RUN_HONEST: "The same batch and error. The smaller epsilon takes that every other device"
    " is honest, which the server could feign: it stands in no receipt and no notice.",
}


@dataclass(frozen=True, slots=True)
class ContrastView:
    """The conclusion, the ways to collect, their errors, and whom each requires to trust."""

    headline: str
    details: str
    about: str
    ways: Table
    over_time: Table | None
    scaling: Table
    trust: tuple[tuple[str, str, str], ...]  # a model, what it requires, and its guarantee
    paired: Table | None

    @classmethod
    def from_comparison(
        cls, contrast: TrustComparison, n_source: str = "as requested", paired: Table | None = None
    ) -> ContrastView:
        """Return the view of a comparison; `n_source`: where its n is from."""
        local = contrast.line(Model.LOCAL).devices_as_central
        times = significant(local / contrast.n, 2)
        return cls(
            headline=f"Without a trusted curator, this question needs {times} times the people for"
            " the same accuracy",
            details=f"A curator who is trusted with every true value needs n = {contrast.n:,}; with"
            f" nobody trusted, the same root mean square error of the noise takes n = {local:,}.",
            about=f"The error of the {contrast.quantity} at n = {contrast.n:,}: {n_source}."
            f" {sentence_case(contrast.basis)}, at {level(contrast.level)}; each protects one"
            f" answer of one {contrast.unit}, by {adjacency(contrast.adjacency)}.",
            ways=Table("", WAYS, [_way(line, contrast) for line in contrast.lines]),
            over_time=_over_time(contrast),
            scaling=_scaling(contrast),
            trust=tuple(
                (MODELS[line.row], TRUST[line.row], f"{sentence_case(line.guarantee)}.")
                for line in contrast.lines
            ),
            paired=paired,
        )

    @classmethod
    def from_series(cls, series: SeriesContrast) -> ContrastView:
        """Return the view of a collection's series."""
        when = ""
        if series.first and series.last:
            when = f" ({days(series.first, series.last)}, UTC)"
        paired = paired_table(series.twin) if series.twin else None
        return cls.from_comparison(series.contrast, f"{series.n_source}{when}", paired)

    @property
    def parts(self) -> Iterator[Part]:
        """What a terminal shows."""
        yield f"{self.headline}. {self.details}"
        yield self.about
        yield self.ways
        for model, _, guarantee in self.trust:
            yield f"{model}: {guarantee}"
        yield from filter(None, (self.scaling, self.over_time, self.paired))


def _way(line: TrustModelLine, contrast: TrustComparison) -> Row:
    result = f"epsilon {epsilon(line.epsilon)}"
    return (
        MODELS[line.row],
        "everything" if line.device is None else f"epsilon {epsilon(line.device)}",
        f"{result}, delta {delta(line.delta)}" if line.delta else result,
        error_bar(line.cohort.half_width, contrast.quantity),
        error_bar(line.population.half_width, contrast.quantity),
        f"{line.devices_as_local:,}",
        f"{line.devices_as_central:,}",
    )


def _over_time(contrast: TrustComparison) -> Table | None:
    if contrast.over_time is None:
        return None
    return Table(
        f"A value in each of {contrast.over_time.periods} periods, and the running total after each"
        " of them: root mean square errors. A curator's noise on a running total is drawn by the"
        " strategy that errs least.",
        OVER_TIME,
        [
            (
                MODELS[Model(line.model)],
                share(line.share),
                significant(line.total, 3),
                line.strategy,
            )
            for line in contrast.over_time.lines
        ],
    )


def _scaling(contrast: TrustComparison) -> Table:
    return Table(
        "Root mean square error by the number of reports. Local error falls with the square root of"
        " n (slope -1/2), central error with n itself (slope -1).",
        SCALING,
        [
            (
                f"{point.n:,}",
                *(unsigned_error(error, contrast.quantity) for error in _errors(point)),
            )
            for point in contrast.scaling
        ],
    )


def _errors(point: ErrorPoint) -> tuple[float, ...]:
    return point.local, point.shuffled, point.central


# -- both halves of a pair -------------------------------------------------------------------------


def paired_table(pair: PairedComparison) -> Table:
    """Return both sides of a pair, each estimate with its interval."""
    rows = [_paired_row(row, pair) for row in pair.rows]
    return Table(f"{_about_pair(pair)} {pair.units}", PAIRED, rows)


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
        f" {pair.central_epsilon} by {adjacency(pair.adjacency or '')}."
    )


def _paired_row(row: PairedRow, pair: PairedComparison) -> Row:
    shares = row.value is not None
    central = row.central and paired_figure(row.central, of_shares=shares and pair.units == SHARES)
    return (
        row_name(row.value),
        paired_figure(row.local, of_shares=shares),
        central or "not released",
    )


def paired_figure(side: PairedFigure, *, of_shares: bool) -> str:
    """Return one side of a row."""
    if side.figure is None:
        return "no reports yet"
    ends = interval(side.low, side.high, of_shares=of_shares)
    return f"{figure(side.figure, of_shares=of_shares)} ({ends})"
