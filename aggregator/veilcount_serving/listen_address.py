"""The address a server listens on: host and port, or a Unix socket."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from .errors import SettingsError, system_reason
from .posix import IS_POSIX, require_posix

UNIX = "unix:"
HIGHEST_PORT = 65_535
LONGEST_PATH = 107  # bytes of a socket's path; one more is the zero at its end: unix(7)
TIMEOUT = 1.0


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A TCP address or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    path: Path | None = None

    @classmethod
    def parse(cls, text: str) -> ListenAddress:
        """Parse `host:port`, `[host]:port` or `unix:/path`."""
        if text.startswith(UNIX):
            return cls(path=_path(text))
        host, _, port = text.rpartition(":")
        bare = host[1:-1] if host[:1] + host[-1:] == "[]" else host
        if not bare or (":" in bare) == (bare == host):
            raise _syntax_error(text)
        if not port.isascii() or not port.isdecimal() or not 0 < int(port) <= HIGHEST_PORT:
            raise _syntax_error(text)
        return cls(_address(bare, text), int(port))

    def __str__(self) -> str:
        if self.path is not None:
            return f"{UNIX}{self.path}"
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def check(self) -> None:
        """Reject an address that cannot be bound, or is in use.

        The server's own sockets share their port, and so would not notice another server. It is not
        listened on: somebody who connected meanwhile would take the server for started.
        """
        if self.path is not None:
            self._check_path(self.path)
        with closing(socket.socket(self._family)) as probe:
            if IS_POSIX:  # on Windows it binds an address that is in use, too
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(str(self.path) if self.path is not None else (self.host, self.port))
            except OSError as error:
                raise self.listen_error(error) from error
        if self.path is not None:
            self.path.unlink()  # the server makes its own

    def bound(self) -> socket.socket:
        """Return a socket at this TCP address, which other such sockets may share."""
        bound = socket.socket(self._family)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((self.host, self.port))
        return bound

    def listen_error(self, error: OSError, option: str = "bind") -> SettingsError:
        """Return the refusal of an address that cannot be bound, as of one in use."""
        why = f"cannot listen there ({system_reason(error)}): give another"
        return self._refusal(why, option)

    def is_listening(self) -> bool:
        """Whether a server listens there."""
        with closing(socket.socket(self._family)) as probe:
            probe.settimeout(TIMEOUT)
            try:
                probe.connect(str(self.path) if self.path is not None else self._reachable)
            except OSError:
                return False
            return True

    @property
    def _family(self) -> socket.AddressFamily:
        if self.path is not None:
            return socket.AF_UNIX
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    @property
    def _reachable(self) -> tuple[str, int]:
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound
        return everywhere.get(self.host, self.host), self.port

    def _check_path(self, path: Path) -> None:
        require_posix("a Unix socket")
        if len(os.fsencode(path)) > LONGEST_PATH:
            raise self._refusal(f"give a path of at most {LONGEST_PATH} bytes")
        if not path.parent.is_dir():
            raise self._refusal("no such directory: make it first, or give another")
        if self.is_listening():
            raise self._refusal("in use by another server: give another")
        if path.is_socket():
            path.unlink()  # left by a killed server
        elif path.exists():
            raise self._refusal("the file exists, and is no socket: give a new name")

    def _refusal(self, why: str, option: str = "bind") -> SettingsError:
        return SettingsError(option, str(self).removeprefix("http://"), why)


def _path(text: str) -> Path:
    path = Path(text.removeprefix(UNIX))
    if not path.is_absolute():
        raise _syntax_error(text)
    return path


def _address(host: str, text: str) -> str:
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError) as error:
        why = f"no such host ({system_reason(error)}): give a name or an address of this machine"
        raise SettingsError("bind", text, why) from error


def _syntax_error(text: str) -> SettingsError:
    return SettingsError("bind", text, "give host:port, [host]:port or unix:/absolute/path")
