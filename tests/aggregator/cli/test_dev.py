"""`veilcount dev`: what is wrong is reported before anything is served, in one line."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.system.server import HOST

from .conftest import Type


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 'FILES = "collections.toml": no such file: `veilcount new` writes one'),
        ("app =", 'file = "collections.toml": not readable TOML: Invalid value'),
    ],
)
def test_definitions_that_cannot_be_loaded_are_refused(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if text:
        Path("collections.toml").write_text(text, encoding="utf-8")
    refused = typed("dev")

    assert refused.code == 2
    assert refused.err.startswith(f"veilcount: {line}")
    assert len(refused.err.splitlines()) == 1


def test_an_address_that_is_taken_is_refused(typed: Type, definitions: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        address = f"{HOST}:{taken.getsockname()[1]}"
        refused = typed("dev", str(definitions), "--bind", address)

    assert refused.code == 2
    assert refused.err.startswith(f'veilcount: bind = "{address}": cannot listen there')
