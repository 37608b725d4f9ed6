"""The files of `deploy/`, which travel with the package: what belongs together, and its writing.

`deploy` next to this module is a link to that folder; a wheel has the files themselves. What to
change in a file stands at its head, once, and is printed from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import takewhile
from pathlib import Path

from veilcount_serving.errors import SettingsError

SOURCE = files(__package__) / "deploy"
_OWNER = "systemd/veilcount.sysusers"


@dataclass(frozen=True, slots=True)
class FileSet:
    """Files that are used together: those whose heads say what to do, and what these need."""

    purpose: str
    main: tuple[str, ...]
    needed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The files below `deploy/`."""
        return self.main + self.needed


FILE_SETS: Mapping[str, FileSet] = {
    "systemd": FileSet(
        "one aggregator on one host",
        ("systemd/veilcount.service",),
        (
            _OWNER,
            "systemd/veilcount.tmpfiles",
            "systemd/veilcount-backup.service",
            "systemd/veilcount-backup.timer",
            "systemd/veilcount-store.conf",
            "store-secrets.sh",
        ),
    ),
    "nginx": FileSet("its proxy", ("nginx.conf",)),
    "compose": FileSet(
        "an aggregator and its store in containers",
        ("compose.yml",),
        ("Dockerfile", "valkey.conf", "store-secrets.sh"),
    ),
    "kubernetes": FileSet(
        "three aggregators and a cluster of stores",
        ("kubernetes.yml",),
        ("Dockerfile", "store-secrets.sh"),
    ),
    "issuer": FileSet("an issuer of tokens", ("systemd/veilcount-issuer.service",), (_OWNER,)),
    "relay": FileSet("a relay, for another party", ("relay-nginx.conf",)),
    "shuffler": FileSet(
        "a shuffler, for another party",
        ("systemd/veilcount-shuffler.service", "shuffler-nginx.conf"),
        (_OWNER,),
    ),
    "shuffler-compose": FileSet(
        "the same in a container", ("shuffler-compose.yml", "shuffler-nginx.conf"), ("Dockerfile",)
    ),
    "monitoring": FileSet(
        "alerts for Prometheus, a dashboard for Grafana", ("alerts.yml",), ("grafana.json",)
    ),
}


def write(file_set: FileSet, folder: Path, *, overwrite: bool) -> list[Path]:
    """Write the files below a folder; a file that differs is overwritten on request alone."""
    contents = {folder / name: (SOURCE / name).read_bytes() for name in file_set.names}
    differing = [path for path, content in contents.items() if _differs(path, content)]
    if differing and not overwrite:
        names = ", ".join(str(path.relative_to(folder)) for path in differing)
        fix = f"{names} would be overwritten: give another folder, or --force"
        raise SettingsError("FOLDER", str(folder), fix)
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return list(contents)


def _differs(path: Path, content: bytes) -> bool:
    return path.exists() and path.read_bytes() != content


def instructions(file_set: FileSet) -> Iterator[tuple[str, list[str]]]:
    """Yield the comment at the head of each main file: what to change in it, and what to run."""
    for name in file_set.main:
        lines = (SOURCE / name).read_text(encoding="utf-8").splitlines()
        yield name, [line[2:] for line in takewhile(lambda line: line.startswith("#"), lines)]
