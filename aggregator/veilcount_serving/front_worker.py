"""A worker with a front: the server itself listens at a private Unix socket of the worker."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Protocol

from granian.net import UnixSocketSpec  # type: ignore[attr-defined] # it exports by importing
from granian.server.mp import MPServer

from .front import BACKLOG, Front, PlainEndpoint
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


def run_fronted_worker(
    place: tuple[ListenAddress, Path],
    worker: int,
    process_name: str,
    load: Callable[[], FrontedApplication],
    sockets: tuple[Any, socket.socket | None],
    *settings: Any,
) -> None:
    """Run a worker at an address, with a folder for its private socket; Granian calls it."""
    bind, folder = place
    onward = folder / f"{os.getpid()}"
    private = UnixSocketSpec(str(onward), PRIVATE_BACKLOG, None).build()

    def load_fronted() -> FrontedApplication:
        application = load()
        shared = sockets[1]
        listener = _bound(bind) if shared is None else shared.dup()
        application.front = Front(application.plain, listener, onward)
        return application

    try:
        MPServer._spawn_rsgi_worker(  # noqa: SLF001 - what Granian runs by default
            worker, process_name, load_fronted, ((None, private), None), *settings
        )
    finally:
        onward.unlink(missing_ok=True)


def _bound(bind: ListenAddress) -> socket.socket:
    """Return a socket of this worker's own at the address that all workers share."""
    family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind((bind.host, bind.port))
    listener.listen(BACKLOG)
    return listener
