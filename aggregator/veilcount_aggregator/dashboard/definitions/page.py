"""The pages of definitions, for admins: list, preview, push, close."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Response, request

from veilcount_shared.errors import DefinitionError

from ...auth.api_keys import Role
from ...catalog.definitions import add_definitions, close_collection
from ...queries import CollectionNotFound
from ...text.privacy_guarantees import epsilons
from ..collection_status import collection_status
from ..pages import Content, Context, page, redirect_to, render
from . import upload
from .preview import Change, preview

FORM_BYTES = 32 << 20  # a preview repeats a list of a million values as a field
EXPECTED = 100_000  # reports


@page("/definitions", Role.ADMIN, "Definitions", 4)
def definitions(context: Context) -> Content:
    """List all definitions, with the form for new ones."""
    return _content(context)


@page("/definitions/preview", Role.ADMIN, methods=("POST",), computes=True, form_bytes=FORM_BYTES)
def preview_definitions(context: Context) -> Response | Content:
    """Show what a file would change, without changing it."""
    reports = max(1, request.form.get("reports", EXPECTED, int))
    try:
        source = upload.uploaded(request)
        items = preview(source, context.aggregator.known().catalog, reports)
    except DefinitionError as error:
        form = {"text": request.form.get("text", ""), "reports": reports, "wrong": str(error)}
        return render("definitions", HTTPStatus.UNPROCESSABLE_ENTITY, **_content(context, form))
    return {
        "items": items,
        "fields": upload.fields(source),
        "reports": reports,
        "changes": any(item.change is not Change.NONE for item in items),
        "remarks": sum(len(item.remarks) for item in items),
    }


@page("/definitions", Role.ADMIN, methods=("POST",), computes=True, form_bytes=FORM_BYTES)
def push_definitions(context: Context) -> Response:
    """Push a file: its series are counted from now on."""
    aggregator = context.aggregator
    source, read = upload.from_preview(request.form), aggregator.watch.catalog.read
    new = add_definitions(aggregator.store, source, aggregator.clock(), context.visit.who, read)
    aggregator.watch.refresh()
    return redirect_to("definitions", pushed=[collection.name for collection in new] or "")


@page("/definitions/<name>/close", Role.ADMIN, methods=("POST",))
def close_definition(context: Context, name: str) -> Response:
    """Close a collection: reports under any of its definitions are rejected."""
    aggregator = context.aggregator
    aggregator.watch.refresh()
    if name not in aggregator.known().catalog.by_name:
        raise CollectionNotFound(name, [])
    read = aggregator.watch.catalog.read
    close_collection(aggregator.store, name, aggregator.clock(), context.visit.who, read)
    aggregator.watch.refresh()
    return redirect_to("definitions", closed=name)


def _content(context: Context, form: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the list and the form; of names in the address only those that exist."""
    named, closed = context.aggregator.known().catalog.by_name, request.args.get("closed", "")
    rows = [
        {
            "collection": series[0].collection,
            "epsilon": epsilons(series[0].collection),
            "status": collection_status(series[0], context.aggregator.today()),
            "closed": all(each.closed for each in series),
            "definitions": len(series),
        }
        for _, series in sorted(named.items())
    ]
    return {
        "form": form or {"text": "", "reports": EXPECTED},
        "rows": sorted(rows, key=lambda row: bool(row["closed"])),
        "pushed": [each for each in request.args.getlist("pushed") if each in named],
        "was_pushed": "pushed" in request.args,
        "closed": closed if closed in named else "",
    }
