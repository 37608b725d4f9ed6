"""Enumerations of the values that a definition's keys take."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .domain import Label


class Measure(StrEnum):
    """The estimand: of a number, of several numbers, or of a state over time."""

    MEAN = "mean"
    DISTRIBUTION = "distribution"
    RANGES = "ranges"
    MOMENTS = "moments"
    TREND = "trend"


class Takes(StrEnum):
    """What a period reports of the values recorded in it.

    `returning`: whether anything was recorded in the period before as well, whatever it was.
    """

    FIRST = "first"
    LAST = "last"
    ANY = "any"
    MAX = "max"
    SUM = "sum"
    RETURNING = "returning"


class Held(StrEnum):
    """Where a value is kept until it is reported, and so what the end of a process does to it.

    `process`: in memory. Of a running value the first process that recorded in the period is
    reported; a process that is killed loses it. `device`: on the device's disk, through restarts.
    """

    PROCESS = "process"
    DEVICE = "device"


class Waiting(StrEnum):
    """What a device keeps until it makes a report of it, or a curator has it."""

    TRUE = "true"
    RUNNING = "running"  # what the period has so far
    RETURNING = "returning"  # when the person was there last
    TREND = "trend"  # the state


class Linkage(StrEnum):
    """The scope of a pseudonym: what the server can link, and so enforce."""

    COLLECTION = "collection"
    PERIOD = "period"
    NONE = "none"
    TOKEN = "token"  # noqa: S105 - of a report: an issuer's blind signature, which enforces the cap


class Presence(StrEnum):
    """Whether the number of reports is public, or always the same."""

    PUBLIC = "public"
    HIDDEN = "hidden"


class Model(StrEnum):
    """Who adds the noise: the device, alone or hidden among covers, or a trusted curator."""

    LOCAL = "local"
    SHUFFLED = "shuffled"
    CENTRAL = "central"


class Adjacency(StrEnum):
    """The neighbouring relation of a central release: participation, or one person's value."""

    ADD_REMOVE = "add-remove"
    SUBSTITUTE = "substitute"


class Noise(StrEnum):
    """The noise of a curator whose budget has a delta, where it is not Gaussian."""

    LAPLACE = "laplace"


@dataclass(frozen=True, slots=True)
class Cohort:
    """A share of the population: cohort `number` of the `of` cohorts of one draw."""

    draw: str
    of: int
    number: int


Segments = tuple[tuple[str, tuple[Label, ...]], ...]
