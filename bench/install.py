"""The size of an install on the disk: a fresh environment, then each extra on top of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from tempfile import TemporaryDirectory

from .separate import ROOT
from .table import Row, Table

MOST = 404.0  # MB of the default install of the aggregator
PROJECTS = (".", "aggregator/analysis", "aggregator")
EXTRAS = ("", "reader", "aggregator", "central", "arrow")


def run(*, quick: bool) -> Table:
    """Measure, with the versions of the lock; compiled files count, as pip makes them."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        build = ("uv", "--quiet", "build", "--no-build-isolation", "--python", sys.executable)
        for project in PROJECTS:
            subprocess.run([*build, "--out-dir", folder, project], cwd=ROOT, check=True)
        subprocess.run(["uv", "--quiet", "venv", folder / "venv"], check=True)
        rows = list(_rows(folder / "venv", folder))
    return Table("install", rows, ("An extra is what it adds to the install above it.",))


def _rows(venv: Path, wheels: Path) -> Iterator[Row]:
    (packages,) = venv.glob("lib/python*/site-packages")
    before: dict[str, float] = {}
    for extra in EXTRAS:
        _install(venv, f"veilcount[{extra}]", wheels)
        sizes = {
            distribution.name: _megabytes(distribution)
            for distribution in distributions(path=[str(packages)])
        }
        added = {name: sizes[name] for name in sizes.keys() - before}
        total = sum(sizes.values()) if extra == "aggregator" else sum(added.values())
        target = {"most": MOST, "met": total <= MOST} if extra == "aggregator" else {}
        yield {"install": f"veilcount[{extra}]" if extra else "veilcount", "MB": total, **target}
        for name in sorted(added, key=added.__getitem__, reverse=True):
            yield {"install": f"  {name}", "MB": added[name]}
        before = sizes


def _install(venv: Path, what: str, wheels: Path) -> None:
    options = ("--compile-bytecode", "--constraint", ROOT / "requirements.lock")
    install = ("uv", "--quiet", "pip", "install", "--find-links", wheels)
    subprocess.run([*install, "--python", venv, *options, what], check=True)


def _megabytes(package: Distribution) -> float:
    files = {Path(str(package.locate_file(file))) for file in package.files or ()}
    return _size(files | {compiled for file in files for compiled in _compiled(file)}) / 1e6


def _compiled(source: Path) -> Iterable[Path]:
    return (source.parent / "__pycache__").glob(f"{source.stem}.*.pyc")


def _size(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files if file.exists())
