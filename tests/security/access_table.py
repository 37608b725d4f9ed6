"""The access table: every endpoint and every page with the role that may use it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from flask import Flask

from veilcount_aggregator.api import reports
from veilcount_aggregator.auth.api_keys import Role

REPORTS = "reports"  # the one door in front of Flask
PAGES = "pages."


class Kind(Enum):
    KEY = auto()  # by a key in a header, always
    DEVICE = auto()  # by a device's key, from the first one on
    OPEN = auto()  # anyone may
    PAGE = auto()  # by a session
    FORM = auto()  # anyone may, who comes from a page of ours


@dataclass(frozen=True, slots=True)
class AccessRule:
    method: str
    path: str
    kind: Kind
    role: Role | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def _all(kind: Kind, role: Role | None, *endpoints: str) -> tuple[AccessRule, ...]:
    """Return the rules of endpoints of one kind, each written as `METHOD PATH`."""
    split = (endpoint.split() for endpoint in endpoints)
    return tuple(AccessRule(method, path, kind, role) for method, path in split)


#: written down by hand: a door that is not in here has not been thought about
DECIDED = (
    *_all(
        Kind.DEVICE,
        Role.DEVICE,
        f"POST {reports.PATH}",
        "DELETE /v1/pseudonyms/<fingerprint>/<pseudonym>",
    ),
    *_all(
        Kind.KEY,
        Role.ANALYST,
        "GET /v1/collections",
        "GET /v1/collections/<name>",
        "GET /v1/collections/<name>/estimate",
        "GET /v1/collections/<name>/compare",
        "GET /v1/collections/<name>/budget",
        "GET /v1/collections/<name>/contrast",
        "GET /v1/collections/<name>/releases",
        "POST /v1/collections/<name>/releases",
        "GET /v1/plan",
        "GET /metrics",
    ),
    *_all(
        Kind.KEY,
        Role.ADMIN,
        "POST /v1/collections",
        "POST /v1/collections/<name>/close",
        "GET /v1/keys",
        "POST /v1/keys",
        "DELETE /v1/keys/<identity>",
        "GET /v1/audit",
    ),
    *_all(
        Kind.OPEN,
        None,
        "GET /healthz",
        "GET /readyz",
        "GET /openapi.json",
        "GET /docs",
        "GET /assets/<digest>/<name>",
        "GET /login",
        "GET /enter",
    ),
    *_all(Kind.FORM, None, "POST /login", "POST /enter", "POST /logout"),
    *_all(
        Kind.PAGE,
        Role.ANALYST,
        "GET /",
        "GET /collections/<name>",
        "GET /collections/<name>/estimates.<form>",
        "GET /collections/<name>/compare",
        "GET /collections/<name>/budget",
        "GET /collections/<name>/contrast",
        "GET /collections/<name>/releases",
        "POST /collections/<name>/releases",
        "GET /plan",
        "GET /operations",
    ),
    *_all(
        Kind.PAGE,
        Role.ADMIN,
        "GET /keys",
        "POST /keys",
        "POST /keys/<identity>/revoke",
        "GET /definitions",
        "POST /definitions",
        "POST /definitions/preview",
        "POST /definitions/<name>/close",
    ),
)


def of_kind(*kinds: Kind) -> list[AccessRule]:
    return [endpoint for endpoint in DECIDED if endpoint.kind in kinds]


def served(app: Flask) -> Iterator[str]:
    """Yield every served endpoint, in the form above."""
    yield f"POST {reports.PATH}"
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"HEAD"}:
            yield f"{method} {rule.rule}"
