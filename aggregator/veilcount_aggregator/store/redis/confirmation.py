"""Writes that are acknowledged only if they are durable, which is asked right behind each of them.

On the same connection, in the same round trip, a write is followed by

- `CONFIG GET` of the settings that durability rests on. Redis executes it in the same turn of its
  event loop as the write, or in a later one, and with `appendfsync always` it syncs before it sends
  the answers of a turn: so a write whose reply says `always` is on the disk, and no report is
  acknowledged after a setting was changed. (Functions may not ask for settings.) What is left is a
  change by another client within that very turn. Where CONFIG is forbidden, nothing is asked.
- with `?replicas=N`, `WAIT N`: the number of replicas that have this connection's last write, and
  with it all writes before it in the stream. A replica that syncs always sends its word after its
  sync. From Redis 7.2 on `WAITAOF 1 N`, which promises just that, of the master's own disk too.

Every call that is acknowledged writes something (a report that is not counted adds to a service
counter), so that the answer to a retry, `duplicate`, waits for what the first attempt wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import StoreError, StoreUnavailable, StoreUnfit
from .connections import Wait, Words
from .durability import DurabilityMonitor
from .fitness import DURABLE, settings_of, weak_syncing
from .servers import Command, Servers

WAIT_MILLISECONDS = 1500  # less than a commit waits for an answer, more than most stalls of a disk
CONFIG_GET: Words = ("CONFIG", "GET", *DURABLE)
CONFIG, WAIT, WAITAOF = "CONFIG", "WAIT", "WAITAOF"


class ConfirmedServers:
    """Servers whose answers to writes are passed on only once the writes are durable."""

    def __init__(self, servers: Servers, monitor: DurabilityMonitor) -> None:
        """Ask these; nothing is asked while the monitor finds them unfit."""
        self._servers = servers
        self._monitor = monitor

    def ask_each(self, commands: Sequence[Command], wait: Wait = Wait.COMMIT) -> list[Any]:
        """Return the answers to writes that are durable; in place of any other, a StoreError."""
        refused = [self._refusal(command.base) for command in commands]
        admitted = [each for each, error in zip(commands, refused, strict=True) if error is None]
        confirmed = iter(self._confirmed(admitted, wait))
        return [next(confirmed) if error is None else error for error in refused]

    def ask_one(self, command: Command, wait: Wait = Wait.COMMIT) -> Any:
        """Return one answer, or raise why there is none."""
        (answer,) = self.ask_each([command], wait)
        if isinstance(answer, StoreError):
            raise answer
        return answer

    def answers(self, base: bytes) -> bool:
        """Whether the server of a base answered when it was asked last."""
        return self._servers.answers(base)

    def admit(self, bases: Sequence[bytes]) -> None:
        """Refuse what would be written to a server that is unfit."""
        if self._monitor.doubts:  # hardly ever
            self._monitor.admit({self._servers.owner(base).host for base in bases})

    def confirm(self, bases: Sequence[bytes]) -> None:
        """Return once everything written before is durable at the servers of these bases."""
        for base in bases:
            self.ask_one(Command(base, ("SET", base + b":confirmed", "1")))

    def confirmations(self) -> list[Words]:
        """Return what is asked behind each write."""
        address = self._servers.address
        asked: list[Words] = []
        if address.durable and self._monitor.settings_are_seen:
            asked.append(CONFIG_GET)
        if address.replicas and self._monitor.has_waitaof:
            asked.append((WAITAOF, 1, address.replicas, WAIT_MILLISECONDS))
        elif address.replicas:
            asked.append((WAIT, address.replicas, WAIT_MILLISECONDS))
        return asked

    def _refusal(self, base: bytes) -> StoreError | None:
        try:
            self.admit([base])
        except StoreError as error:
            return error
        return None

    def _confirmed(self, commands: Sequence[Command], wait: Wait) -> list[Any]:
        """Ask, and ask behind each command whether it is durable."""
        asked = self.confirmations()
        expanded = [each for command in commands for each in _followed(command, asked)]
        answers = self._servers.ask_each(expanded, wait)
        step = 1 + len(asked)
        return [
            self._required(expanded[at : at + step], answers[at : at + step])
            for at in range(0, len(expanded), step)
        ]

    def _required(self, commands: Sequence[Command], answers: Sequence[Any]) -> Any:
        """Return the answer to a command if all that confirms it does; else a StoreError."""
        for command, answer in zip(commands, answers, strict=True):
            try:
                self._require(command, answer)
            except StoreError as error:
                return error
        return answers[0]

    def _require(self, command: Command, answer: Any) -> None:
        if isinstance(answer, StoreError):
            raise answer
        if command.confirms and command.words[0] == CONFIG:
            self._require_settings(command, answer)
        elif command.confirms:
            self._require_replicas(answer)

    def _require_settings(self, command: Command, answer: Any) -> None:
        server = self._servers.owner(command.base)
        if weak := weak_syncing(server, settings_of(answer) or {}):
            self._monitor.suspect()
            raise StoreUnfit(str(weak))

    def _require_replicas(self, answer: Any) -> None:
        """WAIT answers with a number; WAITAOF with that of the master's disk before it."""
        local, replicas = answer if isinstance(answer, list) else (1, answer)
        wanted = self._servers.address.replicas
        if not local or replicas < wanted:
            self._monitor.suspect()
            raise StoreUnavailable(
                f"{replicas} of {wanted} replicas confirmed a write within {WAIT_MILLISECONDS} ms:"
                " it is not acknowledged. See that the replicas run and keep up"
            )


def _followed(command: Command, asked: Sequence[Words]) -> Iterator[Command]:
    yield command
    for words in asked:
        yield Command(command.base, words, confirms=True)
