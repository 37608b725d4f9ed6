"""Who may read and replace the files of a store and its backups."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from veilcount_serving.findings import CheckResult, warn, wrong

OTHERS = stat.S_IRWXG | stat.S_IRWXO
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def exposed(directory: Path, files: Iterable[Path]) -> Iterator[CheckResult]:
    """Yield a problem if others may change a directory, and one if they may open files in it.

    Who may write to a directory may put another file in the place of one that only its owner reads.
    """
    if directory.stat().st_mode & OTHERS_WRITE:
        fix = f"chmod go-w {shlex.quote(str(directory))}"
        yield wrong(f"other users may replace or delete the files in {directory}", fix)
    readable = [str(file) for file in files if file.stat().st_mode & OTHERS]
    if readable:
        names = shlex.join(sorted(readable))
        yield warn(f"other users may read or write {names}", f"chmod 600 {names}")
