"""The pages: what is asked, the preview, push and close. For admins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus

from flask import Response, g, request

from veilcount_shared.collection import Model
from veilcount_shared.errors import DefinitionError

from ...auth.api_keys import Role
from ...catalog.definitions import add_definitions, close_collection
from ...queries import CollectionNotFound
from ...series.series import Series
from ...text.privacy_guarantees import PrivacyFigures, epsilons
from ..collection_status import Standing, standing
from ..layout import NAME, Frame, go
from . import upload
from .preview import News, preview

MOST = 32 << 20  # a list of a million values comes back from its preview as a field of a form
EXPECTED = 100_000  # answers


@dataclass(frozen=True, slots=True)
class Line:
    """A collection as a row of the table, by its newest definition."""

    name: str
    question: str
    trusted: bool
    unit: str
    epsilon: PrivacyFigures
    standing: Standing
    closed: bool
    definitions: int


@dataclass(frozen=True, slots=True)
class Asked:
    """The form, as it was sent."""

    text: str = ""
    answers: int = EXPECTED
    wrong: str = ""


def pages(frame: Frame) -> None:
    """Add the pages."""
    _known_pages(frame)
    _new_pages(frame)


def _known_pages(frame: Frame) -> None:
    aggregator = frame.aggregator

    @frame.page("/definitions", Role.ADMIN)
    def definitions() -> Response:
        """What is asked, and the form."""
        return _told(frame, Asked())

    @frame.page("/definitions/<name>/close", Role.ADMIN, methods=("POST",))
    def close_definition(name: str) -> Response:
        """Take no more reports for a collection, under any of its definitions."""
        aggregator.watch.refresh()
        if name not in aggregator.known().catalog.by_name:
            raise CollectionNotFound(name, [])
        read = aggregator.watch.catalog.read
        close_collection(aggregator.store, name, aggregator.clock(), g.visit.who, read)
        aggregator.watch.refresh()
        return go("definitions", closed=name)


def _new_pages(frame: Frame) -> None:
    aggregator = frame.aggregator

    @frame.blueprint.before_request
    def make_room() -> None:
        """Read long fields, on these pages alone."""
        if request.endpoint in {f"{NAME}.preview_definitions", f"{NAME}.push_definitions"}:
            request.max_form_memory_size = MOST

    @frame.page("/definitions/preview", Role.ADMIN, methods=("POST",), computes=True)
    def preview_definitions() -> Response:
        """Say what a file would change; nothing is changed."""
        answers = max(1, request.form.get("answers", EXPECTED, int))
        try:
            source = upload.chosen(request)
            items = preview(source, aggregator.known().catalog, answers)
        except DefinitionError as error:
            asked = Asked(request.form.get("text", ""), answers, str(error))
            return _told(frame, asked, HTTPStatus.UNPROCESSABLE_ENTITY)
        return frame.told(
            "definitions_preview.html",
            items=items,
            fields=upload.fields(source),
            answers=answers,
            anything=any(item.news is not News.KNOWN for item in items),
            remarks=sum(len(item.remarks) for item in items),
        )

    @frame.page("/definitions", Role.ADMIN, methods=("POST",), computes=True)
    def push_definitions() -> Response:
        """Take a file: from now on its series are counted."""
        source = upload.repeated(request.form)
        read = aggregator.watch.catalog.read
        new = add_definitions(aggregator.store, source, aggregator.clock(), g.visit.who, read)
        aggregator.watch.refresh()
        return go("definitions", pushed=[collection.name for collection in new] or "")


def _told(frame: Frame, asked: Asked, status: int = 200) -> Response:
    """Return the page; a name in its address is told only if a collection has it."""
    named = frame.aggregator.known().catalog.by_name
    closed = request.args.get("closed", "")
    return frame.told(
        "definitions.html",
        status,
        asked=asked,
        lines=_lines(named, frame.aggregator.today()),
        pushed=[each for each in request.args.getlist("pushed") if each in named],
        was_pushed="pushed" in request.args,
        closed=closed if closed in named else "",
    )


def _lines(named: Mapping[str, tuple[Series, ...]], today: date) -> list[Line]:
    """Return those that take reports before those that do not, by name."""
    found = [_line(series, today) for series in named.values()]
    return sorted(found, key=lambda line: (line.closed, line.name))


def _line(series: tuple[Series, ...], today: date) -> Line:
    newest = series[0].collection
    return Line(
        newest.name,
        newest.question,
        newest.model is Model.CENTRAL,
        newest.unit,
        epsilons(newest),
        standing(series[0], today),
        all(each.closed for each in series),
        len(series),
    )
