"""One run: a population, a server of its own, devices, and a judgement of what the store holds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import requests
from tests.system.server import Server

from veilcount_aggregator.store import open_store
from veilcount_shared import Collection

from . import engines, hostile
from .attack_report import attack_problems
from .device_log import broken, merge_device_log
from .devices import DeviceTask, Story
from .environment import Site
from .faults import FAULTS
from .generators import Crew, March, NotSent
from .ipc import HEADERS, PLACE, Assignment, Diary
from .load_profiles import HERD, Terms, pace
from .plan import AFTER, MENDED, STORE_GROWTH, Plan
from .population import REPLAYED, QueuedReport, draw, order
from .questions import definitions, questions
from .report import MEGABYTE, Costs, DeviceSummary, Incident, Outcome
from .resource_usage import Meter, watching
from .server_verdicts import ServerVerdicts
from .verify_store import judge

TICK = 0.05
PAUSE_SECONDS = 0.5  # between two sends of what is still not acknowledged when the time is over


@dataclass(frozen=True, slots=True)
class Cast:
    """Everyone who sends in a run, and what there is to send."""

    collections: Mapping[str, Collection]
    queued_reports: list[QueuedReport]
    assignment: Assignment


@dataclass(frozen=True, slots=True)
class Strike:
    """When a fault was there."""

    name: str
    begun: float
    over: float


def run(plan: Plan, folder: Path) -> Outcome:
    """Load a server with a population; return what came of it."""
    now = datetime.now(UTC)
    file = folder / "collections.toml"
    file.write_text(definitions(now.date(), bait=plan.hostile), encoding="utf-8")
    cast = _cast(plan, now)
    cast.assignment.save(folder)
    fails_over = plan.fault == "failover"
    with engines.made(plan.store, folder, fails_over=fails_over, replicas=plan.replicas) as engine:
        site = Site(engine, folder, _flags(plan, file), roundabout=_roundabout(plan))
        with site:
            costs, strike = _load(site, plan, folder, file)
            diary, story = _diary(folder), Story.load(folder) if plan.real else Story()
            verdicts = merge_device_log(
                cast.queued_reports,
                ServerVerdicts.from_diary(cast.queued_reports, diary),
                story,
                cast.collections,
            )
            _settle(site.server, verdicts)
        store = open_store(engine.url)
        try:
            wrong = judge(store, verdicts)
            wrong += (
                attack_problems(store, verdicts, hostile.new_pseudonym_limit(plan.devices))
                if plan.hostile
                else []
            )
        finally:
            store.close()
    outcome = Outcome(
        verdicts,
        diary,
        replace(costs, generator=diary.cpu),
        cast.assignment.terms,
        plan.p99,
        _summarize_devices(story),
        _incident(strike, diary, story),
    )
    return replace(outcome, failures=(*wrong, *broken(story), *_promises(outcome, plan)))


def _cast(plan: Plan, now: datetime) -> Cast:
    collections = questions(now.date(), bait=plan.hostile)
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
    return Cast(
        collections,
        queued_reports,
        Assignment([each.body for each in queued_reports], sends, terms),
    )


def _flags(plan: Plan, file: Path) -> tuple[str, ...]:
    flags = ("--collections", str(file), "--workers", str(plan.workers))
    return (
        (*flags, "--max-new-pseudonyms", str(hostile.new_pseudonym_limit(plan.devices)))
        if plan.hostile
        else flags
    )


# -- sending ---------------------------------------------------------------------------------------


def _load(site: Site, plan: Plan, folder: Path, file: Path) -> tuple[Costs, Strike | None]:
    """Have everyone send; return what the servers took meanwhile, and what struck them."""
    server, store = Meter(site.pids), Meter(site.engine.pids)
    flags = plan.locust_flags
    march = March(site.url, plan.users, plan.at_most, plan.generators, plan.page, flags)
    with Crew(folder) as crew:
        if plan.real:
            _device_task(site, plan, file).save(folder)
            crew.ready_devices()
        begun = crew.begin(march)
        with watching(server, store):
            strike = _strike(site, plan, crew, begun) if plan.fault else None
            crew.wait()
    return Costs(server, store, 0.0), strike


def _device_task(site: Site, plan: Plan, file: Path) -> DeviceTask:
    herd = plan.shape == HERD
    jitter = 1.0 if herd else plan.seconds / 4
    return DeviceTask(
        site.url, str(file), plan.real, plan.seconds / 2, jitter, plan.seed, herd=herd
    )


def _strike(site: Site, plan: Plan, crew: Crew, begun: float) -> Strike:
    """Have a fault strike in its time, whoever still sends."""
    fault = FAULTS[plan.fault]
    _sleep_until(begun + plan.strikes * plan.seconds)
    if not crew.sending():
        raise NotSent("everything was sent before the fault could strike: give more --devices")
    at = time.perf_counter()
    with fault.strike(site):
        _sleep_until(at + (plan.lasts or fault.lasts) * plan.seconds)
    over = time.perf_counter()
    _sleep_until(max(begun + plan.seconds, over + AFTER * plan.seconds))
    crew.end()
    return Strike(plan.fault, at, over)


def _roundabout(plan: Plan) -> bool:
    """Whether the fault is on the way, so that a proxy has to be."""
    return bool(plan.fault) and FAULTS[plan.fault].on_the_way


def _sleep_until(instant: float) -> None:
    while (left := instant - time.perf_counter()) > 0:
        time.sleep(min(left, TICK))


def _settle(server: Server, verdicts: ServerVerdicts) -> None:
    """Send again what was never acknowledged, as a device does: now it is known what counts.

    A store may refuse for a while after a fault, such as until a replica has fetched everything:
    one body at a time waits for it.
    """
    ends = time.perf_counter() + MENDED
    for place in verdicts.open:
        body = verdicts.queued_reports[place].body
        verdicts.hear(place, *_reply(server, body))
        while not verdicts.settled(place) and time.perf_counter() < ends:
            time.sleep(PAUSE_SECONDS)
            verdicts.hear(place, *_reply(server, body))


def _reply(server: Server, body: bytes) -> tuple[bytes, int]:
    try:
        reply = server.ask("POST", PLACE, data=body, headers=HEADERS)
    except requests.RequestException:
        return b"", 0
    return reply.content if reply.status_code == HTTPStatus.OK else b"", reply.status_code


# -- results ---------------------------------------------------------------------------------------


def _diary(folder: Path) -> Diary:
    diary = Diary.load(folder)
    if not diary.bodies:
        raise NotSent("locust sent nothing")
    return diary


def _summarize_devices(story: Story) -> DeviceSummary | None:
    if not story.ends:
        return None
    answers = sum(end.drawn for end in story.ends)
    hurried = sum(end.hurried for end in story.ends)
    return DeviceSummary(len(story.ends), answers, len(story.tries), hurried)


def _incident(strike: Strike | None, diary: Diary, story: Story) -> Incident | None:
    if strike is None:
        return None
    sends = list(zip(diary.at, diary.seconds, diary.answered, diary.bodies, strict=True))
    ends = [(at + took, body) for at, took, answered, body in sends if answered]
    after = [(end, body) for end, body in ends if end > strike.over]
    vain = {body for at, _, answered, body in sends if not answered and at < strike.over}
    first = min((end for end, _ in after), default=strike.over)
    caught_up = max((end for end, body in after if body in vain), default=strike.over)
    delivered = max((each.at + each.took for each in story.tries if each.verdicts), default=None)
    before, meanwhile = _rates(strike, [end for end, _ in ends], min(diary.at))
    return Incident(
        strike.name, strike.begun, strike.over, first, caught_up, delivered, before, meanwhile
    )


def _rates(strike: Strike, ends: list[float], begun: float) -> tuple[float, float]:
    """Return the answers a second before a fault and while it lasted."""
    before = sum(end < strike.begun for end in ends)
    meanwhile = sum(strike.begun <= end < strike.over for end in ends)
    return (
        before / max(strike.begun - begun, TICK),
        meanwhile / max(strike.over - strike.begun, TICK),
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
    incident = outcome.incident
    if incident is not None and incident.rate < (least := FAULTS[plan.fault].least_rate):
        yield (
            f"{incident.meanwhile:.0f} answers a second during {plan.fault}, {incident.before:.0f}"
            f" before: at least {least:.0%} of that was promised"
        )
