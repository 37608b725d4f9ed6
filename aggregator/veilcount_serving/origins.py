"""The web pages that may call devices' endpoints: an allowlist, empty by default [Fetch, CORS].

A browser names a page's origin in what the page sends to another site. A page that is not listed is
refused before its body is read, or any page could have its visitors vote. What is no page names no
origin, and is not affected. An origin is echoed, never `*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus

from veilcount_shared.problem_details import ProblemError, ProblemKind, problem_of

WRONG_ORIGIN = ProblemKind(
    "wrong-origin",
    HTTPStatus.FORBIDDEN,
    "Page of another origin",
    "have the operator list the page's origin in --origins, if it is a page of the app",
)
_LOOPBACK = r"http://(localhost|127\.0\.0\.1)"
_ORIGIN = re.compile(rf"(({_LOOPBACK})|(?!http:)[a-z][a-z0-9+.-]*://[a-z0-9.-]+)(:[0-9]{{1,5}})?")
_SECONDS = "7200"  # for which a browser remembers that it may send: as long as Chromium does

Header = tuple[str, str]


def check_origins(origins: Iterable[str]) -> str:
    """Return what is wrong with a list of origins, and the fix; empty without a problem."""
    if all(map(_ORIGIN.fullmatch, origins)):
        return ""
    return "give origins as browsers name them: https://app.example.org, http://localhost:3000"


class AllowedOrigins:
    """The origins whose pages may send by some methods."""

    def __init__(self, origins: Iterable[str], methods: str) -> None:
        """Allow these origins; `methods` are separated by commas."""
        self._origins = frozenset(origins)
        self._preflight = [
            ("Access-Control-Allow-Methods", methods),
            ("Access-Control-Allow-Headers", "Authorization, Content-Type"),
            ("Access-Control-Max-Age", _SECONDS),
        ]

    def check(self, origin: str) -> None:
        """Refuse a page that is not listed."""
        if origin not in self._origins:
            raise ProblemError(problem_of(WRONG_ORIGIN))

    def headers(self, origin: str, method: str) -> list[Header]:
        """Return the headers by which a browser lets a page read the response; none if unlisted."""
        if origin not in self._origins:
            return []
        return [
            ("Access-Control-Allow-Origin", origin),
            ("Access-Control-Expose-Headers", "Retry-After"),
            ("Vary", "Origin"),
            *(self._preflight if method == "OPTIONS" else ()),
        ]
