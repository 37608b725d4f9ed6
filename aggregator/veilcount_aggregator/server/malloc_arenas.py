"""Limit on glibc's malloc arenas, which keep the memory that threads have freed.

By default there may be eight for each CPU, and which of a worker's threads share one is chance: its
memory would grow far beyond what the bodies that it reads at once take.
"""

from __future__ import annotations

import ctypes
import os

MAX_ARENAS = 2
_M_ARENA_MAX = -8  # malloc.h


def limit_malloc_arenas() -> None:
    """Limit the arenas of this process and of those it forks; MALLOC_ARENA_MAX takes precedence."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(_M_ARENA_MAX, MAX_ARENAS)
