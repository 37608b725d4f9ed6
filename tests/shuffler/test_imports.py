"""What a shuffler never has: what opens a report, the analysis where it serves, an aggregator."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import veilcount_shuffler

FOLDER = Path(str(veilcount_shuffler.__file__)).parent
OPENING = frozenset({"open_report", "decapsulate", "decrypt", "X25519PrivateKey"})
ABSENT = ("numpy", "veilcount_aggregator", "veilcount_analysis", "veilcount_client", "flask")


def opening_names(source: str) -> set[str]:
    """Return the names of what opens reports that a module imports or looks up."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(names=aliases) | ast.Import(names=aliases):
                names |= {alias.name.rpartition(".")[2] for alias in aliases}
            case ast.Attribute(attr=name):
                names.add(name)
    return names & OPENING


def test_no_module_has_what_opens_a_report() -> None:
    """Covers are sealed by the module that also opens; its other half is never looked up."""
    planted = "from veilcount_shared.shuffling.sealed_report import open_report"
    modules = {path.name: opening_names(path.read_text("utf-8")) for path in FOLDER.glob("*.py")}

    assert opening_names(planted) == {"open_report"}
    assert opening_names("sealed_report.open_report(keys)") == {"open_report"}
    assert not {name: names for name, names in modules.items() if names}


def test_one_module_computes() -> None:
    computing = [
        path.name for path in FOLDER.glob("*.py") if "veilcount_analysis" in path.read_text("utf-8")
    ]

    assert computing == ["promise_check.py"]


def loaded_with(module: str) -> set[str]:
    """Return what a fresh interpreter has once it has imported a module."""
    script = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-c", script]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_what_serves_loads_no_analysis() -> None:
    assert not loaded_with("veilcount_shuffler.serve") & set(ABSENT)
    assert "veilcount_analysis" in loaded_with("veilcount_shuffler.setup")
