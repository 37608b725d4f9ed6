"""Endpoints of the API's documentation: OpenAPI, and a page in the style of the dashboard."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from flask import Response, render_template

from veilcount_shared.wire import JSON_TYPE

from .endpoint import ENDPOINTS, Api, endpoint
from .openapi import PREFIX, document
from .problems import PROBLEM_KINDS
from .version import installed_version

#: the page has the dashboard's style, and its switch of themes
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
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
        document=_document(),
        problems=PROBLEM_KINDS.values(),
        schema_name=_schema_name,
        pretty=_pretty,
    )
    return Response(page, headers={"Content-Security-Policy": POLICY})


@cache
def _document() -> dict[str, Any]:
    return document(installed_version(), ENDPOINTS)


@cache
def _encoded() -> bytes:
    return json.dumps(_document(), indent=1).encode()


def _schema_name(schema: dict[str, Any]) -> str:
    """Return the name of the type that a body has; nothing for bytes."""
    return str(schema.get("$ref", "")).removeprefix(PREFIX)


def _pretty(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2)
