"""A real nginx in front of something, with the configuration as it is written: only ports, the
certificate and folders are a test's own, and what a test changes.
"""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..server import HOST, free_port, listens, wait_until
from .files import text

#: in place of the ten seconds that a body may stop for: only where something stops, since on a busy
#: machine an honest connection may stand still as long
IMPATIENT = {"_timeout 10s;": "_timeout 2s;"}
KINDS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@dataclass(frozen=True)
class Nginx:
    """Where it listens, and the certificate that it shows."""

    folder: Path
    port: int
    clear: int
    certificate: Path

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def tls(self, most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.certificate))
        context.maximum_version = most
        return context

    def written(self) -> str:
        """Return everything that it has written to files."""
        logs = [*self.folder.rglob("*.log"), *self.folder.glob("stderr")]
        return "".join(each.read_text(encoding="utf-8", errors="replace") for each in logs)


def configuration(name: str, nginx: Nginx, changes: Mapping[str, str]) -> str:
    """Return a file of `deploy` as it is written, at this place, with a test's changes."""
    folder = nginx.folder
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in KINDS)
    everywhere = {
        "user www-data;": "user root;",  # or it could not reach the folders of a test
        "/run/nginx.pid": f"{folder}/pid",
        "/var/log/nginx/": f"{folder}/",
        "http {": "http {\n" + temporary,
        "listen 443 ssl": f"listen {HOST}:{nginx.port} ssl",
        "    listen [::]:443 ssl;\n": "",
        "worker_processes auto;": "worker_processes 1;",
    }
    written = text(name)
    for old, new in (everywhere | dict(changes)).items():
        assert old in written, old
        written = written.replace(old, new)
    return written


@contextmanager
def in_front_of(
    folder: Path, *upstreams: int, more: Mapping[str, str] | None = None
) -> Iterator[Nginx]:
    """Run the proxy of aggregators at these ports."""
    nginx = _placed(folder)
    changes = {
        "server 127.0.0.1:8420;": " ".join(f"server {HOST}:{port};" for port in upstreams),
        "listen 80;": f"listen {HOST}:{nginx.clear};",
        "    listen [::]:80;\n": "",
        "stats.example.org": "localhost",
        "/etc/ssl/stats.pem": str(nginx.certificate),
        "/etc/ssl/stats.key": f"{folder}/key.pem",
    }
    with _running("nginx.conf", nginx, changes | dict(more or {})):
        yield nginx


@contextmanager
def relay_to(
    folder: Path, gateway: int, certificate: Path, more: Mapping[str, str] | None = None
) -> Iterator[Nginx]:
    """Run the relay of a gateway at this port of the loopback, with this certificate."""
    nginx = _placed(folder)
    changes = {
        "stats.example.org:443": f"{HOST}:{gateway}",
        "stats.example.org": "localhost",
        "/etc/ssl/certs/ca-certificates.crt": str(certificate),
        "/etc/ssl/relay.pem": str(nginx.certificate),
        "/etc/ssl/relay.key": f"{folder}/key.pem",
    }
    with _running("relay-nginx.conf", nginx, changes | dict(more or {})):
        yield nginx


@contextmanager
def shuffler_at(folder: Path, port: int, more: Mapping[str, str] | None = None) -> Iterator[Nginx]:
    """Run the proxy of a shuffler at this port."""
    nginx = _placed(folder)
    changes = {
        "server 127.0.0.1:8440;": f"server {HOST}:{port};",
        "server_name shuffler.example.net;": "server_name localhost;",
        "/etc/ssl/shuffler.pem": str(nginx.certificate),
        "/etc/ssl/shuffler.key": f"{folder}/key.pem",
    }
    with _running("shuffler-nginx.conf", nginx, changes | dict(more or {})):
        yield nginx


def _placed(folder: Path) -> Nginx:
    folder.mkdir()
    return Nginx(folder, free_port(), free_port(), certified(folder))


@contextmanager
def _running(name: str, nginx: Nginx, changes: Mapping[str, str]) -> Iterator[None]:
    file = nginx.folder / "nginx.conf"
    file.write_text(configuration(name, nginx, changes), encoding="utf-8")
    command = ["nginx", "-c", str(file), "-p", str(nginx.folder), "-g", "daemon off;"]
    with (nginx.folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(command, stdout=errors, stderr=errors)
        try:
            wait_until(lambda: listens(nginx.port) or process.poll() is not None)
            assert process.poll() is None, nginx.written()
            elsewhere = [
                each for each in _open_files(process.pid) if nginx.folder not in each.parents
            ]
            assert elsewhere == [], "it writes where no test would look"
            yield
        finally:
            process.terminate()
            process.wait()


def _open_files(pid: int) -> list[Path]:
    """Return the files that a process and its workers write to."""
    links = (each.resolve() for each in Path(f"/proc/{pid}/fd").iterdir())
    return [each for each in links if each.is_file()]


def certified(folder: Path) -> Path:
    """Make a certificate for the loopback, and its key beside it."""
    file = folder / "certificate.pem"
    order = ["openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=localhost"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    name = ["-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(file)]
    subprocess.run([*order, *kind, *name, *files], check=True, capture_output=True)
    return file
