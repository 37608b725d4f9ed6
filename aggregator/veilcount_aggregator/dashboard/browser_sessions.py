"""Who is at the door: a browser's cookie, and what it opens."""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flask import Response, request

from ..api.problems import refusal
from ..auth.api_keys import Role
from ..auth.rate_limit import RateLimits
from ..auth.sessions import (
    BYTES,
    KIND,
    LASTS,
    BrowserSession,
    begin_session,
    end_session,
    form_token,
    parse_sessions,
    session_digest,
)
from ..errors import StoreError
from ..service import Aggregator

COOKIE = "veilcount"
HOST_COOKIE = "__Host-veilcount"  # over https: no other host and no path can set it
FIELD = "form_token"
LOOKS = 20.0  # a second, at the store, for cookies that nobody knows


@dataclass(frozen=True, slots=True)
class Visit:
    """A request's browser: what it holds, and what that opens. A stranger has no role."""

    secret: str
    role: Role | None = None
    who: str = ""

    @property
    def token(self) -> str:
        """What its forms repeat."""
        return form_token(self.secret)

    def check_form(self) -> None:
        """Refuse a form that is not of a page of ours."""
        given = request.form.get(FIELD, "")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise refusal(
                "bad-request", "this form is too old: load the page again, and send it", "form"
            )


class Visitors:
    """Knows who has logged in, for one worker."""

    def __init__(self, aggregator: Aggregator, seconds: Callable[[], float]) -> None:
        """`seconds` is a clock that never goes back."""
        self._aggregator = aggregator
        self._looks = RateLimits(LOOKS, seconds)
        self._lock = threading.Lock()
        self._generation: int | None = -1  # of the sessions
        self._sessions: Mapping[str, BrowserSession] = {}

    def visit(self) -> Visit:
        """Return who asks."""
        secret = request.cookies.get(_name(), "")
        session = self._find(secret) if secret else None
        if session is None:
            return Visit(secret or secrets.token_urlsafe(BYTES))
        return Visit(secret, session.role, session.who)

    def visit_or_stranger(self) -> Visit:
        """Return who asks; a stranger while sessions cannot be read, which a page may say."""
        try:
            return self.visit()
        except StoreError:
            return Visit(secrets.token_urlsafe(BYTES))

    def admit(self, response: Response, role: Role, who: str) -> None:
        """Begin a session; the browser keeps it until it is closed or the session is over."""
        now = self._aggregator.clock()
        self.keep(response, begin_session(self._aggregator.store, role, who, now))
        self._aggregator.watch.refresh()

    def dismiss(self, response: Response, visit: Visit) -> None:
        """End a session."""
        end_session(self._aggregator.store, visit.secret)
        self._aggregator.watch.refresh()
        response.delete_cookie(_name(), secure=is_secure(), httponly=True, samesite="Strict")

    def keep(self, response: Response, secret: str) -> None:
        """Let the browser keep a secret, where no script and no other site can use it."""
        response.set_cookie(
            _name(),
            secret,
            max_age=int(LASTS.total_seconds()),
            secure=is_secure(),
            httponly=True,
            samesite="Strict",
        )

    def _find(self, secret: str) -> BrowserSession | None:
        name = session_digest(secret)
        found = self._known().get(name)
        if found is None and not self._looks.wait(""):  # begun in another worker, just now
            self._aggregator.watch.refresh()
            found = self._known().get(name)
        now, ring = self._aggregator.clock(), self._aggregator.known().api_keys
        return found if found is not None and found.is_valid(ring, now) else None

    def _known(self) -> Mapping[str, BrowserSession]:
        generation = self._aggregator.known().generations.get(KIND)
        with self._lock:
            if generation != self._generation:
                self._sessions = parse_sessions(self._aggregator.store.records(KIND))
                self._generation = generation
            return self._sessions


def is_secure() -> bool:
    """Whether the browser came over https, to us or to a proxy of ours.

    A proxy's header is believed: whoever forges it makes his own cookie stricter, no more.
    """
    return request.is_secure or request.headers.get("X-Forwarded-Proto", "") == "https"


def _name() -> str:
    return HOST_COOKIE if is_secure() else COOKIE
