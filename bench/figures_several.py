"""Rare values of 12, of which people tick at most three: three ways to ask, at one epsilon."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from veilcount_analysis.mechanisms import estimate_shares
from veilcount_analysis.mechanisms.handler import share_handler_of
from veilcount_analysis.mechanisms.sampling import Flags, Floats, Ints, ticked
from veilcount_analysis.simulation.ticks import masks_of, tick_counters
from veilcount_shared import Collection, parse_collections, select_mechanism

from .measured_figures import Measured, intervals

VALUES, MOST, TICKED = 12, 3, 0.05
PEOPLE = (3_000, 30_000)
ROUNDS_A_POPULATION = 20  # of which each device is drawn
QUESTION = f"""
app = "bench"
[bench]
question = "Which?"
values = {list(range(VALUES))}
choose = "several"
epsilon = 1
unit = "user"
from = 2026-01-01
until = 2027-01-01
"""


def several_values(rounds: int) -> Iterator[Measured]:
    """Estimate values that one in twenty ticks: by set selection, a drawn bit, a drawn tick."""
    populations = max(rounds // ROUNDS_A_POPULATION, 2)
    for n in PEOPLE:
        for name, keys in (("set selection", f"most = {MOST}\n"), ("one drawn bit", "")):
            collection = parse_collections(QUESTION + keys, lambda _: [])["bench"]
            yield _collected(f"several values, {name}", collection, n, populations)
        yield _padded(n, populations)


def _people(n: int, generator: Generator) -> tuple[Ints, Flags]:
    masks = masks_of(generator.random((n, VALUES)) < TICKED, MOST, generator)
    return masks, ticked(masks, VALUES)


def _collected(item: str, collection: Collection, n: int, populations: int) -> Measured:
    generator, columns, truth = np.random.default_rng(n), [], []
    for _ in range(populations):
        masks, ticks = _people(n, generator)
        shares = estimate_shares(
            collection, tick_counters(collection, masks, generator), target="cohort"
        )
        columns.append((shares.frequency, shares.low, shares.high))
        truth.append(ticks.mean(axis=0))
    points, low, high = (np.array(column) for column in zip(*columns, strict=True))
    return intervals(item, n, points, (low, high), np.array(truth))


def _padded(n: int, populations: int) -> Measured:
    """Measure one of three ticks and fillers, drawn and reported as one value, three times it."""
    mechanism = select_mechanism(VALUES + MOST, Fraction(1)).mechanism
    handler, generator, errors = share_handler_of(mechanism), np.random.default_rng(n), []
    for _ in range(populations):
        _, ticks = _people(n, generator)
        fillers = np.arange(MOST) < MOST - ticks.sum(axis=1, keepdims=True)
        own = np.concatenate([ticks, fillers], axis=1)
        drawn = np.where(own, generator.random(own.shape), -1.0).argmax(axis=1)
        held = np.bincount(drawn, minlength=VALUES + MOST)
        supports = handler.supports(handler.draw_counters(held, generator))[:VALUES]
        points: Floats = MOST * handler.response.share(supports / n)
        errors.append(points - ticks.mean(axis=0))
    return Measured("several values, one drawn tick", n, float(np.sqrt(np.mean(np.square(errors)))))
