"""Hidden presence in distribution: with independent randomness, active and idle look alike.

The coupled runs of `test_non_interference` compare streams under the same randomness, and so miss
what two independent draws would tell apart: a restart once gave each recorded answer a time of its
own and all absences of a body one time, so that an idle person sent one body of four reports and an
active one four bodies (total variation .83 to 1). Here every run has its own secrets and its own
randomness, and the *distributions* of what a server sees are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import ks_2samp

from veilcount_client.delivery.uploader import Uploader
from veilcount_client.recording.answer_drawing import AnswerDrawer
from veilcount_client.testing import SeededRandomSource

from ..device_fixtures import (
    DAY,
    HOUR,
    Arrival,
    Device,
    at,
    device_in_memory,
    file,
    number,
    set_clock,
)
from ..planting import Plant
from .emissions import Life, happen
from .paired_runs import constant_randomizers

RUNS, MANY = 16, 300  # of an active and of an idle person, in the suite and with --full
ALPHA = 1e-6  # of one life, over all that is compared in it; all randomness is seeded
COLLECTIONS = file(
    click={"unit": "event", "per_day": 4, "presence": "hidden"},
    mood={"presence": "hidden", "linkage": "collection"},
    state={"measure": "trend", "changes": 1},
)
FIRST = at(0, 7)


LIVES = (
    Life("closed for days", ((at(1, 0.5), "stop"), (at(3, 2), "start"))),
    Life(
        "crashed, and started in the evening",
        ((at(1, 0.5), "crash"), (at(1, 20), "start"), (at(2, 3), "crash"), (at(2, 21), "start")),
    ),
    Life("asleep for a day", ((at(1, 0.5), "sleep"), (at(2, 8), "wake"))),
    Life("no network for hours", ((at(1, 3), "offline"), (at(1, 13), "online"))),
    Life("a clock set forward, and back", ((at(1, 0.5), "forward"), (at(3, 4), "back"))),
    Life(
        "offline, and restarted often",
        ((at(1, 0.5), "offline"), *((at(1, hour), "restart") for hour in (5, 9, 13)),
         (at(1, 14), "online"), (at(1, 15), "restart")),
    ),
)  # fmt: skip


def run(life: Life, seed: object, *, active: bool, plant: Plant = nullcontext) -> list[Arrival]:
    """Return what the server sees of one person, in whom nothing is that of another run."""
    randomness = SeededRandomSource(number("randomness", seed, life.name, active))
    with (
        constant_randomizers(),
        device_in_memory(
            (seed, active), COLLECTIONS, FIRST, minute=HOUR, plant=plant, randomness=randomness
        ) as device,
    ):
        for instant, verb in sorted([*life.events, *(_records() if active else ())]):
            if verb not in {"wake", "back"}:
                device.run_until(max(instant, device.clock.now()))
            _happen(device, verb, instant)
        device.run_until(at(3, 18))
        if device.runs:
            device.stop()
    return device.wire.attempts


def _records() -> Iterator[tuple[float, str]]:
    """Yield the records of someone active: right after midnight, four of them in an hour."""
    for day in range(4):
        for place in range(4):
            yield at(day, 0.1 + place / 10 if day else 7.1 + place / 10), "record"


def _happen(device: Device, verb: str, instant: float) -> None:
    now = device.clock.now()
    if verb == "record":
        if device.runs and device.awake:  # in its sleep a machine records nothing
            device.record()
    elif verb in {"sleep", "wake"}:
        set_clock(device.clock, instant if verb == "wake" else now)
        device.awake = verb == "wake"
    elif verb in {"forward", "back"}:
        set_clock(device.clock, now + DAY if verb == "forward" else min(now, instant))
    else:
        happen(device, verb)


def features(seen: list[Arrival]) -> dict[str, float]:
    """Return numbers that say how often, when, and with how many reports somebody sends."""
    figures: dict[str, float] = {}
    for name, collection in COLLECTIONS.items():
        own = [each for each in seen if each.batch.reports[0].fingerprint == collection.fingerprint]
        instants = np.array(sorted(each.instant for each in own) or [0.0])
        gaps = np.diff(instants) if len(instants) > 1 else np.array([0.0])
        sizes = [len(each.batch.reports) for each in own] or [0]
        busiest = max(np.searchsorted(instants, instants + HOUR) - np.arange(len(instants)))
        figures |= {
            f"{name}: bodies": len(own),
            f"{name}: largest body": max(sizes),
            f"{name}: bodies with several reports": sum(size > 1 for size in sizes),
            f"{name}: shortest gap": float(gaps.min()),
            f"{name}: mean gap": float(gaps.mean()),
            f"{name}: first": float(instants[0]),
            f"{name}: last": float(instants[-1]),
            f"{name}: middle": float(np.median(instants)),
            f"{name}: time of day": float(np.mean(instants % DAY)),
            f"{name}: most in an hour": float(busiest),
        }
    return figures


def least_p(life: Life, runs: int, plant: Plant = nullcontext) -> tuple[float, str]:
    """Return the least p value of all that is compared, corrected for their number; and of what."""
    idle, active = (
        [features(run(life, seed, active=is_active, plant=plant)) for seed in range(runs)]
        for is_active in (False, True)
    )
    order = Random(1)
    found = []
    for name in idle[0]:
        ones, others = ([each[name] for each in runs_] for runs_ in (idle, active))
        order.shuffle(ones)
        p = ks_2samp(ones, others, method="exact" if runs < MANY else "asymp").pvalue
        found.append((float(p) * len(idle[0]), name))
    return min(found)


@pytest.mark.parametrize(
    ("life", "runs"),
    [
        *((life, RUNS) for life in LIVES[:2]),  # absent, and back at an odd hour
        *(pytest.param(life, MANY, marks=pytest.mark.full) for life in LIVES),
    ],
    ids=repr,
)
def test_active_and_idle_have_one_distribution(life: Life, runs: int) -> None:
    """However the device lives, what a server sees of both is drawn alike."""
    p, name = least_p(life, runs)

    assert p > ALPHA, name


@contextmanager
def one_time_a_body() -> Iterator[None]:
    """Wrong, and once so: what is overdue when a process starts gets a time each, if it was stored.

    An absence that is drawn a moment later shares one time with the other absences of its body.
    """

    def postpone(each: Uploader, outbox: Any, jitter: float) -> None:
        now = each.now()
        late = [report.number for report in outbox.overdue(now - each.grace, now + DAY, 1000)]
        fresh = [number for number in late if number in absences]
        shared = each.later(now, jitter)
        outbox.reschedule({number: each.later(now, jitter) for number in late})
        outbox.reschedule(dict.fromkeys(fresh, shared))

    def store(answers: AnswerDrawer, batch: Any) -> None:
        listed = list(batch)
        before = stored(answers)
        original(answers, listed)
        if any(each.absent for each in listed):
            absences.update(stored(answers) - before)

    def stored(answers: AnswerDrawer) -> set[int]:
        return {report.number for report in answers.state.overdue(1e12, 1e12, 1000)}

    absences: set[int] = set()
    original = AnswerDrawer.store
    with patch.object(Uploader, "_postpone", postpone), patch.object(AnswerDrawer, "store", store):
        yield


@contextmanager
def absences_at_once() -> Iterator[None]:
    """Wrong: an absence leaves when it is drawn, whatever was overdue then."""

    def times(answers: AnswerDrawer, answer: Any, place: int) -> tuple[float, float]:
        earliest, send_at = original(answers, answer, place)
        return (earliest, max(send_at, answer.at)) if answer.absent else (earliest, send_at)

    original = AnswerDrawer._times
    with patch.object(AnswerDrawer, "_times", times):
        yield


@pytest.mark.parametrize("plant", [one_time_a_body, absences_at_once])
def test_a_planted_difference_is_seen(plant: Plant) -> None:
    """The same comparison rejects devices that treat an absence unlike an answer."""
    p, name = least_p(LIVES[0], RUNS, plant)

    assert p < ALPHA, name
