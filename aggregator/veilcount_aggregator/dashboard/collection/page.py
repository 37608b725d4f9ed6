"""The page of one collection, put together; and the files that say exactly what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response, request

from veilcount_shared.collection import Model
from veilcount_shared.domain import Boolean, Number

from ... import queries
from ...api.compressed_body import respond
from ...api.problems import refusal
from ...errors import QueryError
from ...mechanisms import handler_of
from ...queries import EstimateQuery, Snapshot
from ...queries.export import WRITERS
from ...queries.paired_comparison import compare_pair
from ...series.series import Series
from ...text.privacy_guarantees import epsilons, promise
from ..collection_status import standing
from ..layout import Frame
from ..paired_view import beside
from .definition_history import defined
from .filters import others, summary, ways
from .formatting import of_fakes
from .series_panel import FORMS, Look
from .url_state import FOUND, Address, Given, Shown, check_cut, unknown

REFUSED = 400
LEVEL = 0.95  # of a twin's local side, as releases have it


def pages(frame: Frame) -> None:
    """Add the pages."""

    @frame.page("/collections/<name>", computes=True)
    def collection(name: str) -> Response:
        """One collection's answers."""
        snapshot = frame.aggregator.snapshot()
        series = snapshot.named(name)
        if series[0].collection.model is Model.CENTRAL:
            return _of_curator(frame, snapshot, series)
        try:
            return _of_devices(frame, snapshot, series, dict(request.args.lists()))
        except QueryError as wrong:
            return _of_devices(frame, snapshot, series, {}, str(wrong))

    @frame.page("/collections/<name>/answers.<form>", computes=True)
    def collection_file(name: str, form: str) -> Response:
        """The answer to one question, as a file."""
        if form not in FORMS:
            raise refusal("not-found", f"give one of {', '.join(FORMS)}", "form")
        asked = EstimateQuery.parse(dict(request.args.lists()))
        answer = queries.estimate(frame.aggregator.snapshot(), name, asked)
        json = form == "json"
        response = respond(
            [queries.encode(answer)] if json else WRITERS[FORMS[form]](answer), FORMS[form]
        )
        response.headers["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
        return response


def _of_curator(frame: Frame, snapshot: Snapshot, series: Sequence[Series]) -> Response:
    """Return the page of a collection whose true values a curator keeps: no estimate, no n."""
    return frame.told("collection.html", **_common(snapshot, series), sections=[])


def _of_devices(
    frame: Frame, snapshot: Snapshot, series: Sequence[Series], given: Given, wrong: str = ""
) -> Response:
    at = Address(series[0].collection.name, given)
    newest = snapshot.local(at.name, tuple(given.get("series", ())))[0].collection
    shown = Shown.of(newest, given)
    check_cut(newest, given)
    answer = queries.estimate(snapshot, at.name, shown.question)
    look, known = Look(snapshot, at, shown, answer), snapshot.catalog.series
    return frame.told(
        "collection.html",
        REFUSED if wrong else 200,
        **_common(snapshot, series),
        wrong=wrong,
        at=at,
        given=given,
        typed=dict(request.args.lists()),
        unknown=unknown(newest, given),
        asked=shown.question,
        ways=list(ways(at, series, newest, shown.question)),
        shown=summary(newest, shown.question),
        sections=[look.section(known[each.fingerprint], each) for each in answer.series],
        others=[] if given.get("series") else others(at, snapshot, series, answer),
        cut=len(shown.question.values) if len(shown.question.values) == FOUND else 0,
        ranges=handler_of(newest.mechanism).has_ranges,
        many=not isinstance(newest.domain, Number | Boolean),
        fakes=of_fakes(answer.fakes) if answer.fakes else "",
    )


def _common(snapshot: Snapshot, series: Sequence[Series]) -> dict[str, Any]:
    newest = series[0].collection
    return {
        "name": newest.name,
        "question": newest.question,
        "collection": newest,
        "curated": newest.model is Model.CENTRAL,
        "standing": standing(series[0], snapshot.today),
        "epsilon": epsilons(newest),
        "promise": promise(newest),
        "twin_name": newest.twin,
        "definitions": defined(snapshot, series),
        "twin": beside(compare_pair(snapshot, series[0], LEVEL)),
    }
