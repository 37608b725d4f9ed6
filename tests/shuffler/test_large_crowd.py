"""A million reports are held, shuffled and delivered in little memory, whatever their number."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]
MOST_MB = 150


def peak(reports: int, *options: str) -> int:
    """Return the peak of a process that moves such a crowd, in MB; on a disk, not in memory."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        command = [sys.executable, "-m", "tests.shuffler.large_crowd", f"{folder}/store"]
        ended = subprocess.run(
            [*command, str(reports), *options],
            capture_output=True,
            cwd=ROOT,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout)


@pytest.mark.full
@pytest.mark.timeout(1_800)
def test_a_million_reports_need_little_memory() -> None:
    assert peak(1_000_000) <= MOST_MB


@pytest.mark.timeout(300)
def test_more_reports_need_no_more_memory() -> None:
    """Planted: a shuffle in memory, which would need more than the whole of a million."""
    base, more, planted = peak(1_000), peak(120_000), peak(120_000, "--one-bucket")

    assert more - base <= 30  # of two buckets, one as it is read and one as it is sorted
    assert planted - base > 60
