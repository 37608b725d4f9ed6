"""The public site as it is served: without a log-in, without cookies, and for caches."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response, request

from ...api.problems import refusal
from ..pages import POLICY, Context, page
from .site_files import HTML, INDEX

SECONDS = 300  # for which a cache may answer
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
#: other pages may show and read the files: everybody gets the same
FILE_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    POLICY: "default-src 'none'; frame-ancestors 'none'",
}


@page("/public/", role=None, cookies=False)
def public_index(context: Context) -> Response:
    """List what is published."""
    return _respond(context, "")


@page("/public/<path:path>", role=None, cookies=False)
def public(context: Context, path: str) -> Response:
    """Return a page or a file of what is published."""
    return _respond(context, path)


def _respond(context: Context, path: str) -> Response:
    is_folder = not path or path.endswith("/")
    file = context.site.file(f"{path}{INDEX}" if is_folder else path)
    if file is None and not is_folder and context.site.file(f"{path}/{INDEX}"):
        location = f"{path.rpartition('/')[2]}/"  # relative, as the site may be below a prefix
        return Response(status=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": location})
    if file is None:
        raise refusal("not-found", "nothing is published here", "path")
    headers = {"Cache-Control": f"public, max-age={SECONDS}"}
    headers |= {POLICY: PAGE_POLICY} if file.type == HTML else FILE_HEADERS
    response = Response(file.content, headers=headers, content_type=file.type)
    response.set_etag(file.digest)
    response.make_conditional(request)
    return response
