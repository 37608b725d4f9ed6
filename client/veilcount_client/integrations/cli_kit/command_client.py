"""The client of a command: it stores, and leaves all sending to a sender.

So the command opens no socket and waits for no server. In CI and without a terminal nothing is
opened unless an earlier run has left a state, in which a consent may be.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from veilcount_shared import load_collections
from veilcount_shared.errors import VeilcountError

from ...client import Client
from ...delivery.transport import LeftToAnother
from ...settings import ClientSettings, read_settings
from ...state.factory import default_directory, state_location
from ...state.sqlite_database import FILE
from ..app_client import client_for, clients
from . import attendance
from .sender_lock import SenderLock

#: what a sender can be given, as variables
OPTIONS = {field.name for field in fields(ClientSettings)} - {"disabled", "persons"}
OPTIONS |= {"state_dir", "account"}
DEVELOPMENT_SECONDS = 2.0


class CommandClient:
    """The client of one command, made when it is needed, and the words about it."""

    def __init__(
        self,
        url: str | None = None,
        *,
        collections: str | os.PathLike[str] | None = None,
        program: str | None = None,
        messages: Mapping[str, object] | None = None,
        language: str = "",
        **options: Any,
    ) -> None:
        """Take the options of `Client` that have a variable, and `account`; open nothing yet.

        `program` is what people type to run the command; `messages` replaces texts, by the keys of
        `cli_kit.messages.MESSAGES` and of `receipt_messages.MESSAGES`.
        """
        if unknown := sorted(options.keys() - OPTIONS):
            raise TypeError(f"{unknown[0]}: no variable hands it to a sender: use Client")
        self.program = program or Path(sys.argv[0]).name
        self.subcommand = "telemetry"
        self.messages, self.language = messages, language
        self.account: str | None = options.get("account")
        self._options = options | {"url": url, "collections": collections, "persons": False}

    @property
    def command(self) -> str:
        """What people type before `on` or `off`."""
        return f"{self.program} {self.subcommand}"

    @property
    def client(self) -> Client | None:
        """The client of this process; None if nobody is there to decide and none has consented."""
        if self in clients or self.is_development or attendance.is_attended() or self._has_state():
            return self.open()
        return None

    @property
    def is_development(self) -> bool:
        """Whether the settings say so; of wrong ones the client names what is wrong."""
        with suppress(VeilcountError, ValueError):
            return read_settings(**self._options).development
        return False

    def open(self) -> Client:
        """Return the client, wherever: somebody types a sub-command."""
        return client_for(self, self._make)

    def state(self, client: Client) -> str | Path:
        """Return where the state is, from any directory."""
        return _state(client.settings, _app(client.collections))

    def lock(self, client: Client) -> SenderLock:
        """Return the lock of the sender, next to the state or, if hosts share that, on this one."""
        state = self.state(client)
        directory = (
            state if isinstance(state, Path) else default_directory(_app(client.collections))
        )
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return SenderLock(directory)

    def _make(self) -> Client:
        if self.is_development:
            client = Client(**self._options)
            client.consent(True)  # the developer's own: what is sent is marked as a test
            atexit.register(client.close, DEVELOPMENT_SECONDS)  # before its state is removed
            return client
        return Client(**self._options, transport=LeftToAnother(), threaded=False)

    def _has_state(self) -> bool:
        with suppress(VeilcountError, OSError, ValueError, StopIteration):
            settings = read_settings(**self._options)
            if settings.disabled is None and settings.collections is not None:
                state = _state(settings, _app(load_collections(settings.collections)))
                return isinstance(state, str) or (state / FILE).exists()
        return False


def _app(collections: Mapping[str, Any]) -> str:
    return str(next(iter(collections.values())).app)


def _state(settings: ClientSettings, app: str) -> str | Path:
    state = state_location(settings, app)
    return str(state) if "://" in str(state) else Path(state).absolute()
