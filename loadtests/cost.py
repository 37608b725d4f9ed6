"""What processes have computed, as the kernel counts it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_OWN_AND_ENDED = slice(11, 15)  # behind the name, which may have spaces: proc(5)


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the seconds of all threads of these processes, and of their children that ended."""
    return sum(map(_of, pids))


def _of(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    return sum(map(int, after_name.split()[_OWN_AND_ENDED])) / _TICKS
