"""Endpoints of the API's documentation: OpenAPI, and a page that loads nothing from elsewhere."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from flask import Response, render_template

from veilcount_shared.wire import JSON_TYPE

from .endpoint import ENDPOINTS, Api, endpoint
from .openapi import PREFIX, document
from .problems import PROBLEM_KINDS

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c2733; background: #fff; }
h1, h2 { line-height: 1.2; }
h3 { font: 600 1rem/1.5 ui-monospace, monospace; background: #eef2f6; padding: .4rem .6rem;
  margin-top: 2.5rem; border-radius: 4px; overflow-wrap: anywhere; }
code { font: .9em ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0;
  border-bottom: 1px solid #dde4ea; }
pre { background: #f6f8fa; padding: .75rem; overflow-x: auto; border-radius: 4px; }
a { color: #0b5cad; }
@media (prefers-color-scheme: dark) {
  body { color: #dbe3ea; background: #12181e; }
  h3 { background: #1f2a34; } pre { background: #1a222a; } th, td { border-color: #2b3742; }
  a { color: #7db8f0; }
}
"""
_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)


@endpoint("GET", "/openapi.json", returns=JSON_TYPE)
def show_openapi(api: Api) -> Response:  # noqa: ARG001 - every view gets it
    """This document."""
    return Response(_encoded(), mimetype=JSON_TYPE)


@endpoint("GET", "/docs", returns="text/html")
def show_docs(api: Api) -> Response:  # noqa: ARG001 - every view gets it
    """This document as a page."""
    page = render_template(
        "docs.html",
        style=STYLE,
        document=_document(),
        problems=PROBLEM_KINDS.values(),
        schema_name=_schema_name,
        pretty=_pretty,
    )
    return Response(page, headers={"Content-Security-Policy": POLICY})


@cache
def _document() -> dict[str, Any]:
    return document(_version(), ENDPOINTS)


@cache
def _encoded() -> bytes:
    return json.dumps(_document(), indent=1).encode()


def _version() -> str:
    try:
        return version("veilcount")
    except PackageNotFoundError:  # from a source tree that was never installed
        return "0"


def _schema_name(schema: dict[str, Any]) -> str:
    """Return the name of the type that a body has; nothing for bytes."""
    return str(schema.get("$ref", "")).removeprefix(PREFIX)


def _pretty(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2)
