"""Findings by check, of stores and of deployments under test."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from veilcount_aggregator.operate.doctor import Finding, examine_store, worst
from veilcount_aggregator.settings import Settings

from ...web.api.deployment_fixtures import NOW, Deployment


def by_check(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Return the worst finding of each check."""
    found: dict[str, Finding] = {}
    for finding in findings:
        known = found.setdefault(finding.check, finding)
        if worst([known, finding]) is not known.state:
            found[finding.check] = finding
    return found


def examine(
    url: str, now: datetime = NOW, *, deep: bool = False, **settings: Any
) -> dict[str, Finding]:
    return by_check(examine_store(Settings(url, **settings), lambda: now, deep=deep))


def examine_deployment(
    made: Deployment, *, deep: bool = False, **settings: Any
) -> dict[str, Finding]:
    return examine(made.aggregator.settings.store, made.clocks.now, deep=deep, **settings)


def wall_clock() -> datetime:
    return datetime.now(UTC)
