"""Writes that are acknowledged only if they are durable, which is checked right behind them.

On the same connection, in the same round trip, the writes of a group to one server are followed by

- `CONFIG GET` of the settings that durability rests on. Redis executes it in the same turn of its
  event loop as the last write, or in a later one, and with `appendfsync always` it syncs before it
  sends the answers of a turn, what earlier turns wrote too: so a write whose reply has `always` is
  on the disk, and no report is acknowledged after a setting was changed. (Functions may not ask for
  settings.) What is left is a change by another client within that very turn. Where CONFIG is
  forbidden, nothing is checked.
- the server's identity, out of `INFO`: nothing is acknowledged by a server that took another's
  place since it was examined, on a connection that lives on or a new one, until it was examined.
- with `?replicas=N`, `WAIT N`: the number of replicas that have this connection's last write, and
  with it all writes before it in the stream. A replica that syncs always sends its word after its
  sync. Valkey, and Redis from 7.2 on, then get `WAITAOF 1 N` too, which promises just that, of the
  master's own disk too. Never by itself: a replica that is asked in the same turn in which it reads
  a write answers what it had synced before that turn, and again only after a second. Asked behind
  `WAIT`, it has synced already.

Both come once, behind the last write: one after the other, four shards of a server whose replica
hangs would take four times as long, which is longer than a commit may take. What has to be sent
again (its keys moved, the library was missing, a height was not compared) is sent like the first
time: admitted, in groups, and waited for once.

Every call that is acknowledged writes something (a report that is not counted adds to a service
counter), so that the answer to a retry, `duplicate`, waits for what the first attempt wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

from ...errors import StoreError, StoreUnavailable, StoreUnfit
from .config_check import DURABLE, ServerIdentity, settings_of, weak_syncing
from .connections import Host, Wait, Words, require_all
from .durability import DurabilityMonitor
from .error_mapping import is_repeatable
from .heights import Raised, RedisHeights
from .lua_library import call
from .shard_client import Command, ShardClient

WAIT_MILLISECONDS = 1500  # less than a commit waits for an answer, more than most stalls of a disk
CONFIG_GET: Words = ("CONFIG", "GET", *DURABLE)
CONFIG, FCALL, WAIT, WAITAOF = "CONFIG", "FCALL", "WAIT", "WAITAOF"


class UnconfirmedWriter:
    """Servers whose answers are passed on as they come, for writes that acknowledge nothing."""

    def __init__(self, servers: ShardClient) -> None:
        self._servers = servers

    def execute_each(self, commands: Sequence[Command], wait: Wait = Wait.COMMIT) -> list[Any]:
        """Return the answers; in place of one that did not come or is an error, a StoreError."""
        answers = self._servers.execute_each(commands, wait)
        return [
            Raised(*answer).result if command.raises and isinstance(answer, list) else answer
            for command, answer in zip(commands, answers, strict=True)
        ]

    def execute_one(self, command: Command, wait: Wait = Wait.COMMIT) -> Any:
        """Return one answer, or raise why there is none."""
        return require_all(self.execute_each([command], wait))[0]


class DurableWriter:
    """Servers whose answers to writes are passed on only once the writes are durable."""

    def __init__(
        self, servers: ShardClient, monitor: DurabilityMonitor, heights: RedisHeights
    ) -> None:
        self._servers = servers
        self._monitor = monitor
        self._heights = heights

    def execute_each(self, commands: Sequence[Command], wait: Wait = Wait.COMMIT) -> list[Any]:
        """Return the answers to writes that are durable; in place of any other, a StoreError."""
        return self._servers.execute_with(self._admitted, commands, wait)

    def execute_one(self, command: Command, wait: Wait = Wait.COMMIT) -> Any:
        """Return one answer, or raise why there is none."""
        return require_all(self.execute_each([command], wait))[0]

    def admit(self, bases: Sequence[bytes]) -> None:
        """Refuse what would be written to a server that is unfit."""
        if self._monitor.doubts:  # hardly ever
            self._monitor.admit({self._servers.owner(base).host for base in bases})

    def confirm(self, bases: Sequence[bytes]) -> None:
        """Return once everything written before is durable at the servers of these bases."""
        for base in bases:
            self.execute_one(Command(base, ("SET", base + b":confirmed", "1"), repeats=True))

    def _refusal(self, base: bytes) -> StoreError | None:
        try:
            self.admit([base])
        except StoreError as error:
            return error
        return None

    def _admitted(self, commands: Sequence[Command], wait: Wait) -> list[Any]:
        """Ask those whose server is fit."""
        refused = [self._refusal(command.base) for command in commands]
        admitted = [
            command for command, error in zip(commands, refused, strict=True) if error is None
        ]
        confirmed = iter(self._confirmed(admitted, wait))
        return [next(confirmed) if error is None else error for error in refused]

    def _confirmed(self, commands: Sequence[Command], wait: Wait) -> list[Any]:
        """Ask all at once, and behind the writes to each server whether they are durable."""
        groups: dict[Host | None, list[int]] = {}  # None: no server has the keys
        for at, command in enumerate(commands):
            groups.setdefault(self._host(command), []).append(at)
        sent_by_server = [
            self._followed([commands[at] for at in places]) for places in groups.values()
        ]
        replies = iter(self._servers.execute_once(list(chain(*sent_by_server)), wait))
        answers: list[Any] = [None] * len(commands)
        for (host, places), sent in zip(groups.items(), sent_by_server, strict=True):
            confirmed = list(islice(replies, len(sent)))
            refused = self._refused(sent, confirmed) or self._moved(sent[-1], host)
            paired = zip(sent, confirmed, strict=True)
            writes = (answer for command, answer in paired if not command.confirms)
            for at, answer in zip(places, writes, strict=True):
                answers[at] = self._of_group(commands[at], host, answer, refused)
        return answers

    def _of_group(
        self, command: Command, host: Host | None, answer: Any, refused: StoreError | None
    ) -> Any:
        """Return what a write of a group is answered with."""
        if isinstance(answer, StoreError):
            return answer
        return refused or self._moved(command, host) or self._result(command, answer)

    def _result(self, command: Command, answer: Any) -> Any:
        """Return the result of a write that is durable, once this host has kept its height."""
        if not command.raises:
            return answer
        raised = Raised(*answer)
        try:
            self._heights.keep(command.base, raised)
        except StoreError as error:
            return error
        return raised.result

    def _moved(self, command: Command, host: Host | None) -> StoreError | None:
        """Return why a command is not acknowledged that another server may have answered."""
        if self._host(command) == host:
            return None
        return StoreUnavailable("a shard moved while it was written: ask again")

    def _host(self, command: Command) -> Host | None:
        try:
            return self._servers.owner(command.base).host
        except StoreUnavailable:
            return None

    def _followed(self, writes: Sequence[Command]) -> list[Command]:
        """Return writes to one server, and behind them what confirms all of them."""
        address, last = self._servers.address, writes[-1].base
        questions: list[Words] = []
        if address.durable and self._monitor.settings_are_seen:
            questions.append(CONFIG_GET)
        if address.replicas:
            questions += self._wait_for(address.replicas + self._incomplete_replicas(last))
        if address.durable and self._monitor.identities_are_seen:
            # Last: a replica may be synchronized during the wait.
            questions.append(call("identity", last))
        return [*writes, *(Command(last, words, confirms=True) for words in questions)]

    def _incomplete_replicas(self, base: bytes) -> int:
        host = self._host(Command(base, ()))
        return self._monitor.incomplete_replicas(host) if host else 0

    def _wait_for(self, replicas: int) -> list[Words]:
        if not self._monitor.has_waitaof:
            return [(WAIT, replicas, WAIT_MILLISECONDS)]
        disks = WAIT_MILLISECONDS // 3  # of the same time in all
        return [(WAIT, replicas, WAIT_MILLISECONDS - disks), (WAITAOF, 1, replicas, disks)]

    def _refused(self, commands: Sequence[Command], answers: Sequence[Any]) -> StoreError | None:
        """Return why the writes among these are not acknowledged; None: all are confirmed."""
        try:
            for command, answer in zip(commands, answers, strict=True):
                if command.confirms:
                    self._require(command, answer)
        except StoreError as error:
            # The question alone met it, so the writes were done: no report is sent again.
            may_repeat = all(command.repeats or command.confirms for command in commands)
            if is_repeatable(error) and not may_repeat:
                return StoreUnavailable("a shard moved before its writes were confirmed: ask again")
            return error
        return None

    def _require(self, command: Command, answer: Any) -> None:
        if isinstance(answer, StoreError):
            raise answer
        if command.words[0] == CONFIG:
            self._require_settings(command, answer)
        elif command.words[0] == FCALL:
            self._require_identity(command, answer)
        else:
            self._require_replicas(answer, wanted=int(command.words[-2]))

    def _require_settings(self, command: Command, answer: Any) -> None:
        server = self._servers.owner(command.base)
        if weak := weak_syncing(server, settings_of(answer) or {}):
            self._monitor.suspect()
            raise StoreUnfit(str(weak))

    def _require_identity(self, command: Command, answer: Sequence[bytes]) -> None:
        server = self._servers.owner(command.base)
        identity = ServerIdentity(*(word.decode() for word in answer))
        if not self._monitor.is_examined(server.host, identity):
            self._monitor.suspect()
            raise StoreUnavailable(
                f"Redis at {server} was started, promoted or synchronized a moment ago: what it"
                " wrote is not acknowledged until it was examined"
            )

    def _require_replicas(self, answer: Any, wanted: int) -> None:
        """WAIT answers with a number; WAITAOF with that of the master's disk before it."""
        local, replicas = answer if isinstance(answer, list) else (1, answer)
        if not local or replicas < wanted:
            self._monitor.suspect()
            raise StoreUnavailable(
                f"{replicas} of {wanted} replicas confirmed a write within {WAIT_MILLISECONDS} ms:"
                " it is not acknowledged. See that the replicas run and keep up"
            )
