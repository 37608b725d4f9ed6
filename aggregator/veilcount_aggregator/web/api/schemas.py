"""Types of requests and responses: they validate, and OpenAPI schemas are generated from them.

Epsilons are decimals in strings: exact, as everywhere before a figure is shown.
"""

from __future__ import annotations

import decimal
from datetime import date
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from veilcount_analysis.text.privacy_guarantees import PrivacyFigures
from veilcount_serving.request_ids import UUID
from veilcount_shared.collection import Adjacency, Held, Linkage, Model, Presence
from veilcount_shared.periods import Unit
from veilcount_shared.problem_details import INSTANCE_PREFIX, TYPE_PREFIX
from veilcount_shared.verdict import Verdict

from ...json_results import Count, Counts, Decimal
from ...queries.collection_list import SeriesRef
from ...queries.releases import CountQuery, SeriesReleases
from ...records.api_keys import MOST_LABEL, Role
from ...records.audit_log import AuditEntry
from ...store.retention.row_closing import RowReference


class Verdicts(Struct):
    """One verdict a report, in the batch's order; and members to be ignored."""

    verdicts: list[Verdict]


class ProblemDocument(Struct):
    """A problem document (RFC 9457)."""

    type: Annotated[str, Meta(extra_json_schema={"pattern": f"^{TYPE_PREFIX}|#ohttp-key$"})]
    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    detail: str
    place: str | UnsetType = UNSET
    instance: (
        Annotated[str, Meta(extra_json_schema={"pattern": f"^{INSTANCE_PREFIX}{UUID}$"})]
        | UnsetType
    ) = UNSET
    requested: Decimal | UnsetType = UNSET
    spent: Decimal | UnsetType = UNSET
    remaining: Decimal | UnsetType = UNSET


class SegmentValues(Struct):
    """A public attribute and its values."""

    name: str
    values: list[str | int]


class PeriodCount(Struct, rename={"first": "from"}):
    """How many reports one period of one cell of the segments holds."""

    period: Count
    first: Annotated[date, Meta(description="the period's first UTC day")]
    segment: Count
    reports: Count


class SeriesCounts(Struct):
    """What came of a series. None of it where no exact count may leave."""

    reports: Count
    tallies: list[PeriodCount]
    verdicts: Counts
    losses: Annotated[Counts, Meta(description="reason:digits of how many, a device each")]


class PeriodBatchInfo(Struct, rename={"start": "from"}):
    """What has come of the batch of one period."""

    period: int
    start: date
    state: str
    text: str


class SeriesDetail(Struct, rename={"start": "from"}):
    """One definition of a collection."""

    fingerprint: str
    question: str
    closed: bool
    model: Model
    adjacency: Adjacency | None
    unit: Unit
    per_day: Count
    answers: Count
    periods: Count
    start: date
    until: date
    late: Count
    linkage: Linkage
    held: Annotated[Held | None, Meta(description="where a value waits; null: not stated")]
    presence: Presence
    segments: list[SegmentValues]
    epsilon: PrivacyFigures
    promise: Annotated[list[str], Meta(description="the privacy notice, a line for each part")]
    figures: SeriesCounts | None
    batches: Annotated[
        list[PeriodBatchInfo], Meta(description="by period, where reports travel by shuffler")
    ]


class CollectionDetail(Struct):
    """A collection's series, the newest first. They are never summed."""

    name: str
    series: list[SeriesDetail]


class Definitions(Struct, forbid_unknown_fields=True):
    """A definitions file, and the value lists that it names."""

    text: Annotated[str, Meta(description="TOML")]
    files: Annotated[dict[str, str], Meta(description="by name, one value a line")] = {}


class LoadedDefinitions(Struct):
    """All definitions files, in the order in which they were loaded: a later one replaces the
    collections of its names. `closed` are fingerprints.
    """

    sources: list[Definitions]
    closed: list[str]


class PushedSeries(SeriesRef):
    """A series that is new, and the bytes that its counters take at most in each shard."""

    counter_bytes: int


class PushResult(Struct):
    """The series that were not known before."""

    new: list[PushedSeries]


class CloseResult(Struct):
    """The fingerprints that take no more reports from now on."""

    closed: list[str]


class KeyInfo(Struct):
    """A key: everything but the key. Days, not instants; empty: never."""

    id: str
    role: Role
    label: str
    created: str
    used: str
    revoked: str
    apps: Annotated[list[str], Meta(description="it reads only these apps; empty: all")]


class KeyList(Struct):
    """All keys that were ever made."""

    keys: list[KeyInfo]


class KeyRequest(Struct, forbid_unknown_fields=True):
    """A key to be made."""

    role: Role
    label: Annotated[str, Meta(max_length=MOST_LABEL, description="printable")] = ""
    apps: Annotated[list[str], Meta(description="an analyst's: the apps it may read")] = []


class RowCloseRequest(RowReference, frozen=True, forbid_unknown_fields=True):
    """A row to be closed."""

    padding: Annotated[str, Meta(description="ignored: hides the length in an encrypted body")] = ""


class CreatedKey(Struct):
    """A key, shown this once."""

    id: str
    role: Role
    label: str
    key: str


class AuditLog(Struct):
    """The audit log, the oldest first."""

    entries: list[AuditEntry]


class Liveness(Struct):
    """The process answers."""

    status: str


class Readiness(Struct):
    """Whether reports can be taken, and why not."""

    ready: bool
    durable: Annotated[str, Meta(description="yes, no, managed, unknown; empty: the store is away")]
    why: str
    serving: Annotated[int, Meta(description="shards that take reports; ready: at least one")] = 0
    shards: Annotated[int, Meta(description="shards of the store; 0: not known")] = 0


class ReleaseRequest(Struct, forbid_unknown_fields=True, rename={"first": "from", "last": "to"}):
    """A question to the curator."""

    query: str | CountQuery
    # of either a string, or a number that is read exactly
    epsilon: Annotated[decimal.Decimal | None, Meta(description="with Laplace noise")] = None
    rho: Annotated[
        decimal.Decimal | None, Meta(description="with Gaussian noise, if there is a delta")
    ] = None
    first: date | None = None
    last: date | None = None
    series: Annotated[str, Meta(description="a fingerprint; by default, the newest")] = ""
    candidates: Annotated[
        list[str], Meta(description='strings to look for in a "strings" release, free')
    ] = []
    dry_run: bool = False


class CollectionReleases(Struct):
    """The releases of a collection's series, the newest series first."""

    name: str
    locked: Annotated[bool, Meta(description="no release is made until the operator unlocks")]
    series: list[SeriesReleases]


class PartTaken(Struct, frozen=True):
    """What has come of a part of a batch: totals, never a verdict per report."""

    part: int
    parts: int
    accepted: int
    unreadable: int
    missing: list[int]


class RecordTaken(Struct, frozen=True):
    """A batch record was stored."""

    state: str
