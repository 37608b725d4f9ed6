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

from tests.system.deploy.files import text
from tests.system.server import HOST, free_port, listens, wait_until

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


def configuration(
    folder: Path, nginx: Nginx, *upstreams: int, more: Mapping[str, str] | None = None
) -> str:
    """Return the file as it is written, at this place, with more changes if a test has any."""
    servers = " ".join(f"server {HOST}:{port};" for port in upstreams)
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in KINDS)
    changes = {
        "user www-data;": "user root;",  # or it could not reach the folders of a test
        "/run/nginx.pid": f"{folder}/pid",
        "/var/log/nginx/": f"{folder}/",
        "http {": "http {\n" + temporary,
        "server 127.0.0.1:8420;": servers,
        "listen 443 ssl": f"listen {HOST}:{nginx.port} ssl",
        "listen 80;": f"listen {HOST}:{nginx.clear};",
        "    listen [::]:443 ssl;\n": "",
        "    listen [::]:80;\n": "",
        "stats.example.org": "localhost",
        "/etc/ssl/stats.pem": str(nginx.certificate),
        "/etc/ssl/stats.key": f"{folder}/key.pem",
        "worker_processes auto;": "worker_processes 1;",
    } | dict(more or {})
    written = text("nginx.conf")
    for old, new in changes.items():
        assert old in written, old
        written = written.replace(old, new)
    return written


@contextmanager
def in_front_of(
    folder: Path, *upstreams: int, more: Mapping[str, str] | None = None
) -> Iterator[Nginx]:
    folder.mkdir()
    nginx = Nginx(folder, free_port(), free_port(), certified(folder))
    file = folder / "nginx.conf"
    file.write_text(configuration(folder, nginx, *upstreams, more=more), encoding="utf-8")
    command = ["nginx", "-c", str(file), "-p", str(folder), "-g", "daemon off;"]
    with (folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(command, stdout=errors, stderr=errors)
        try:
            wait_until(lambda: listens(nginx.port) or process.poll() is not None)
            assert process.poll() is None, nginx.written()
            yield nginx
        finally:
            process.terminate()
            process.wait()


def certified(folder: Path) -> Path:
    """Make a certificate for the loopback, and its key beside it."""
    file = folder / "certificate.pem"
    order = ["openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=localhost"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    name = ["-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(file)]
    subprocess.run([*order, *kind, *name, *files], check=True, capture_output=True)
    return file
