"""Commit a group of reports: one call of the library for each shard, and verdicts back.

What to add to which counter depends on which reports count. That only Redis can say; adding up is
done far faster here. So a call carries what to add if everything is as expected, which it nearly
always is. If not, nothing was written, the answer has the true verdicts, and they are expected
next. That ends: each time, another group was committed in between, and moved a verdict of this one
further on its only way, from counted over full and over budget to duplicate to stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import StoreError, StoreUnavailable
from ..series_reports import Codes, SeriesReports, ServiceCounts
from .connections import Wait
from .group_parts import EpochBatch, ShardCommit
from .group_table import GroupTable
from .identity import StoreIdentity
from .shard_client import CommandExecutor

TRIES = 50


def commit(
    servers: CommandExecutor,
    identity: StoreIdentity,
    group: Sequence[SeriesReports],
    counts: ServiceCounts,
    *,
    alone: int,
) -> list[Codes]:
    """Judge and count a group; each shard's part of it in one step, which fails by itself.

    Service counters may be in any shard: they go with some reports, or alone to this one.
    """
    table = GroupTable.divide(identity, group) if group else None
    parts = list(_parts(table, counts, alone))
    errors = _commit(servers, identity, parts)
    if parts and len(errors) == len(parts):
        raise next(iter(errors.values()))
    if counts and 0 in errors:  # the first part had them
        committed_shard = next(part.shard for at, part in enumerate(parts) if at not in errors)
        only_counts = ShardCommit(committed_shard, [], counts)
        servers.execute_each([only_counts.command(identity)], Wait.COMMIT)
    return table.verdicts(group) if table else []


def _commit(
    servers: CommandExecutor, identity: StoreIdentity, parts: Sequence[ShardCommit]
) -> dict[int, StoreError]:
    """Write each part; return the errors of those that failed, by their places."""
    errors: dict[int, StoreError] = {}
    left = dict(enumerate(parts))
    for _ in range(TRIES):
        answers = servers.execute_each(
            [part.command(identity) for part in left.values()], Wait.COMMIT
        )
        answered, left = list(zip(left.items(), answers, strict=True)), {}
        for (at, part), answer in answered:
            if isinstance(answer, StoreError):
                errors[at] = answer
            elif part.learn(answer):
                left[at] = part
        if not left:
            break
    contested = StoreUnavailable("too many writers on the same rows at once; ask again")
    errors |= dict.fromkeys(left, contested)
    for at in errors:
        parts[at].give_up()
    return errors


def _parts(table: GroupTable | None, counts: ServiceCounts, alone: int) -> Iterator[ShardCommit]:
    """Yield what each shard gets, the first with the service counters."""
    leaves: dict[int, list[EpochBatch]] = {}
    if table:
        for part in table.parts:
            leaves.setdefault(part.shard, []).append(EpochBatch(table, part))
    if counts and not leaves:
        leaves[alone] = []
    for shard, of_shard in leaves.items():
        yield ShardCommit(shard, of_shard, counts)
        counts = {}
