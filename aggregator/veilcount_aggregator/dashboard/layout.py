"""What every page shares: who may see it, what it is drawn with, and how trouble is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, g, redirect, render_template, request, url_for

from ..api.computation_gate import ComputationGate
from ..api.problems import Problem, refusal
from ..auth.api_keys import Role
from ..catalog.cache import KEYS_SECONDS
from ..queries import CollectionNotFound
from ..service import Aggregator
from ..text import number_format
from .assets import asset
from .browser_sessions import FIELD, Visit, Visitors

NAME = "pages"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self';"
    " style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Vary": "Cookie",
}
FOR_GOOD = "public, max-age=31536000, immutable"
MOST_FORM = 16 << 10  # of a form that strangers may send: a key, a link, where one wanted to go

View = Callable[..., Response]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the navigation."""

    endpoint: str
    title: str
    role: Role = Role.ANALYST


#: pages that are of no single collection, in the order they are listed
NAVIGATION = (
    Entry("overview", "Overview"),
    Entry("planner", "Planner"),
    Entry("operations", "Operations"),
    Entry("definitions", "Definitions", Role.ADMIN),
    Entry("keys", "Keys", Role.ADMIN),
)
#: pages of one collection
CHAPTERS = (
    Entry("collection", "Answers"),
    Entry("compare", "Compare"),
    Entry("budget", "Budget"),
    Entry("contrast", "Contrast"),
    Entry("releases", "Releases"),
)


class Frame:
    """The blueprint of all pages, and what each of them is told with."""

    def __init__(self, aggregator: Aggregator, visitors: Visitors, gate: ComputationGate) -> None:
        """Serve assets; pages are added one by one."""
        self._gate = gate
        self.aggregator = aggregator
        self.visitors = visitors
        self.blueprint = Blueprint(NAME, __name__, template_folder="templates")
        self.blueprint.add_url_rule("/assets/<digest>/<name>", "assets", _serve)

    def page(
        self,
        rule: str,
        role: Role = Role.ANALYST,
        methods: Sequence[str] = ("GET",),
        *,
        computes: bool = False,
    ) -> Callable[[View], View]:
        """Return what makes a function a page of a role, named as the function is.

        One that `computes` waits for its turn, once it is known who asks.
        """

        def behind(view: View) -> View:
            answer = self._gate.bounded(view) if computes else view

            @wraps(view)
            def guarded(**given: str) -> Response:
                g.visit = self.visitors.visit()
                if g.visit.role is None:
                    return self._to_log_in()
                self.aggregator.watch.require_fresh(KEYS_SECONDS)  # or its key may be revoked
                if not g.visit.role.opens(role):
                    raise refusal("wrong-role", f"this page is for keys of role {role}")
                if request.method == "POST":
                    g.visit.check_form()
                return _named(answer, **given)

            self.blueprint.add_url_rule(rule, view.__name__, guarded, methods=methods)
            return guarded

        return behind

    def open_page(self, rule: str, methods: Sequence[str] = ("GET",)) -> Callable[[View], View]:
        """Return what makes a function a page that strangers see; its forms are checked too."""

        def open_to_all(view: View) -> View:
            @wraps(view)
            def guarded(**given: str) -> Response:
                g.visit = self.visitors.visit()
                if request.method == "POST":
                    _check_size()
                    g.visit.check_form()
                response = view(**given)
                if g.visit.role is None and "Set-Cookie" not in response.headers:
                    self.visitors.keep(response, g.visit.secret)
                return response

            self.blueprint.add_url_rule(rule, view.__name__, guarded, methods=methods)
            return guarded

        return open_to_all

    def told(self, template: str, status: int = 200, **given: Any) -> Response:
        """Return a page; its template finds what is given, and the frame."""
        page = render_template(f"dashboard/{template}", **self._frame(), **given)
        return Response(page, status, HEADERS, mimetype="text/html")

    def trouble(self, problem: Problem) -> Response:
        """Return the page of something that went wrong."""
        told = self.told("trouble.html", problem.status, problem=problem)
        told.headers.extend(problem.headers)
        told.headers.pop("WWW-Authenticate", None)  # a browser would ask for a password
        return told

    def speaks(self) -> bool:
        """Whether a request is to be answered with a page: it was for one, or a person is lost."""
        if request.blueprint is not None or request.path.startswith("/v1/"):
            return request.blueprint == NAME
        accepts = request.accept_mimetypes
        asks = accepts.provided and accepts.best_match(["text/html", "application/json"])
        return asks == "text/html"

    def _frame(self) -> dict[str, Any]:
        visit: Visit = g.get("visit") or self.visitors.visit_or_stranger()
        role = visit.role
        return {
            "visit": visit,
            "field": FIELD,
            "asset": _address,
            "adjacency": number_format.adjacency,
            "navigation": [each for each in NAVIGATION if role and role.opens(each.role)],
            "chapters": CHAPTERS,
            "here": request.endpoint,
            "today": self.aggregator.today(),
            "admin": role is Role.ADMIN,
        }

    def _to_log_in(self) -> Response:
        wanted = request.full_path.rstrip("?") if request.method == "GET" else "/"
        query = urlencode({"to": wanted}) if wanted != "/" else ""
        return _redirected(url_for(f"{NAME}.log_in") + (f"?{query}" if query else ""))


def _check_size() -> None:
    """Refuse a long form unread: reading one fills the disk, and a stranger may send it."""
    announced = request.environ.get("CONTENT_LENGTH")
    if not announced or (request.content_length or 0) > MOST_FORM:
        raise refusal("too-large")


def _named(view: View, **given: str) -> Response:
    try:
        return view(**given)
    except CollectionNotFound as error:
        raise refusal("not-found", str(error)) from error


def _redirected(to: str) -> Response:
    response = redirect(to, HTTPStatus.SEE_OTHER)
    return Response(response.get_data(), response.status_code, response.headers)


def go(endpoint: str, **values: Any) -> Response:
    """Send the browser to a page."""
    return _redirected(url_for(f"{NAME}.{endpoint}", **values))


def go_to(path: str) -> Response:
    """Send the browser to a path of ours; anywhere else is the overview."""
    ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return _redirected(path if ours else "/")


def _address(name: str) -> str:
    return url_for(f"{NAME}.assets", digest=asset(name).digest, name=name)


def _serve(digest: str, name: str) -> Response:
    try:
        found = asset(name)
    except KeyError:
        raise refusal("not-found") from None
    if digest != found.digest:  # of another release: a page that is loaded again names the new one
        raise refusal("not-found")
    zipped = bool(request.accept_encodings.quality("gzip"))
    headers = {"Cache-Control": FOR_GOOD, "Vary": "Accept-Encoding"}
    coding = {"Content-Encoding": "gzip"} if zipped else {}
    body = found.zipped if zipped else found.body
    return Response(body, headers=headers | coding, mimetype=found.type)
