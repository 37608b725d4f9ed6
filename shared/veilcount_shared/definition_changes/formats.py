"""How a change of definitions is written: lines, Markdown, annotations of a runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..diagnostic_result import DiagnosticResult
from ..diagnostic_result import render as render_lines
from .changes import FileChange
from .findings import findings
from .markdown import markdown

TEXT = "text"
Format = Callable[[FileChange, Sequence[DiagnosticResult]], str]


@dataclass(frozen=True, slots=True)
class RenderedChange:
    """A change in words, and whether nothing is left to decide."""

    text: str
    ok: bool


def render(change: FileChange, name: str) -> RenderedChange:
    """Write a change in one of the FORMATS."""
    results = list(findings(change))
    return RenderedChange(FORMATS[name](change, results), all(result.ok for result in results))


def _text(_: FileChange, results: Sequence[DiagnosticResult]) -> str:
    return render_lines(results, as_json=False)


def _json(_: FileChange, results: Sequence[DiagnosticResult]) -> str:
    return render_lines(results, as_json=True)


def _annotations(change: FileChange, results: Sequence[DiagnosticResult]) -> str:
    """Write workflow commands, each about the line of its question in the file."""
    return "\n".join(
        _annotation(result, change.file, change.lines.get(result.subject)) for result in results
    )


def _annotation(result: DiagnosticResult, file: str, line: int | None) -> str:
    place = {"file": file, "line": line, "title": result.subject}
    properties = ",".join(
        f"{key}={_escaped(str(value), ':,')}" for key, value in place.items() if value
    )
    level = "notice" if result.ok else "warning"
    return f"::{level} {properties}::{_escaped(result.message)}"


def _escaped(text: str, separators: str = "") -> str:
    """Escape what ends a workflow command, or one of its properties."""
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{separators}" else c for c in text)


FORMATS: Mapping[str, Format] = {
    TEXT: _text,
    "json": _json,
    "markdown": markdown,
    "github": _annotations,
}
