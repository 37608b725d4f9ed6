"""What can go wrong on the aggregator's side, as one tree.

VeilcountError
  + StoreError               nothing was written; whoever asked may ask again
    x StoreUnavailable       not reachable, or not in time
    x StoreFull              no room on the disk or in memory
    x StoreFenced            closed for good, or while it is copied: its reports belong elsewhere
    x StoreUnfit             what is found there cannot be used, and why
    x NotDue                 an epoch that the store's own clock does not let drop yet
  x Busy                     too much waits already
  x ClockUntrusted           this host's clock cannot be trusted to judge what it is asked
  x SettingsError            a flag, a variable or a URL that cannot be used
  x QueryError               a question that a curator cannot be asked
  + ReleaseRefused           a release that cannot be made now
    x PeriodStillOpen        a requested period is still open
    x InsufficientBudget     the period's budget does not pay for it
    x ReleasesLocked         the store may have forgotten what was spent
    x ReleasesWaiting        not every journal has confirmed the store as it is now
    x NoJournal              nothing beside the store would remember it

Each says what to do. None carries anything of a device.
"""

from __future__ import annotations

from fractions import Fraction

from veilcount_shared.errors import VeilcountError, format_value


class StoreError(VeilcountError):
    """The store could not do what was asked, and did none of it."""


class StoreUnavailable(StoreError):
    """Not reachable, or not in time: an acknowledgement would be a promise nobody keeps."""


class StoreFull(StoreError):
    """No room on the disk or in memory."""


class StoreReadOnly(StoreError):
    """Closed for reports, by `veilcount store copy`: they belong in another store."""


class StoreUnfit(StoreError):
    """What is found there cannot be used: another schema, a policy that forgets, no store."""


class RetentionTooEarly(StoreError):
    """An epoch is dropped too early by the store's own clock: whoever asked has a wrong one."""


class ClockUntrusted(VeilcountError):
    """A clock that cannot be trusted just now: judged by it, reports would be lost."""


class Overloaded(VeilcountError):
    """The server is overloaded: retry after so many seconds."""

    def __init__(self, seconds: int, why: str) -> None:
        """Say when, and why."""
        super().__init__(why)
        self.seconds = seconds


class SettingsError(VeilcountError, ValueError):
    """A flag, a variable or a URL that cannot be used: which, what stands there, the fix."""

    def __init__(self, name: str, given: str, fix: str) -> None:
        """Say which, what stands there, and the fix."""
        super().__init__(f"{name} = {given!r}: {fix}")
        self.name = name
        self.given = given
        self.fix = fix


class QueryError(VeilcountError, ValueError):
    """A request that cannot be answered: which field, what stands there, what to ask instead."""

    def __init__(self, field: str, value: object, fix: str) -> None:
        """Say where, what and the fix."""
        super().__init__(f"{field} = {format_value(value)}: {fix}")
        self.field = field
        self.value = value
        self.fix = fix


class ReleaseRefused(VeilcountError):
    """A release that cannot be made now. Nothing was charged."""


class PeriodStillOpen(ReleaseRefused):
    """A requested period is still open: its tally may still change."""


class InsufficientBudget(ReleaseRefused):
    """A period's budget does not pay for it: what was asked for, spent and left there."""

    def __init__(
        self, period: int, *, requested: Fraction, spent: Fraction, remaining: Fraction
    ) -> None:
        """Say all three, of the period that has least left."""
        super().__init__(
            f"epsilon: {format_value(requested)} is requested, and period {period} has"
            f" {format_value(remaining)} left of what it had ({format_value(spent)} is spent):"
            " ask for less, or for other periods"
        )
        self.period = period
        self.requested = requested
        self.spent = spent
        self.remaining = remaining


class ReleasesLocked(ReleaseRefused):
    """The store may have forgotten what was spent."""


class ReleasesWaiting(ReleaseRefused):
    """Not every registered journal has confirmed the store as it is now."""


class JournalMissing(ReleaseRefused):
    """Nothing beside the store would remember what is spent."""
