"""Sessions of browsers: the cookie, the role it has, and the token of its forms."""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flask import Response, request

from veilcount_serving.rate_limit import RateLimits
from veilcount_serving.wsgi_threads import REPEATED

from ...records.api_keys import Role, digest_secret
from ...records.sessions import (
    BYTES,
    KIND,
    LASTS,
    BrowserSession,
    begin_session,
    end_session,
    form_token,
    parse_sessions,
)
from ...service import Aggregator
from ...sign_in import SignInIdentity, SignInRefused
from ..api.problems import refusal

COOKIE = "veilcount"
HOST_COOKIE = "__Host-veilcount"  # over https: no other host and no path can set it
FIELD = "form_token"
LOOKUPS = 20.0  # a second, in the store, of unknown cookies


@dataclass(frozen=True, slots=True)
class Visit:
    """A request's browser session: its secret, role and key. Without a log-in there is no role."""

    secret: str
    role: Role | None = None
    actor: str = ""
    apps: tuple[str, ...] = ()  # that its key is restricted to
    is_new: bool = False  # a proxy named it, and its browser has no cookie yet

    @property
    def token(self) -> str:
        """The token that its forms repeat."""
        return form_token(self.secret)

    def check_form(self) -> None:
        """Refuse a form without this session's token."""
        sent = request.form.get(FIELD, "")
        if not hmac.compare_digest(sent.encode(), self.token.encode()):
            raise refusal(
                "bad-request", "this form has expired: reload the page and send it again", "form"
            )


class BrowserSessions:
    """The sessions that one worker knows, read again when records change."""

    def __init__(self, aggregator: Aggregator, seconds: Callable[[], float]) -> None:
        """`seconds` is a clock that never goes back."""
        self._aggregator = aggregator
        self._lookups = RateLimits(LOOKUPS, seconds)
        self._lock = threading.Lock()
        self._generation: int | None = -1  # of the sessions
        self._sessions: Mapping[str, BrowserSession] = {}

    def visit(self, *failures: type[Exception]) -> Visit:
        """Return the session of this request; one without a role if one of these happens."""
        try:
            return self._visit()
        except failures:
            return Visit(secrets.token_urlsafe(BYTES))

    def _visit(self) -> Visit:
        secret = request.cookies.get(_name(), "")
        if identity := self._proxied():
            own = secret or secrets.token_urlsafe(BYTES)
            return Visit(own, identity.role, identity.actor, identity.apps, is_new=not secret)
        session = self._find(secret) if secret else None
        if session is None:
            return Visit(secret or secrets.token_urlsafe(BYTES))
        apps = session.apps or self._aggregator.known().api_keys.apps_of(session.actor)
        return Visit(secret, session.role, session.actor, apps)

    def begin(self, response: Response, role: Role, actor: str, apps: tuple[str, ...] = ()) -> None:
        """Begin a session, and set its cookie."""
        now = self._aggregator.clock()
        self.keep(response, begin_session(self._aggregator.store, role, actor, now, apps))
        self._aggregator.catalog_cache.refresh()

    def end(self, response: Response, visit: Visit) -> None:
        """End a session."""
        end_session(self._aggregator.store, visit.secret)
        self._aggregator.catalog_cache.refresh()
        response.delete_cookie(_name(), secure=is_secure(), httponly=True, samesite="Strict")

    def keep(self, response: Response, secret: str) -> None:
        """Set the cookie: no script reads it, no other site sends it."""
        response.set_cookie(
            _name(),
            secret,
            max_age=int(LASTS.total_seconds()),
            secure=is_secure(),
            httponly=True,
            samesite="Strict",
        )

    def _proxied(self) -> SignInIdentity | None:
        """Return the identity that a proxy names; it is judged with each request."""
        sign_in = self._aggregator.sign_in
        try:
            repeated = request.environ.get(REPEATED, ())
            return sign_in.proxied(dict(request.headers), repeated) if sign_in else None
        except SignInRefused as refused:
            raise refusal("not-signed-in", str(refused)) from refused

    def _find(self, secret: str) -> BrowserSession | None:
        name = digest_secret(secret)
        session = self._known().get(name)
        if session is None and not self._lookups.wait(""):  # begun in another worker, just now
            self._aggregator.catalog_cache.refresh()
            session = self._known().get(name)
        now, ring = self._aggregator.clock(), self._aggregator.known().api_keys
        return session if session is not None and session.is_valid(ring, now) else None

    def _known(self) -> Mapping[str, BrowserSession]:
        generation = self._aggregator.known().generations.get(KIND)
        with self._lock:
            if generation != self._generation:
                self._sessions = parse_sessions(self._aggregator.store.records(KIND))
                self._generation = generation
            return self._sessions


def is_secure() -> bool:
    """Whether the browser uses https, to this server or to a proxy before it.

    The proxy's header is trusted: forging it only makes one's own cookie stricter.
    """
    return request.is_secure or request.headers.get("X-Forwarded-Proto", "") == "https"


def _name() -> str:
    return HOST_COOKIE if is_secure() else COOKIE
