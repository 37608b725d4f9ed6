"""`./dev release`: the three distributions as they are published, in `build/release`.

They are built twice, in different folders and environments, and must come out the same to the byte:
so anybody can verify from the tag that what an index serves is this code. Then the very files are
installed into empty environments and exercised, and what they are made of is listed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.notebook import write as write_notebooks

from .distributions import ROOT, VERSION, build_wheels

RELEASE = ROOT / "build" / "release"
SUMS = "SHA256SUMS"
EXERCISE = ("-m", "pytest", "-q", "tests/system/test_install.py")
SUPPLY = ("-m", "tests.security.supply")
#: what must make no difference, besides the folder and the time of its files
OTHER_MACHINE = {"TZ": "Pacific/Auckland", "LC_ALL": "C", "PYTHONHASHSEED": "2"}
_ENTRY = r"^## {version}(?: .*)?\n\n(?!## )\S"


def main() -> int:
    """Build, compare, exercise and list; print every problem, and return 1 if there is one."""
    problems = [*unready(ROOT)]
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        first = built(Path(one), {"SOURCE_DATE_EPOCH": commit_time()})
        second = built(Path(other), {"SOURCE_DATE_EPOCH": commit_time()} | OTHER_MACHINE)
        problems += differences(first, second)
        shutil.rmtree(RELEASE, ignore_errors=True)
        shutil.copytree(first, RELEASE)
    write_sums(RELEASE)
    print("\n".join(f"{name}: {size} kB" for name, size in wheel_sizes(RELEASE).items()))
    write_notebooks(RELEASE.parent)
    for arguments in (EXERCISE, SUPPLY):
        environ = os.environ | {"RELEASE": str(RELEASE)}
        code = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environ, check=False)
        if code.returncode:
            problems.append(f"python {' '.join(arguments)} failed with {code.returncode}")
    print("\n".join(f"release: {problem}" for problem in problems) or f"release: {RELEASE}")
    return 1 if problems else 0


def unready(root: Path, version: str = VERSION) -> Iterator[str]:
    """Yield why a tree is not that of a release: no entry in the changelog, or changes."""
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(_ENTRY.format(version=re.escape(version)), changelog, re.MULTILINE):
        yield f"CHANGELOG.md has no entry under a heading `## {version}`"
    if changes := _git(root, "status", "--porcelain"):
        yield f"what is not committed would be released: {changes.splitlines()[0].strip()}"


def commit_time() -> str:
    """Return the second of the last commit, which all files in the archives are dated by."""
    return _git(ROOT, "log", "-1", "--format=%ct")


def _git(root: Path, *arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def built(folder: Path, environ: dict[str, str]) -> Path:
    """Build in a folder; return where the archives are."""
    return build_wheels(folder, environ=environ)[0].parent


def differences(first: Path, second: Path) -> Iterator[str]:
    """Yield each archive that is not the same in both folders."""
    for name in sorted({path.name for folder in (first, second) for path in archives(folder)}):
        if digest(first / name) != digest(second / name):
            yield f"{name}: built twice, it is not the same"


def archives(folder: Path) -> list[Path]:
    """Return the wheels and sdists in a folder."""
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def wheel_sizes(folder: Path) -> dict[str, int]:
    """Return the kB of each wheel, by its distribution."""
    return {
        path.name.partition("-")[0].replace("_", "-"): round(path.stat().st_size / 1000)
        for path in folder.glob("*.whl")
    }


def digest(path: Path) -> str:
    """Return a file's SHA-256; nothing for one that is missing."""
    return sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def write_sums(folder: Path) -> None:
    """Write what `sha256sum --check` reads."""
    lines = [f"{digest(path)}  {path.name}\n" for path in archives(folder)]
    (folder / SUMS).write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    sys.exit(main())
