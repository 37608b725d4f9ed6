"""The log of real devices: its reports among the population's, and the rules of delivery."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import combinations

from veilcount_shared import Collection
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import decode_binary, encode_verdicts

from .population import QueuedReport
from .server_verdicts import ServerVerdicts

EARLY_SECONDS = 0.01  # two clocks are read one after the other
DEVICE_TASK, DEVICE_LOG = "device-task", "device-log"  # names of what is saved


@dataclass(frozen=True, slots=True)
class DeviceTask:
    """The parameters of the process of real devices."""

    url: str
    collections: str
    devices: int
    seconds: float  # within which they record
    jitter: float
    seed: int
    herd: bool = False  # whether all record at once


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request of a device, with its outcome."""

    device: int
    at: float  # by the machine's monotonic clock
    took: float
    body: bytes
    verdicts: tuple[str, ...]
    delay: float = 0.0  # the seconds that the server requested
    why: str = ""  # if it was not delivered
    refused: bool = False


@dataclass(frozen=True, slots=True)
class FinalState:
    """The final state of a device."""

    device: int
    held: Mapping[str, int]
    drawn: int  # answers
    left: bool  # whether all of it left
    flushed: bool  # whether it had to be made to send
    losses: Mapping[str, int]


@dataclass(slots=True)
class DeviceLog:
    """The log of all real devices."""

    attempts: list[Attempt] = field(default_factory=list)
    ends: list[FinalState] = field(default_factory=list)


def merge_device_log(
    queued_reports: Sequence[QueuedReport],
    verdicts: ServerVerdicts,
    device_log: DeviceLog,
    collections: Mapping[str, Collection],
) -> ServerVerdicts:
    """Return the server's verdicts of all queued reports, and of each report of the real devices.

    Each of the latter is a queued report of its own: a client may merge bodies when it retries.
    """
    held = {end.device: end.held for end in device_log.ends}
    by_fingerprint = {collection.fingerprint: collection for collection in collections.values()}
    everyone = list(queued_reports)
    whole = ServerVerdicts(everyone, verdicts.replies, verdicts.silences, verdicts.refusals)
    places: dict[Report, int] = {}
    for attempt in device_log.attempts:
        reports = decode_binary(attempt.body).reports
        for report, reply in zip(reports, _replies(attempt, len(reports)), strict=True):
            if report not in places:
                collection = by_fingerprint[report.fingerprint]
                places[report] = len(everyone)
                value = held[attempt.device][collection.name]
                everyone.append(QueuedReport(collection, (report,), (value,)))
            status = HTTPStatus.BAD_REQUEST if attempt.refused else HTTPStatus.OK
            whole.add_reply(places[report], reply, status)
    return whole


def _replies(attempt: Attempt, reports: int) -> list[bytes]:
    """Return the reply to each report; b"" for none."""
    if not attempt.verdicts:
        return [b""] * reports
    return [encode_verdicts([Verdict(word)]) for word in attempt.verdicts]


def broken(device_log: DeviceLog) -> Iterator[str]:
    """Yield where a real device dropped a report, or did not respect a requested delay."""
    lost = sum(sum(end.losses.values()) for end in device_log.ends)
    if lost:
        reasons = sorted({reason for end in device_log.ends for reason in end.losses})
        yield f"real devices gave up {lost} answers: {', '.join(reasons)}"
    if waiting := sum(not end.left for end in device_log.ends):
        yield f"{waiting} real devices still hold answers"
    drawn, arrived = sum(end.drawn for end in device_log.ends), len(_acknowledged(device_log))
    if drawn != arrived:
        yield f"real devices drew {drawn} answers, and {arrived} were acknowledged"
    if early := sum(_early(device_log)):
        yield f"{early} times a real device's row came back before the requested delay"


def _acknowledged(device_log: DeviceLog) -> set[Report]:
    return {
        report
        for attempt in device_log.attempts
        if attempt.verdicts
        for report in decode_binary(attempt.body).reports
    }


def _early(device_log: DeviceLog) -> Iterator[bool]:
    """Yield of each two attempts of a row whether the second came too early after the reply.

    A reply is to its own row: a device's others do not wait for it, and what was sent before the
    reply could not either. A device that was flushed is not checked.
    """
    flushed = {end.device for end in device_log.ends if end.flushed}
    attempts: defaultdict[tuple[str, bytes], list[Attempt]] = defaultdict(list)
    for attempt in device_log.attempts:
        reports = decode_binary(attempt.body).reports
        if reports and attempt.device not in flushed:
            attempts[reports[0].fingerprint, reports[0].pseudonym].append(attempt)
    for of_one in attempts.values():
        for before, after in combinations(sorted(of_one, key=lambda each: each.at), 2):
            reply = before.at + before.took
            yield reply < after.at < reply + before.delay - EARLY_SECONDS
