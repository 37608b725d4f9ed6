"""`veilcount dev`: what is wrong is reported before anything is served, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

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
