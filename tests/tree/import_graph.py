"""The import graph of the product: its folders, and the level of each.

A folder is an import package below shared, client or aggregator, or a package directly in
`veilcount_aggregator`. Its level is the length of the longest chain of imports that ends at it: a
folder that imports no other is on level 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
SOURCES = ("shared", "client", "aggregator", "aggregator/analysis")
SPLIT = "veilcount_aggregator"


@dataclass(frozen=True, slots=True)
class ImportGraph:
    """The folders that each folder imports, directly or through a module of no folder."""

    imports: Mapping[str, AbstractSet[str]]

    @property
    def levels(self) -> dict[str, int]:
        """Number the folders from the ground, 1; CycleError if imports form a circle."""
        levels: dict[str, int] = {}
        for folder in TopologicalSorter(self.imports).static_order():
            levels[folder] = 1 + max((levels[name] for name in self.imports[folder]), default=0)
        return levels

    @property
    def reduced(self) -> dict[str, set[str]]:
        """Drop imports that a longer chain implies."""
        return {
            folder: {name for name in names if not self._implied(name, names)}
            for folder, names in self.imports.items()
        }

    def _implied(self, name: str, names: AbstractSet[str]) -> bool:
        return any(name in self._below(other) for other in names)

    def _below(self, folder: str) -> set[str]:
        direct = self.imports[folder]
        return set(direct).union(*map(self._below, direct))


def read() -> ImportGraph:
    """Read the imports of the whole product, those within functions included."""
    graph = grimp.build_graph(*packages(), cache_dir=None)
    imports: dict[str, set[str]] = {}
    for module in sorted(graph.modules):
        names = map(node, graph.find_modules_directly_imported_by(module))
        imports.setdefault(node(module), set()).update(names)
    return contract({name: names - {name} for name, names in imports.items()})


def packages() -> list[str]:
    """List the import packages of the product."""
    return sorted(path.parent.name for source in SOURCES for path in _init_files(source))


def _init_files(source: str) -> list[Path]:
    return list((ROOT / source).glob("*/__init__.py"))


def node(module: str) -> str:
    """Return the folder of a module, or a module directly in `veilcount_aggregator` itself."""
    package, *below = module.split(".")
    return ".".join([package, *below[:1]]) if package == SPLIT else package


def contract(imports: Mapping[str, AbstractSet[str]]) -> ImportGraph:
    """Replace modules that are in no folder by what they import."""
    return ImportGraph(
        {name: _folders(imports[name], imports) for name in imports if is_folder(name)}
    )


def _folders(names: AbstractSet[str], imports: Mapping[str, AbstractSet[str]]) -> set[str]:
    folders = {name for name in names if is_folder(name)}
    return folders.union(*(_folders(imports[name], imports) for name in names - folders))


def is_folder(name: str) -> bool:
    """Tell a folder from a module directly in `veilcount_aggregator`, or from its root."""
    package, _, below = name.partition(".")
    is_package = (ROOT / "aggregator" / package / below / "__init__.py").exists()
    return package != SPLIT or bool(below and is_package)
