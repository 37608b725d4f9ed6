"""The sub-command for click, Typer and argparse; each is imported only where it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .actions import ACTIONS, Action
from .command_client import CommandClient
from .messages import MESSAGES


def click_group(command: CommandClient) -> Any:
    """Return a click group of all actions."""
    import click  # noqa: PLC0415 - the app's own choice

    group = click.Group(command.subcommand, help=help_of(command))
    for name, action in ACTIONS.items():
        callback = _ending(command, action, lambda code: click.get_current_context().exit(code))
        group.add_command(click.Command(name, callback=callback, help=help_of(command, name)))
    return group


def typer_app(command: CommandClient) -> Any:
    """Return a Typer app of all actions."""
    import typer  # noqa: PLC0415 - the app's own choice

    def leave(code: int) -> None:
        raise typer.Exit(code)

    app = typer.Typer(name=command.subcommand, help=help_of(command), no_args_is_help=True)
    for name, action in ACTIONS.items():
        app.command(name, help=help_of(command, name))(_ending(command, action, leave))
    return app


def add_parser(command: CommandClient, subparsers: Any) -> Any:
    """Add a parser of all actions to those of `add_subparsers()`."""
    parser = subparsers.add_parser(command.subcommand, help=help_of(command))
    actions = parser.add_subparsers(required=True, metavar=" | ".join(ACTIONS))
    for name, action in ACTIONS.items():
        parser = actions.add_parser(name, help=help_of(command, name))
        parser.set_defaults(func=_returning(command, action))
    return parser


def help_of(command: CommandClient, action: str = "") -> str:
    """Return the help of the sub-command, or of one action."""
    key = f"cli_help_{action}" if action else "cli_help"
    return str((command.messages or {}).get(key, MESSAGES[key]))


def _ending(
    command: CommandClient, action: Action, leave: Callable[[int], object]
) -> Callable[[], None]:
    def run() -> None:
        leave(_print(command, action))

    return run


def _returning(command: CommandClient, action: Action) -> Callable[[object], int]:
    return lambda _: _print(command, action)


def _print(command: CommandClient, action: Action) -> int:
    text, code = action(command)
    print(text)  # noqa: T201 - what was typed for
    return code
