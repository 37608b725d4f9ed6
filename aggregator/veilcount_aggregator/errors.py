"""What can go wrong on the aggregator's side, as one tree.

VeilcountError
  + StoreError               nothing was written; the caller may retry
    x StoreUnavailable       not reachable, or not in time
    x StoreFull              no space on the disk or in memory
    x StoreReadOnly          read-only, for good or while it is copied: reports belong elsewhere
    + StoreUnfit             what is found there cannot be used, and why
      x StoreWentBack        it lacks what was acknowledged
    x RetentionTooEarly      an epoch that the store's own clock does not let drop yet
  x ClockUntrusted           this host's clock is not trusted for this decision
  x CounterMemoryExceeded    a definition whose counters do not fit the limit on memory
  x SigningUnavailable       gmpy2, which an issuer signs with, is not installed
  x SigningFault             a signature that does not verify: it never leaves
  x NumbersInvalid           a file of issued numbers that does not verify: which line, and why
  x OverCap                  an account asks for more tokens than a person may have
  x SecondBatch              another batch where there is one
  x BatchTooEarly            a batch that devices may still add to
  x BatchTooLate             a batch of a period of which none is taken any more
  x RecordDiffers            a shuffler's record that does not state what has come of its batch
  + ReleaseRefused           a release that cannot be made now
    x PeriodStillOpen        a requested period is still open
    x InsufficientBudget     the period's budget does not pay for it
    x ReleasesLocked         the store may have forgotten what was spent
    x ReleasesWaiting        not every journal has confirmed the store as it is now
    x JournalMissing         there is no journal to remember the charge

Each message names the fix. None carries anything of a device.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from veilcount_shared.errors import VeilcountError, format_value
from veilcount_shared.installing import install


class StoreError(VeilcountError):
    """The store could not carry out a request, and changed nothing."""


class StoreUnavailable(StoreError):
    """Not reachable, or not in time: nothing can be acknowledged."""


class StoreFull(StoreError):
    """No space on the disk or in memory."""


class StoreReadOnly(StoreError):
    """Closed for reports, by `veilcount store copy`: they belong in another store."""


class StoreUnfit(StoreError):
    """What is found there cannot be used: another schema, a policy that forgets, no store."""


class StoreWentBack(StoreUnfit):
    """A part of the store has fewer commits than were acknowledged: it was put back, or cut."""


class RetentionTooEarly(StoreError):
    """By the store's own clock an epoch would be dropped too early: the caller's clock is wrong."""


class ClockUntrusted(VeilcountError):
    """A clock that cannot be trusted just now: judged by it, reports would be lost."""


class CounterMemoryExceeded(VeilcountError):
    """A definition whose counters do not fit the limit on memory: its bytes, and the fix."""


class SigningUnavailable(VeilcountError):
    """gmpy2, which an issuer signs with in constant time, is not installed."""

    def __init__(self) -> None:
        super().__init__(f"gmpy2 is missing: {install('issuer')}")


class SigningFault(VeilcountError):
    """A signature that does not verify: with it, anyone could factor the key."""

    def __init__(self) -> None:
        super().__init__("a signature does not verify: this machine computes wrongly, replace it")


class NumbersInvalid(VeilcountError):
    """A file of issued numbers that does not verify: which line, and why."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}: get the file again, it proves nothing as it is")
        self.line, self.problem = line, problem


class OverCap(VeilcountError):
    """An account asks for more tokens than a person may have: what it has left."""

    def __init__(self, left: Mapping[int, int], periods_left: int) -> None:
        """Take the tokens left of each period it asked for, and how many more periods it may."""
        of_each = ", ".join(f"{number} of period {period}" for period, number in left.items())
        super().__init__(f"left for this account: {of_each}, and {periods_left} further periods")
        self.left, self.periods_left = left, periods_left


class ReleaseRefused(VeilcountError):
    """A release that cannot be made now. Nothing was charged."""


class PeriodStillOpen(ReleaseRefused):
    """A requested period is still open: its tally may still change."""


class InsufficientBudget(ReleaseRefused):
    """A period's budget does not pay for it: what was requested, spent and left."""

    def __init__(
        self,
        period: int,
        *,
        requested: Fraction,
        spent: Fraction,
        remaining: Fraction,
        unit: str = "epsilon",
    ) -> None:
        """Take all three, of the period that has least left, in the unit of its budget."""
        super().__init__(
            f"{unit}: {format_value(requested)} is requested, and period {period} has"
            f" {format_value(remaining)} left of what it had ({format_value(spent)} is spent):"
            " request less, or other periods"
        )
        self.period, self.unit = period, unit
        self.requested, self.spent, self.remaining = requested, spent, remaining


class ReleasesLocked(ReleaseRefused):
    """The store may have forgotten what was spent."""


class ReleasesWaiting(ReleaseRefused):
    """Not every registered journal has confirmed the store as it is now."""


class JournalMissing(ReleaseRefused):
    """There is no journal to remember what is spent."""


class SecondBatch(VeilcountError):
    """Another batch was handed over where there is one: who has both sees what is in both."""

    def __init__(self, batch_key: bytes, period: int) -> None:
        super().__init__(
            f"there is a batch of {batch_key.hex()} in period {period}, under another id: a"
            " shuffler was restored from a backup, or two were started"
        )


class BatchTooEarly(VeilcountError):
    """The grace of the period has not ended by this clock."""


class BatchTooLate(VeilcountError):
    """Batches of the period are taken no more."""


class RecordDiffers(VeilcountError):
    """A shuffler signed one thing of a batch and handed over, or signed, another."""

    def __init__(self, batch_key: bytes, period: int, why: str) -> None:
        super().__init__(f"the record of {batch_key.hex()} in period {period} differs: {why}")
