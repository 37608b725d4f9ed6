"""The files of `deploy`, read as their own programs read them, and moved to where a test runs."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # brings no types along

DEPLOY = Path(__file__).parents[3] / "deploy"
PROGRAM = "/opt/veilcount/bin/veilcount"
ADDRESS = "127.0.0.1:8420"

#: an image by its own short name, pinned
IMAGE = re.compile(r"(python|valkey/valkey|veilcount):\d[\w.-]*")

Unit = dict[str, list[str]]


def text(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.load_all(text(name), yaml.CSafeLoader))


def unit(name: str) -> Unit:
    """Return the settings of a unit of systemd; one that is given again has several values."""
    found: Unit = {}
    for line in text(f"systemd/{name}").splitlines():
        if line and line[0] not in "#[":
            setting, _, value = line.partition("=")
            found.setdefault(setting, []).append(value)
    return found


def words(command: str) -> list[str]:
    """Return a command line of a unit as systemd takes it apart."""
    return [word.replace("$$", "$").replace("%%", "%") for word in shlex.split(command)]


def variables(unit_file: Unit) -> dict[str, str]:
    return dict(each.split("=", 1) for each in unit_file["Environment"])


def moved(written: str, folder: Path, port: int) -> str:
    """Return words of a file with its folders in a test's, its port free, and our own program."""
    program = Path(sys.executable).with_name("veilcount")
    for old in ("/var/lib/", "/var/backups/"):
        written = written.replace(old, f"{folder}{old}")
    return written.replace(PROGRAM, str(program)).replace(ADDRESS, f"127.0.0.1:{port}")


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each container of the cluster, with the pod it is in."""
    for document in documents("kubernetes.yml"):
        pod = document.get("spec", {}).get("template", {}).get("spec", {})
        for container in [*pod.get("initContainers", ()), *pod.get("containers", ())]:
            yield container, pod
