"""A Redis that runs as a file of `deploy` says, and not as tests like it best."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis


@contextmanager
def redis_of(folder: Path, *command: str) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    with (
        (folder / "log").open("ab") as log,
        subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process,
    ):
        try:
            yield
        finally:
            process.kill()


def answers(host: str, port: int) -> bool:
    try:
        return bool(redis.Redis(host, port).ping())
    except redis.RedisError:
        return False
