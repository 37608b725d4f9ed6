"""What an analysis refuses, with the fix."""

from __future__ import annotations

from veilcount_shared.errors import VeilcountError, format_value
from veilcount_shared.installing import install


class QueryError(VeilcountError, ValueError):
    """A query that cannot be answered: the field, its value, the fix."""

    def __init__(self, field: str, value: object, fix: str) -> None:
        super().__init__(f"{field} = {format_value(value)}: {fix}")
        self.field, self.value, self.fix = field, value, fix


class CountsError(QueryError):
    """Counts or counters that cannot be estimated: the field, its value, the fix."""


class NoiseUnavailable(VeilcountError):
    """OpenDP, which draws central noise, is not installed."""


class ScipyUnavailable(VeilcountError):
    """scipy, which intervals and decoders need, is not installed."""

    def __init__(self) -> None:
        super().__init__(f"figures need scipy: {install('estimate')}")
