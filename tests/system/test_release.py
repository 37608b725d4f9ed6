"""A release can be made again to the byte, and what is not ready for one is named."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from .distributions import ROOT, VERSION
from .release import (
    OTHER_MACHINE,
    SUMS,
    archives,
    built,
    differences,
    unready,
    wheel_sizes,
    write_sums,
)

LATER = {"SOURCE_DATE_EPOCH": "1798761600"}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("release"), LATER)


def test_the_same_code_is_the_same_bytes(release: Path, tmp_path: Path) -> None:
    """In another folder, with another time zone, locale and hash seed."""
    again = built(tmp_path, LATER | OTHER_MACHINE)

    assert len(archives(release)) == 6
    assert list(differences(release, again)) == []


def test_what_differs_is_named(release: Path, tmp_path: Path) -> None:
    """Another date in the archives, and one that is missing."""
    other = built(tmp_path, {"SOURCE_DATE_EPOCH": "1798761602"})
    *_, wheel = archives(other)
    wheel.unlink()
    named = [line.partition(":")[0] for line in differences(release, other)]

    assert named == [path.name for path in archives(release)]


def test_the_sums_are_those_of_the_archives(release: Path) -> None:
    write_sums(release)
    check = ("sha256sum", "--check", "--quiet", SUMS)
    sound = subprocess.run(check, cwd=release, check=False, capture_output=True)
    (archive, *_) = archives(release)
    original = archive.read_bytes()
    archive.write_bytes(original + b"\0")
    changed = subprocess.run(check, cwd=release, check=False, capture_output=True)
    archive.write_bytes(original)

    assert (sound.returncode, changed.returncode) == (0, 1)


def test_the_sizes_of_the_wheels_are_those_of_the_page(release: Path) -> None:
    """To a tenth, which no library that slipped in would leave."""
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(veilcount[\w-]*)`[^|]* \| (\d+) \| \d", page, re.MULTILINE)
    stated = {name: int(size) for name, size in rows}

    assert len(stated) == 3
    assert wheel_sizes(release) == pytest.approx(stated, rel=0.1)


ENTRY = f"# Changelog\n\n## {VERSION} (2027-01-01)\n\n- A line.\n"


@pytest.mark.parametrize(
    ("changelog", "stray", "problems"),
    [
        (ENTRY, "", []),
        (ENTRY.replace("## ", "## Unreleased: "), "", ["CHANGELOG.md"]),
        (ENTRY.replace("- A line.", "## 0.0.1"), "", ["CHANGELOG.md"]),
        (ENTRY.replace(VERSION, f"{VERSION}1"), "", ["CHANGELOG.md"]),
        (ENTRY, "stray.py", ["what is not committed would be released: ?? stray.py"]),
    ],
)
def test_what_is_not_ready_is_named(
    tmp_path: Path, changelog: str, stray: str, problems: list[str]
) -> None:
    (tmp_path / "CHANGELOG.md").write_text(changelog, encoding="ascii")
    author = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
    committer = {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
    for words in (("init", "-q"), ("add", "CHANGELOG.md"), ("commit", "-q", "-m", "release")):
        environ = os.environ | author | committer
        subprocess.run(["git", *words], cwd=tmp_path, check=True, env=environ)
    if stray:
        (tmp_path / stray).touch()
    lines = list(unready(tmp_path))

    assert len(lines) == len(problems)
    assert all(line.startswith(problem) for line, problem in zip(lines, problems, strict=True))
