"""What a report costs the device: microseconds, bits, and how far its accuracy is from the optimum.

Every repetition times ours and each competitor once, one after the other, and the median of the
repetitions is shown: a machine that speeds up or slows down does so for all of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import median
from typing import Any

from veilcount_shared import Collection, SystemRandomSource
from veilcount_shared.collection import Measure
from veilcount_shared.domain import GRID, Boolean, Choice, Number
from veilcount_shared.mechanisms import ProjectiveGeometry, SubsetSelection
from veilcount_shared.periods import Unit

from .competitors import CLIENTS, Competitors, CompetitorsMissingError
from .definitions import ask
from .stopwatch import Stopwatch
from .table import Row, Table
from .variance import optimum, supported

SIZES = (2, 64, 1024, 65536, 1_000_000)
EPSILONS = (1, 4)
INPUTS = 1000

#: microseconds a report; a subset of w > 1 has its limit per element
ALONE, ELEMENT, PLANE, WINDOW = 2.0, 1.5, 6.0, 8.0

NOTES = (
    "us: CPU microseconds of collection.randomize(value, SystemRandomSource()), design us: of its",
    "  design alone; the median of the repetitions, and the spread from the least to the greatest.",
    "ratio: variance at the uniform distribution to the Ye-Barg optimum, from the P and Q in use.",
    "pure-ldp: float probabilities and Mersenne Twisters, so these are times without that safety.",
)


@dataclass(frozen=True)
class Effort:
    """How often, and for how many seconds of CPU each time."""

    repetitions: int
    budget: float


@dataclass(frozen=True)
class Case:
    """One collection and the values put to it."""

    selected_by: str
    k: int | None
    epsilon: int
    collection: Collection
    values: list[Any]


def run(*, quick: bool) -> Table:
    """Measure every case, with the competitors if they can be installed."""
    effort = Effort(5, 0.01) if quick else Effort(9, 0.05)
    notes: tuple[str, ...] = NOTES
    with ExitStack() as stack:
        competitors: Competitors | None = None
        try:
            competitors = stack.enter_context(Competitors())
            for client in CLIENTS:  # before the measurement: does every client run?
                competitors.ask("lap", client=client, k=2, epsilon=1, budget=effort.budget)
        except CompetitorsMissingError as error:
            competitors, notes = None, (*NOTES, f"{error}: ours stand alone.")
        rows = [row for case in _cases() for row in _measure(case, effort, competitors)]
    return Table("randomize: what a report costs the device", rows, notes)


# -- the cases -------------------------------------------------------------------------------------


def _cases() -> Iterator[Case]:
    for k in SIZES:
        draw = random.Random(k)
        domain = _domain(k)
        values = draw.choices(domain.labels, k=INPUTS)
        for epsilon in EPSILONS:
            yield Case(f"1 of {k}", k, epsilon, ask(domain, epsilon, unit=Unit.DAY), values)
    draw = random.Random(0)
    minutes = [draw.uniform(0, 240) for _ in range(INPUTS)]
    for measure in (Measure.MEAN, Measure.DISTRIBUTION, Measure.RANGES):
        for epsilon in EPSILONS:
            number = ask(
                Number(Fraction(0), Fraction(240)), epsilon, measure=measure, unit=Unit.DAY
            )
            yield Case(measure, None, epsilon, number, minutes)


@lru_cache(maxsize=1)
def _domain(k: int) -> Boolean | Choice:
    return Boolean() if k == 2 else Choice(tuple(f"item {place}" for place in range(k)))


# -- the measurement -------------------------------------------------------------------------------


def _measure(case: Case, effort: Effort, competitors: Competitors | None) -> Iterator[Row]:
    whole, alone = _stopwatches(case)
    ours: list[float] = []
    inner: list[float] = []
    laps: dict[str, list[dict[str, Any]]] = {
        client: [] for client in CLIENTS if competitors and case.k
    }
    for _ in range(effort.repetitions):
        ours.append(whole.microseconds(effort.budget))
        inner.append(alone.microseconds(effort.budget))
        for client, timings in laps.items():
            assert competitors is not None
            request = {"k": case.k, "epsilon": case.epsilon, "budget": effort.budget}
            timings.append(competitors.ask("lap", client=client, **request))
    yield _our_row(case, ours, inner)
    for client, timings in laps.items():
        yield _their_row(case, CLIENTS[client], timings, median(ours))


def _stopwatches(case: Case) -> tuple[Stopwatch, Stopwatch]:
    """Return one for the whole way of a value, one for the design alone."""
    randomness, mechanism = SystemRandomSource(), case.collection.randomizer
    draw = random.Random(case.k)
    places = GRID + 1 if case.k is None else case.k
    inputs = [draw.randrange(places) for _ in range(INPUTS)]
    return (
        Stopwatch(case.collection.randomize, case.values, randomness),
        Stopwatch(mechanism.randomize, inputs, randomness),
    )


def _our_row(case: Case, ours: list[float], inner: list[float]) -> Row:
    mechanism = case.collection.mechanism
    name, limit, target = _target(mechanism)
    ratio = None
    if isinstance(mechanism, SubsetSelection | ProjectiveGeometry):
        variance = supported(mechanism.k, float(mechanism.P), float(mechanism.Q))
        ratio = variance / optimum(mechanism.k, case.epsilon)
    return {
        "asked": case.selected_by,
        "eps": case.epsilon,
        "randomizer": name,
        "bits": case.collection.message_bits,
        "ratio": ratio,
        "design us": median(inner),
        **_timing(ours),
        "target": target,
        "met": median(ours) <= limit,
    }


def _their_row(case: Case, name: str, laps: list[dict[str, Any]], ours: float) -> Row:
    assert case.k is not None
    times = [lap["us"] for lap in laps]
    return {
        "asked": case.selected_by,
        "eps": case.epsilon,
        "randomizer": name,
        "bits": laps[0]["bits"],
        "ratio": laps[0]["variance"] / optimum(case.k, case.epsilon),
        **_timing(times),
        "x ours": median(times) / ours,
    }


def _timing(times: list[float]) -> dict[str, float]:
    middle = median(times)
    return {"us": middle, "spread %": (max(times) - min(times)) / middle * 100}


def _target(mechanism: object) -> tuple[str, float, str]:
    """Return a design's name, its limit in microseconds, and the limit in words."""
    if isinstance(mechanism, SubsetSelection) and mechanism.w > 1:
        limit = ELEMENT * mechanism.w
        return f"subset w={mechanism.w}", limit, f"<= {limit:g} ({ELEMENT} x {mechanism.w})"
    if isinstance(mechanism, SubsetSelection):
        return "subset w=1", ALONE, f"<= {ALONE:g}"
    if isinstance(mechanism, ProjectiveGeometry):
        return f"plane q={mechanism.q} t={mechanism.t}", PLANE, f"<= {PLANE:g}"
    return "window", WINDOW, f"<= {WINDOW:g}"
