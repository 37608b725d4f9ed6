"""One finding of one check, and how a table of checks is gone through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

from veilcount_shared.errors import VeilcountError

Subject = TypeVar("Subject")


class Severity(StrEnum):
    """How it is; the later, the worse."""

    OK = "ok"
    WARN = "warn"
    WRONG = "wrong"


class CheckResult(NamedTuple):
    """What a check says."""

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
    """Return that it is as it should be."""
    return CheckResult(Severity.OK, what)


def warn(what: str, fix: str) -> CheckResult:
    """Return what may become wrong, or may not be meant."""
    return CheckResult(Severity.WARN, what, fix)


def wrong(what: str, fix: str) -> CheckResult:
    """Return what loses reports, breaks a promise or opens what should be closed."""
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
    """Yield what there is to complain about; where there is nothing, that all is well."""
    complaints = list(told)
    yield from complaints or [ok(well)]


def _looked(look: Check[Subject], subject: Subject) -> Iterator[CheckResult]:
    try:
        yield from look(subject)
    except (VeilcountError, OSError, ValueError) as error:  # a stranger may answer anything
        yield wrong(f"this could not be looked at: {error}", "mend what stands above, look again")
