"""The access table: every endpoint and every page with the role that may use it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from flask import Flask

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.web.api import gateway, reports, rows


class Kind(Enum):
    KEY = auto()  # by a key in a header, always
    DEVICE = auto()  # by a device's key, from the first one on
    OPEN = auto()  # anyone may
    ACCOUNT = auto()  # by an account token, at an issuer
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


def _rules(kind: Kind, role: Role | None, text: str) -> Iterator[AccessRule]:
    """Yield the rules of one kind: each method, and its paths."""
    method = ""
    for word in text.split():
        if word.startswith("/"):
            yield AccessRule(method, word, kind, role)
        else:
            method = word


DEVICES = f"""
    POST    {reports.PATH}  {rows.PATH}
"""
ANALYSTS = """
    GET     /v1/collections             /v1/collections/<name>           /v1/plan   /metrics
            /v1/definitions
            /v1/collections/<name>/estimate   /v1/collections/<name>/compare
            /v1/collections/<name>/budget     /v1/collections/<name>/contrast
            /v1/collections/<name>/releases
    POST    /v1/collections/<name>/estimate   /v1/collections/<name>/releases
"""
ADMINS = """
    GET     /v1/keys   /v1/audit
    POST    /v1/keys   /v1/collections  /v1/collections/<name>/close
    DELETE  /v1/keys/<identity>
"""
SHUFFLERS = """
    POST    /v1/batches   /v1/batch-records
"""
ANYONE = """
    GET     /healthz  /readyz  /openapi.json  /docs  /assets/<digest>/<name>  /login  /enter
            /public/  /public/<path:path>   /sign-in   /sign-in/return
"""
GATEWAY = "GET  /v1/ohttp-keys  POST  /v1/ohttp"
ANALYSTS_PAGES = """
    GET     /   /plan   /operations     /collections/<name>
            /collections/<name>/estimates.<form>   /collections/<name>/compare
            /collections/<name>/budget             /collections/<name>/contrast
            /collections/<name>/releases           /collections/<name>/privacy
            /collections/<name>/definition         /collections/<name>/report
    POST    /collections/<name>/releases
"""
ADMINS_PAGES = """
    GET     /keys      /definitions
    POST    /keys      /keys/<identity>/revoke
            /definitions   /definitions/preview   /definitions/<name>/close
"""
#: written down by hand: a door that is not in here has not been thought about
DECIDED = (
    *_rules(Kind.DEVICE, Role.DEVICE, DEVICES),
    *_rules(Kind.KEY, Role.ANALYST, ANALYSTS),
    *_rules(Kind.KEY, Role.ADMIN, ADMINS),
    *_rules(Kind.KEY, Role.SHUFFLER, SHUFFLERS),
    *_rules(Kind.OPEN, None, ANYONE),
    *_rules(Kind.OPEN, None, GATEWAY),
    *_rules(Kind.FORM, None, "POST  /login  /enter  /logout"),
    *_rules(Kind.PAGE, Role.ANALYST, ANALYSTS_PAGES),
    *_rules(Kind.PAGE, Role.ADMIN, ADMINS_PAGES),
)

#: the issuer, a process of its own
ISSUER = (
    *_rules(
        Kind.OPEN,
        None,
        """
        GET   /v1/token-keys/<fingerprint>   /v1/issued/<fingerprint>
              /health/live   /health/ready   /metrics
        """,
    ),
    *_rules(Kind.ACCOUNT, None, "POST  /v1/tokens"),
)


def of_kind(*kinds: Kind) -> list[AccessRule]:
    return [endpoint for endpoint in DECIDED if endpoint.kind in kinds]


def served(app: Flask) -> Iterator[str]:
    """Yield every served endpoint, in the form above."""
    yield f"POST {reports.PATH}"
    yield f"POST {gateway.PATH}"
    yield from routed(app)


def routed(app: Flask) -> Iterator[str]:
    """Yield every endpoint of Flask's, in the form above."""
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"HEAD"}:
            yield f"{method} {rule.rule}"
