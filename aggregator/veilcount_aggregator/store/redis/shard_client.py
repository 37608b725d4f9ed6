"""The servers of a store, one or the masters of a cluster, and commands to the owner of a key.

Nothing is retried without the caller's knowledge, with three exceptions in which a server answers
that it did nothing: the keys have moved to another, it has no function library yet, or it is
another process than the one whose height was compared.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from redis.exceptions import ResponseError

from ...errors import StoreError, StoreUnavailable
from .circuit_breaker import BreakerState
from .connections import Host, RedisNode, Wait, Words, execute_all, execute_each, require_all
from .error_mapping import (
    is_library_loaded,
    is_library_missing,
    is_life_new,
    is_moved,
    is_repeatable,
    reply_error,
)
from .lua_library import LIFE_PLACE, source
from .slot_discovery import Topology, fetch_slots, likely_first
from .url import RedisUrl

MENDS = 3  # a shard that has moved to a new server: moved, no library, another process
LOOK_SECONDS = 0.5  # between two looks at who has which keys, while a server is away


class Command(NamedTuple):
    """A command, and the base key whose owner gets it."""

    base: bytes
    words: Words
    confirms: bool = False  # checks the command before it, and is sent again if that is
    repeats: bool = False  # writes the same each time, so that it may be sent again
    guarded: bool = False  # names the life of the shard in which heights were compared
    raises: bool = False  # its answer has the height and the life before the result


Executor = Callable[[Sequence[Command], Wait], list[Any]]  # an answer or a StoreError for each


class CommandExecutor(Protocol):
    """Executes commands: plain, or with durable writes."""

    def execute_each(self, commands: Sequence[Command], wait: Wait = Wait.READ) -> list[Any]:
        """Return the answers; in place of one that did not come or is an error, a StoreError."""

    def execute_one(self, command: Command, wait: Wait = Wait.READ) -> Any:
        """Return one answer."""


class HeightComparer(Protocol):
    """Compares shards with what this host has acknowledged."""

    def compare(self, bases: Sequence[bytes]) -> None:
        """Compare some shards, whose servers are other processes than before."""

    def refusal(self, base: bytes) -> StoreError | None:
        """Return why nothing is written to a shard."""


class ShardClient:
    """Sends commands to the owners of keys, as far as they are known."""

    def __init__(
        self, address: RedisUrl, examine: Callable[[RedisNode], object] = lambda _: None
    ) -> None:
        self.address = address
        self._examine = examine
        self.lives: dict[bytes, bytes] = {}  # in which heights were compared, by base
        self.heights: HeightComparer | None = None  # of the store that was opened
        self._known: dict[Host, RedisNode] = {}
        for host in address.hosts:
            self._server(host)
        self._topology = Topology()
        self._doubtful = address.cluster
        self._looking = threading.Lock()
        self._looked = -LOOK_SECONDS
        self._answered: RedisNode | None = None

    # -- which servers there are ---------------------------------------------------------------

    def all(self) -> list[RedisNode]:
        """Return every server that has keys, also those that are away."""
        if not self.address.cluster:
            return list(self._known.values())
        self._look_if_doubtful()
        return self._topology.servers()

    def reachable(self) -> list[RedisNode]:
        """Return the servers that answer now; StoreUnavailable: there is none."""
        servers = self.all()
        answers = execute_each([(server, ("PING",)) for server in servers], Wait.PROBE)
        paired = zip(servers, answers, strict=True)
        nodes = [server for server, answer in paired if not isinstance(answer, StoreError)]
        if not nodes:
            require_all(answers)
        return nodes

    def owner(self, base: bytes) -> RedisNode:
        """Return the server that has the keys of a base, also where it is away."""
        if not self.address.cluster:
            return next(iter(self._known.values()))
        self._look_if_doubtful()
        owner = self._topology.owner(base)
        if owner is None:
            self._doubtful = True
            raise StoreUnavailable("no server of the cluster has the slot of a shard at the moment")
        return owner

    def first_answering(self, bases: Sequence[bytes]) -> int:
        """Return the first of these bases whose server answered the last call; 0: none did."""
        for at, base in enumerate(bases):
            with suppress(StoreUnavailable):
                if self.owner(base).breaker.state is BreakerState.CLOSED:
                    return at
        return 0

    def look(self) -> None:
        """Ask who has which keys now, unless somebody else just has."""
        topology = self._topology
        with self._looking:
            if self._topology is topology:
                self._look()

    def close(self) -> None:
        """Let go of all connections."""
        for server in self._known.values():
            server.disconnect(idle=False)

    # -- commands to them ----------------------------------------------------------------------

    def execute_all(self, commands: Sequence[Command], wait: Wait = Wait.READ) -> list[Any]:
        """Return the answers, or raise the first that is an error."""
        return require_all(self.execute_each(commands, wait))

    def execute_one(self, command: Command, wait: Wait = Wait.READ) -> Any:
        """Return one answer."""
        return self.execute_all([command], wait)[0]

    def execute_each(self, commands: Sequence[Command], wait: Wait = Wait.READ) -> list[Any]:
        """Return the answers; in place of one that did not come or is an error, a StoreError."""
        return self.execute_with(self.execute_once, commands, wait)

    def execute_once(self, commands: Sequence[Command], wait: Wait) -> list[Any]:
        """Do so without sending anything again."""
        return [
            self._error(command, answer) if isinstance(answer, ResponseError) else answer
            for command, answer in zip(commands, self._ask(commands, wait), strict=True)
        ]

    def execute_with(self, execute: Executor, commands: Sequence[Command], wait: Wait) -> list[Any]:
        """Execute commands, and again those of which a server answers that it did not."""
        answers = execute(commands, wait)
        for _ in range(MENDS):
            again = [at for at, answer in enumerate(answers) if is_repeatable(answer)]
            if not again:
                break
            self._mend([(commands[at].base, answers[at].__cause__) for at in again])
            repeated = execute([commands[at] for at in again], wait)
            for at, answer in zip(again, repeated, strict=True):
                answers[at] = answer
        return answers

    # -- inside --------------------------------------------------------------------------------

    def _ask(self, commands: Sequence[Command], wait: Wait) -> list[Any]:
        """Return the answers as they come, errors in their place."""
        answers: list[Any] = [None] * len(commands)
        routed: list[tuple[int, RedisNode]] = []
        for at, command in enumerate(commands):
            try:
                routed.append((at, self.owner(command.base)))
            except StoreError as error:
                answers[at] = error
        replies = execute_each([(server, self._words(commands[at])) for at, server in routed], wait)
        for (at, _), answer in zip(routed, replies, strict=True):
            answers[at] = answer
        if any(isinstance(answer, StoreError) for answer in answers):
            self._doubtful = self.address.cluster  # a master may have lost its place
        return answers

    def _words(self, command: Command) -> Words:
        if not command.guarded:
            return command.words
        life = self.lives.get(command.base, b"")
        return (*command.words[:LIFE_PLACE], life, *command.words[LIFE_PLACE + 1 :])

    def _error(self, command: Command, error: ResponseError) -> StoreError:
        refusal = self.heights.refusal(command.base) if self.heights is not None else None
        if refusal is not None and is_life_new(error):
            return refusal
        try:
            mapped = reply_error(str(self.owner(command.base)), error)
        except StoreUnavailable as no_owner:
            return no_owner
        mapped.__cause__ = error
        return mapped

    def _mend(self, errors: Sequence[tuple[bytes, object]]) -> None:
        """Do what lets these be sent again."""
        lacking = [base for base, error in errors if is_library_missing(error)]
        begun = [base for base, error in errors if is_life_new(error)]
        if any(is_moved(error) for _, error in errors):
            with suppress(StoreError):  # sent again, each fails with its own error
                self.look()
        for base in lacking:
            with suppress(StoreError):
                _load_library(self.owner(base))
        if begun and self.heights is not None:
            with suppress(StoreError):  # sent again, each is refused for its own reason
                self.heights.compare(begun)

    def _look_if_doubtful(self) -> None:
        """Look again while a server is away. Whoever has an older answer goes on with that."""
        if not self._doubtful:
            return
        if not self._topology.slots:
            self.look()
        elif self._looking.acquire(blocking=False):
            try:
                if time.monotonic() - self._looked >= LOOK_SECONDS:
                    with suppress(StoreUnavailable):
                        self._look()
            finally:
                self._looking.release()

    def _look(self) -> None:
        """Ask who has which keys; the lock is held."""
        if not self._topology.slots and time.monotonic() - self._looked < LOOK_SECONDS:
            raise StoreUnavailable(f"no server of the cluster answers; began at {self.address}")
        try:
            candidates = likely_first(list(self._known.values()), self._answered)
            self._answered, ranges = fetch_slots(candidates)
        except StoreUnavailable as error:
            raise StoreUnavailable(f"{error}; began at {self.address}") from None
        finally:
            self._looked = time.monotonic()
        slots = [(first, last, self._server(host)) for (first, last), host in ranges]
        self._topology, self._doubtful = Topology(slots), False

    def _server(self, host: Host) -> RedisNode:
        if host not in self._known:
            self._known[host] = RedisNode.at(host, self.address, self._examine)
        return self._known[host]


def _load_library(server: RedisNode) -> None:
    """Give one server the functions; another process may have done so a moment ago."""
    (answer,) = execute_all([(server, ("FUNCTION", "LOAD", source()))])
    if isinstance(answer, ResponseError) and not is_library_loaded(answer):
        raise reply_error(str(server), answer) from answer
