"""The three distributions as they are released, and environments with what one of them declares."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from shutil import copy, copytree
from types import MappingProxyType

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .deploy.test_containers import instructions

ROOT = Path(__file__).parents[2]
FOLDERS = (".", "aggregator/analysis", "aggregator")
VERSION = "0.1.0"
OFFLINE = ("--offline", "--python", sys.executable)


def build_wheels(
    folder: Path,
    version: str = VERSION,
    *,
    secrets: str = "",
    environ: Mapping[str, str] = MappingProxyType({}),
) -> list[Path]:
    """Build a version of this very code: each sdist, and its wheel from that alone.

    In a checkout where somebody made `secrets`, a file, and with variables of the environment.
    """
    source, built = folder / "source", folder / "built"
    _copy_sources(source)
    if secrets:
        (source / secrets).parent.mkdir()
        (source / secrets).touch()
    for name in FOLDERS:
        project = source / name / "pyproject.toml"
        project.write_text(project.read_text("utf-8").replace(f'{VERSION}"', f'{version}"'))
        build = ("uv", "--quiet", "build", *OFFLINE, "--no-build-isolation", "--out-dir", built)
        subprocess.run([*build, source / name], check=True, env=os.environ | dict(environ))
    return sorted(built.glob("*.whl"))


def _copy_sources(target: Path) -> None:
    """Copy what the Dockerfile copies: that suffices."""
    copies = [rest.split() for word, rest in instructions() if word == "COPY"]
    for *names, to in (words for words in copies if not words[0].startswith("--")):
        (target / to).mkdir(parents=True, exist_ok=True)
        for name in names:
            path, to_path = ROOT / name, target / to
            if path.is_dir():
                copytree(path, to_path, symlinks=True, dirs_exist_ok=True)
            else:
                copy(path, to_path)


@dataclass(frozen=True)
class Environment:
    """A virtual environment, in which nothing is installed that was not declared."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, wheels: list[Path], *requirements: str) -> Environment:
        """Install from the wheels; what they declare is linked from the environment of the test."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        environment = cls(folder)
        declared = _declared(wheels, requirements)
        ours = {name: wheel for wheel in wheels if (name := _name(wheel)) in declared}
        install = ("uv", "--quiet", "pip", "install", "--offline", "--no-deps", "--python")
        subprocess.run([*install, environment.python, *ours.values()], check=True)
        for name in declared - ours.keys():
            environment.link(distribution(name))
        return environment

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        (packages,) = self.folder.glob("lib/python*/site-packages")
        return packages

    @property
    def environ(self) -> dict[str, str]:
        """Nothing is imported from elsewhere; compiled files lie where the linked sources lie."""
        return {"PYTHONPATH": "", "PYTHONPYCACHEPREFIX": ""}

    def link(self, package: Distribution) -> None:
        """Make a package of the test's environment importable here."""
        for name in {path.parts[0] for path in package.files or ()} - {"..", "__pycache__"}:
            (self.packages / name).symlink_to(str(package.locate_file(name)))

    def run(
        self, program: str, *arguments: str, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment."""
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or self.folder,
            env=os.environ | self.environ | variables,
        )


def _name(wheel: Path) -> str:
    return wheel.name.partition("-")[0].replace("_", "-")


def _declared(wheels: list[Path], requirements: tuple[str, ...]) -> set[str]:
    """Return the names of the packages that these requirements bring, by their metadata."""
    ours = {wheel.name: wheel for wheel in distributions(path=[str(path) for path in wheels])}
    pending, seen = [Requirement(text) for text in requirements], set[str]()
    while pending:
        requirement = pending.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        name = canonicalize_name(requirement.name)
        pending += _brought(ours.get(name) or distribution(name), requirement.extras)
    return {canonicalize_name(Requirement(text).name) for text in seen}


def _brought(package: Distribution, extras: set[str]) -> Iterator[Requirement]:
    for requirement in map(Requirement, package.requires or ()):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield Requirement(str(requirement).partition(";")[0])
