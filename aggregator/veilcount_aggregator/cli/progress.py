"""How far something long has come: on a terminal only, on stderr, gone when it is done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

PATIENCE = 0.7  # seconds, in which a person has not yet begun to wonder


@contextmanager
def counting() -> Iterator[Callable[[str], None]]:
    """Show one line that changes, on stderr; on anything but a terminal nothing."""
    console = Console(stderr=True)
    with console.status("") as status:
        yield status.update


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say what takes so long, once it does."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    status = console.status(what)
    timer = threading.Timer(PATIENCE, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be starting just now: what starts has to be stopped
        status.stop()
