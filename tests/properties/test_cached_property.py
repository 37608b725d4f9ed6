"""A cached property is computed once, and a child that is forked meanwhile computes its own."""

from __future__ import annotations

import functools
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from veilcount_shared.cached_property import cached_property

ROOT = Path(__file__).parents[2]
DEVICE = ("client", "shared")  # what runs in apps, which fork as they like


def test_it_is_computed_once_for_each_instance() -> None:
    class Squared:
        def __init__(self, number: int) -> None:
            self.number, self.computed = number, 0

        @cached_property
        def square(self) -> int:
            """The square."""
            self.computed += 1
            return self.number**2

    one, other = Squared(3), Squared(4)

    assert (one.square, one.square, other.square) == (9, 9, 16)
    assert (one.computed, other.computed) == (1, 1)
    assert Squared.square.__doc__ == "The square."


def child_ends(decorator: Callable[[Any], Any], seconds: float) -> bool:
    """Whether a child ends that was forked while another thread computed a value."""
    begun, release = Event(), Event()

    class Slow:
        def __init__(self, wait: Callable[[], object]) -> None:
            self.wait = wait

        @decorator
        def value(self) -> int:
            begun.set()
            self.wait()
            return 1

    thread = Thread(target=lambda: Slow(release.wait).value)
    thread.start()
    begun.wait()
    child = os.fork()
    if not child:
        os._exit(Slow(lambda: None).value - 1)
    ended = _ends_within(child, seconds)
    release.set()
    thread.join()
    return ended


def _ends_within(child: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG) == (child, 0):
            return True
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_child_that_is_forked_meanwhile_computes_its_own() -> None:
    assert child_ends(cached_property, 120)
    if sys.version_info < (3, 12):  # which has a lock, planted here
        assert not child_ends(functools.cached_property, 2)


def test_no_code_of_devices_has_the_property_with_a_lock() -> None:
    wrong = re.compile(r"from functools import [^\n]*\bcached_property|functools\.cached_property")
    files = [path for name in DEVICE for path in (ROOT / name).rglob("*.py")]

    assert len(files) > 100
    assert [path for path in files if wrong.search(path.read_text(encoding="utf-8"))] == []
    assert wrong.search("from functools import cache, cached_property")
