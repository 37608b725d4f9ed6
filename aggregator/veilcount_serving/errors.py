"""What goes wrong before a request is understood: settings, and too much at once."""

from __future__ import annotations

import re

from veilcount_shared.errors import VeilcountError, format_value

MOST_SHOWN = 500  # characters of a setting: a path or URL stays whole
_NUMBERS = re.compile(r"\[Errno -?\d+\] |^Error (?:-?\d+ )?connecting to \S+ ")


def system_reason(error: BaseException) -> str:
    """Return the words of an operating system's or a library's error, without its number."""
    words = getattr(error, "strerror", None) or _NUMBERS.sub("", str(error))
    return str(words).rstrip(".")


class Overloaded(VeilcountError):
    """The server is overloaded: retry after so many seconds."""

    def __init__(self, seconds: int, why: str) -> None:
        super().__init__(why)
        self.seconds = seconds


class SettingsError(VeilcountError, ValueError):
    """A flag, a variable or a URL that cannot be used: its name, its value, the fix."""

    def __init__(self, name: str, value: str, fix: str) -> None:
        super().__init__(f"{name} = {format_value(value, MOST_SHOWN)}: {fix}")
        self.name, self.value, self.fix = name, value, fix
