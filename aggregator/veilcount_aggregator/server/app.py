"""The web application: an aggregator behind its doors, as plain WSGI."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException

from veilcount_shared.errors import VeilcountError

from ..api.auth import Authenticator
from ..api.computation_gate import ComputationGate
from ..api.json_io import problem_response
from ..api.problems import Problem, problem_from_error, problem_from_status
from ..api.reports import ReportsEndpoint
from ..api.request_metrics import COMPUTING, RequestMetrics
from ..api.routes import Api, blueprints
from ..api.store_probe import StoreProbe
from ..dashboard import dashboard
from ..dashboard.layout import Frame
from ..errors import StoreError
from ..service import Aggregator
from ..structured_logging import FaultLog

MOST_BODY = 32 << 20  # a file of definitions with a million values; devices' doors have their own
OTHER = "other"
UNCOUNTED = frozenset({"health", "metrics"})  # asked by machines, all the time

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


def create_app(
    aggregator: Aggregator,
    seconds: Callable[[], float] = time.monotonic,
    analysis_is_up: Callable[[], bool] | None = None,
) -> Flask:
    """Return the doors of an aggregator; `seconds` is a clock that never goes back.

    `analysis_is_up` asks the analysis process, if this server has one.
    """
    app = Flask(__name__, static_folder=None)
    app.config.update(MAX_CONTENT_LENGTH=MOST_BODY, PROVIDE_AUTOMATIC_OPTIONS=False)
    app.url_map.merge_slashes = False  # a redirect would repeat the path, and no device follows one
    authority, figures = (
        Authenticator(aggregator, seconds),
        RequestMetrics(aggregator.service_counters),
    )
    faults, gate = FaultLog(seconds), ComputationGate(partial(figures.unanalyzed, COMPUTING))
    api = Api(aggregator, authority, gate, StoreProbe(aggregator.store), analysis_is_up)
    for blueprint in blueprints(api):
        app.register_blueprint(blueprint)
    pages = dashboard(aggregator, authority, seconds, gate)
    app.register_blueprint(pages.blueprint)
    _answer_errors(app, pages, faults)
    _count(app, figures, seconds)
    app.wsgi_app = ReportsEndpoint(  # type: ignore[method-assign] # as Flask's own documentation does it
        app.wsgi_app,
        aggregator,
        authority=authority,
        figures=figures,
        faults=faults,
        seconds=seconds,
    )
    return app


def _answer_errors(app: Flask, pages: Frame, faults: FaultLog) -> None:
    @app.errorhandler(Exception)
    def refuse(error: Exception) -> Response:
        """Answer with a problem: a page for people, a document for programs."""
        problem = _problem(error, faults)
        return pages.trouble(problem) if pages.speaks() else problem_response(problem)


def _problem(error: Exception, faults: FaultLog) -> Problem:
    """Return what is answered to an error; a fault of ours is logged."""
    if isinstance(error, HTTPException):
        given = error.get_response().headers
        allow = {"Allow": given["Allow"]} if "Allow" in given else {}
        return problem_from_status(error.code or 500, allow)
    if isinstance(error, StoreError):
        faults.log("store", _door(), error, reason=str(error))
    elif not isinstance(error, VeilcountError):
        faults.log("failed", _door(), error)
    return problem_from_error(error)


def _count(app: Flask, figures: RequestMetrics, seconds: Callable[[], float]) -> None:
    @app.before_request
    def begin() -> None:
        g.begun = seconds()

    @app.after_request
    def end(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if _door() not in UNCOUNTED:
            figures.answered(_door(), response.status_code, seconds() - g.begun)
        return response


def _door() -> str:
    """Return the name of the door that was asked for, of a closed list."""
    return request.blueprint or OTHER
