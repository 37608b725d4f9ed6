"""Servers that run as a file of `deploy` says, and not as tests like it best."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import redis

from ...redis_server import VALKEY, program_path
from ..server import HOST, free_port
from .files import DEPLOY

SECRETS = "/run/secrets/veilcount", "/run/secrets/valkey"
BLOCK = 1 << 16


@dataclass(frozen=True)
class Secrets:
    """What `store-secrets.sh` made, in the folder that containers would find it in."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, *hosts: str) -> Secrets:
        """Run the documented command."""
        command = ["sh", str(DEPLOY / "store-secrets.sh"), str(folder), *hosts]
        subprocess.run(command, check=True, capture_output=True)
        secrets = cls(folder)
        secrets.file("url").chmod(0o600)
        secrets.file("url").write_text(secrets.moved(secrets.file("url").read_text()))
        return secrets

    @property
    def url(self) -> str:
        return self.file("url").read_text(encoding="utf-8").strip()

    @property
    def password(self) -> str:
        return self.file("password").read_text(encoding="utf-8").strip()

    def file(self, name: str) -> Path:
        return self.folder / name

    def moved(self, text: str) -> str:
        """Return words of a file with the paths of its secrets in this folder."""
        for place in SECRETS:
            text = text.replace(place, str(self.folder))
        return text


@contextmanager
def redis_of(folder: Path, *command: str) -> Iterator[None]:
    """Run a server; one of Valkey that has no TLS is reached through a process that has."""
    folder.mkdir(exist_ok=True)
    program, *arguments = command
    with (
        (folder / "log").open("ab") as log,
        subprocess.Popen(
            [program_path(program), *arguments], cwd=folder, stdout=log, stderr=log
        ) as process,
    ):
        try:
            yield
        finally:
            process.kill()


@contextmanager
def server_of(
    program: str, settings: str, folder: Path, secrets: Secrets, port: int
) -> Iterator[None]:
    """Run a server with the settings of a file, at another port and in another folder.

    The Valkey that is at hand may be built without TLS: then its settings but those of TLS are
    used, and a process before it has the certificate.
    """
    text = secrets.moved(settings).replace("/data", str(folder))
    text = text.replace("tls-port 6379", f"tls-port {port}")
    with ExitStack() as stack:
        if program == VALKEY and not has_tls(VALKEY):
            plain = free_port()
            kept = [line for line in text.splitlines() if not line.startswith(("tls-", "port"))]
            text = "\n".join([*kept, f"port {plain}", ""])
            stack.enter_context(tls_before(plain, port, secrets))
        folder.mkdir()
        (folder / "server.conf").write_text(text)
        command = [program, str(folder / "server.conf"), "--bind", HOST]
        stack.enter_context(redis_of(folder, *command))
        yield


def has_tls(program: str) -> bool:
    """Whether a server program was built with TLS; without a certificate it ends either way."""
    command = [program_path(program), "--port", "0", "--tls-port", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return "Failed finding TLS support" not in ended.stdout


@contextmanager
def tls_before(target: int, port: int, secrets: Secrets) -> Iterator[None]:
    """Listen at a port with the server's certificate, and pass on to another port in plain."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(secrets.file("server.crt"), secrets.file("server.key"))
    with socket.create_server((HOST, port)) as listener:

        def serve(client: socket.socket) -> None:
            with suppress(OSError), context.wrap_socket(client, server_side=True) as inner:
                server = socket.create_connection((HOST, target))
                threading.Thread(target=_pass_on, args=(server, inner), daemon=True).start()
                _pass_on(inner, server)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError), target:
        while block := source.recv(BLOCK):
            target.sendall(block)


def answers(port: int, secrets: Secrets) -> bool:
    try:
        with redis.Redis(
            "localhost",
            port,
            password=secrets.password,
            ssl=True,
            ssl_ca_certs=str(secrets.file("ca.crt")),
        ) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def command_lines() -> dict[int, str]:
    """Return the command line of each process of this machine, by its id."""
    lines = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            lines[int(process.name)] = (process / "cmdline").read_bytes().decode(errors="replace")
    return lines
