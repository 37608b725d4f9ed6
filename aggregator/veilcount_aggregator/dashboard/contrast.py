"""The same question under three models of trust: what each promises, and what its error is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request

from .. import queries
from ..analysis.trust_models import ErrorPoint, TrustComparison, TrustModelLine
from ..analysis.trust_models.comparison import TrustModelRow as Model
from ..errors import QueryError
from ..queries import ContrastQuery
from ..queries.contrasts import SeriesContrast
from ..queries.json_encoding import decimal
from ..text import number_format
from .charts import Drawn, axis, curve, lines, wide_axis
from .collection.formatting import level_of
from .layout import Frame
from .paired_view import beside
from .series_choice import definition, definitions

CALLED = {
    Model.LOCAL: "Local",
    Model.SAME_REPORTS: "Shuffled, the same reports",
    Model.SAME_GUARANTEE: "Shuffled, the same guarantee",
    Model.CENTRAL: "Central",
}
TRUSTED = {
    Model.LOCAL: "Nobody has to be trusted. Whoever owns the server, or breaks into it, finds"
    " randomized answers.",
    Model.SAME_REPORTS: "Nothing changes in the error. If a shuffler that is independent of the"
    " server strips who sent what and when, the same reports hide better in the crowd.",
    Model.SAME_GUARANTEE: "Each device may speak louder, because the crowd hides it. The error"
    " falls, and the promise then hangs on the shuffler, and on the others being honest.",
    Model.CENTRAL: "The curator holds every true value. The error is the least; a leak, a court"
    " order or a change of mind undoes the promise for all answers at once.",
}


def pages(frame: Frame) -> None:
    """Add the page."""

    @frame.page("/collections/<name>/contrast", computes=True)
    def contrast(name: str) -> Response:
        """A collection under the models of trust."""
        snapshot = frame.aggregator.snapshot()
        everyone = snapshot.named(name)
        series, n = definition(everyone), request.args.get("n", "").strip()
        shown: dict[str, Any] = {
            "name": name,
            "question": series.collection.question,
            "definitions": definitions("contrast", everyone, series),
            "series": series,
            "typed": n,
        }
        try:
            asked = ContrastQuery.parse({"n": [n], "series": [series.fingerprint]})
        except QueryError as error:
            return frame.told("contrast.html", 400, **shown, wrong=error)
        (found,) = queries.contrast(snapshot, name, asked).series
        return frame.told("contrast.html", **shown, seen=_seen(found), twin=beside(found.twin))


@dataclass(frozen=True, slots=True)
class Row:
    """One model, in words and figures."""

    model: str
    report: str
    answer: str
    error: str
    sample: str
    as_local: str
    as_central: str
    trusted: str
    guarantee: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What the page shows."""

    says: str
    more: str
    about: str
    rows: list[Row]
    drawn: Drawn
    points: list[tuple[str, ...]]


def _seen(found: SeriesContrast) -> Seen:
    contrast = found.contrast
    shares = contrast.quantity != "mean"
    return Seen(
        says=_says(contrast, shares=shares),
        more=_more(contrast),
        about=_about(found),
        rows=[_row(line, shares=shares) for line in contrast.lines],
        drawn=_drawn(contrast, shares=shares),
        points=[_point(point, shares=shares) for point in contrast.scaling],
    )


# -- words -----------------------------------------------------------------------------------------


def _says(contrast: TrustComparison, *, shares: bool) -> str:
    local, central = contrast.line(Model.LOCAL).cohort, contrast.line(Model.CENTRAL).cohort
    times = number_format.significant(local.rmse / central.rmse, 2)
    here, there = (
        number_format.around(error.half_width, of_shares=shares) for error in (local, central)
    )
    return (
        f"Here each {contrast.quantity} is known to {here}; a curator, trusted with every true"
        f" value, would know it to {there}: {times} times as near."
    )


def _more(contrast: TrustComparison) -> str:
    needed = contrast.line(Model.LOCAL).devices_as_central
    return (
        f"To come as near without trusting anyone, {needed:,} devices would have to answer instead"
        f" of {contrast.n:,}. That is the price of keeping the truth on the device."
    )


def _about(found: SeriesContrast) -> str:
    contrast = found.contrast
    days = f" ({found.first} to {found.last})" if found.first else ""
    return (
        f"The error of the {contrast.quantity} at n = {contrast.n:,}: {found.n_is}{days}."
        f" {contrast.basis[:1].upper()}{contrast.basis[1:]}, at {level_of(contrast.level)}; each"
        f" protects one answer of one {contrast.unit}, by {contrast.adjacency} adjacency."
    )


def _row(line: TrustModelLine, *, shares: bool) -> Row:
    answer = f"epsilon {number_format.epsilon(line.epsilon)}"
    return Row(
        model=CALLED[line.row],
        report="everything"
        if line.device is None
        else f"epsilon {number_format.epsilon(line.device)}",
        answer=f"{answer}, delta {decimal(line.delta)}" if line.delta else answer,
        error=number_format.around(line.cohort.half_width, of_shares=shares),
        sample=number_format.around(line.population.half_width, of_shares=shares),
        as_local=f"{line.devices_as_local:,}",
        as_central=f"{line.devices_as_central:,}",
        trusted=TRUSTED[line.row],
        guarantee=f"{line.guarantee[:1].upper()}{line.guarantee[1:]}.",
    )


def _point(point: ErrorPoint, *, shares: bool) -> tuple[str, ...]:
    errors = (point.local, point.shuffled, point.central)
    return (f"{point.n:,}", *(_error(each, shares=shares) for each in errors))


def _error(rmse: float, *, shares: bool) -> str:
    return number_format.around(rmse, of_shares=shares).removeprefix("+/- ")


# -- the picture -----------------------------------------------------------------------------------


def _drawn(contrast: TrustComparison, *, shares: bool) -> Drawn:
    scale, points = 100 if shares else 1, contrast.scaling
    ways = (
        ("local: halved by 4 times n", [point.local for point in points]),
        ("shuffled, the same guarantee", [point.shuffled for point in points]),
        ("central: halved by twice n", [point.central for point in points]),
    )
    sizes = [point.n for point in points]
    parts = [
        curve(
            sizes,
            [scale * error for error in errors],
            _told(name.partition(":")[0], sizes, errors, shares=shares),
            name,
            dots=True,
        )
        for name, errors in ways
    ]
    unit = ", points" if shares else ""
    every = [each for part in parts for each in part["at"]]
    mark = {"x": contrast.n, "text": f"n = {contrast.n:,}"}
    x = axis("answers", type="log", ticks=[(n, f"{n:,}") for n in sizes])
    return lines(parts, x, wide_axis(f"root mean square error{unit}", every), [mark])


def _told(name: str, sizes: Sequence[int], errors: Sequence[float], *, shares: bool) -> list[str]:
    return [
        f"{n:,} answers, {name}: off by {_error(error, shares=shares)}"
        for n, error in zip(sizes, errors, strict=True)
    ]
