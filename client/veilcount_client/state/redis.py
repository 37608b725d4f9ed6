"""A state in one Redis: several hosts share persons and their ledgers.

Every write is one script, hence one atomic step. It is on the disk when Redis replies, with
`appendonly yes` and `appendfsync always`; a Redis that would evict or does not persist is refused.
A step whose reply was lost is sent once more: it then returns what it did the first time, or is
idempotent. If that fails too, the step may or may not be done; a slot is charged once all the same.

Not detected: that the whole Redis was copied, or restored from a backup.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ..errors import StateError
from .interface import (
    KEY_BYTES,
    ConsentDecision,
    Coverage,
    DrawOutcome,
    HeldValue,
    OutboxLimits,
    OverdueReport,
    PersonState,
    QueuedReport,
    ReportDraw,
    SentReport,
    SpentBudget,
)
from .key_derivation import new_root, new_salt, person_root, person_secret
from .losses import Loss
from .redis_scripts import (
    BUCKETS,
    COVERAGE,
    TURN,
    load_scripts,
    pack_draws,
    pack_held,
    unpack_held,
    unpack_report,
    unpack_sealed,
)

log = logging.getLogger("veilcount")

TIMEOUT = 3.0  # seconds for one answer
AT_ONCE = 1000  # reports that one step drops, so that others get their turn
BUCKETS_AT_ONCE = 256
MOVED = "moved"  # note: when the Redis was found to be emptied
VERSION = b"3"  # of the records
NEEDED = {"maxmemory-policy": "noeviction", "appendonly": "yes"}

_SET = "make sure that it has " + ", ".join(f"{name} {value}" for name, value in NEEDED.items())
_OUTCOMES = {
    b"s": DrawOutcome.STORED,
    b"f": DrawOutcome.FROZEN,
    b"o": DrawOutcome.OVER_CAP,
    b"n": DrawOutcome.NO_CONSENT,
}
_CONSENTED = {0: None, 1: True, 2: False}
_SPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class RedisState:
    """The state of one key space: that of the URL's #fragment."""

    def __init__(self, url: str, now: Callable[[], float] = time.time) -> None:
        """Open the state, or make it; StateError says what to set if Redis could lose it."""
        self._now = now
        space = urlsplit(url).fragment or "state"
        if not _SPACE.fullmatch(space):
            raise StateError(f"#{space}: give letters, digits, and _ . -")
        self._url = url.split("#", 1)[0]
        self._space = f"veilcount:{{{space}}}:"
        self._redis = self._connect()
        self._scripts = {
            name: self._redis.register_script(text) for name, text in load_scripts().items()
        }
        self._refuse_forgetful()
        self.root = self._begin()

    @property
    def moved(self) -> tuple[float, ...]:
        return tuple(map(float, filter(None, [self.note(MOVED)])))

    # -- persons -------------------------------------------------------------------------------

    def person(self, key: bytes) -> PersonState:
        row = self._run("person", key)
        if row is None:
            self._run("add_person", key, new_salt())
            row = self._run("person", key)
        if row is None:
            raise StateError("the person was forgotten just now")
        consented, salt, declined, coverage, moved = row
        return PersonState(
            key,
            person_secret(self.root, key, salt),
            person_root(self.root, key),
            _CONSENTED[consented],
            {series.decode(): Coverage(*COVERAGE.unpack(packed)) for series, packed in coverage},
            frozenset(name.decode() for name in declined),
            salt,
            float(moved or 0),
        )

    def consenting(self) -> list[bytes]:
        firsts = range(0, BUCKETS, BUCKETS_AT_ONCE)
        return [
            key
            for first in firsts
            for key in self._run("consenting", first, first + BUCKETS_AT_ONCE - 1)
        ]

    def consent(self, key: bytes, decision: ConsentDecision) -> None:
        code = next(code for code, answer in _CONSENTED.items() if answer is decision.consented)
        lists: list[object] = [3 * len(decision.covered)]
        lists += [part for name, counts in decision.covered.items() for part in (name, *counts)]
        for names in (decision.withdrawn, decision.declined, decision.lifted):
            lists += [len(names), *sorted(names)]
        self._run("consent", key, code, float(decision.at), new_salt(), *lists)

    def forget(self, key: bytes) -> None:
        self._run("forget", key)

    # -- answers -------------------------------------------------------------------------------

    def used(self, key: bytes, series: str) -> tuple[int, int]:
        period, answers = self._run("used", key, series)
        return period, answers

    def close_row(self, key: bytes, series: str, through: int) -> None:
        self._run("close_row", key, series, through)

    def spent(self, key: bytes) -> Mapping[str, SpentBudget]:
        rows = self._run("spent", key)
        return {lineage.decode(): SpentBudget(*figures) for lineage, *figures in rows}

    def commit(self, draws: Sequence[ReportDraw]) -> list[DrawOutcome]:
        outcomes = self._run_once("commit", *pack_draws(draws))
        return [_OUTCOMES[outcomes[place : place + 1]] for place in range(len(outcomes))]

    # -- held values ---------------------------------------------------------------------------

    def hold(self, old: HeldValue | None, new: HeldValue, round: int = 0) -> bool:  # noqa: A002
        values = (pack_held(old) if old else b"", pack_held(new), new.due, round)
        return bool(self._run_once("hold", new.person, new.series, *values) == b"1")

    def held(self, key: bytes, series: str) -> HeldValue | None:
        packed = self._run("value", "held:", key, series)
        return unpack_held(key, series.encode(), packed) if packed else None

    def held_due(self, now: float, most: int) -> list[HeldValue]:
        return [unpack_held(*row) for row in self._run("held_due", float(now), most)]

    def next_held(self) -> float | None:
        return self._first("held_due")

    def drop_held(self, value: HeldValue) -> None:
        self._run("drop_held", value.person, value.series, pack_held(value))

    # -- the outbox ----------------------------------------------------------------------------

    def lease(
        self, now: float, until: float, most: int, *, hurry: bool = False
    ) -> list[QueuedReport]:
        rows = self._run("lease", float(now), float(until), most, int(hurry))
        return [_queued_report(*row) for row in rows]

    def overdue(self, before: float, after: float, most: int) -> list[OverdueReport]:
        rows = self._run("overdue", float(before), float(after), most)
        return [
            OverdueReport(int(number), float(expires), sealed > 0)
            for number, expires, sealed in rows
        ]

    def attempts(self) -> int:
        turns = self._query(lambda server: server.hvals(self._space + "turn"))
        return max((int.from_bytes(turn[-2:], "big") for turn in turns), default=0)

    def next_due(self) -> float | None:
        return self._first("due")

    def waiting(self, now: float) -> int:
        return int(self._query(lambda server: server.zcount(self._space + "early", "-inf", now)))

    def settle(self, delivered: Iterable[int], dropped: Mapping[int, Loss]) -> None:
        ends = [part for number in delivered for part in (number, "delivered")]
        ends += [part for number, loss in dropped.items() for part in (number, loss.value)]
        if ends:
            self._run("settle", *ends)

    def reschedule(self, numbers: Mapping[int, float], *, unsent: bool = False) -> None:
        if numbers:
            turns = [part for number, due in numbers.items() for part in (number, float(due))]
            self._run_once("reschedule", int(unsent), *turns)

    def retire(self, series: str, resumed: float = 0.0) -> None:
        for first in range(0, BUCKETS if resumed else 0, BUCKETS_AT_ONCE):
            self._run("resume", first, first + BUCKETS_AT_ONCE - 1, series, float(resumed))
        self._run("retire", series, int(resumed > 0))

    def expire(self, now: float, limits: OutboxLimits) -> None:
        left = 0
        while not left:
            left = self._run("expire", float(now), limits.reports, limits.message_bytes, AT_ONCE)

    def sent(self, key: bytes) -> list[SentReport]:
        return [
            SentReport(unpack_report(series, report), status.decode())
            for _, status, series, report in sorted(self._run("sent", key))
        ]

    # -- tokens --------------------------------------------------------------------------------

    def agrees(self, key: bytes, series: str, round: int) -> bool:  # noqa: A002
        return bool(self._run("agrees", key, series, round))

    def keep_tokens(self, person: PersonState, tokens: Mapping[bytes, bytes]) -> None:
        pairs = (part for pair in tokens.items() for part in pair)
        self._run("keep_tokens", person.key, person.salt, *pairs)

    def token(self, key: bytes, pseudonym: bytes) -> bytes | None:
        token: bytes | None = self._run("value", "token:", key, pseudonym)
        return token

    # -- losses and notes ----------------------------------------------------------------------

    def lose(self, losses: Mapping[tuple[Loss, str], int]) -> None:
        counts = [
            part
            for (loss, collection), count in losses.items()
            for part in (f"{loss.value} {collection}", count)
        ]
        self._run_once("lose", *counts)

    def losses(self) -> Mapping[tuple[Loss, str], int]:
        counts = self._query(lambda server: server.hgetall(self._space + "loss"))
        return {
            (Loss(reason), collection): int(count)
            for name, count in counts.items()
            for reason, collection in [name.decode().split(" ", 1)]
        }

    def note(self, name: str) -> str | None:
        value = self._query(lambda server: server.hget(self._space + "note", name))
        return None if value is None else value.decode()

    def keep(self, name: str, value: str) -> None:
        self._query(lambda server: server.hset(self._space + "note", name, value))

    # -- the server ----------------------------------------------------------------------------

    def _first(self, name: str) -> float | None:
        """Return the lowest score of a sorted set."""
        first = self._query(lambda server: server.zrange(self._space + name, 0, 0, withscores=True))
        return float(first[0][1]) if first else None

    def close(self) -> None:
        self._redis.close()

    def after_fork(self) -> None:
        self._redis = self._connect()

    def _connect(self) -> redis.Redis:
        options: dict[str, Any] = (
            {} if self._url.startswith("unix:") else {"socket_connect_timeout": TIMEOUT}
        )
        try:
            return redis.Redis.from_url(
                self._url,
                protocol=2,
                socket_timeout=TIMEOUT,
                retry=Retry(NoBackoff(), 0),  # what was sent may have been done: see _query
                **options,
            )
        except (ValueError, redis.RedisError) as error:
            raise StateError(f"the state's URL: {error}") from error

    def _refuse_forgetful(self) -> None:
        """Refuse a Redis that would evict a ledger, or forget it with its process."""
        try:
            set_to = self._redis.config_get(*NEEDED, "appendfsync")
        except redis.ConnectionError as error:
            raise StateError(str(error)) from error
        except redis.RedisError as error:
            log.warning(
                "veilcount: this Redis does not return its configuration (%s); %s", error, _SET
            )
            return
        for name, value in NEEDED.items():
            if _setting(set_to, name) != value:
                raise StateError(f"Redis would lose the ledger: set {name} {value}")
        if _setting(set_to, "appendfsync") != "always":
            log.warning("veilcount: a power cut may lose the last answers: set appendfsync always")

    def _begin(self) -> bytes:
        """Return the root secret of all who share this Redis."""
        names = [self._space + "root", self._space + "version"]
        begun = dict(zip(names, (new_root(), VERSION), strict=True))
        self._query(lambda server: server.msetnx(begun))
        root, version = self._query(lambda server: server.mget(names))
        if root is None:
            raise StateError("the Redis was emptied just now")
        if version != VERSION:
            raise StateError(
                "the state in this Redis was written by another release of veilcount, which this"
                " one does not read: give it another #name at the end of the URL"
            )
        root_bytes: bytes = root
        return root_bytes

    def _run_once(self, name: str, *arguments: Any) -> Any:
        """Run a step that must not run twice: its result is remembered for a while."""
        return self._run(name, os.urandom(KEY_BYTES), *arguments)

    def _run(self, name: str, *arguments: Any) -> Any:
        """Run a step."""
        script, values = self._scripts[name], [self._mark(), *arguments]
        return self._query(
            lambda server: script(keys=[self._space + "root"], args=values, client=server)
        )

    def _query(self, query: Callable[[redis.Redis], Any]) -> Any:
        """Query Redis, once more if the connection broke: every query may be sent twice."""
        try:
            try:
                return query(self._redis)
            except (redis.ConnectionError, redis.TimeoutError):
                self._redis.connection_pool.disconnect(inuse_connections=False)
                return query(self._redis)
        except redis.ResponseError as error:
            if str(error).startswith("ANEW"):
                self._begin_anew()
            raise StateError(f"Redis: {error}") from error
        except (redis.RedisError, OSError) as error:
            raise StateError(f"Redis: {error}") from error

    def _begin_anew(self) -> None:
        """The Redis was emptied, and with it the ledgers: counted by the first who sees it."""
        name = f"{self._space}lost:{self._mark()}"
        self.root = self._begin()
        if self._query(lambda server: server.set(name, 1, nx=True)):
            self.keep(MOVED, repr(self._now()))  # what was answered before is not known
            self.lose({(Loss.CORRUPT, ""): 1})

    def _mark(self) -> str:
        """Return a digest of the root: it identifies the root and does not reveal it."""
        return hashlib.sha1(self.root, usedforsecurity=False).hexdigest()


def _queued_report(
    number: int, person: bytes, turn: bytes, series: bytes, packed: bytes
) -> QueuedReport:
    send_at, tries = TURN.unpack(turn)
    report, sealed = unpack_report(series, packed), unpack_sealed(packed)
    return QueuedReport(number, person, report, send_at, tries, sealed)


def _setting(settings: Mapping[Any, Any], name: str) -> str:
    value = settings.get(name, settings.get(name.encode(), b""))
    return value.decode() if isinstance(value, bytes) else str(value)
