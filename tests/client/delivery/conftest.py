"""Fixtures of delivery: a server that counts, and processes of apps."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .app_processes import Apps, starting
from .server_fixtures import HOST, Server, counting, serving


@pytest.fixture
def sink() -> Iterator[Server]:
    with serving(counting) as server:
        yield server


@pytest.fixture(scope="session")
def starter() -> Iterator[subprocess.Popen[str]]:
    with starting() as process:
        yield process


@pytest.fixture
def apps(tmp_path: Path, starter: subprocess.Popen[str]) -> Iterator[Apps]:
    """Apps that share a folder."""
    (tmp_path / "app").mkdir()
    apps = Apps(tmp_path / "app", starter)
    yield apps
    if apps.app is not None:  # the test has failed
        apps.kill()
        apps.wait()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for the loopback, and its key, in one file."""
    folder = tmp_path_factory.mktemp("certificate")
    key, public = folder / "key.pem", folder / "public.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=IP:{HOST}"]
    subprocess.run(
        [*command, *names, "-keyout", key, "-out", public], check=True, capture_output=True
    )
    key.write_text(key.read_text() + public.read_text())
    return key
