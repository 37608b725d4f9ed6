"""The output that a page shows, compared with the real one."""

from __future__ import annotations

import doctest
from difflib import unified_diff

_CHECKER = doctest.OutputChecker()


class Untrue(AssertionError):
    """The page shows something else than what happens."""


def check(want: str, got: str, where: str) -> None:
    """Compare line by line, without spaces at the ends of lines; `...` stands for anything."""
    want, got = _tidy(want), _tidy(got)
    if not _CHECKER.check_output(want, got, doctest.ELLIPSIS | doctest.DONT_ACCEPT_BLANKLINE):
        lines = unified_diff(want.splitlines(), got.splitlines(), "page", "run", lineterm="")
        raise Untrue(f"{where}:\n" + "\n".join(lines))


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"
