"""What a worker and a process of the pool send each other: one request and its response, whole."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import msgspec
from werkzeug.wrappers import Request, Response

ACCEPTED = b"accepted"  # a process has taken the connection: the request may be sent
POOLED = "veilcount.pooled"  # in the environ of a request that a process of the pool computes
_VARIABLES = frozenset(
    {
        *("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "CONTENT_TYPE"),
        *("CONTENT_LENGTH", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "wsgi.url_scheme"),
    }
)


class PooledRequest(msgspec.Struct, frozen=True):
    """A request as WSGI has it, without its client's address and without variables of the worker's
    environment.
    """

    variables: dict[str, str]
    body: bytes

    @classmethod
    def of(cls, request: Request) -> PooledRequest:
        """Return what is passed on of a request; its body is read."""
        body = request.get_data()
        passed = dict(_passed(request.environ), CONTENT_LENGTH=str(len(body)))
        return cls(passed, body)

    @property
    def environ(self) -> dict[str, Any]:
        """Return the environ for an application."""
        return {
            "SCRIPT_NAME": "",
            "QUERY_STRING": "",
            **self.variables,
            POOLED: True,
            "wsgi.version": (1, 0),
            "wsgi.input": io.BytesIO(self.body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        }


class ResponseHead(msgspec.Struct, frozen=True):
    """Status and headers of the response; its body follows in pieces, and an empty one."""

    status: str
    headers: list[tuple[str, str]]


END = b""  # of a body: one that ends without it broke off


def send(connection: Connection, message: PooledRequest | ResponseHead) -> None:
    """Send a message."""
    connection.send_bytes(msgspec.msgpack.encode(message))


def send_response(connection: Connection, response: Response) -> None:
    """Send a response, whose body is made meanwhile."""
    send(connection, ResponseHead(response.status, response.headers.to_wsgi_list()))
    for piece in response.iter_encoded():
        if piece:
            connection.send_bytes(piece)
    connection.send_bytes(END)


def receive_request(connection: Connection) -> PooledRequest:
    """Return the request that comes."""
    return msgspec.msgpack.decode(connection.recv_bytes(), type=PooledRequest)


def receive_head(connection: Connection) -> ResponseHead:
    """Return the head of the response that comes."""
    return msgspec.msgpack.decode(connection.recv_bytes(), type=ResponseHead)


def _passed(environ: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if isinstance(value, str) and (name in _VARIABLES or name.startswith("HTTP_"))
    }
