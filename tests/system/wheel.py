"""A wheel of what the Dockerfile copies: that suffices to build it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shutil import copy, copytree

from .deploy.test_containers import instructions

ROOT = Path(__file__).parents[2]
VERSION = 'version = "0.1.0"'


def build_wheel(source: Path, version: str = "0.1.0") -> Path:
    """Build a version of this very code in an empty folder, and return the wheel."""
    copied = [rest.split() for word, rest in instructions() if word == "COPY"]
    for *names, to in (each for each in copied if not each[0].startswith("--")):
        (source / to).mkdir(exist_ok=True)
        for name in names:
            place, target = ROOT / name, source / to
            copytree(place, target, dirs_exist_ok=True) if place.is_dir() else copy(place, target)
    project = source / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    assert VERSION in text
    project.write_text(text.replace(VERSION, f'version = "{version}"'), encoding="utf-8")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (wheel,) = (source / "dist").iterdir()
    return wheel
