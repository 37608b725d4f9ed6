"""TLS: CPU time of a server's side of a handshake, by the key of its certificate.

A body has a connection of its own and no session is resumed, so each of them pays for one. Client
and server are in one process, without a socket: what only nginx and the kernel do is not in it.
"""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time

from .table import Row, Table, figure

#: arguments of `openssl req -newkey`
KEYS = {
    "P-256": ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "RSA-2048": ("rsa:2048",),
}
MOST_RATIO = 0.6  # of P-256 over RSA-2048
ROUNDS = 20  # by turns
NAME = "stats.example.org"
NOTES = ("TLS 1.3, the median of rounds by turns. Not in it: sockets, and the proxy's own work.",)


def run(*, quick: bool) -> Table:
    """Shake hands by turns with each key; `--quick`: fewer times."""
    with TemporaryDirectory() as folder:
        contexts = {key: _contexts(Path(folder), key) for key in KEYS}
        rounds = [
            {key: _microseconds(*contexts[key], 20 if quick else 200) for key in KEYS}
            for _ in range(ROUNDS)
        ]
    return Table("TLS handshake: us of the server", list(_rows(rounds)), NOTES, digits=3)


def _rows(rounds: list[dict[str, float]]) -> Iterator[Row]:
    medians = {key: sorted(each[key] for each in rounds)[ROUNDS // 2] for key in KEYS}
    for key, microseconds in medians.items():
        yield figure(key, microseconds)
    yield figure("P-256 / RSA-2048", medians["P-256"] / medians["RSA-2048"], "", MOST_RATIO)


def _contexts(folder: Path, key: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return a server's settings, with a new certificate, and those of a client that trusts it."""
    secret, certificate = folder / f"{key}.key", folder / f"{key}.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", *KEYS[key], "-noenc", "-days", "1"),
            *("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"),
            *("-keyout", secret, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, secret)
    server.num_tickets = 0
    return server, ssl.create_default_context(cafile=str(certificate))


def _microseconds(server: ssl.SSLContext, client: ssl.SSLContext, handshakes: int) -> float:
    """Return the CPU time of the server's side of one handshake."""
    return sum(_handshake(server, client) for _ in range(handshakes)) / handshakes * 1e6


def _handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> float:
    """Shake hands; return the server's seconds."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=NAME)
    _advance(near)
    begun = thread_time()
    far = server.wrap_bio(to_server, to_client, server_side=True)
    _advance(far)
    taken = thread_time() - begun
    near.do_handshake()
    begun = thread_time()
    far.do_handshake()
    return taken + thread_time() - begun


def _advance(side: ssl.SSLObject) -> None:
    """Go on until the other side has to answer."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return
    raise RuntimeError("a handshake ended before the other side had answered")
