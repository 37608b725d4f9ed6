"""The pages of definitions, for admins: list, preview, push, close."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from http import HTTPStatus
from pathlib import PurePath
from typing import Any

from flask import Request, Response, request
from werkzeug.datastructures import FileStorage

from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import epsilons
from veilcount_shared import Collection, lint
from veilcount_shared.errors import DefinitionError

from ...errors import CounterMemoryExceeded
from ...queries import CollectionNotFound
from ...records.api_keys import Role
from ...records.definitions import Catalog, DefinitionSource, close_collection
from .collection.definition_history import changes
from .collection_status import collection_status
from .pages import Content, Context, page, redirect_to, render

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
        source = uploaded(request)
        items = preview(source, context.aggregator.known().catalog, reports)
        context.aggregator.require_memory(source)
    except (DefinitionError, CounterMemoryExceeded) as error:
        form = {"text": request.form.get("text", ""), "reports": reports, "wrong": str(error)}
        return render("definitions", HTTPStatus.UNPROCESSABLE_ENTITY, **_content(context, form))
    return {
        "items": items,
        "fields": fields(source),
        "reports": reports,
        "changes": any(item["change"] is not Change.NONE for item in items),
        "remarks": sum(len(item["remarks"]) for item in items),
    }


@page("/definitions", Role.ADMIN, methods=("POST",), computes=True, form_bytes=FORM_BYTES)
def push_definitions(context: Context) -> Response:
    """Push a file: its series are counted from now on."""
    new = context.aggregator.push(from_preview(request.form), context.visit.actor)
    return redirect_to("definitions", pushed=[collection.name for collection in new] or "")


@page("/definitions/<name>/close", Role.ADMIN, methods=("POST",))
def close_definition(context: Context, name: str) -> Response:
    """Close a collection: reports under any of its definitions are rejected."""
    aggregator = context.aggregator
    aggregator.catalog_cache.refresh()
    if name not in aggregator.known().catalog.by_name:
        raise CollectionNotFound(name, [])
    read = aggregator.catalog_cache.catalog.read
    close_collection(aggregator.store, name, aggregator.clock(), context.visit.actor, read)
    aggregator.catalog_cache.refresh()
    return redirect_to("definitions", closed=name)


def _content(context: Context, form: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the list and the form; of names in the address only those that exist."""
    named, closed = context.aggregator.known().catalog.by_name, request.args.get("closed", "")
    rows = [
        {
            "collection": series[0].collection,
            "epsilon": epsilons(series[0].collection),
            "status": collection_status(series[0], context.aggregator.today()),
            "closed": all(one_series.closed for one_series in series),
            "definitions": len(series),
        }
        for _, series in sorted(named.items())
    ]
    return {
        "form": form or {"text": "", "reports": EXPECTED},
        "rows": sorted(rows, key=lambda row: bool(row["closed"])),
        "pushed": [name for name in request.args.getlist("pushed") if name in named],
        "was_pushed": "pushed" in request.args,
        "closed": closed if closed in named else "",
    }


class Change(StrEnum):
    """What pushing a definition changes."""

    NEW = "new"
    SERIES = "new definition"
    TEXTS = "texts only"
    NONE = "known"


EFFECTS = {
    Change.NEW: "A new collection.",
    Change.SERIES: "A new series begins: its results are shown next to those of earlier"
    " definitions, and are never added to them. Apps that ship an earlier definition are still"
    " counted under it.",
    Change.TEXTS: "Privacy and meaning stay: it is the same series with other texts.",
    Change.NONE: "Identical to the known definition.",
}


def preview(source: DefinitionSource, known: Catalog, reports: int) -> list[Content]:
    """Return what each collection of a file would change, or refuse the file as a device would."""
    return [
        _item(collection, known.by_name.get(name, ()), reports)
        for name, collection in source.collections().items()
    ]


def _item(collection: Collection, series: Sequence[Series], reports: int) -> Content:
    before = _before(collection, series)
    change = _change(collection, before)
    return {
        "collection": collection,
        "change": change,
        "effect": EFFECTS[change],
        "epsilon": epsilons(collection),
        "changes": changes(before, collection) if before else [],
        "remarks": [f"{remark.key}: {remark.text}" for remark in lint(collection, reports)],
    }


def _before(collection: Collection, series: Sequence[Series]) -> Collection | None:
    """Return the definition to compare with: of the same series, else the newest."""
    same = [one_series for one_series in series if one_series.fingerprint == collection.fingerprint]
    candidates = (*same, *series)
    return candidates[0].collection if candidates else None


def _change(collection: Collection, before: Collection | None) -> Change:
    if before is None:
        return Change.NEW
    if before.fingerprint != collection.fingerprint:
        return Change.SERIES
    return Change.NONE if before == collection else Change.TEXTS


LIST = "list:"  # before a list's name, in the hidden fields of a preview


def uploaded(request: Request) -> DefinitionSource:
    """Return the text or the files of the form, and close the files."""
    with request:
        file = request.files.get("file")
        text = _decoded(file) if file else _lines(request.form.get("text", ""))
        sent = {
            upload.filename: upload for upload in request.files.getlist("lists") if upload.filename
        }
        return DefinitionSource(text, dict(_named(text, sent)))


def from_preview(form: Mapping[str, str]) -> DefinitionSource:
    """Return the source that a preview repeats in hidden fields."""
    lists = {name: _lines(text) for name, text in form.items() if name.startswith(LIST)}
    return DefinitionSource(
        _lines(form.get("text", "")),
        {name.removeprefix(LIST): text for name, text in lists.items()},
    )


def fields(source: DefinitionSource) -> dict[str, str]:
    """Return a source as the hidden fields of a preview."""
    return {"text": source.text} | {LIST + name: text for name, text in source.files.items()}


def _named(text: str, sent: Mapping[str, FileStorage]) -> Iterator[tuple[str, str]]:
    """Yield the lists that a file names; browsers send names without folders."""
    for name in _wanted(text):
        upload = sent.get(PurePath(name).name)
        if upload is not None:
            yield name, _decoded(upload)


def _wanted(text: str) -> list[str]:
    try:
        tables = tomllib.loads(text).values()
    except tomllib.TOMLDecodeError:
        return []  # reported with its line when the source is parsed
    wanted = (table.get("values_file") for table in tables if isinstance(table, dict))
    return [name for name in wanted if isinstance(name, str)]


def _decoded(file: FileStorage) -> str:
    try:
        return _lines(file.read().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise DefinitionError("file", file.filename, "not UTF-8 text: save it as UTF-8") from None


def _lines(text: str) -> str:
    """Return a text with plain line ends: browsers send CRLF."""
    return text.replace("\r\n", "\n")
