"""A way between two programs on the loopback that behaves as networks do on bad days."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum

HOST = "127.0.0.1"
BLOCK = 1 << 20
TICK = 0.02

#: closing sends a reset: whoever waits at the other end learns it at once
_RESET = struct.pack("ii", 1, 0)


class Mood(StrEnum):
    """What becomes of what is sent."""

    PASS = "pass"
    REFUSE = "refuse"  # every connection is reset
    BLACKHOLE = "blackhole"  # nothing arrives; afterwards all of it does, as TCP has it
    LOSE_REPLY = "lose reply"  # what is asked is done, and the answer never comes
    HALF_REQUEST = "half request"  # the connection breaks in the middle of what is asked


class Proxy:
    """Listens in front of a port; its mood may change at any time, also for what is open."""

    def __init__(self, port: int, latency: float = 0.0) -> None:
        """Stand in front of this port; `latency` seconds pass before each piece goes on."""
        self.mood = Mood.PASS
        self.latency = latency
        self._target = port
        self._open = True
        self._socket = socket.create_server((HOST, 0), backlog=128)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    @contextmanager
    def in_mood(self, mood: Mood) -> Iterator[None]:
        """Behave like that meanwhile."""
        self.mood = mood
        yield
        self.mood = Mood.PASS

    def close(self) -> None:
        self._open = False
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while self._open:
                client, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            self._wait_for_light()
            if self.mood is Mood.REFUSE:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                return
            with socket.create_connection((HOST, self._target)) as server:
                self._pass_on(client, server)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        while self._open:
            for ready in select.select([client, server], [], [], TICK)[0]:
                self._wait_for_light()
                block = ready.recv(BLOCK)
                from_client = ready is client
                if not block or not self._send(
                    server if from_client else client, block, from_client=from_client
                ):
                    return
            if self.mood is Mood.REFUSE:
                return

    def _send(self, to: socket.socket, block: bytes, *, from_client: bool) -> bool:
        """Pass a piece on as the mood is; say whether the connection lives on."""
        if self.latency:
            time.sleep(self.latency)
        if self.mood is Mood.HALF_REQUEST and from_client:
            to.sendall(block[: len(block) // 2])
            return False
        if self.mood is Mood.LOSE_REPLY and not from_client:
            return False
        to.sendall(block)
        return True

    def _wait_for_light(self) -> None:
        while self.mood is Mood.BLACKHOLE and self._open:
            time.sleep(TICK)


class LosingProxy(Proxy):
    """Passes everything on; of the next few scripts it lets Redis do them, and hangs up."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.url = f"redis://{HOST}:{self.port}/0"
        self.lose = self.lost = 0
        self._losing = threading.local()  # a connection has a thread

    def _send(self, to: socket.socket, block: bytes, *, from_client: bool) -> bool:
        if from_client and self.lose and b"EVALSHA" in block:
            self.lose, self._losing.reply = self.lose - 1, True
        elif not from_client and hasattr(self._losing, "reply"):
            self.lost += 1
            return False
        return super()._send(to, block, from_client=from_client)
