"""The findings of checks, the function that runs a table of checks, and the check of two clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

from veilcount_shared.errors import VeilcountError

from .errors import system_reason

Subject = TypeVar("Subject")

UNREACHABLE = "check that it runs, that this machine can reach it, and that the URL is right"


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
    """One result of a check on a target: the store, a Redis server, the server or the backups."""

    target: str
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


def graded(message: str, fix: str, *, is_wrong: bool, is_doubtful: bool) -> CheckResult:
    """Return a result that is wrong, a warning or ok, by two thresholds of one figure."""
    if is_wrong:
        return wrong(message, fix)
    return warn(message, fix) if is_doubtful else ok(message)


def examine(
    target: str, checks: Mapping[str, Check[Subject]], subject: Subject
) -> Iterator[Finding]:
    """Yield the findings of a table of checks; a check that fails is a finding, too."""
    for name, check in checks.items():
        for result in _results(check, subject):
            yield Finding(target, name, *result)


def worst(findings: Iterable[Finding]) -> Severity:
    """Return the worst state of the findings."""
    order = list(Severity)
    return max((finding.state for finding in findings), key=order.index, default=Severity.OK)


def problems_or_ok(problems: Iterable[CheckResult], message: str) -> Iterator[CheckResult]:
    """Yield the problems; without any, one ok result with the message."""
    yield from list(problems) or [ok(message)]


def or_ok(message: str) -> Callable[[Check[Subject]], Check[Subject]]:
    """Decorate a check that yields problems only: without any, it yields one ok result."""

    def decorate(check: Check[Subject]) -> Check[Subject]:
        return lambda subject: problems_or_ok(check(subject), message)

    return decorate


def _results(check: Check[Subject], subject: Subject) -> Iterator[CheckResult]:
    try:
        yield from check(subject)
    except (VeilcountError, OSError, ValueError) as error:  # an untrusted server may send anything
        yield wrong(
            f"the check failed: {system_reason(error)}", "fix the findings above and run it again"
        )
