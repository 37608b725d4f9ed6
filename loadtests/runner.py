"""One run: a population, a server of its own, devices, and a judgement of what the store holds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import requests
from tests.engines import engine
from tests.system.server import Server

from veilcount_aggregator.store import open_store
from veilcount_shared import Collection

from . import hostile
from .attack_report import attack_problems
from .device_log import (
    DEVICE_LOG,
    DEVICE_TASK,
    DeviceLog,
    DeviceTask,
    broken,
    merge_device_log,
)
from .environment import Site
from .faults import FAULTS
from .generators import GeneratorFailed, GeneratorProcesses, LocustRun
from .ipc import (
    ASSIGNMENT,
    HEADERS,
    REPORTS_PATH,
    Assignment,
    RequestLog,
    load,
    load_request_logs,
    save,
)
from .load_profiles import HERD, Terms, pace
from .plan import AFTER, RECOVERY_SECONDS, STORE_GROWTH, Plan
from .population import REPLAYED, QueuedReport, draw, order
from .questions import definitions, questions
from .report import MEGABYTE, Costs, DeviceSummary, FaultReport, Outcome
from .resource_usage import Meter, watching
from .server_verdicts import ServerVerdicts
from .verify_store import store_problems

TICK = 0.05
PAUSE_SECONDS = 0.5  # between two sends of what is still not acknowledged when the time is over


@dataclass(frozen=True, slots=True)
class Workload:
    """The queued reports of a run, and the bodies for each generator."""

    collections: Mapping[str, Collection]
    queued_reports: list[QueuedReport]
    assignment: Assignment


@dataclass(frozen=True, slots=True)
class FaultWindow:
    """When a fault began and ended."""

    name: str
    begun: float
    over: float


def run(plan: Plan, folder: Path) -> Outcome:
    """Load a server with a population; return what came of it."""
    now = datetime.now(UTC)
    file = folder / "collections.toml"
    file.write_text(definitions(now.date(), flooded=plan.hostile), encoding="utf-8")
    workload = _draw_workload(plan, now)
    save(folder, ASSIGNMENT, workload.assignment)
    query = f"?replicas={plan.replicas}" if plan.replicas else ""
    replicas = int(plan.fault == "failover")
    with engine(plan.store, folder / "store", query, replicas=replicas) as servers:
        site = Site(servers, folder, _flags(plan, file), through_proxy=_needs_proxy(plan))
        with site:
            costs, window = _load(site, plan, folder, file)
            request_log = _load_request_log(folder)
            device_log = load(folder, DEVICE_LOG) if plan.real else DeviceLog()
            verdicts = merge_device_log(
                workload.queued_reports,
                ServerVerdicts.from_request_log(workload.queued_reports, request_log),
                device_log,
                workload.collections,
            )
            _settle(site.server, verdicts)
        with closing(open_store(servers.url)) as store:
            wrong = store_problems(store, verdicts)
            if plan.hostile:
                limit = hostile.new_pseudonym_limit(plan.devices)
                wrong += attack_problems(store, verdicts, limit)
    outcome = Outcome(
        verdicts,
        request_log,
        replace(costs, generator=request_log.cpu),
        workload.assignment.terms,
        plan.p99,
        _summarize_devices(device_log),
        _fault_report(window, request_log, device_log),
    )
    return replace(outcome, failures=(*wrong, *broken(device_log), *_promises(outcome, plan)))


def _draw_workload(plan: Plan, now: datetime) -> Workload:
    collections = questions(now.date(), flooded=plan.hostile)
    queued_reports = draw(questions(now.date()), now, plan.devices, plan.seed)
    replayed = REPLAYED
    if plan.hostile:
        attack = hostile.draw_attack(collections, now, plan.devices, plan.seed)
        queued_reports = hostile.mixed(queued_reports, attack)
        replayed = hostile.REPLAYED
    sends = order(len(queued_reports), plan.seed, replayed)
    between = pace(plan.course, plan.users, plan.seconds, len(sends)) if plan.paced else 0.0
    terms = Terms(
        plan.shape, plan.users, plan.seconds, between, plan.generators, plan.page is not None
    )
    return Workload(
        collections,
        queued_reports,
        Assignment([queued_report.body for queued_report in queued_reports], sends, terms),
    )


def _flags(plan: Plan, file: Path) -> tuple[str, ...]:
    flags = ("--collections", str(file), "--workers", str(plan.workers))
    limit = ("--max-new-pseudonyms", str(hostile.new_pseudonym_limit(plan.devices)))
    return flags + limit * plan.hostile


# -- sending ---------------------------------------------------------------------------------------


def _load(site: Site, plan: Plan, folder: Path, file: Path) -> tuple[Costs, FaultWindow | None]:
    """Have all generators send; return the servers' CPU and memory, and the time of the fault."""
    server, store = Meter(site.pids), Meter(site.engine.pids)
    flags = plan.locust_flags
    locust_run = LocustRun(site.url, plan.users, plan.at_most, plan.generators, plan.page, flags)
    with GeneratorProcesses(folder) as processes:
        if plan.real:
            save(folder, DEVICE_TASK, _device_task(site, plan, file))
            processes.ready_devices()
        begun = processes.begin(locust_run)
        with watching(server, store):
            window = _inject(site, plan, processes, begun) if plan.fault else None
            processes.wait()
    return Costs(server, store, 0.0), window


