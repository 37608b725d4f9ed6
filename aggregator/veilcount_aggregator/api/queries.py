"""The doors to answers: estimates, comparisons, budgets, contrasts, plans.

What they say is made elsewhere; here a request becomes a question, and an answer the type that was
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import ParamSpec

from flask import Blueprint, Response, g, request

from veilcount_shared.wire import JSON_TYPE

from .. import queries
from ..auth.api_keys import Role
from ..queries.export import WRITERS, ArrowUnavailable, Stream
from ..service import Aggregator
from .auth import Authenticator
from .compressed_body import respond
from .computation_gate import ComputationGate
from .problems import refusal

Given = ParamSpec("Given")


def doors(aggregator: Aggregator, authority: Authenticator, gate: ComputationGate) -> Blueprint:
    """Return the doors."""
    blueprint = Blueprint("answers", __name__)

    @blueprint.get("/v1/collections/<name>/estimate")
    @authority.opens_to(Role.ANALYST)
    @gate.bounded
    @_named
    def estimate(name: str) -> Response:
        """A collection's answers, debiased, series by series."""
        asked = queries.EstimateQuery.parse(_given())
        return _told(queries.estimate(aggregator.snapshot(), name, asked), WRITERS)

    @blueprint.get("/v1/collections/<name>/compare")
    @authority.opens_to(Role.ANALYST)
    @gate.bounded
    @_named
    def compare(name: str) -> Response:
        """Two sides of a collection, value by value."""
        asked = queries.CompareQuery.parse(_given())
        return _told(queries.compare(aggregator.snapshot(), name, asked), WRITERS)

    @blueprint.get("/v1/collections/<name>/budget")
    @authority.opens_to(Role.ANALYST)
    @gate.bounded
    @_named
    def budget(name: str) -> Response:
        """What a person reveals, promised and counted."""
        asked = queries.BudgetQuery.parse(_given())
        bars = g.key.role is Role.ADMIN
        return _told(queries.budget(aggregator.snapshot(), name, asked, bars=bars))

    @blueprint.get("/v1/collections/<name>/contrast")
    @authority.opens_to(Role.ANALYST)
    @gate.bounded
    @_named
    def contrast(name: str) -> Response:
        """The same question under the models of trust."""
        asked = queries.ContrastQuery.parse(_given())
        return _told(queries.contrast(aggregator.snapshot(), name, asked))

    @blueprint.get("/v1/plan")
    @authority.opens_to(Role.ANALYST)
    @gate.bounded
    def plan() -> Response:
        """Any of devices, epsilon and error from the other two."""
        asked = queries.PlanQuery.parse(_given())
        return _told(queries.plan(asked, aggregator.today()))

    return blueprint


def _named(answer: Callable[Given, Response]) -> Callable[Given, Response]:
    """Refuse a name that no definition has, and say which are like it."""

    @wraps(answer)
    def named(*args: Given.args, **given: Given.kwargs) -> Response:
        try:
            return answer(*args, **given)
        except queries.CollectionNotFound as error:
            raise refusal("not-found", f"{error} (GET /v1/collections lists all)") from error

    return named


def _given() -> dict[str, list[str]]:
    return dict(request.args.lists())


def _told(answer: object, writers: Mapping[str, Stream] | None = None) -> Response:
    """Return an answer in the type that the request prefers."""
    kinds = [JSON_TYPE, *(writers or ())]
    kind = _preferred(kinds)
    if writers is None or kind == JSON_TYPE:
        return _varying([queries.encode(answer)], JSON_TYPE)
    try:
        return _varying(writers[kind](answer), kind)
    except ArrowUnavailable as error:
        raise refusal("not-acceptable", str(error), "Accept") from error


def _preferred(kinds: Sequence[str]) -> str:
    if not request.accept_mimetypes.provided:
        return kinds[0]
    found = request.accept_mimetypes.best_match(kinds)
    if found is None:
        raise refusal("not-acceptable", f"give one of {', '.join(kinds)}", "Accept")
    return str(found)


def _varying(pieces: Iterable[bytes], kind: str) -> Response:
    response = respond(pieces, kind)
    response.headers["Vary"] = "Accept"
    return response
