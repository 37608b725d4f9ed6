"""How much work something is, counted in calls or lines: no machine's speed is in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_calls(act: Callable[[], object]) -> int:
    """Return how many functions, of Python or C, are entered or left."""
    count = 0

    def profile(*_: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def count_lines(act: Callable[[], object]) -> int:
    """Return how many lines of Python are run, and functions entered or left."""
    count = 0

    def trace(_frame: FrameType, _event: str, _value: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
