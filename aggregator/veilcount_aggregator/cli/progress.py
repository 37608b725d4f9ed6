"""How far something long has come, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def counting() -> Iterator[Callable[[str], None]]:
    """Show one line that changes, on stderr; on anything but a terminal nothing."""
    console = Console(stderr=True)
    with console.status("") as status:
        yield status.update
