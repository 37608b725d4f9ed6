"""People who tick values of a list, each value independently of all others, and their estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.domain import Several

from ..errors import QueryError
from ..estimation.results import NoReports
from ..mechanisms import estimate_shares, handler_of, tally
from ..mechanisms.sampling import Flags, Floats, Ints, chunks
from ..query_params import parameter, parse_number
from ..series.packed_rows import Counters
from ..text.result_columns import spelled
from .batch_models import BatchModel, batch_models, covers_line
from .simulated_figures import (
    DrawnDevices,
    SimulatedEstimate,
    SimulatedFigures,
    SimulationQuery,
    Top,
    covered,
    truth_table,
)

LARGEST, EXPONENT = 0.5, 0.7  # by default: the share of the first value, and how shares fall


@dataclass(frozen=True, slots=True)
class TickShares:
    """The share of people who tick each value: as typed, others nobody; by default falling."""

    typed: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, name: str, words: list[str]) -> Self:
        """Return the typed shares."""
        return cls(dict(_share(name, word) for word in words))

    def of(self, domain: Several) -> Floats:
        """Return the share of each value."""
        if not self.typed:
            ranks = np.arange(1, domain.size + 1, dtype=np.float64)
            falling: Floats = LARGEST * ranks**-EXPONENT
            return falling
        labels = [spelled(label) for label in domain.labels]
        if unknown := [word for word in self.typed if word not in labels]:
            raise QueryError("truth", unknown[0], f"no such value: give some of {labels[0]}, ...")
        return np.array([self.typed.get(label, 0.0) for label in labels])


@dataclass(frozen=True, kw_only=True)
class TicksSimulation(SimulationQuery):
    """How many people tick which value, and how many values are shown."""

    subject: ClassVar[str] = "several values"

    n: DrawnDevices
    truth: Annotated[
        TickShares,
        parameter(
            "VALUE=SHARE, repeated for each value: the part of people who tick it.",
            parse=TickShares.parse,
            repeated=True,
            metavar="TRUTH",
        ),
    ] = TickShares()
    top: Top = 20


def simulate_ticks(
    collection: Collection, query: TicksSimulation, generator: Generator
) -> SimulatedFigures:
    """Estimate how many tick each value, of people whose ticks are drawn."""
    domain = collection.domain
    if not isinstance(domain, Several):
        raise TypeError(f"{collection.name}: one value a person")
    ticks = generator.random((query.n, domain.size)) < query.truth.of(domain)
    truth, masks = ticks.mean(axis=0), masks_of(ticks, domain.most, generator)
    estimates = {
        model.name: _estimate(model, masks, query, generator) for model in batch_models(collection)
    }
    order = np.argsort(-truth, kind="stable")[: query.top].tolist()
    rows: list[dict[str, Any]] = [
        {"value": domain.labels[place], "truth": float(truth[place])}
        | {name: estimate.at(place) for name, estimate in estimates.items()}
        for place in order
    ]
    true, stated = covered(rows)
    closing = f"the truth is in {true} of {stated} local intervals shown"
    return SimulatedFigures(
        n=query.n,
        level=query.level,
        facts={"values": rows},
        table=truth_table(rows, ("value",)),
        closing=(closing, *_too_many(ticks, domain), *covers_line(collection)),
    )


def masks_of(ticks: Flags, most: int | None, generator: Generator) -> Ints:
    """Return the inputs of people with these ticks: of more than `most`, so many are drawn."""
    if most is not None:
        order = np.where(ticks, generator.random(ticks.shape), 2.0).argsort(axis=1).argsort(axis=1)
        ticks = ticks & (order < most)
    masks: Ints = ticks @ (1 << np.arange(ticks.shape[1]))
    return masks


def tick_counters(collection: Collection, masks: Ints, generator: Generator) -> Counters:
    """Return the counters of one report of each person."""
    handler = handler_of(collection.mechanism)
    total = np.zeros(collection.mechanism.counters, np.int64)
    for part in chunks(len(masks)):
        total += tally(collection, handler.draw_rows(masks[part], generator))
    return total


def _estimate(
    model: BatchModel, masks: Ints, query: TicksSimulation, generator: Generator
) -> SimulatedEstimate:
    reports = tick_counters(model.collection, masks, generator)
    counters = model.among_covers(reports, generator)
    shares = estimate_shares(
        model.collection, counters, query.level, target="cohort", covers=model.covers
    )
    if isinstance(shares, NoReports):
        raise QueryError("n", query.n, "too few for a report of each value")
    return SimulatedEstimate(shares.frequency, shares.low, shares.high)


def _too_many(ticks: Flags, domain: Several) -> tuple[str, ...]:
    if domain.most is None:
        return ()
    over = float((ticks.sum(axis=1) > domain.most).mean())
    return (f"{over:.1%} of the people tick more than {domain.most}",) if over else ()


def _share(name: str, word: str) -> tuple[str, float]:
    value, _, share = word.rpartition("=")
    number = parse_number(name, share) if value else -1
    if not 0 <= number <= 1:
        raise QueryError(name, word, "give VALUE=SHARE, a share from 0 to 1")
    return value, float(number)
