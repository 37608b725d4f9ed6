"""Findings, and how a table of checks is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

from veilcount_shared.errors import VeilcountError

Subject = TypeVar("Subject")


class Severity(StrEnum):
    """The severity of a finding, in ascending order."""

    OK = "ok"
    WARN = "warn"
    WRONG = "wrong"


class CheckResult(NamedTuple):
    """The result of a check."""

    state: Severity
    what: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check has found of the store, the server or the backups, and what to do."""

    of: str
    check: str
    state: Severity
    what: str
    fix: str


Check = Callable[[Subject], Iterable[CheckResult]]


def ok(what: str) -> CheckResult:
    """Return a result without a problem."""
    return CheckResult(Severity.OK, what)


def warn(what: str, fix: str) -> CheckResult:
    """Return a problem that is likely, or likely unintended."""
    return CheckResult(Severity.WARN, what, fix)


def wrong(what: str, fix: str) -> CheckResult:
    """Return a problem that loses reports, weakens privacy or opens access."""
    return CheckResult(Severity.WRONG, what, fix)


def examine(of: str, checks: Mapping[str, Check[Subject]], subject: Subject) -> Iterator[Finding]:
    """Yield what each check of a table finds; one that fails has found something too."""
    for name, look in checks.items():
        for told in _looked(look, subject):
            yield Finding(of, name, *told)


def worst(findings: Iterable[Finding]) -> Severity:
    """Return the worst state there is."""
    order = list(Severity)
    return max((each.state for each in findings), key=order.index, default=Severity.OK)


def problems_or_ok(told: Iterable[CheckResult], well: str) -> Iterator[CheckResult]:
    """Yield the problems; without any, one ok result."""
    complaints = list(told)
    yield from complaints or [ok(well)]


def _looked(look: Check[Subject], subject: Subject) -> Iterator[CheckResult]:
    try:
        yield from look(subject)
    except (VeilcountError, OSError, ValueError) as error:  # a stranger may answer anything
        yield wrong(f"the check failed: {error}", "fix the findings above, and run it again")
