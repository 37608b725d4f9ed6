"""A definitions file as a browser sends it: pasted or uploaded, with the value lists it names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from flask import Request
from werkzeug.datastructures import FileStorage

from veilcount_shared.errors import DefinitionError

from ...catalog.definitions import DefinitionSource

LIST = "list:"  # before a list's name, in the hidden fields of a preview


def uploaded(request: Request) -> DefinitionSource:
    """Return the text or the files of the form, and close the files."""
    with request:
        file = request.files.get("file")
        text = _decoded(file) if file else _lines(request.form.get("text", ""))
        sent = {each.filename: each for each in request.files.getlist("lists") if each.filename}
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
        found = sent.get(PurePath(name).name)
        if found is not None:
            yield name, _decoded(found)


def _wanted(text: str) -> list[str]:
    try:
        tables = tomllib.loads(text).values()
    except tomllib.TOMLDecodeError:
        return []  # reported with its line when the source is parsed
    wanted = (each.get("values_file") for each in tables if isinstance(each, dict))
    return [name for name in wanted if isinstance(name, str)]


def _decoded(file: FileStorage) -> str:
    try:
        return _lines(file.read().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise DefinitionError("file", file.filename, "not UTF-8 text: save it as UTF-8") from None


def _lines(text: str) -> str:
    """Return a text with plain line ends: browsers send CRLF."""
    return text.replace("\r\n", "\n")
