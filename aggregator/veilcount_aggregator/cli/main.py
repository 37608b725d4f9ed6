"""From words to an exit code: 0 done; 1 what was asked about is not so; 2 wrong usage or settings;
3 the store or the server cannot be reached; 130 Ctrl-C; 141 whoever read the output went away. An
error is one line on stderr that says what to do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from veilcount_shared.errors import VeilcountError

from ..errors import Overloaded, ReleaseRefused, StoreError, StoreUnfit
from . import STOPPED
from .terminal_escape import visible

NAME = "veilcount"
WELL, NOT_SO, WRONG, UNREACHABLE = range(4)
WHOLE = 200  # letters: no sentence is longer
UNHEARD = 141  # as a shell says it: 128 and the signal

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
    "demo": "demo",
    "doctor": "doctor",
    "completion": "completion",
}

_AWAY = (StoreError, Overloaded)


class NotSo(VeilcountError):
    """What was asked about is not so."""


class _Commands(click.Group):
    """The commands of the table; each is imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with its whole sentence."""
        commands = ((name, self.get_command(ctx, name)) for name in COMMANDS)
        told = [(name, each.get_short_help_str(WHOLE)) for name, each in commands if each]
        with formatter.section("Commands"):
            formatter.write_dl(told)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; end without a word where whoever read the output went away."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # What Python still holds for the output goes nowhere, and so it cannot complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(UNHEARD) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return names alone: for their help texts, all that any command needs would be loaded."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]

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
    return "stopped", STOPPED


def _code(error: VeilcountError) -> int:
    if isinstance(error, NotSo | ReleaseRefused):
        return NOT_SO
    away = isinstance(error, _AWAY) and not isinstance(error, StoreUnfit)
    return UNREACHABLE if away else WRONG


def _fail(why: str, code: int) -> int:
    line = visible(" ".join(why.split()))
    sys.stderr.write(f"{NAME}: {line}\n")
    return code
