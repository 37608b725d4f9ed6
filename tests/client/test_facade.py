"""`import veilcount` and the command `veilcount` in an installation of the client alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import veilcount
import veilcount_client

ROOT = Path(__file__).parents[2]
CLIENT_ONLY = """
import sys
for name in ("click", "granian", "msgspec", "numpy"): sys.modules[name] = None
sys.argv = ["veilcount", {}]
from veilcount.__main__ import main
main()
"""


def test_the_facade_has_the_clients_public_names() -> None:
    for name in vars(veilcount_client):
        if name[0].isupper():
            assert getattr(veilcount, name) is getattr(veilcount_client, name)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ('"serve"', 2, "serve needs the aggregator: pip install 'veilcount[aggregator]'"),
        ('"check", "docs/collections.toml"', 0, "ok    theme: epsilon"),
    ],
)
def test_without_the_aggregator_the_command_offers_the_client(
    arguments: str, code: int, words: str
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", CLIENT_ONLY.format(arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PYTHONPATH": "client:aggregator:shared"},
    )

    assert run.returncode == code
    assert words in run.stdout + run.stderr
