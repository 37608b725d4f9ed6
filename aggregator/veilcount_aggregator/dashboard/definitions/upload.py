"""A definitions file as a browser sends it: typed or chosen, with the lists of values it names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from flask import Request
from werkzeug.datastructures import FileStorage

from veilcount_shared.errors import DefinitionError

from ...catalog.definitions import DefinitionSource

LIST = "list:"  # before a list's name, in a form that sends a preview again


def chosen(request: Request) -> DefinitionSource:
    """Return what was typed or chosen, and let go of the files that hold it."""
    with request:
        file = request.files.get("file")
        text = _decoded(file) if file else _lines(request.form.get("text", ""))
        sent = {each.filename: each for each in request.files.getlist("lists") if each.filename}
        return DefinitionSource(text, dict(_named(text, sent)))


def repeated(form: Mapping[str, str]) -> DefinitionSource:
    """Return what a preview sends again."""
    lists = {name: _lines(text) for name, text in form.items() if name.startswith(LIST)}
    return DefinitionSource(
        _lines(form.get("text", "")),
        {name.removeprefix(LIST): text for name, text in lists.items()},
    )


def fields(source: DefinitionSource) -> dict[str, str]:
    """Return what a preview sends again, as fields of its form."""
    return {"text": source.text} | {LIST + name: text for name, text in source.files.items()}


def _named(text: str, sent: Mapping[str, FileStorage]) -> Iterator[tuple[str, str]]:
    """Yield the lists that a file names; browsers send a name without its folder."""
    for name in _wanted(text):
        found = sent.get(PurePath(name).name)
        if found is not None:
            yield name, _decoded(found)


def _wanted(text: str) -> list[str]:
    try:
        tables = tomllib.loads(text).values()
    except tomllib.TOMLDecodeError:
        return []  # said with its line, when it is read in earnest
    wanted = (each.get("values_file") for each in tables if isinstance(each, dict))
    return [name for name in wanted if isinstance(name, str)]


def _decoded(file: FileStorage) -> str:
    try:
        return _lines(file.read().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise DefinitionError("file", file.filename, "no UTF-8 text: save it as one") from None


def _lines(text: str) -> str:
    """Return a text as it was before a form: browsers end lines in their own way."""
    return text.replace("\r\n", "\n")
