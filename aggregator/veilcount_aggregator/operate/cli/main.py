"""The command group, its errors and exit codes: 0 done; 1 a negative result; 2 wrong usage or
settings; 3 store or server unreachable; 130 Ctrl-C; 141 broken pipe. An error is one line on stderr
that names the fix.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from veilcount_serving.errors import Overloaded, system_reason
from veilcount_serving.structured_logging import configure_logging, log_event
from veilcount_shared.errors import VeilcountError

from ...errors import ReleaseRefused, StoreError, StoreUnfit

NAME = "veilcount"
EXIT_OK, EXIT_NEGATIVE, EXIT_USAGE, EXIT_UNREACHABLE = range(4)
EXIT_INTERRUPTED, EXIT_BROKEN_PIPE = 130, 141  # as shells report signals: 128 and their number

#: with their summaries, in the order of the help, which would import all of them for theirs; each
#: is `command` of the module of its name; a new one is named here
COMMANDS = {
    "new": "Write a first definitions file.",
    "dev": "Run an aggregator for development, and show each report.",
    "serve": "Accept reports and answer analysts, until SIGTERM.",
    "init": "Create the store, and print its first admin key once.",
    "keys": "Create, list and revoke API keys; print log-in links.",
    "relay-keys": "Make, list and retire the keys for requests through a relay.",
    "relay": "Serve a relay for development.",
    "collections": "Push, list and close collection definitions; close single rows.",
    "store": "Check, copy, back up and restore the store.",
    "issuer": "Issue tokens, so that each account holds to its caps and no report shows whose"
    " it is.",
    "shuffler": "Hold reports that you cannot read, and hand each crowd over once, shuffled among"
    " covers.",
    "canary": "Send reports of your own through a shuffler, and see whether it keeps its word.",
    "check": "Show the privacy and expected error of a definitions file.",
    "plan": "Compute devices, epsilon or error from the other two.",
    "contrast": "Compare local, shuffled and central privacy on n answers.",
    "simulate": "Compare the truth with estimates of it.",
    "audit": "Test the claimed epsilon against measured messages.",
    "notice": "Print the privacy notice of a definitions file.",
    "compile": "Compile definitions for clients in other languages.",
    "encode": "Translate a batch from JSON to its binary encoding.",
    "decode": "Translate a batch from its binary encoding to JSON.",
    "estimate": "Show a collection's estimates with their intervals.",
    "verify": "Check published counters, and estimate from them.",
    "report": "Write a collection's report: one HTML page to print.",
    "compare": "Compare side A of collection NAME with side B.",
    "budget": "Show a collection's privacy budget, promised and spent.",
    "release": "Make a central release, or list all releases.",
    "watch": "Check rules on a running server, and tell a webhook.",
    "demo": "Replay four months of a sample app in half a minute, then serve the dashboard.",
    "publish": "Write figures for anybody as a site of files.",
    "publish-key": "Make the key that signs published counters.",
    "doctor": "Check a deployment and suggest fixes; exit 1 on any problem.",
    "deploy": "Write the configuration files of a deployment.",
    "completion": "Print a shell completion script.",
}
#: those that share a module
PLACES = {
    "relay-keys": ("relay", "keys"),
    "relay": ("relay", "relay"),
    "publish-key": ("publish", "key"),
    "encode": ("batch", "encode"),
    "decode": ("batch", "decode"),
}

SERVE = "serve"  # its stderr is a log from the first line on, unless it is a terminal

_UNREACHABLE = (StoreError, Overloaded)


class NegativeResult(VeilcountError):
    """A negative result: exit code 1."""


class SetupProblems(VeilcountError):
    """Everything that is wrong with a deployment, found at once: a line each, exit code 2."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class _Commands(click.Group):
    """A group that imports each command on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own
        return list(COMMANDS)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """List the commands with their untruncated summaries."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; end silently on a broken pipe."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Flushing stdout at exit must not raise again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(EXIT_BROKEN_PIPE) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names without help texts, which would import every command."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, attribute = PLACES.get(cmd_name, (cmd_name, "command"))
        command: click.Command = getattr(import_module(f"{__package__}.{module}"), attribute)
        command.short_help = COMMANDS[cmd_name]
        return command


@click.command(cls=_Commands)
@click.version_option(package_name="veilcount", message="%(version)s")
def veilcount() -> None:
    """Collect statistics under local differential privacy."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line; return the exit code."""
    try:
        code = veilcount.main(list(arguments), prog_name=NAME, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return EXIT_USAGE
    except (click.ClickException, click.Abort, KeyboardInterrupt, VeilcountError, OSError) as error:
        lines, code = _failure(error)
        is_logged = SERVE in arguments[:1] and not is_terminal()
        for line in lines:
            (_log if is_logged else _print)(" ".join(line.split()))
        return code
    return code if isinstance(code, int) else EXIT_OK


def is_terminal() -> bool:
    """Whether a person reads stderr, and no collector of logs."""
    return sys.stderr.isatty()


def _failure(error: BaseException) -> tuple[Sequence[str], int]:
    """Return the lines and the exit code of an error."""
    if isinstance(error, SetupProblems):
        return error.problems, EXIT_USAGE
    if isinstance(error, VeilcountError):
        return [str(error)], _exit_code(error)
    if isinstance(error, OSError):  # of a file argument, or of the terminal
        fix = "check the path and its permissions"
        return [f"{error.filename or 'output'}: {system_reason(error)}: {fix}"], EXIT_USAGE
    line, code = _usage_error(error)
    return [line], code


def _usage_error(error: BaseException) -> tuple[str, int]:
    """Return the message and exit code of a usage error or an interruption."""
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else NAME
        return f"{error.format_message()} (see `{where} --help`)", EXIT_USAGE
    if isinstance(error, click.ClickException):
        return error.format_message(), EXIT_USAGE
    return "stopped", EXIT_INTERRUPTED


def _exit_code(error: VeilcountError) -> int:
    if isinstance(error, NegativeResult | ReleaseRefused):
        return EXIT_NEGATIVE
    unreachable = isinstance(error, _UNREACHABLE) and not isinstance(error, StoreUnfit)
    return EXIT_UNREACHABLE if unreachable else EXIT_USAGE


def warn(command: str, reason: str) -> None:
    """Print a warning; log it where a command's stderr is a log."""
    if command != SERVE or is_terminal():
        _print(f"warning: {reason}")
        return
    configure_logging(sys.stderr)
    log_event("warning", logging.WARNING, reason=reason)


def _print(why: str) -> None:
    sys.stderr.write(f"{NAME}: {escape_controls(why)}\n")


def _log(why: str) -> None:
    configure_logging(sys.stderr)
    log_event("not started", logging.ERROR, reason=why)


#: C0 and C1 controls, line and paragraph separators, bidirectional overrides; newline is allowed
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def escape_controls(text: str) -> str:
    """Return a text with its control characters spelled out: a remote server may send any."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)
