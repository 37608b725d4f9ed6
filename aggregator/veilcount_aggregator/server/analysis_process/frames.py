"""Frames on a local socket: one forwarded HTTP request and its response, in WSGI terms.

    worker      REQUEST                     DATA | GONE (in reply to a READ)
    analysis             ACCEPTED   READ..                 HEAD  BODY..  END

A frame is a kind (1 byte), a length (4 bytes, big-endian), and so many bytes. The body of a request
is pulled: an application that refuses it unread never has it sent.
"""

from __future__ import annotations

import json
import socket
import struct
from enum import IntEnum
from typing import Any

CHUNK = 1 << 16  # of a body, in one frame
MAX_FRAME = 1 << 20  # headers are 64 KB at most, see `serving`
_HEADER = struct.Struct("!BI")


class Kind(IntEnum):
    """The kind of a frame."""

    REQUEST = 1  # the environ, as JSON
    ACCEPTED = 2  # a thread has taken it
    READ = 3  # a number: give up to so many bytes of the request's body
    DATA = 4  # these are they; none: its end
    GONE = 5  # whoever sends the body went away
    HEAD = 6  # status and headers, as JSON
    BODY = 7
    END = 8


class BrokenChannel(OSError):
    """The peer closed the connection, timed out, or sent an invalid frame."""


class Channel:
    """One connection between a worker and the analysis process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def set_timeout(self, seconds: float) -> None:
        """Time out after so many seconds of silence."""
        self._connection.settimeout(seconds)

    def send(self, kind: Kind, payload: bytes = b"") -> None:
        """Send a frame."""
        try:
            self._connection.sendall(_HEADER.pack(kind, len(payload)) + payload)
        except OSError as error:
            raise BrokenChannel(f"{kind.name} was not sent") from error

    def send_json(self, kind: Kind, value: object) -> None:
        """Send a value."""
        self.send(kind, json.dumps(value).encode("ascii"))

    def receive(self) -> tuple[Kind, bytes]:
        """Return the next frame."""
        try:
            number, length = _HEADER.unpack(self._receive(_HEADER.size))
            if length > MAX_FRAME:
                raise BrokenChannel(f"a frame of {length} bytes, at most {MAX_FRAME}")
            return Kind(number), self._receive(length)
        except (OSError, ValueError) as error:
            raise BrokenChannel("no frame came") from error

    def expect(self, kind: Kind) -> bytes:
        """Return the payload of the next frame, which must be of this kind."""
        found, payload = self.receive()
        if found is not kind:
            raise BrokenChannel(f"{found.name} came, {kind.name} was due")
        return payload

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            piece = self._connection.recv(size - len(received))
            if not piece:
                raise BrokenChannel("the peer closed the connection")
            received += piece
        return bytes(received)


def to_environ(payload: bytes) -> dict[str, Any]:
    """Return the environ of a REQUEST."""
    found = json.loads(payload)
    if not isinstance(found, dict):
        raise BrokenChannel("a request that is no object")
    return found
