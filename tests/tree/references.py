"""What comments, docstrings and pages refer to: files, modules and names that must exist."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.docs.page_parser import Block, steps

from .import_graph import ROOT

FOLDERS = ("shared", "client", "aggregator", "bench", "loadtests", "tests", "docs", "examples")
_FILE = re.compile(r"(?<![\w/.{*-])((?:[\w-]+/)*[\w-]+\.(?:py|md))\b")
_DOTTED = re.compile(r"`([a-z_]\w*(?:\.\w+)+)(?:\(\))?`|\b(veilcount_\w+(?:\.\w+)+)(?!\.py)")
_NAME = re.compile(r"`([A-Za-z_]\w+)(?:\(\))?`|(?<![\w$.])([a-z]{4,}(?:_[a-z]{4,})+)\b(?!\.)")
_WORD = re.compile(r"\w+")
_FILE_SUFFIX = re.compile(r"\.(?:toml|js|lua|txt|yml|json|html)$")
_LITERAL = re.compile(
    r'#[^\n]*|""".*?"""|"(?:\\.|[^"\\\n])*"|'
    r"'''.*?'''|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)
#: first words of dotted names that no module of this tree has
_ELSEWHERE = sys.stdlib_module_names | {"gmpy2", "urls", "veilcount"}


@dataclass(frozen=True, slots=True)
class Texts:
    """The comments and docstrings of a module by line, and the words of its code."""

    prose: list[tuple[int, str]]
    words: frozenset[str]


@cache
def read(path: Path) -> Texts:
    """Part a module's prose from its code; a tokenizer takes ten times as long for the tree."""
    source = path.read_text(encoding="utf-8")
    prose, code, end = [], [], 0
    for match in _LITERAL.finditer(source):
        code.append(source[end : match.start()])
        if match[0].startswith("#") or (match[0].startswith('"""') and _is_statement(code)):
            prose.append((source.count("\n", 0, match.start()) + 1, match[0]))
        else:
            code.append(match[0])
        end = match.end()
    return Texts(prose, frozenset(_WORD.findall("".join([*code, source[end:]]))))


def _is_statement(code: list[str]) -> bool:
    """Tell whether the code ends where a block, or the module, begins."""
    before = next((part.rstrip() for part in reversed(code) if part.strip()), ":")
    return before.endswith(":")


@cache
def modules() -> tuple[Path, ...]:
    """List the Python files of the repository."""
    return tuple(sorted(path for name in FOLDERS for path in (ROOT / name).rglob("*.py")))


@cache
def code_words() -> frozenset[str]:
    """Collect the words of all code, and the names of all modules."""
    stems = {part for path in modules() for part in path.relative_to(ROOT).with_suffix("").parts}
    return frozenset(stems.union(*(read(path).words for path in modules())))


def stale_in_module(path: Path) -> Iterator[str]:
    """Yield the references of a module that lead nowhere, each with its line."""
    for line, text in read(path).prose:
        for reference in stale(text):
            yield f"{line}: {reference}"


def stale_in_page(path: Path) -> Iterator[str]:
    """Yield the files and modules that a page names and nobody has; its blocks may write files."""
    text = path.read_text(encoding="utf-8")
    blocks = [step for step in steps(text) if isinstance(step, Block)]
    written = {word for block in blocks for word in (block.file, *_FILE.findall(block.text))}
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (name for name in _stale_files(prose) if name not in written)
    yield from (name for name in _stale_modules(prose) if name.startswith("veilcount_"))


def stale(text: str) -> Iterator[str]:
    """Yield what a text refers to and the repository has not."""
    yield from _stale_files(text)
    yield from _stale_modules(text)
    for match in _NAME.finditer(text):
        name = match[1] or match[2]
        if name not in code_words():
            yield name


def _stale_files(text: str) -> Iterator[str]:
    return (name for name in _FILE.findall(text) if not _is_file(name))


@cache
def _is_file(name: str) -> bool:
    return any(f"/{path}".endswith(f"/{name}") for path in _files())


@cache
def _files() -> tuple[str, ...]:
    documents = (path for name in FOLDERS for path in (ROOT / name).rglob("*.md"))
    paths = (*ROOT.glob("*.md"), *documents, *modules())
    return tuple(path.relative_to(ROOT).as_posix() for path in paths)


def _stale_modules(text: str) -> Iterator[str]:
    for match in _DOTTED.finditer(text):
        name = match[1] or match[2]
        if not (_FILE_SUFFIX.search(name) or name.endswith((".py", ".md")) or _resolves(name)):
            yield name


@cache
def _resolves(name: str) -> bool:
    """Tell whether the longest part that is a module's name has the next part of the name."""
    parts = name.split(".")
    if parts[0] in _ELSEWHERE:
        return True
    for length in range(len(parts), 0, -1):
        if paths := _paths("/".join(parts[:length])):
            return length == len(parts) or any(parts[length] in read(path).words for path in paths)
    return code_words().issuperset(parts)  # of an object, such as a field of a local


def _paths(module: str) -> list[Path]:
    endings = f"/{module}.py", f"/{module}/__init__.py"
    return [path for path in modules() if path.as_posix().endswith(endings)]
