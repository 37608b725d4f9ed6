"""Imports point inward and form no cycle, shared code does no I/O, public names are pinned."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import veilcount_aggregator
import veilcount_client
import veilcount_shared

ROOT = Path(__file__).parents[1]
SHARED = ROOT / "shared" / "veilcount_shared"
READS_FILES = {"collection/loading.py"}
OUTSIDE = {"asyncio", "http", "io", "logging", "pathlib", "shutil", "socket", "subprocess", "time"}
DRAWS = {"randomness.py"}  # the randomness source, and the only reader of the process id


def test_arrows_point_inward() -> None:
    """Import-linter's contracts hold."""
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout


def imported(module: Path) -> set[str]:
    """Return the top names that a module imports at run time."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").split(".")[0])
    return names


@pytest.mark.parametrize("module", sorted(SHARED.rglob("*.py")), ids=lambda path: path.stem)
def test_what_is_shared_does_no_io_and_reads_no_clock(module: Path) -> None:
    """One module reads files, one asks the operating system for randomness."""
    name = str(module.relative_to(SHARED))
    names = imported(module)

    assert name in READS_FILES or not names & (
        OUTSIDE | {"os"} - ({"os"} if name in DRAWS else set())
    )
    assert not names & {"random", "secrets"}


def module_name(path: Path, root: Path) -> str:
    """Return the dotted name of a module below the folder that holds its package."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def top_level(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run with the module: none of TYPE_CHECKING, none in a function."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) != "TYPE_CHECKING":
            yield from top_level([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from top_level([*node.body, *node.orelse, *node.finalbody])


def import_graph(package: Path) -> dict[str, set[str]]:
    """Return which modules of a package each of its modules imports when it is imported."""
    paths = {module_name(path, package.parent): path for path in package.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        parents = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
        found: set[str] = set()
        for node in top_level(ast.parse(path.read_text(encoding="utf-8")).body):
            if isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
                continue
            start = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            for each in node.names:
                full = f"{base}.{each.name}"
                found.add(full if full in paths else base)
        graph[name] = found & paths.keys() - {name}
    return graph


@pytest.mark.parametrize("package", [veilcount_shared, veilcount_client, veilcount_aggregator])
def test_no_module_imports_itself_in_a_circle(package: ModuleType) -> None:
    """The modules of each package can be put in an order in which imports point backward."""
    graph = import_graph(Path(str(package.__file__)).parent)

    assert len(list(TopologicalSorter(graph).static_order())) == len(graph) > 1


def test_an_import_cycle_is_found(tmp_path: Path) -> None:
    """Two modules that import each other are a cycle; an import for types only is none."""
    for name, source in (("__init__", ""), ("a", "from .b import x"), ("b", "from . import a")):
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")

    with pytest.raises(CycleError):
        TopologicalSorter(import_graph(tmp_path)).prepare()

    (tmp_path / "b.py").write_text("if TYPE_CHECKING:\n    from . import a", encoding="utf-8")
    TopologicalSorter(import_graph(tmp_path)).prepare()


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
    assert public(veilcount_aggregator) == ["estimate", "tally"]
    assert public(veilcount_client) == [
        "Client",
        "ClientError",
        "Explanation",
        "Loss",
        "NotUsable",
        "Person",
        "Receipt",
        "UnknownCollection",
    ]
