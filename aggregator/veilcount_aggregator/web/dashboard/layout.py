"""The blueprint of all pages: routing, access, form tokens, assets and error pages."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, g, request, url_for

from veilcount_serving.response_headers import IMMUTABLE
from veilcount_shared.problem_details import Problem, ProblemError

from ...errors import StoreError
from ...intake.live_reports import LiveReports
from ...queries import CollectionNotFound
from ...records.cache import KEYS_SECONDS
from ...service import Aggregator
from ..api.auth import Authenticator
from ..api.computation_gate import Computations
from ..api.endpoint import EVERY_APP
from ..api.problems import refusal
from . import formatting
from .browser_sessions import BrowserSessions
from .open_id import OpenIdProvider
from .pages import NAME, Context, Page, View, render, see_other, served_pages
from .public.served_site import ServedSite

MAX_PUBLIC_FORM = 16 << 10  # of a form without a log-in: a key, a link, where one wanted to go


class Dashboard:
    """The blueprint of all declared pages."""

    def __init__(
        self,
        aggregator: Aggregator,
        authenticator: Authenticator,
        seconds: Callable[[], float],
        gate: Computations,
        live: LiveReports | None = None,
    ) -> None:
        """`seconds` is a clock that never goes back; `live` has the reports of `veilcount dev`."""
        _import_pages()
        self._aggregator, self._authenticator, self._live = aggregator, authenticator, live
        self._sessions = BrowserSessions(aggregator, seconds)
        sign_in = aggregator.sign_in
        settings = sign_in.file.openid if sign_in else None
        self._provider = OpenIdProvider(sign_in, settings) if sign_in and settings else None
        self._site = ServedSite(aggregator, seconds, asset(STYLE).body)
        self.blueprint = Blueprint(NAME, __name__, template_folder="templates")
        self.blueprint.add_url_rule("/assets/<digest>/<name>", "assets", _serve_asset)
        self.blueprint.add_app_template_global(_asset_address, "asset")
        for name, filter_ in formatting.FILTERS.items():
            self.blueprint.add_app_template_filter(filter_, name)
        for served_page in served_pages(live=live is not None):
            view = gate.bounded(served_page.view) if served_page.computes else served_page.view
            opened = partial(
                self._open_public if served_page.role is None else self._open, served_page, view
            )
            self.blueprint.add_url_rule(
                served_page.rule, served_page.name, opened, methods=served_page.methods
            )

    def error_page(self, problem: Problem) -> Response:
        """Return the page of something that went wrong."""
        if "context" not in g:
            g.context = self._context(StoreError, ProblemError)
        response = render("error", problem.status, problem=problem)
        response.headers.extend(problem.headers)
        response.headers.pop("WWW-Authenticate", None)  # or the browser prompts for a password
        return response

    def handles_error(self) -> bool:
        """Whether the request gets an error page: it was for a page, or prefers HTML."""
        if request.blueprint is not None or request.path.startswith("/v1/"):
            return request.blueprint == NAME
        accepts = request.accept_mimetypes
        best = accepts.provided and accepts.best_match(["text/html", "application/json"])
        return best == "text/html"

    def _context(self, *failures: type[Exception]) -> Context:
        """Return what a view works with; for anybody, where one of these happens."""
        visit = self._sessions.visit(*failures)
        aggregator = self._aggregator.of_apps(visit.apps)
        return Context(
            aggregator,
            self._authenticator,
            self._sessions,
            visit,
            self._site,
            self._provider,
            self._live,
        )

    def _open(self, declared: Page, view: View, **values: str) -> Response:
        context = g.context = self._context()
        role = context.visit.role
        if role is None or declared.role is None:
            return _to_log_in()
        self._aggregator.catalog_cache.refresh_if_possible()  # another process may have changed it
        self._aggregator.catalog_cache.require_fresh(KEYS_SECONDS)  # or its key may be revoked
        if not role.opens(declared.role):
            raise refusal("wrong-role", f"this page is for keys of role {declared.role}")
        if declared.every_app and context.visit.apps:
            raise refusal("wrong-role", EVERY_APP)
        if request.method == "POST":
            if declared.form_bytes:
                request.max_form_memory_size = declared.form_bytes
            if declared.computes:
                request.get_data()  # before a part of it is parsed: the pool is sent the whole
            context.visit.check_form()
        try:
            response = _rendered(declared, view(context, **values))
        except CollectionNotFound as error:
            raise refusal("not-found", str(error)) from error
        if context.visit.is_new:
            self._sessions.keep(response, context.visit.secret)
        return response

    def _open_public(self, declared: Page, view: View, **values: str) -> Response:
        """Answer a request for a page that needs no log-in; its forms are checked too."""
        context = g.context = self._context(ProblemError)
        if request.method == "POST":
            _check_size()
            context.visit.check_form()
        response = _rendered(declared, view(context, **values))
        if not declared.cookies:
            return response
        if context.visit.role is None and "Set-Cookie" not in response.headers:
            self._sessions.keep(response, context.visit.secret)
        return response


def _import_pages() -> None:
    """Import every module of the package, so that its pages are declared."""
    package = import_module(__package__ or "")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)


def _rendered(declared: Page, returned: Any) -> Response:
    return returned if isinstance(returned, Response) else render(declared.name, **returned)


def _to_log_in() -> Response:
    wanted = request.full_path.rstrip("?") if request.method == "GET" else "/"
    query = urlencode({"to": wanted}) if wanted != "/" else ""
    return see_other(url_for(f"{NAME}.log_in") + (f"?{query}" if query else ""))


def _check_size() -> None:
    """Refuse a long form unread: reading one fills the disk, and it needs no log-in."""
    announced = request.environ.get("CONTENT_LENGTH")
    if not announced or (request.content_length or 0) > MAX_PUBLIC_FORM:
        raise refusal("too-large")


def _asset_address(name: str) -> str:
    return url_for(f"{NAME}.assets", digest=asset(name).digest, name=name)


def _serve_asset(digest: str, name: str) -> Response:
    try:
        stored = asset(name)
    except KeyError:
        raise refusal("not-found") from None
    if digest != stored.digest:  # of another release: a page that is loaded again names the new one
        raise refusal("not-found")
    zipped = bool(request.accept_encodings.quality("gzip"))
    headers = {"Cache-Control": IMMUTABLE, "Vary": "Accept-Encoding"}
    coding = {"Content-Encoding": "gzip"} if zipped else {}
    body = stored.zipped if zipped else stored.body
    return Response(body, headers=headers | coding, mimetype=stored.type)


STYLE = "dashboard.css"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HERE = Path(__file__).parent / "static"
LEVEL = 6  # of gzip: once a process and asset
DIGITS = 16


@dataclass(frozen=True)
class Asset:
    """A script or style, at an address that changes with its content; no other file is served."""

    name: str
    body: bytes

    @property
    def type(self) -> str:
        """Its media type."""
        return TYPES[Path(self.name).suffix]

    @cached_property
    def digest(self) -> str:
        """The digest of its content, for its address."""
        return hashlib.sha256(self.body).hexdigest()[:DIGITS]

    @cached_property
    def zipped(self) -> bytes:
        """The body as gzip, the same bytes in every process."""
        return gzip.compress(self.body, LEVEL, mtime=0)


@lru_cache(maxsize=64)
def asset(name: str) -> Asset:
    """Return an asset by its name, or raise KeyError."""
    return Asset(name, _paths()[name].read_bytes())


@lru_cache(maxsize=1)
def _paths() -> dict[str, Path]:
    return {path.name: path for path in HERE.iterdir() if path.suffix in TYPES}
