"""Report, Losses and Batch, validated on creation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .errors import BadField, WrongLength
from .limits import MAX_CELLS, MAX_SLOTS, PSEUDONYM_BYTES, TOKEN_BYTES

MAX_PERIODS = 1 << 16
MAX_MESSAGE = 1024
MAX_REPORTS = 1000
#: pseudonyms of a body that an aggregator accepts, by default, where it asks for no key
KEYLESS_BODY_PSEUDONYMS = 16
MAX_SERIES = 255
MAX_PADDING = 0xFFFF
MAX_BUCKET = 4

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Report:
    """One randomized answer. The message has the fixed width of its series.

    With linkage "token" it carries the token of its slot.
    """

    fingerprint: str
    period: int
    segment: int
    pseudonym: bytes = field(repr=False)  # neither is for logs
    slot: int
    message: bytes = field(repr=False)
    token: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        _fingerprint("fingerprint", self.fingerprint)
        _within("period", self.period, MAX_PERIODS)
        _within("segment", self.segment, MAX_CELLS)
        _within("slot", self.slot, MAX_SLOTS)
        _bytes("pseudonym", self.pseudonym, PSEUDONYM_BYTES, PSEUDONYM_BYTES)
        _bytes("message", self.message, 1, MAX_MESSAGE)
        if self.token != b"":
            _bytes("token", self.token, TOKEN_BYTES, TOKEN_BYTES)


@dataclass(frozen=True, slots=True)
class Losses:
    """How many reports of a series one device lost on the way, by reason, coarsely.

    A bucket is 0 for none, else the number of digits of the count, 4 at most.
    """

    fingerprint: str
    aged: int = 0
    evicted: int = 0
    corrupt: int = 0

    def __post_init__(self) -> None:
        _fingerprint("losses.fingerprint", self.fingerprint)
        for reason in ("aged", "evicted", "corrupt"):
            _within(f"losses.{reason}", getattr(self, reason), MAX_BUCKET + 1)

    @staticmethod
    def bucket(count: int) -> int:
        """Return the bucket of a count."""
        return min(len(str(count)), MAX_BUCKET) if count > 0 else 0


@dataclass(frozen=True, slots=True)
class Batch:
    """What one request carries: reports, or else the losses of one series."""

    reports: tuple[Report, ...] = ()
    losses: Losses | None = None
    test: bool = False
    padding: int = 0

    def __post_init__(self) -> None:
        if len(self.reports) > MAX_REPORTS:
            raise WrongLength("reports", f"{len(self.reports)} in one batch: {MAX_REPORTS} at most")
        if not self.reports and self.losses is None:
            raise WrongLength("reports", "an empty batch: give at least one")
        if self.reports and self.losses is not None:
            # Losses depend on what a device did; with a pseudonym they would describe it.
            raise BadField("losses", "a body with losses carries no reports")
        _within("padding", self.padding, MAX_PADDING + 1)
        if not isinstance(self.test, bool):
            raise BadField("test", "give true or false")
        if len(self.series()) > MAX_SERIES:
            raise WrongLength("reports", f"of more than {MAX_SERIES} series")

    def series(self) -> dict[str, tuple[int, int]]:
        """Return each fingerprint in order of first use, with the widths of message and token."""
        widths: dict[str, tuple[int, int]] = {}
        for place, report in enumerate(self.reports):
            own = len(report.message), len(report.token)
            message, token = widths.setdefault(report.fingerprint, own)
            if message != own[0]:
                raise WrongLength(f"reports[{place}].message", "all of one series have one width")
            if token != own[1]:
                raise WrongLength(f"reports[{place}].token", "all of one series have one, or none")
        return widths


def _within(place: str, number: int, end: int) -> None:
    if type(number) is not int or not 0 <= number < end:
        raise BadField(place, f"give 0 to {end - 1}")


def _bytes(place: str, raw: bytes, least: int, most: int) -> None:
    if not isinstance(raw, bytes):
        raise BadField(place, "give bytes")
    if not least <= len(raw) <= most:
        size = f"{least}" if least == most else f"{least} to {most}"
        raise WrongLength(place, f"give {size} bytes")


def _fingerprint(place: str, name: str) -> None:
    if type(name) is not str or not _FINGERPRINT.fullmatch(name):
        raise BadField(place, "give 64 lower-case hexadecimal digits")
