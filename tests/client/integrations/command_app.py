"""A command with the kit: `command_app.py SUBCOMMAND`, by the framework of a variable.

It ends with a code of its own as soon as it touches a socket [docs.python.org, audit events].
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from veilcount.cli_kit import Telemetry
from veilcount_client import Client
from veilcount_client.integrations.cli_kit import detached

SOCKET_CODE = 97
FRAMEWORK, PLANT = os.environ.get("FRAMEWORK", "argparse"), os.environ.get("PLANT", "")
BURST, ATTACHED, FROZEN = "burst", "attached", "frozen"


def _refuse_sockets(event: str, _: object) -> None:
    if event.startswith("socket."):
        os._exit(SOCKET_CODE)


telemetry = Telemetry(program="convert")


def begin() -> None:
    if PLANT == FROZEN:
        sys.frozen = True  # type: ignore[attr-defined] # likewise
        sys.executable = os.environ["EXECUTABLE"]
    if PLANT == ATTACHED:
        vars(detached)["detached"] = lambda _: {}
    telemetry.start()
    if PLANT == BURST:  # what was documented before
        with Client() as client:
            client.record("theme", "dark")
            client.flush(timeout=2)


def convert(theme: str) -> None:
    telemetry.record("theme", theme)
    telemetry.record("font", "serif")
    print(f"converted, {theme}")


def by_click() -> None:
    import click  # noqa: PLC0415 - each run has one framework

    cli = click.Group(callback=begin)
    cli.add_command(click.Command("convert", callback=convert, params=[click.Argument(["theme"])]))
    cli.add_command(telemetry.click())
    cli()


def by_typer() -> None:
    import typer  # noqa: PLC0415 - likewise

    app = typer.Typer(callback=begin)
    app.command("convert")(convert)
    app.add_typer(telemetry.typer())
    app()


def by_argparse() -> None:
    begin()
    parser = argparse.ArgumentParser()
    subparsers: Any = parser.add_subparsers(required=True)
    converter = subparsers.add_parser("convert")
    converter.add_argument("theme")
    converter.set_defaults(func=lambda arguments: convert(arguments.theme))
    telemetry.argparse(subparsers)
    arguments = parser.parse_args()
    sys.exit(arguments.func(arguments))


if __name__ == "__main__":
    if "VEILCOUNT_SENDER" in os.environ:  # a frozen app is started again as its sender
        sys.frozen = True  # type: ignore[attr-defined] # as PyInstaller sets it
    elif "VEILCOUNT_DEVELOPMENT" not in os.environ:  # in which a run sends by itself
        sys.addaudithook(_refuse_sockets)
    {"click": by_click, "typer": by_typer, "argparse": by_argparse}[FRAMEWORK]()
