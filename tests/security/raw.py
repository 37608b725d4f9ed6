"""HTTP as no library would send it: bytes to a real server, and whatever comes back."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from dataclasses import dataclass

from tests.system.server import HOST

PATIENCE = 20.0  # for an answer; a busy machine is no failure
QUIET = 1.0  # after one, for another or for the end
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


@dataclass(frozen=True, slots=True)
class Heard:
    raw: bytes
    ended: bool  # by the server

    @property
    def statuses(self) -> list[int]:
        return [int(each) for each in _STATUS.findall(self.raw)]


def connected(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), PATIENCE)


def say(port: int, raw: bytes, quiet: float = QUIET) -> Heard:
    """Send bytes on a connection of their own; return all that comes back."""
    with connected(port) as connection:
        with suppress(OSError):  # a server that has heard enough hangs up
            connection.sendall(raw)
        return listen(connection, quiet)


def listen(connection: socket.socket, quiet: float = QUIET) -> Heard:
    """Return what comes until the server ends it, or falls silent behind an answer."""
    heard = b""
    try:
        while piece := connection.recv(1 << 16):
            heard += piece
            connection.settimeout(quiet)
    except TimeoutError:
        return Heard(heard, ended=False)
    except ConnectionResetError:
        return Heard(heard, ended=True)
    return Heard(heard, ended=True)


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode("latin-1")
