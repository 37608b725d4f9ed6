"""Bugs that tests plant into the client, each written as the one function that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any
from unittest.mock import patch

Plant = Callable[[], AbstractContextManager[object]]
Original = Callable[..., Any]


def do_nothing(*_: object, **__: object) -> None:
    """Take the place of a function that has an effect and no result."""


def constant(owner: object, name: str, wrong: object) -> Plant:
    """Return a plant of another constant or function."""
    return lambda: patch.object(owner, name, wrong)


def in_place_of(owner: object, name: str) -> Callable[[Callable[..., Any]], Plant]:
    """Return a plant of what is decorated: it is called with what it stands for, and as that is."""

    def planting(wrong: Callable[..., Any]) -> Plant:
        @wraps(wrong)
        def plant() -> AbstractContextManager[object]:
            original = getattr(owner, name)
            return patch.object(
                owner, name, lambda *arguments, **more: wrong(original, *arguments, **more)
            )

        return plant

    return planting
