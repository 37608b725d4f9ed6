"""Checks of the state: its location, ceilings, consent, outbox and losses."""

from __future__ import annotations

import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from veilcount_shared import Collection
from veilcount_shared.collection import Takes
from veilcount_shared.diagnostic_result import DiagnosticResult
from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.verdict import Verdict

from ..clock import instant
from ..delivery.replies import VERDICTS, describe_shuffler, last_reply
from ..recording import budget_reservation
from ..recording.kept_values import KeptKind, kind_on_device
from ..recording.person_id import SELF
from ..settings import ClientSettings
from ..state import ClientState, Notes, StateError, closed_series
from ..state.factory import open_state
from ..state.key_derivation import person_key
from ..state.losses import Loss
from ..state.package_files import IncompletePackage
from ..state.redis_scripts import load_scripts
from ..state.sqlite_database import FILE, load_schema
from . import problems
from .moved_state import moved_state
from .problems import Collections

IN_MEMORY = frozenset({"tmpfs", "ramfs"})
MOST_KEPT = 1_000_000  # values that are counted

#: what can be done about a loss; the others are as the definitions want them
ADVICE = {
    Loss.AGED: "the aggregator could not be reached for longer than `late`",
    Loss.CORRUPT: "a damaged file was kept next to the state: look at the disk",
    Loss.QUEUE_FULL: "more was recorded at once than memory holds: record less often",
    Loss.EVICTED: "the outbox was full: the aggregator could not be reached for long",
    Loss.MALFORMED: "the aggregator refused the bytes: a test client, or another release?",
    Loss.MOVED: "the state was copied or rolled back: do not ship or restore it",
    Loss.NO_STATE: "there was no durable place for the state: give state_dir",
    Loss.OVER_BUDGET: "the aggregator counted another device's answers as this one's",
    Loss.REFUSED: "over the ceiling, or without trust_curator: see above",
    Loss.SEGMENT: "a segment that the definitions do not declare: see the app's log",
    Loss.STALE: "arrived later than `late` allows: see the clock",
    Loss.UNKNOWN: "a name that the definitions do not have: see the app's log",
}


class NotesOverlay:
    """Notes over those of a state, which it does not change: what would be reserved?"""

    def __init__(self, below: Notes | None = None) -> None:
        """Begin with what those below hold."""
        self._below = below
        self._own: dict[str, str] = {}

    def note(self, name: str) -> str | None:
        """Return what is kept under a name."""
        value_below = self._below.note(name) if self._below else None
        return self._own.get(name, value_below)

    def keep(self, name: str, value: str) -> None:
        """Keep it here."""
        self._own[name] = value


def check_state(
    location: str | Path, settings: ClientSettings, collections: Collections, now: float
) -> Iterator[DiagnosticResult]:
    """Check the state of an app; where there is none yet, only what can be known without."""
    shared = "://" in str(location)
    if not shared:
        yield from _directory(Path(location))
    try:
        load_scripts() if shared else load_schema()
    except IncompletePackage as error:
        yield DiagnosticResult("package", False, str(error))
        return
    if not shared and not (Path(location) / FILE).exists():
        yield from _ceilings(NotesOverlay(), settings, collections)
        message = "nobody was asked on this machine: start the app, and have it call consent(...)"
        yield DiagnosticResult("consent", False, message)
        return
    try:
        with closing(open_state(location, lambda: now)) as state:
            yield DiagnosticResult("state", True, str(location).rsplit("@", 1)[-1])  # no password
            if problem := moved_state(state.moved, collections.values(), now):
                yield DiagnosticResult("state, moved", False, problem)
            yield from _ceilings(NotesOverlay(state), settings, collections)
            yield from _consent(state, settings, collections)
            yield from _closed(state, collections)
            yield from _replies(state, collections)
            yield _outbox(state, collections, now)
            yield from _losses(state, collections)
    except StateError as error:
        message = f"{error}: check the directory, or give another state_dir"
        yield DiagnosticResult("state", False, message)


def _directory(directory: Path) -> Iterator[DiagnosticResult]:
    """Yield whether the directory is durable, without making it."""
    nearest = next(
        parent for parent in (directory, *directory.absolute().parents) if parent.exists()
    )
    problem = None
    try:
        with tempfile.TemporaryFile(dir=nearest) as probe:
            probe.write(b"veilcount")
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        problem = f"{nearest}: {error.strerror}: make it writable, or give another state_dir"
    else:
        if (kind := filesystem(nearest)) in IN_MEMORY:
            lost = f"{nearest} is in memory ({kind}), and forgets what was spent"
            problem = f"{lost}: give state_dir a disk"
    yield DiagnosticResult.from_problem("directory", problem, f"{directory} can be written")


def filesystem(directory: Path) -> str:
    """Return what kind of file system a directory lies on; empty where it is unknown."""
    if not hasattr(os, "major"):  # on Windows
        return ""
    try:
        device = directory.stat().st_dev
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    device_number = f"{os.major(device)}:{os.minor(device)}"
    mount_lines = [line for line in mounts.splitlines() if line.split()[2] == device_number]
    return mount_lines[-1].partition(" - ")[2].split()[0] if mount_lines else ""


