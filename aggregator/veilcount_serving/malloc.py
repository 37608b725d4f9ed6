"""What glibc's malloc keeps of the memory that a process frees."""

from __future__ import annotations

import ctypes
import os

MAX_ARENAS = 2
LARGE = 2 << 20  # bytes: with half of that the pages of the dashboard cost 10 to 30 % more
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h


def limit_malloc_arenas() -> None:
    """Limit glibc's malloc arenas, here and in forked processes; MALLOC_ARENA_MAX takes precedence.

    They keep the memory that threads have freed. By default there may be eight for each CPU, and
    which of a worker's threads share one is chance: its memory would grow far beyond what the
    bodies that it reads at once take.
    """
    _set_malloc("MALLOC_ARENA_MAX", _M_ARENA_MAX, MAX_ARENAS)


def return_large_arrays() -> None:
    """Have glibc's malloc return large arrays to the system as soon as they are freed.

    By default the size from which it does so grows with what is freed, up to 32 MB, and smaller
    ones leave holes [mallopt(3)]. The variables of glibc take precedence.
    """
    _set_malloc("MALLOC_MMAP_THRESHOLD_", _M_MMAP_THRESHOLD, LARGE)
    _set_malloc("MALLOC_TRIM_THRESHOLD_", _M_TRIM_THRESHOLD, LARGE)


def _set_malloc(variable: str, parameter: int, value: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None and variable not in os.environ:
        mallopt(parameter, value)
