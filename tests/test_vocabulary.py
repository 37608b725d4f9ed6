"""One language: standard terms in names and docstrings, one name for one thing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = (
    "shared/veilcount_shared",
    "client/veilcount_client",
    "aggregator/veilcount_aggregator",
    "aggregator/veilcount_issuer",
    "aggregator/veilcount_serving",
    "aggregator/veilcount_shuffler",
    "aggregator/analysis/veilcount_analysis",
    "aggregator/analysis/veilcount_reader",
)

#: what is held to the vocabulary, a case for each folder directly below
ROOTS = (*PRODUCT, "tests", "tests/aggregator", "bench", "loadtests")

#: words of no trade, refused as a whole word of a name (split at underscores and capitals)
BANNED_NAMES = frozenset(
    (  # noqa: SIM905 - a list of words reads best as words
        "across asked asking behind beside beyond books chapter chapters coins crowd crowds door"
        " doors errand farewell foresaid foreseen given holdings house houses judging law laws"
        " notebook notebooks room rooms said saying shelf shelves span spans stretch tell tells"
        " telling tend tends told unless visitors weighed"
    ).split()
)
#: terms of the trade where reports are shuffled: in modules and folders of that name alone
SHUFFLER_TERMS = frozenset({"crowd", "crowds"})
#: what a function of the product calls nothing of its own: a local says what it holds
BANNED_LOCALS = frozenset({"each", "found"})
#: phrases of no trade, refused in docstrings
BANNED_PHRASES = re.compile(
    r"unless told|none at all|and that alone|there are none of|\bdoors?\b|\bcoins\b|\bthe house\b"
    r"|\btold\b|\bforesaid\b|\bforeseen\b|\bshel(f|ves)\b|\bnotebooks? of\b|\bfarewell\b"
    r"|\bcrowds?\b|\bholdings\b|\bthe law\b|\bexact laws?\b|\bparcels?\b",
    re.IGNORECASE,
)
PUBLIC_CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
#: basenames of modules that play one role in parallel packages
PARALLEL_ROLES = frozenset(
    {"__init__", "__main__", "conftest", "store", "page", "view", "keys", "errors"}
    # of the engines of a store
    | {"engine", "health", "intake", "records", "transfer"}
)


def modules(folder: str) -> tuple[Path, ...]:
    """Return the modules below a folder of the repository."""
    return tuple(sorted((ROOT / folder).rglob("*.py")))


def folders() -> list[str]:
    """Return the roots and the folders directly below them, a case each."""
    below = (path for root in ROOTS for path in sorted((ROOT / root).iterdir()))
    names = [str(path.relative_to(ROOT)) for path in below if path.is_dir()]
    return [name for name in (*ROOTS, *names) if own_modules(name)]


def own_modules(folder: str) -> tuple[Path, ...]:
    """Return a root's own modules, or all that are below another folder."""
    return tuple(sorted((ROOT / folder).glob("*.py"))) if folder in ROOTS else modules(folder)


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the banned names that a module binds, and the banned phrases of its docstrings."""
    in_shuffler = "shuffl" in path.as_posix()
    banned = BANNED_NAMES - SHUFFLER_TERMS if in_shuffler else BANNED_NAMES
    if words(path.stem) & banned:
        yield 1, path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = bound_name(node)
        if name and words(name) & banned:
            yield getattr(node, "lineno", 1), name
        if isinstance(node, Definition | ast.Module):
            phrase = BANNED_PHRASES.search(ast.get_docstring(node) or "")
            if phrase and not (in_shuffler and words(phrase[0]) <= SHUFFLER_TERMS):
                yield getattr(node, "lineno", 1), phrase[0]


def bound_name(node: ast.AST) -> str | None:
    """Return the name that a node binds: a definition's, a parameter's, a variable's, a field's."""
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
            return name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
    return None


@cache
def words(name: str) -> set[str]:
    """Return the words of a name, split at underscores and capitals."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


@pytest.mark.parametrize("folder", folders())
def test_names_and_docstrings_use_the_terms_of_the_field(folder: str) -> None:
    """No bound name has a banned word, no docstring a banned phrase."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {term}"
        for path in own_modules(folder)
        for line, term in findings(path)
    ]

    assert not found, "\n".join(found)


def locals_of(tree: ast.AST) -> Iterator[ast.Name]:
    """Yield the names that the functions of a module assign."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node


def test_a_local_of_the_product_says_what_it_holds() -> None:
    vague = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.id}"
        for root in PRODUCT
        for path in modules(root)
        for node in locals_of(ast.parse(path.read_text(encoding="utf-8")))
        if node.id in BANNED_LOCALS
    ]

    assert not vague, "\n".join(vague)


def test_banned_names_and_phrases_are_found(tmp_path: Path) -> None:
    """Each kind of name and docstring is looked at, so a clean tree means something."""
    module = tmp_path / "door.py"
    module.write_text(
        '"""The crowd."""\nclass House:\n    _find_lawRange_2: int\n    def tell(self, asked):\n'
        '        """What was told."""\n        self.shelf = span = 1\n',
        encoding="utf-8",
    )

    expected = [
        "door",
        "crowd",
        "House",
        "_find_lawRange_2",
        "tell",
        "asked",
        "told",
        "shelf",
        "span",
    ]
    assert sorted(term for _, term in findings(module)) == sorted(expected)


def public_classes() -> dict[str, list[str]]:
    """Return where each public class of the product is defined."""
    places = defaultdict[str, list[str]](list)
    for path in (path for package in PRODUCT for path in modules(package)):
        for name in PUBLIC_CLASS.findall(path.read_text(encoding="utf-8")):
            places[name].append(str(path.relative_to(ROOT)))
    return places


def test_no_two_public_classes_share_a_name() -> None:
    shared = {name: places for name, places in public_classes().items() if len(places) > 1}

    assert shared == {}


def test_a_module_name_means_one_thing_in_a_package() -> None:
    """A basename recurs in a package only where the role is the same."""
    shared: dict[str, list[str]] = {}
    for package in folders():
        places = defaultdict[str, list[str]](list)
        for path in own_modules(package):
            places[path.stem].append(str(path.relative_to(ROOT)))
        shared |= {n: p for n, p in places.items() if len(p) > 1 and n not in PARALLEL_ROLES}

    assert shared == {}
