"""The installation that the pages print works: from a checkout, as nothing was published yet."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from .page_parser import ROOT

PAGES = [ROOT / "README.md", ROOT / "client" / "README.md", *(ROOT / "docs").glob("*.md")]
PRINTED = re.compile(r"pip install '?([^\s`']+)")


def requirements() -> set[str]:
    """Return what the pages tell a reader to install."""
    return {found for page in PAGES for found in PRINTED.findall(page.read_text(encoding="utf-8"))}


def test_every_page_installs_the_checkout() -> None:
    assert {each.partition("[")[0] for each in requirements()} == {"."}


def test_a_checkout_can_be_installed(tmp_path: Path) -> None:
    """Without dependencies, which would be downloaded; `./dev bench install` installs them all."""
    offline = ("--offline", "--no-deps", "--no-build-isolation", "--target", str(tmp_path))
    install = ("uv", "--quiet", "pip", "install", "--python", sys.executable, *offline)
    subprocess.run([*install, "."], cwd=ROOT, check=True)
    packages = {each.name for each in tmp_path.glob("veilcount*") if each.suffix == ""}

    assert packages == {
        "veilcount", "veilcount_aggregator", "veilcount_client", "veilcount_shared"
    }  # fmt: skip
    assert (tmp_path / "bin" / "veilcount").exists()
