"""A worker with a front: the server itself listens at a private Unix socket of the worker."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Protocol

from granian.net import UnixSocketSpec  # type: ignore[attr-defined] # it exports by importing
from granian.server.mp import MPServer

from .front import Front, PlainEndpoint
from .front_turn import FrontTurn
from .listen_address import LONGEST_PATH, ListenAddress

PRIVATE_BACKLOG = 4096
NAME_BYTES = 40  # of the folder in TMPDIR, and of a socket in it


class FrontedApplication(Protocol):
    """An application whose plain requests a front takes."""

    @property
    def plain(self) -> PlainEndpoint:
        """The endpoint of the plain requests."""

    front: Front | None


def socket_folder() -> TemporaryDirectory[str]:
    """Return a folder for private sockets; where TMPDIR is too deep for a socket's path, in /tmp.

    Nobody else may enter it.
    """
    is_deep = len(os.fsencode(gettempdir())) + NAME_BYTES > LONGEST_PATH
    return TemporaryDirectory(prefix="veilcount-", dir="/tmp" if is_deep else None)  # noqa: S108


@dataclass(frozen=True, slots=True)
class Fronts:
    """The fronts of a server: their address, and the folder of its private sockets.

    By `turns`, one worker listens, and passes on to so many `workers` what is not its own.
    """

    bind: ListenAddress
    folder: Path
    turns: bool
    workers: int

    def make(self, endpoint: PlainEndpoint, listener: socket.socket, worker: int) -> Front:
        """Return the front of a worker."""
        others = {*range(1, self.workers + 1)} - {worker} if self.turns else ()
        turn = FrontTurn(self.folder) if self.turns else None
        return Front(endpoint, listener, self.socket(worker), turn, [*map(self.socket, others)])

    def socket(self, worker: int) -> Path:
        """Return the place of a worker's private socket."""
        return self.folder / f"{worker}"


def run_fronted_worker(
    fronts: Fronts,
    worker: int,
    process_name: str,
    load: Callable[[], FrontedApplication],
    sockets: tuple[Any, socket.socket | None],
    *settings: Any,
) -> None:
    """Run a worker behind its front; Granian calls it."""
    loading = fronts.folder / f"loading-{os.getpid()}"
    private = UnixSocketSpec(str(loading), PRIVATE_BACKLOG, None).build()

    def load_fronted() -> FrontedApplication:
        application = load()
        listener = sockets[1] or fronts.bind.bound()
        loading.replace(fronts.socket(worker))  # in the place of a worker that has died
        application.front = fronts.make(application.plain, listener, worker)
        return application

    MPServer._spawn_rsgi_worker(  # noqa: SLF001 - what Granian runs by default
        worker, process_name, load_fronted, ((None, private), None), *settings
    )
