"""The house keeps its walls: arrows point inward, what is shared does no I/O, names are pinned."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

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


def public(module: object) -> list[str]:
    """Return a package's public names, its own submodules left out."""
    if declared := vars(module).get("__all__"):  # names that are looked up when first used
        return sorted(declared)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not hasattr(value, "__path__") and not is_module(value)
    )


def is_module(value: object) -> bool:
    """Whether a value is a module."""
    return type(value).__name__ == "module"


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
