"""Each command that listens: a port in use is refused in one line, with the address and the fix."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ....system.server import HOST
from .conftest import Type

#: a store and definitions that are missing: the address is refused before they are opened
STORE = ("--store", "sqlite:////nowhere/x.db")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("serve", *STORE), "bind"),
        (("issuer", "serve", *STORE, "--collections"), "bind"),
        (("dev",), "bind"),
        (("relay", "serve", "--to", "http://127.0.0.1:1", "--dev-only"), "port"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_port_in_use_is_refused_with_the_address_and_the_fix(
    typed: Type,
    definitions: Path,
    command: tuple[str, ...],
    option: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`dev` reads its file where it is started."""
    monkeypatch.chdir(definitions.parent)
    files = [str(definitions)] if command[-1] == "--collections" else []
    with socket.create_server((HOST, 0)) as other:
        port = str(other.getsockname()[1])
        address = f"{HOST}:{port}"
        refused = typed(*command, *files, f"--{option}", address if option == "bind" else port)

    message = f'{option} = "{address}": cannot listen there (Address already in use): give another'
    assert message in refused.err.replace('\\"', '"')  # `serve` writes a line of JSON
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
