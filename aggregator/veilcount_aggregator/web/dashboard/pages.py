"""The declaration of a page, and what a view works with.

A page is one module function with `@page` before it and one template of the same name. Its address,
who may open it, its place in the navigation and whether it waits for a place to compute are
declared there; routing, access checks, form tokens and error pages follow from the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Protocol, TypeAlias

from flask import Response, current_app, g, redirect, render_template, request, url_for

from veilcount_analysis.series.series import Series

from ...intake.live_reports import LiveReports
from ...queries.snapshot import series_by_fingerprint
from ...records.api_keys import Role
from ...service import Aggregator
from ..api.auth import Authenticator
from .browser_sessions import FIELD, BrowserSessions, Visit
from .open_id import OpenIdProvider

NAME = "pages"
COLLECTION = "<name>"  # in the address of a page of one collection
POLICY = "Content-Security-Policy"
STYLES = "style-src 'self'"
HEADERS = {
    POLICY: f"default-src 'none'; script-src 'self'; {STYLES}; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Vary": "Cookie",
}

#: what a template shows; a view that returns it is rendered with the template of its name
Content: TypeAlias = Mapping[str, Any]
View: TypeAlias = Callable[..., Response | Content]


@dataclass(frozen=True, slots=True)
class Page:
    """One page as it is declared. `role` None: open to everyone."""

    view: View
    rule: str
    role: Role | None
    tab: str
    order: int
    methods: tuple[str, ...]
    computes: bool
    form_bytes: int | None
    live: bool
    cookies: bool
    every_app: bool

    @property
    def name(self) -> str:
        """The endpoint, and the template's name."""
        return self.view.__name__

    @property
    def of_collection(self) -> bool:
        """Whether it is a tab of one collection, and not an entry of the main navigation."""
        return COLLECTION in self.rule


PAGES: dict[str, Page] = {}


def page(
    rule: str,
    role: Role | None = Role.ANALYST,
    tab: str = "",
    order: int = 0,
    *,
    methods: tuple[str, ...] = ("GET",),
    computes: bool = False,
    form_bytes: int | None = None,
    live: bool = False,
    cookies: bool = True,
    every_app: bool = False,
) -> Callable[[View], View]:
    """Declare a page; with a `tab` it is listed in the navigation, at the place of its `order`.

    One that `computes` waits for a place after access is checked. `form_bytes` is the longest
    form it reads, where that is more than usual. `live`: only `veilcount dev` has it. One without
    `cookies` is the same for everybody, and sets none. No restricted key opens one of `every_app`.
    """

    def declare(view: View) -> View:
        declared = Page(
            view, rule, role, tab, order, methods, computes, form_bytes, live, cookies, every_app
        )
        PAGES[declared.name] = declared
        return view

    return declare


def served_pages(*, live: bool) -> list[Page]:
    """Return the pages that a server has."""
    return [declared for declared in PAGES.values() if live or not declared.live]


def navigation(visit: Visit, *, of_collection: bool, live: bool) -> list[Page]:
    """Return the pages that a visitor may open, in the order of the navigation."""
    listed = [
        served_page
        for served_page in served_pages(live=live)
        if served_page.tab and served_page.of_collection is of_collection and served_page.role
        if visit.role and visit.role.opens(served_page.role)
        if not (visit.apps and served_page.every_app)
    ]
    return sorted(listed, key=lambda declared: declared.order)


@dataclass(frozen=True)
class PublicFile:
    """A content, and its media type."""

    content: bytes
    type: str

    @cached_property
    def digest(self) -> str:
        """The name of its content for caches."""
        return sha256(self.content).hexdigest()[:32]


class PublicSite(Protocol):
    """The files that anybody may read."""

    def file(self, path: str) -> PublicFile | None:
        """Return a file by its path; None: there is none."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a view works with: the aggregator, and the visit."""

    aggregator: Aggregator
    authenticator: Authenticator
    sessions: BrowserSessions
    visit: Visit
    site: PublicSite
    provider: OpenIdProvider | None = None
    live: LiveReports | None = None

    @property
    def is_admin(self) -> bool:
        """Whether an admin is logged in."""
        return self.visit.role is Role.ADMIN

    def layout(self) -> dict[str, Any]:
        """Return what every template finds; on a tab also its collection's name and question."""
        live = self.live is not None
        known: dict[str, Any] = {
            "parts": current_app.jinja_env.get_template("dashboard/parts.html").module,
            "visit": self.visit,
            "field": FIELD,
            "admin": self.is_admin,
            "navigation": navigation(self.visit, of_collection=False, live=live),
            "tabs": navigation(self.visit, of_collection=True, live=live),
            "development": self.aggregator.settings.dev,
            "here": request.endpoint,
            "today": self.aggregator.today(),
            "signs_in": self.provider is not None,
        }
        name = (request.view_args or {}).get("name")
        if name and self.visit.role:
            series = self.aggregator.known().catalog.by_name.get(name)
            known |= {"name": name, "question": series[0].collection.question if series else ""}
        return known


def render(template: str, status: int = 200, **content: Any) -> Response:
    """Return a page; its template finds the content, and the layout."""
    context: Context = g.context
    html = render_template(f"dashboard/{template}.html", **context.layout() | content)
    return Response(html, status, HEADERS, mimetype="text/html")


def paginate(entries: Sequence[object], size: int) -> dict[str, Any]:
    """Return the entries of the page that the address names, and whether there are more."""
    number = max(0, request.args.get("page", 0, int))
    end = (number + 1) * size
    return {"entries": entries[end - size : end], "page": number, "older": len(entries) > end}


def redirect_to(endpoint: str, **values: Any) -> Response:
    """Send the browser to a page."""
    return see_other(url_for(f"{NAME}.{endpoint}", **values))


def redirect_to_path(path: str) -> Response:
    """Send the browser to a path of this host; to the overview for any other address."""
    return see_other(local_path(path))


def local_path(path: str) -> str:
    """Return a path of this host; the overview's for any other address."""
    ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if ours else "/"


def see_other(location: str) -> Response:
    """Return a 303 to an address."""
    response = redirect(location, HTTPStatus.SEE_OTHER)
    return Response(response.get_data(), response.status_code, response.headers)


DIGITS = 12  # of a fingerprint


def series_choice(endpoint: str, known: Sequence[Series]) -> dict[str, Any]:
    """Return the definition that the request names, and links to all of them if there are more."""
    fingerprint = request.values.get("series", "")
    series = series_by_fingerprint(known, fingerprint) if fingerprint else known[0]
    links = [
        (
            tab.fingerprint[:DIGITS],
            url_for(f"{NAME}.{endpoint}", name=tab.collection.name, series=tab.fingerprint),
            tab.fingerprint == series.fingerprint,
        )
        for tab in known
    ]
    return {"series": series, "definitions": links if len(links) > 1 else []}
