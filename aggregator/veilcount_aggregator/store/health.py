"""The health of a store and of its shards, and whether its acknowledgements are durable."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DurabilityState(StrEnum):
    """Whether an acknowledgement outlives a power cut."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    MANAGED = "managed"  # not examined: the operator vouches for a service

    @property
    def suffices(self) -> bool:
        """Whether acknowledgements are durable, as far as anybody can tell."""
        return self in {DurabilityState.YES, DurabilityState.MANAGED}


@dataclass(frozen=True, slots=True)
class Weakness:
    """A setting or a state of a server by which acknowledged reports could be lost."""

    what: str  # names no server: it is shown at /readyz, to anyone
    where: str
    fix: str
    blocks: bool = True  # that server acknowledges no report while it lasts
    passing: bool = False  # ends by itself: no reason to refuse the store at startup

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.fix}"


@dataclass(frozen=True, slots=True)
class Durability:
    """Whether acknowledgements outlive a power cut, and what is in the way."""

    durable: DurabilityState
    why: str
    weaknesses: tuple[Weakness, ...] = ()
    blocked: bool = False  # every server is blocked: no report is accepted

    @property
    def blocking(self) -> Weakness | None:
        """Return the first weakness for which nothing is acknowledged."""
        return next((weakness for weakness in self.weaknesses if weakness.blocks), None)


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """The health of a store, for operators."""

    engine: str
    durable: DurabilityState
    why: str
    read_only: bool
    serving: int = 1  # shards that take reports now
    shards: int = 1
    weaknesses: tuple[Weakness, ...] = ()
    blocked: bool = False  # no report is taken until one of them is gone
    trouble: str = ""  # why it cannot be written now, in words that may be public


@dataclass(frozen=True, slots=True)
class ShardHealth:
    """The health of one shard, as one process sees it now. None: not known."""

    name: str  # its number; `records`: what keeps definitions and keys
    up: bool
    breaker: str = "closed"
    why: str = ""  # it is not up
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None  # 0: there is none
    aof_failing: bool | None = None  # the last write or rewrite of the append-only file failed
    aof_delayed_fsyncs: int | None = None
    aof_rewriting: bool | None = None
    went_back: bool | None = None  # it lacks what this host has acknowledged
