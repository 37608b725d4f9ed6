"""Telemetry: what a command calls. It records for who consented, and starts the sender at its end.

Whatever the disk, the home or the network do, the command neither fails nor waits.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from typing import Any

from ...client import Client
from ...errors import log
from . import attendance, detached, frameworks, invitation, sender
from .command_client import CommandClient


class Telemetry(CommandClient):
    """The statistics of one command."""

    _process = 0  # that was started; a fork of it ends by itself

    def start(self) -> None:
        """Begin a run: call it first, in every run, whatever that will record.

        Where presence is hidden, a run that records must do what any other does. So `record` does
        nothing before.
        """
        if getattr(sys, "frozen", False) and sender.DIRECTORY in os.environ:
            sender.main()  # a frozen app is its own interpreter
            sys.exit()
        if self._process != os.getpid():
            if not self.is_development:
                log.addHandler(logging.NullHandler())  # `status` has the problems, not each run
            atexit.register(self.end)  # before the client does, so that it runs later
            self._process = os.getpid()

    def record(self, name: str, value: object, /, **segments: object) -> None:
        """Record a value if the person consented: never blocks, never raises."""
        if not self._process:
            log.warning("veilcount, telemetry: call start() first, in every run")
        elif (client := self.client) is not None and client.consented:
            client.record(name, value, **segments)

    def end(self) -> None:
        """Start a sender if something may be sent; show the notice to who has not decided."""
        if self._process != os.getpid():
            return
        try:
            client = self.client
            if client is not None:
                self._end(client)
        except Exception as error:  # noqa: BLE001 - no fault here may be the command's
            log.debug("veilcount, telemetry: %s", type(error).__name__)

    def _end(self, client: Client) -> None:
        if client.settings.development:
            return  # it has sent what there was
        if client.consented and sender.may_send(client):
            self._call_sender(client)
        if attendance.is_attended() and (text := invitation.first_notice(self, client)):
            print(text, file=sys.stderr)  # noqa: T201 - a terminal

    def _call_sender(self, client: Client) -> None:
        lock = self.lock(client)
        lock.call()
        if not lock.is_taken:
            detached.start(client.settings, self.state(client), lock.directory, self.account)

    # -- the sub-command -----------------------------------------------------------------------

    def click(self, name: str = "telemetry") -> Any:
        """Return a group for click: `cli.add_command(telemetry.click())`."""
        self.subcommand = name
        return frameworks.click_group(self)

    def typer(self, name: str = "telemetry") -> Any:
        """Return an app for Typer: `app.add_typer(telemetry.typer())`."""
        self.subcommand = name
        return frameworks.typer_app(self)

    def argparse(self, subparsers: Any, name: str = "telemetry") -> Any:
        """Add a parser for argparse, whose `func` takes the arguments and returns an exit code."""
        self.subcommand = name
        return frameworks.add_parser(self, subparsers)
