"""From words to an exit code: 0 done; 1 what was asked about is not so; 2 wrong usage or settings;
3 the store or the server cannot be reached. An error is one line on stderr that says what to do.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from veilcount_shared.errors import VeilcountError

from ..errors import Busy, ReleaseRefused, StoreError, StoreUnfit

NAME = "veilcount"
WELL, NOT_SO, WRONG, UNREACHABLE = range(4)

#: every command, by the module whose `command` it is: a line here is all that a new one needs
COMMANDS = {
    "serve": "serve",
    "init": "init",
    "keys": "keys",
    "collections": "collections",
    "store": "store",
    "check": "check",
    "plan": "plan",
    "contrast": "contrast",
    "simulate": "simulate",
    "audit": "audit",
    "notice": "notice",
    "estimate": "estimate",
    "compare": "compare",
    "budget": "budget",
    "release": "release",
}

_AWAY = (StoreError, Busy)


class NotSo(VeilcountError):
    """What was asked about is not so."""


class _Commands(click.Group):
    """The commands of the table; each is imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"{__package__}.{COMMANDS[cmd_name]}").command
        return command


@click.command(cls=_Commands)
@click.version_option(package_name="veilcount", message="%(version)s")
def veilcount() -> None:
    """Count the crowd; never see the person."""


def run(arguments: Sequence[str]) -> int:
    """Run a command; return the exit code."""
    try:
        code = veilcount.main(list(arguments), prog_name=NAME, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return WRONG
    except (click.ClickException, click.Abort, KeyboardInterrupt) as error:
        return _fail(*_misused(error))
    except VeilcountError as error:
        return _fail(str(error), _code(error))
    except OSError as error:  # of a file that was named, or of the terminal
        return _fail(f"{error.filename or 'output'}: {error.strerror}", WRONG)
    return code if isinstance(code, int) else WELL


def _misused(error: BaseException) -> tuple[str, int]:
    """Return what to say of a command that was misunderstood or stopped, and its exit code."""
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else NAME
        return f"{error.format_message()} (see `{where} --help`)", WRONG
    if isinstance(error, click.ClickException):
        return error.format_message(), WRONG
    return "stopped", NOT_SO


def _code(error: VeilcountError) -> int:
    if isinstance(error, NotSo | ReleaseRefused):
        return NOT_SO
    away = isinstance(error, _AWAY) and not isinstance(error, StoreUnfit)
    return UNREACHABLE if away else WRONG


def _fail(why: str, code: int) -> int:
    line = " ".join(why.split())
    sys.stderr.write(f"{NAME}: {line}\n")
    return code
