"""The unit tests of what changed: `./dev quick` runs them.

A test module is one of them if it changed, or imports a module that changed, directly or through
the package that holds that module, or is in the folder that mirrors that module's. The nearest come
first, and no more than fit into half a minute.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import grimp

from .import_graph import ROOT, SOURCES, packages

UNIT_TESTS = ("aggregator", "analysis", "client", "issuer", "properties", "reader", "tree")
MOST_MODULES = 12


def main() -> None:
    """Print the paths of the test modules, and on stderr how many are left to `./dev test`."""
    paths = list(dict.fromkeys(unit_tests(changed_files(*sys.argv[1:2]))))
    print(*paths[:MOST_MODULES], sep="\n")
    if (omitted := len(paths) - MOST_MODULES) > 0:
        print(f"dev: {omitted} more test modules import what changed", file=sys.stderr)


def changed_files(revision: str = "HEAD") -> list[str]:
    """List the files that differ from a revision, new ones included; else the last commit's."""
    diff = ["git", "diff", "--name-only", "--diff-filter=d"]
    new = ["git", "ls-files", "--others", "--exclude-standard"]
    return [*_lines(*diff, revision), *_lines(*new)] or _lines(*diff, "HEAD~1")


def _lines(*command: str) -> list[str]:
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def unit_tests(files: Iterable[str]) -> Iterator[str]:
    """Yield the test modules that changed, those named like a changed module, and all others."""
    graph = grimp.build_graph(*packages(), "tests", cache_dir=None)
    modules = [name for file in files if (name := module_name(file)) in graph.modules]
    tests = [name for module in modules for name in sorted(importers(graph, module))]
    tests += [name for module in modules for name in mirrored(graph, module)]
    tests.sort(key=lambda name: not _is_named_like(name, modules))
    yield from (path_of(name) for name in (*modules, *tests) if is_unit_test(name))


def module_name(file: str) -> str:
    """Name the module of a file as it is imported, "" for what is no module."""
    path = PurePosixPath(file)
    folders = (folder for folder in sorted(SOURCES, reverse=True) if path.is_relative_to(folder))
    name = path.relative_to(next(folders, ".")).with_suffix("")
    parts = name.parts[:-1] if name.name == "__init__" else name.parts
    return ".".join(parts) if path.suffix == ".py" else ""


def importers(graph: grimp.ImportGraph, module: str) -> set[str]:
    """Collect what imports a module, or the package that re-exports its names or imports all."""
    direct = graph.find_modules_that_directly_import(module)
    package = module.rpartition(".")[0]
    through = package in direct or imports_its_modules(package)
    return direct | (importers(graph, package) if through else set())


def imports_its_modules(package: str) -> bool:
    """Tell a package that imports whatever modules it has: no import names them."""
    paths = (ROOT / folder / package.replace(".", "/") / "__init__.py" for folder in SOURCES)
    return any(path.is_file() and "iter_modules(" in path.read_text() for path in paths)


def mirrored(graph: grimp.ImportGraph, module: str) -> list[str]:
    """List the modules of the tests' folder that mirrors a module's folder."""
    folder = f"tests.{module.removeprefix('veilcount_').rpartition('.')[0]}."
    return sorted(name for name in graph.modules if name.startswith(folder))


def is_unit_test(module: str) -> bool:
    """Tell a unit test's module from helpers, and from tests of the whole system."""
    parts = module.split(".")
    return parts[0] == "tests" and parts[1] in UNIT_TESTS and parts[-1].startswith("test_")


def path_of(module: str) -> str:
    """Return the path of a test module in the repository."""
    return f"{module.replace('.', '/')}.py"


def _is_named_like(test: str, modules: Iterable[str]) -> bool:
    stem = test.rpartition(".test_")[2]
    return any(module.rpartition(".")[2] in stem for module in modules)


if __name__ == "__main__":
    main()
