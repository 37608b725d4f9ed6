"""Commit a group of reports: one call of the library for each shard, and verdicts back.

What to add to which counter depends on which reports count. That only Redis can say; adding up is
done far faster here. So a call carries what to add if everything is as expected, which it nearly
always is. If not, nothing was written, the answer has the true verdicts, and they are expected
next. That ends: each time, another group was committed in between, and moved a verdict of this one
further on its only way, from counted over full and over budget to duplicate to stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...errors import StoreError, StoreUnavailable
from ..series_reports import Codes, SeriesReports, ServiceCounts, concatenate_reports
from .connections import Wait
from .group_parts import EpochBatch, SeriesBatch, ShardCommit, group_by_value
from .identity import StoreIdentity
from .row_permutation import shard_numbers
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
    members = _by_series(group)
    sheets = [_sheet(identity, [group[at] for at in places]) for places in members.values()]
    parts = list(_parts(identity, sheets, counts, alone))
    errors = _commit(servers, identity, parts)
    if parts and len(errors) == len(parts):
        raise next(iter(errors.values()))
    if counts and 0 in errors:  # the first part had them
        committed_shard = next(part.shard for at, part in enumerate(parts) if at not in errors)
        only_counts = ShardCommit(committed_shard, [], counts)
        servers.execute_each([only_counts.command(identity)], Wait.COMMIT)
    return _verdicts(group, members, sheets)


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


def _by_series(group: Sequence[SeriesReports]) -> Mapping[str, list[int]]:
    members: dict[str, list[int]] = {}
    for at, reports in enumerate(group):
        members.setdefault(reports.series.fingerprint, []).append(at)
    return members


def _sheet(identity: StoreIdentity, group: Sequence[SeriesReports]) -> SeriesBatch:
    reports = concatenate_reports(group)
    row_limits = np.repeat(
        [part.new_pseudonym_limit for part in group], [len(part) for part in group]
    )
    names = identity.permutation.apply(reports.rows)
    quotas = list(dict.fromkeys(part.quota for part in group if part.quota is not None))
    numbers = [0 if part.quota is None else 1 + quotas.index(part.quota) for part in group]
    charged = np.repeat(numbers, [len(part) for part in group])
    return SeriesBatch(reports, row_limits, quotas, charged, names, reports.default_verdicts.copy())


def _parts(
    identity: StoreIdentity,
    sheets: Sequence[SeriesBatch],
    counts: ServiceCounts,
    alone: int,
) -> Iterator[ShardCommit]:
    leaves: dict[int, list[EpochBatch]] = {}
    for sheet in sheets:
        everything = np.arange(len(sheet.reports))
        for shard, chosen in group_by_value(
            shard_numbers(sheet.names.places, identity.shards), everything
        ):
            for epoch, of_epoch in group_by_value(sheet.reports.epochs, chosen):
                leaves.setdefault(shard, []).append(EpochBatch(sheet, epoch, of_epoch))
    if counts and not leaves:
        leaves[alone] = []
    for shard, of_shard in leaves.items():
        yield ShardCommit(shard, of_shard, counts)
        counts = {}


def _verdicts(
    group: Sequence[SeriesReports], members: Mapping[str, list[int]], sheets: Sequence[SeriesBatch]
) -> list[Codes]:
    """Return each sheet's verdicts to the columns it was joined from."""
    verdicts: dict[int, Codes] = {}
    for places, sheet in zip(members.values(), sheets, strict=True):
        first = 0
        for at in places:
            verdicts[at] = sheet.expected[first : first + len(group[at])]
            first += len(group[at])
    return [verdicts[at] for at in range(len(group))]
