"""The web application: endpoints and pages of an aggregator, as plain WSGI."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException

from veilcount_serving.origins import AllowedOrigins
from veilcount_serving.request_ids import HEADER as REQUEST_ID
from veilcount_serving.request_ids import RequestIds
from veilcount_serving.response_headers import HEADERS
from veilcount_serving.structured_logging import FaultLog
from veilcount_shared.errors import VeilcountError
from veilcount_shared.problem_details import Problem

from ..errors import StoreError
from ..intake.group_intake import GroupIntake, Process
from ..intake.live_reports import LiveReports
from ..intake.shuffled_batches.opening import open_part
from ..service import Aggregator
from ..store.store_probe import StoreProbe
from ..web.api.auth import Authenticator
from ..web.api.computation_gate import ComputationGate, Computations
from ..web.api.cross_origin import CrossOriginRequests, WsgiCrossOrigin
from ..web.api.gateway import GatewayEndpoint, WsgiGateway
from ..web.api.json_io import problem_response
from ..web.api.problems import problem_from_error, problem_from_status
from ..web.api.reports import (
    DevelopmentReplies,
    DeviceProblems,
    ReportsEndpoint,
    WsgiReports,
    reply,
)
from ..web.api.request_metrics import COMPUTING, RequestMetrics
from ..web.api.routes import Api, blueprints
from ..web.dashboard import Dashboard
from .analysis_pool.client import PooledComputations
from .analysis_pool.messages import POOLED
from .analysis_pool.supervisor import AnalysisPool
from .opening_process import OpeningProcess

MAX_BODY = 32 << 20  # a definitions file with a million values; the reports endpoint has its own
OTHER = "other"
UNCOUNTED = frozenset({"health", "metrics"})  # polled by machines


@dataclass(frozen=True, slots=True)
class WebApplication:
    """What answers the requests of one process: devices' reports, and by Flask all others."""

    flask: Flask
    reports: ReportsEndpoint
    gateway: GatewayEndpoint
    intake: GroupIntake
    pages: CrossOriginRequests


def create_app(
    aggregator: Aggregator,
    seconds: Callable[[], float] = time.monotonic,
    pool: AnalysisPool | None = None,
) -> Flask:
    """Return the web application of an aggregator as WSGI; `seconds` is a monotonic clock."""
    return assemble(aggregator, seconds, pool).flask


def assemble(
    aggregator: Aggregator,
    seconds: Callable[[], float] = time.monotonic,
    pool: AnalysisPool | None = None,
    intake_type: type[GroupIntake] = GroupIntake,
    live: LiveReports | None = None,
    *,
    faults: FaultLog | None = None,
) -> WebApplication:
    """Put together what answers requests for an aggregator; `seconds` is a monotonic clock.

    `pool` computes what analysts ask, if this server has one; `intake_type` gathers reports: of
    threads, or of an event loop; `live` shows them to the developer of an app, and
    production has none; `faults` is the log that the process shares.
    """
    app = Flask(__name__, static_folder=None)
    app.config.update(MAX_CONTENT_LENGTH=MAX_BODY, PROVIDE_AUTOMATIC_OPTIONS=False)
    app.url_map.merge_slashes = False  # a redirect would repeat the path, and no device follows one
    authenticator = Authenticator(aggregator, seconds)
    metrics = RequestMetrics(aggregator.service_counters)
    process: Process = aggregator.take_group
    if live is not None:
        process = live.observing(process, lambda: aggregator.known().catalog.series)
    intake = intake_type(process, aggregator.service_counters, seconds=seconds)
    faults = faults or FaultLog(seconds)
    gate = _computations(aggregator, metrics, pool)
    probe = StoreProbe(aggregator.store)
    api = Api(
        aggregator,
        intake,
        authenticator,
        gate,
        probe,
        pool.is_up if pool else None,
        open_part=OpeningProcess() if pool else open_part,
    )
    for blueprint in blueprints(api):
        app.register_blueprint(blueprint)
    pages = Dashboard(aggregator, authenticator, seconds, gate, live)
    app.register_blueprint(pages.blueprint)
    ids = RequestIds(aggregator.settings.proxy_request_ids)
    _handle_errors(app, pages, faults, ids)
    _count(app, metrics, seconds)
    problems = DeviceProblems(faults, ids)
    replies = reply if live is None else DevelopmentReplies()
    reports = ReportsEndpoint(authenticator, metrics, problems, replies)
    gateway = GatewayEndpoint(
        lambda: aggregator.catalog_cache.current.gateway_secrets, metrics, problems
    )
    app.wsgi_app = WsgiReports(  # type: ignore[method-assign] # as Flask's own documentation does it
        app.wsgi_app, reports, intake, aggregator.known, seconds
    )
    app.wsgi_app = WsgiGateway(app.wsgi_app, gateway)  # type: ignore[method-assign] # likewise
    origins = AllowedOrigins(aggregator.settings.origins, "POST")
    requests = CrossOriginRequests(origins, reports)
    app.wsgi_app = WsgiCrossOrigin(app.wsgi_app, requests)  # type: ignore[method-assign] # likewise
    return WebApplication(app, reports, gateway, intake, requests)


def _computations(
    aggregator: Aggregator, metrics: RequestMetrics, pool: AnalysisPool | None
) -> Computations:
    """Return where views compute: in the pool, else here."""
    if pool is None:
        return ComputationGate(partial(metrics.unanalyzed, COMPUTING))
    changed = aggregator.catalog_cache.refresh_if_possible
    return PooledComputations(pool.address, changed=changed, refused=metrics.unanalyzed)


def _handle_errors(app: Flask, pages: Dashboard, faults: FaultLog, ids: RequestIds) -> None:
    @app.errorhandler(Exception)
    def refuse(error: Exception) -> Response:
        """Respond with a problem: a page for people, a document for programs."""
        name = ids.choose(request.headers.get(REQUEST_ID))
        problem = replace(_problem(error, faults, name), request=name)
        return pages.error_page(problem) if pages.handles_error() else problem_response(problem)


def _problem(error: Exception, faults: FaultLog, name: str) -> Problem:
    """Return the problem of a request of this id; internal errors are logged."""
    if isinstance(error, HTTPException):
        headers = error.get_response().headers
        allow = {"Allow": headers["Allow"]} if "Allow" in headers else {}
        return problem_from_status(error.code or 500, allow)
    if isinstance(error, StoreError):
        faults.log("store", _endpoint(), error, reason=str(error), request=name)
    elif not isinstance(error, VeilcountError):
        faults.log("failed", _endpoint(), error, request=name)
    return problem_from_error(error)


def _count(app: Flask, metrics: RequestMetrics, seconds: Callable[[], float]) -> None:
    @app.before_request
    def begin() -> None:
        g.started = seconds()

    @app.after_request
    def end(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if _endpoint() not in UNCOUNTED and POOLED not in request.environ:
            metrics.answered(_endpoint(), response.status_code, seconds() - g.started)
        return response


def _endpoint() -> str:
    """Return the name of the requested endpoint, of a closed list."""
    return request.blueprint or OTHER
