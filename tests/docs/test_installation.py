"""The installation that the pages print works: from a checkout, as nothing was published yet."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from veilcount_shared.installing import FOLDERS, PUBLISHED

from .page_parser import ROOT
from .shell_blocks import DISTRIBUTIONS

PAGES = [ROOT / "README.md", ROOT / "client" / "README.md", *(ROOT / "docs").glob("*.md")]
PRINTED = re.compile(r"(?<!bin/)pip install ([^#`\n]+)")  # a drill has an index of its own


def requirements() -> set[str]:
    """Return what the pages tell a reader to install."""
    texts = (page.read_text(encoding="utf-8") for page in PAGES)
    return {word for text in texts for line in PRINTED.findall(text) for word in shlex.split(line)}


def test_every_page_installs_what_messages_do() -> None:
    """A first publication sets the constant, and this test then names the pages to change."""
    printed = {word.partition("[")[0] for word in requirements()}

    assert printed == set(FOLDERS if PUBLISHED else FOLDERS.values())


def test_a_checkout_can_be_installed(tmp_path: Path) -> None:
    """Without dependencies, which would be downloaded; `./dev bench install` installs them all."""
    offline = ("--offline", "--no-deps", "--no-build-isolation", "--target", str(tmp_path))
    install = ("uv", "--quiet", "pip", "install", "--python", sys.executable, *offline)
    subprocess.run([*install, *DISTRIBUTIONS], cwd=ROOT, check=True)
    packages = {path.name for path in tmp_path.glob("veilcount*") if path.suffix == ""}

    assert packages == {
        "veilcount",
        "veilcount_aggregator",
        "veilcount_analysis",
        "veilcount_client",
        "veilcount_issuer",
        "veilcount_reader",
        "veilcount_serving",
        "veilcount_shared",
        "veilcount_shuffler",
    }
    assert {"veilcount", "veilcount-aggregator"} <= {
        path.name for path in (tmp_path / "bin").iterdir()
    }
