"""Imports point inward and form no cycle, shared code does no I/O, public names are pinned."""

from __future__ import annotations

import logging.config
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import grimp
import pytest
from importlinter.cli import lint_imports

import veilcount_aggregator
import veilcount_analysis
import veilcount_client
import veilcount_issuer
import veilcount_reader
import veilcount_serving
import veilcount_shared
import veilcount_shuffler

ROOT = Path(__file__).parents[1]
OUTSIDE = {"asyncio", "http", "io", "logging", "os", "pathlib", "random", "secrets", "shutil"}
OUTSIDE |= {"socket", "subprocess", "time"}


def test_arrows_point_inward(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import-linter's contracts hold."""
    monkeypatch.setattr(logging.config, "dictConfig", lambda _: None)  # it would silence all others
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def imports(package: str, *, external: bool = False) -> grimp.ImportGraph:
    """Return which modules of a package import which: when called and for types alone as well."""
    return grimp.build_graph(package, cache_dir=None, include_external_packages=external)


def test_what_is_shared_does_no_io_and_reads_no_clock() -> None:
    """One module reads files, one those of a git revision, one randomness, one names statuses."""
    graph = imports("veilcount_shared", external=True)
    found = {
        (module, name)
        for module in graph.modules
        for name in graph.find_modules_directly_imported_by(module) & OUTSIDE
    }

    assert found == {
        ("veilcount_shared.collection.loading", "os"),
        ("veilcount_shared.collection.loading", "pathlib"),
        ("veilcount_shared.definition_changes.against", "os"),
        ("veilcount_shared.definition_changes.against", "pathlib"),
        ("veilcount_shared.definition_changes.against", "subprocess"),
        ("veilcount_shared.problem_details", "http"),
        ("veilcount_shared.randomness", "os"),
    }


def in_order(graph: grimp.ImportGraph) -> list[str]:
    """Return the modules in an order in which imports point backward; CycleError without one."""
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    return list(TopologicalSorter(imported).static_order())


PACKAGES = [
    veilcount_aggregator,
    veilcount_analysis,
    veilcount_client,
    veilcount_issuer,
    veilcount_reader,
    veilcount_serving,
    veilcount_shared,
    veilcount_shuffler,
]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_itself_in_a_circle(package: ModuleType) -> None:
    graph = imports(package.__name__)

    assert len(in_order(graph)) == len(graph.modules) > 1


LATE_IMPORTS = {
    "called": "def call():\n    from . import second\n",
    "types": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import second\n",
}


@pytest.mark.parametrize("late_import", LATE_IMPORTS)
def test_a_circle_is_found(
    late_import: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that a function closes when it is called, and one of types alone."""
    package = f"circle_of_{late_import}"
    modules = {
        "__init__": "",
        "first": LATE_IMPORTS[late_import],
        "second": "from . import first\n",
    }
    (tmp_path / package).mkdir()
    for name, source in modules.items():
        (tmp_path / package / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(CycleError):
        in_order(imports(package))


@pytest.mark.parametrize("package", [veilcount_client, veilcount_aggregator])
def test_no_query_numbers_its_placeholders(package: ModuleType) -> None:
    """From Python 3.12 on sqlite3 warns of `?1` with a sequence; 3.14 refuses it."""
    folder = Path(str(package.__file__)).parent
    numbered = re.compile(r"[ (=<>]\?\d")
    found = [path.name for path in folder.rglob("*.py") if numbered.search(path.read_text())]

    assert numbered.search("where key = ?1")
    assert not found


def public(module: object) -> list[str]:
    """Return a package's public names, its own submodules left out."""
    if declared := vars(module).get("__all__"):  # names that are looked up when first used
        return sorted(declared)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    )


def test_public_names_are_pinned() -> None:
    """A name is added here on purpose, and never taken away by accident."""
    assert public(veilcount_shared) == [
        "Collection",
        "RandomSource",
        "Selection",
        "SystemRandomSource",
        "lint",
        "load_collections",
        "parse_collections",
        "select_mechanism",
    ]
    assert public(veilcount_analysis) == ["compare", "estimate", "tally"]
    assert public(veilcount_aggregator) == []
    assert public(veilcount_client) == [
        "Client",
        "ClientError",
        "Explanation",
        "Loss",
        "NotAPerson",
        "NotAnAnswer",
        "NotUsable",
        "Person",
        "Receipt",
        "RowName",
        "UnknownCollection",
        "UnknownValue",
    ]
