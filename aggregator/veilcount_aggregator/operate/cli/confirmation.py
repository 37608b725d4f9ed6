"""Confirmation of what cannot be undone: on a terminal, or by `--yes`."""

from __future__ import annotations

import sys

import click

from .main import NegativeResult
from .output import print_lines

yes_option = click.option("--yes", is_flag=True, help="Do not ask: for scripts.")


def confirm(consequence: str, question: str, instead: str = "give --yes") -> None:
    """State what follows, and go on only if a person agrees."""
    print_lines([consequence], err=True)
    require_terminal(instead)
    if not click.confirm(question, err=True):
        raise NegativeResult("nothing was changed")


def confirm_by_typing(warning: str, word: str, if_so: str, *, flags: str, unchanged: str) -> None:
    """Print a warning, and go on only if a person types this word."""
    print_lines([warning], err=True)
    require_terminal(flags)
    typed = click.prompt(f"Type {word} if {if_so}", default="", err=True)
    if typed.strip() != word:
        raise NegativeResult(f"nothing was changed: {unchanged}")


def require_terminal(instead: str) -> None:
    """Refuse to ask where nobody can answer."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"no terminal to confirm on: {instead}")