def _ceilings(
    notes: NotesOverlay, settings: ClientSettings, collections: Collections
) -> Iterator[DiagnosticResult]:
    reservation = budget_reservation.reserve(
        notes, collections.values(), settings.ceiling, settings.daily_ceiling
    )
    for name, why in reservation.refused.items():
        yield DiagnosticResult(f"ceiling, {name}", False, why)
    if not reservation.refused:
        ceilings = reservation.ceilings
        life, day = ceilings.life / EPSILON_GRAIN, ceilings.day / EPSILON_GRAIN
        yield DiagnosticResult("ceiling", True, f"epsilon {life:g} in all, {day:g} a day: all fits")


def _consent(
    state: ClientState, settings: ClientSettings, collections: Collections
) -> Iterator[DiagnosticResult]:
    if settings.persons:
        count = len(state.consenting())
        problem = None if count else "0 persons consented: call consent(...)"
        yield DiagnosticResult.from_problem("consent", problem, f"{count} persons consented")
        return
    person = state.person(person_key(state.root, SELF))
    problem = problems.consent(state, person, collections.values())
    # A no is an answer, also to one question: nothing is to be done.
    is_decided = person.consented is False or "said no" in (problem or "")
    message = problem or "given for every collection"
    yield DiagnosticResult("consent", is_decided or problem is None, message)


def _closed(state: ClientState, collections: Collections) -> Iterator[DiagnosticResult]:
    names = {collection.fingerprint: name for name, collection in collections.items()}
    for series in sorted(closed_series(state, names), key=names.__getitem__):
        yield DiagnosticResult(f"closed, {names[series]}", False, problems.CLOSED)


def _replies(state: ClientState, collections: Collections) -> Iterator[DiagnosticResult]:
    """Yield what the aggregator last said of a collection, where a probe would not hear it."""
    for name, collection in collections.items():
        reply = last_reply(state, collection.fingerprint)
        if reply and collection.batch and reply.is_trouble:
            message = f"on {reply.day} the shuffler {describe_shuffler(reply.kind)}"
            yield DiagnosticResult(f"delivery, {name}", False, message)
            continue
        if reply and reply.kind in VERDICTS and reply.kind != Verdict.CLOSED:
            message = f"on {reply.day} the aggregator {VERDICTS[reply.kind]}"
            yield DiagnosticResult(f"delivery, {name}", False, message)


def _outbox(state: ClientState, collections: Collections, now: float) -> DiagnosticResult:
    ok, reports = _queued_reports(state, now)
    message = "; ".join([reports, *_kept_values(state, collections)])
    if any(map(_waits_in_memory, collections.values())):
        message += "; what the app has in memory is not seen here"
    return DiagnosticResult("outbox", ok, message)


def _kept_values(state: ClientState, collections: Collections) -> Iterator[str]:
    """Count the values that are kept before they become a report."""
    kinds_by_series = {
        collection.fingerprint: kind_on_device(collection) for collection in collections.values()
    }
    kinds = Counter(
        kinds_by_series.get(value.series, KeptKind.ANSWER)
        for value in state.held_due(math.inf, MOST_KEPT)
    )
    if values := kinds[KeptKind.ANSWER] + kinds[KeptKind.TRUE_VALUE]:
        yield f"values that wait for their instants: {values}"
    if states := kinds[KeptKind.STATE]:
        yield f"states of trends, kept between reports: {states}"
    if visits := kinds[KeptKind.VISIT]:
        yield f"last visits, kept for the next: {visits}"


def _waits_in_memory(collection: Collection) -> bool:
    is_first = collection.takes is Takes.FIRST and not collection.trust.reveals
    return not (is_first or collection.held_on_device)


def _queued_reports(state: ClientState, now: float) -> tuple[bool, str]:
    """Count the reports, and judge whether they leave as they should."""
    waiting, due, failed = state.waiting(math.inf), state.next_due(), state.attempts()
    if due is None:
        return True, "empty"
    minute = f"{instant(due):%Y-%m-%d %H:%M} UTC"
    if failed:
        message = f"the next until {minute}, failed attempts: {failed}: see the aggregator"
        return False, f"{waiting} waiting, {message}"
    time = f" for their time, the next leaves {minute}"
    late = ", and due: they leave while the app runs"
    return True, f"{waiting} waiting{time if due > now else late}"


def _losses(state: ClientState, collections: Collections) -> Iterator[DiagnosticResult]:
    names = {collection.fingerprint: name for name, collection in collections.items()}
    for (loss, where), count in sorted(state.losses().items()):
        if count > 0 and loss in ADVICE:
            name = names.get(where, where)
            message = f"{count} {loss}{f' of {name}' if name else ''}: {ADVICE[loss]}"
            yield DiagnosticResult("lost", True, message)
