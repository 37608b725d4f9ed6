"""Retention on Redis: each server marks, restores and deletes epochs by its own clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ...errors import StoreError, StoreUnavailable
from .connections import Wait, execute_each
from .identity import StoreIdentity
from .lua_library import call
from .queries import ShardReader
from .shard_client import Command, ShardClient

BUCKETS_AT_ONCE = 1000  # to be freed: a millisecond


def server_times(servers: ShardClient) -> list[datetime]:
    """Return the time of each server that answers, or raise StoreUnavailable: none does."""
    requests = [(server, ("TIME",)) for server in servers.all()]
    answers = execute_each(requests, Wait.PROBE)
    found = [
        datetime.fromtimestamp(int(seconds) + int(microseconds) / 1e6, UTC)
        for seconds, microseconds in (each for each in answers if isinstance(each, list))
    ]
    if not found:
        raise StoreUnavailable("no server of the store answers TIME")
    return found


def mark(
    servers: ShardClient, identity: StoreIdentity, fingerprint: str, epochs: int, due: datetime
) -> int:
    """Mark the first epochs of a series as dropped; return how many were not before."""
    return _each(servers, identity, "mark_dropped", fingerprint, epochs, int(due.timestamp()))


def restore(servers: ShardClient, identity: StoreIdentity, fingerprint: str) -> int:
    """Take the marks of a series back as far as its rows are whole; return how many epochs."""
    return _each(servers, identity, "restore_dropped", fingerprint)


def delete_dropped(
    servers: ShardClient, identity: StoreIdentity, fingerprint: str, kept: timedelta
) -> None:
    """Delete the rows of the epochs that were dropped so long ago, some buckets at a time."""
    errors = []
    for base in identity.bases:
        seconds = int(kept.total_seconds())
        words = call("give_up_dropped", base, identity.store, fingerprint, seconds)
        try:
            epochs = int(servers.execute_one(Command(base, words)))
            _free(servers, identity, base, fingerprint, epochs)
        except StoreError as error:  # the other shards' rows go all the same
            errors.append(error)
    if errors:
        raise errors[0]


def _free(
    servers: ShardClient, identity: StoreIdentity, base: bytes, fingerprint: str, epochs: int
) -> None:
    """Free what the rows of the first epochs took in one shard."""
    for epoch in ShardReader(servers, identity).epochs_of_shard(base, fingerprint):
        words = call("delete_rows", base, identity.store, fingerprint, epoch, BUCKETS_AT_ONCE)
        while epoch < epochs and servers.execute_one(Command(base, words)):
            pass


def _each(servers: ShardClient, identity: StoreIdentity, name: str, *arguments: str | int) -> int:
    """Call a function in every shard; return the greatest answer.

    A shard that is away keeps none from doing its part; then the call fails, to be repeated.
    """
    requests = [
        Command(base, call(name, base, identity.store, *arguments)) for base in identity.bases
    ]
    return max(int(answer) for answer in servers.execute_all(requests))