def _device_task(site: Site, plan: Plan, file: Path) -> DeviceTask:
    herd = plan.shape == HERD
    jitter = 1.0 if herd else plan.seconds / 4
    return DeviceTask(
        site.url, str(file), plan.real, plan.seconds / 2, jitter, plan.seed, herd=herd
    )


def _inject(site: Site, plan: Plan, processes: GeneratorProcesses, begun: float) -> FaultWindow:
    """Inject a fault at its time, while locust still sends; return when it lasted."""
    fault = FAULTS[plan.fault]
    _sleep_until(begun + plan.fault_begins * plan.seconds)
    if not processes.sending():
        raise GeneratorFailed(
            "everything was sent before the fault could begin: give more --devices"
        )
    at = time.perf_counter()
    with fault.inject(site):
        _sleep_until(at + (plan.lasts or fault.lasts) * plan.seconds)
    over = time.perf_counter()
    _sleep_until(max(begun + plan.seconds, over + AFTER * plan.seconds))
    processes.end()
    return FaultWindow(plan.fault, at, over)


def _needs_proxy(plan: Plan) -> bool:
    """Whether the fault is on the way, so that a proxy has to be."""
    return bool(plan.fault) and FAULTS[plan.fault].in_network


def _sleep_until(instant: float) -> None:
    while (left := instant - time.perf_counter()) > 0:
        time.sleep(min(left, TICK))


def _settle(server: Server, verdicts: ServerVerdicts) -> None:
    """Send again what was never acknowledged, as a device does: now it is known what counts.

    A store may refuse for a while after a fault, such as until a replica has fetched everything:
    one body at a time waits for it.
    """
    ends = time.perf_counter() + RECOVERY_SECONDS
    for place in verdicts.open:
        body = verdicts.queued_reports[place].body
        verdicts.add_reply(place, *_reply(server, body))
        while not verdicts.settled(place) and time.perf_counter() < ends:
            time.sleep(PAUSE_SECONDS)
            verdicts.add_reply(place, *_reply(server, body))


def _reply(server: Server, body: bytes) -> tuple[bytes, int]:
    try:
        reply = server.ask("POST", REPORTS_PATH, data=body, headers=HEADERS)
    except requests.RequestException:
        return b"", 0
    return reply.content if reply.status_code == HTTPStatus.OK else b"", reply.status_code


# -- results ---------------------------------------------------------------------------------------


def _load_request_log(folder: Path) -> RequestLog:
    request_log = load_request_logs(folder)
    if not request_log.bodies:
        raise GeneratorFailed("locust sent nothing")
    return request_log


def _summarize_devices(device_log: DeviceLog) -> DeviceSummary | None:
    if not device_log.ends:
        return None
    answers = sum(end.drawn for end in device_log.ends)
    flushed = sum(end.flushed for end in device_log.ends)
    return DeviceSummary(len(device_log.ends), answers, len(device_log.attempts), flushed)


def _fault_report(
    window: FaultWindow | None, request_log: RequestLog, device_log: DeviceLog
) -> FaultReport | None:
    if window is None:
        return None
    log = request_log
    sends = list(zip(log.at, log.seconds, log.answered, log.bodies, strict=True))
    ends = [(at + took, body) for at, took, answered, body in sends if answered]
    after = [(end, body) for end, body in ends if end > window.over]
    vain = {body for at, _, answered, body in sends if not answered and at < window.over}
    first = min((end for end, _ in after), default=window.over)
    caught_up = max((end for end, body in after if body in vain), default=window.over)
    delivered = max(
        (attempt.at + attempt.took for attempt in device_log.attempts if attempt.verdicts),
        default=None,
    )
    before, meanwhile = _rates(window, [end for end, _ in ends], min(request_log.at))
    return FaultReport(
        window.name, window.begun, window.over, first, caught_up, delivered, before, meanwhile
    )


def _rates(window: FaultWindow, ends: list[float], begun: float) -> tuple[float, float]:
    """Return the answers a second before a fault and while it lasted."""
    before = sum(end < window.begun for end in ends)
    meanwhile = sum(window.begun <= end < window.over for end in ends)
    return (
        before / max(window.begun - begun, TICK),
        meanwhile / max(window.over - window.begun, TICK),
    )


def _promises(outcome: Outcome, plan: Plan) -> Iterator[str]:
    """Yield the promises that were not kept: of speed, of answers, of memory."""
    took, unanswered = outcome.milliseconds(99), outcome.unanswered
    if plan.p99 is not None and took > plan.p99:
        yield f"p99 is {took:.1f} ms, and {plan.p99:g} ms were promised"
    if plan.errors is not None and unanswered > plan.errors:
        yield f"{unanswered:.2f} % of sends had no answer, and {plan.errors:g} % were allowed"
    risen = outcome.costs.server.risen / MEGABYTE
    if plan.growth is not None and risen > plan.growth:
        yield f"the server's memory rose by {risen:.1f} MB, and {plan.growth:g} MB were allowed"
    held = outcome.costs.store.most - outcome.costs.store.least
    if plan.hostile and held > STORE_GROWTH * MEGABYTE:
        yield f"the store's memory rose by {held / MEGABYTE:.0f} MB: {STORE_GROWTH} were allowed"
    fault_report = outcome.fault_report
    if fault_report is not None and fault_report.rate < (least := FAULTS[plan.fault].least_rate):
        yield (
            f"{fault_report.meanwhile:.0f} answers a second during {plan.fault},"
            f" {fault_report.before:.0f} before: at least {least:.0%} of that was promised"
        )
