"""Open strings of a known population, and which of them a search or a curator's release finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from string import ascii_lowercase
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.domain import OpenStrings

from ..errors import QueryError
from ..estimation.estimator import IntervalTarget
from ..estimation.find_budget import DISCOVERIES, chance, chance_of_first
from ..mechanisms.candidate_search import (
    MAX_CANDIDATES,
    Candidates,
    discovered,
    found_places,
    open_domain,
    open_handler,
)
from ..mechanisms.sampling import Ints
from ..query_params import parameter
from ..releases import draw_release
from ..releases.noise import simulated_source
from ..releases.priced_query import first_period_query
from ..releases.query_types.strings_query import StringsQuery
from ..releases.string_threshold import StringThreshold
from ..series.packed_rows import Counters
from ..text import number_format
from ..text.number_format import decimal
from ..text.view_parts import Table
from .batch_models import BatchModel, Runs, batch_models, covers_line, run_count
from .population import Population, simulate
from .simulated_figures import (
    SimulatedEstimate,
    SimulatedFigures,
    SimulationQuery,
    Top,
    truth_table,
)
from .true_values import ZIPF, Truth, apportion

CANDIDATES = 10_000  # by default
SHORTEST, LONGEST = 4, 9  # letters of an invented word
HEADS = (10, 50)  # of the most frequent strings
RUNS = 5
ERRORS = ("model", "epsilon", "found", "found, nobody has it", "intervals with the truth")


@dataclass(frozen=True, kw_only=True)
class StringsSimulation(SimulationQuery):
    """Which strings devices have, and which candidates are tested."""

    subject: ClassVar[str] = "open strings"

    truth: Truth = ZIPF
    top: Top = 20
    strings: Annotated[
        int,
        parameter(
            "Open strings: number of strings that devices have, 1,000 by default.",
            ge=1,
            le=MAX_CANDIDATES,
            metavar="N",
        ),
    ] = 1_000
    candidates: Annotated[
        int | None,
        parameter(
            f"Open strings: number of candidates, {CANDIDATES:,} by default; those that devices"
            " have are among them.",
            ge=1,
            le=MAX_CANDIDATES,
            metavar="N",
        ),
    ] = None
    runs: Runs = None


def simulate_strings(
    collection: Collection, query: StringsSimulation, generator: Generator
) -> SimulatedFigures:
    """Search for candidates, some of which devices have; or for strings letter by letter."""
    domain, models = open_domain(collection), batch_models(collection)
    runs = run_count(models, query.runs, RUNS)
    if domain.prefixes and query.candidates is not None:
        fix = "with discover = true strings are found without: remove it"
        raise QueryError("candidates", query.candidates, fix)
    weights = np.array(list(query.truth.typed.values()))
    if not query.truth.typed:
        weights = query.truth.ranked(query.strings)
    candidates = _candidates(domain, query, len(weights), generator)
    devices = apportion(query.n, weights)
    results = {
        model: [
            _search_of(model)(model, candidates, devices, generator, query.level)
            for _ in range(runs)
        ]
        for model in models
    }
    order = np.argsort(-devices, kind="stable")
    rows = [
        {"value": candidates.texts[place], "truth": int(devices[place]) / query.n}
        | {model.name: searches[0].estimate.at(place) for model, searches in results.items()}
        for place in order[: query.top].tolist()
    ]
    tested = 0 if domain.prefixes else len(candidates.texts)
    first, *further = (_facts(searches[0], order, tested) for searches in results.values())
    threshold = results[models[0]][0].threshold
    errors = [_errors(model, searches, devices) for model, searches in results.items()]
    among = {"runs": runs, "errors": errors} if models[0].covers else {}
    return SimulatedFigures(
        n=query.n,
        level=query.level,
        facts={"values": rows, "search": first} | among | _release_facts(threshold, further),
        table=truth_table(rows, ("value",), missing="not found"),
        closing=(
            *_closing(first),
            *(_release_lines(threshold, further) if threshold else ()),
            *covers_line(collection),
        ),
        errors=_error_table(errors, runs) if among else None,
    )


def _candidates(
    domain: OpenStrings, query: StringsSimulation, strings: int, generator: Generator
) -> Candidates:
    """Return candidates, the first of which devices have; names are invented."""
    size = strings if domain.prefixes else max(query.candidates or CANDIDATES, strings)
    texts = list(query.truth.typed)
    if domain.prefixes and not texts:
        texts = _invented_words(size, generator)
    texts += [f"string {number}" for number in range(1, size - len(texts) + 1)]
    candidates = Candidates.from_texts(domain, texts)
    if len(candidates.texts) < size:
        fix = "give different strings, of 1 to 200 characters, none of them hidden"
        raise QueryError("truth", list(query.truth.typed), fix)
    return candidates


def _invented_words(number: int, generator: Generator) -> list[str]:
    """Return so many different words of random letters: no dictionary knows them."""
    words: dict[str, None] = {}
    while len(words) < number:
        length = generator.integers(SHORTEST, LONGEST + 1)
        words["".join(generator.choice(list(ascii_lowercase), length))] = None
    return list(words)


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """What was found in the reports of one model, with the share of each string that was."""

    estimate: SimulatedEstimate  # NaN: not found
    false_finds: int  # strings that no device has
    least_share: float  # of a string that is found half of the time
    threshold: StringThreshold | None = None  # of a release


Search = Callable[[BatchModel, Candidates, Ints, Generator, float], SearchResult]


def _search(
    model: BatchModel, candidates: Candidates, devices: Ints, generator: Generator, level: float
) -> SearchResult:
    """Simulate one report per device; the first len(devices) candidates are real, no other."""
    strings, alpha = len(devices), chance_of_first(len(candidates.texts))
    population = Population(candidates.places[:strings], devices)
    reports = simulate(model.collection, population, generator)
    counters = model.among_covers(reports, generator)
    places = found_places(model.collection, counters, candidates, alpha, model.covers)
    estimate = _estimate(model, counters, candidates, places, level)
    false_finds = int(np.count_nonzero(places >= strings))
    return SearchResult(estimate, false_finds, _least_share(model, population.n, alpha))


def _discovery(
    model: BatchModel, strings: Candidates, devices: Ints, generator: Generator, level: float
) -> SearchResult:
    """Find strings letter by letter, of which so many devices have each."""
    alpha = chance(1, DISCOVERIES)
    reports = draw_beginnings(model.collection, strings.texts, devices, generator)
    counters = model.among_covers(reports, generator)
    place_of = {text: place for place, text in enumerate(strings.texts)}
    texts = discovered(model.collection, counters, (), alpha, model.covers).texts
    places = np.array([place_of[text] for text in texts if text in place_of], np.int64)
    estimate = _estimate(model, counters, strings, places, level)
    least_share = _least_share(model, int(devices.sum()), alpha)
    return SearchResult(estimate, len(texts) - len(places), least_share)


def _least_share(model: BatchModel, n: int, alpha: float) -> float:
    return open_handler(model.collection).least_share(n, alpha, model.covers)


def _release(
    model: BatchModel, candidates: Candidates, devices: Ints, generator: Generator, level: float
) -> SearchResult:
    """Release the strings that so many devices have each, and name the candidates among them."""
    n, strings = int(devices.sum()), len(devices)
    question = first_period_query(model.collection, StringsQuery.kind)
    threshold = StringThreshold.from_query(question, level)
    present = np.flatnonzero(devices)  # a string that nobody has is no counter
    places, rows = np.unique(candidates.places[present], return_inverse=True)
    counters = np.stack([places, np.bincount(rows, devices[present]).astype(np.int64)])
    noise = simulated_source(threshold.noise, generator)
    release = draw_release(question, counters, level, noise=noise)
    named = np.flatnonzero(np.isin(candidates.places, release.labels))
    columns = np.searchsorted(release.labels, candidates.places[named])
    figures = np.full((3, len(candidates.texts)), np.nan)
    figures[:, named] = np.array([release.values, release.low, release.high])[:, columns] / n
    false_finds = int(np.count_nonzero(named >= strings))
    least_share = threshold.threshold / n
    return SearchResult(SimulatedEstimate(*figures), false_finds, least_share, threshold)


def _search_of(model: BatchModel) -> Search:
    if model.collection.trust.reveals:
        return _release
    return _discovery if open_domain(model.collection).prefixes else _search


def draw_beginnings(
    collection: Collection, texts: Sequence[str], devices: Ints, generator: Generator
) -> Counters:
    """Return the counters of one report of each device, of strings found letter by letter."""
    domain = open_domain(collection)
    split = generator.multinomial(devices, [1 / domain.parts] * domain.parts)
    counts = np.zeros((domain.parts, 1 << domain.bucket_bits), np.int64)
    for row, length, part in zip(counts, domain.prefixes, split.T, strict=True):
        digests = b"".join(domain.digest(text, length)[:8] for text in texts)
        buckets = np.frombuffer(digests, ">u8") >> np.uint64(64 - domain.bucket_bits)
        np.add.at(row, buckets.astype(np.int64), part)
    return open_handler(collection).draw_counters(counts.ravel(), generator)


def _estimate(
    model: BatchModel, counters: Counters, candidates: Candidates, places: Ints, level: float
) -> SimulatedEstimate:
    """Return the estimates of the candidates that were found; NaN: of the others."""
    handler = open_handler(model.collection)
    evidence = handler.evidence(counters, candidates.places[places], model.covers)
    low, high = evidence.interval(1 - level, IntervalTarget.COHORT)
    figures = np.full((3, len(candidates.texts)), np.nan)
    figures[:, places] = evidence.points, low, high
    return SimulatedEstimate(*figures)


def _errors(
    model: BatchModel, searches: Sequence[SearchResult], devices: Ints
) -> dict[str, float | str]:
    """Return how many strings a model finds on average, and how often its intervals hold."""
    truth, stated, hits = devices / devices.sum(), 0, 0
    for search in searches:
        estimate = search.estimate
        low, high = (end[: len(devices)] for end in (estimate.low, estimate.high))
        stated += int(np.isfinite(low).sum())
        hits += int(((low <= truth) & (truth <= high)).sum())
    return {
        "model": model.name,
        "epsilon": model.epsilon,
        "found": stated / len(searches),
        "false": sum(search.false_finds for search in searches) / len(searches),
        "coverage": hits / stated if stated else float("nan"),
    }


def _error_table(errors: Sequence[Mapping[str, Any]], runs: int) -> Table:
    rows = [
        (
            row["model"],
            number_format.epsilon(row["epsilon"]),
            f"{row['found']:,.1f}",
            f"{row['false']:,.2f}",
            f"{row['coverage']:.1%}" if row["found"] else "",
        )
        for row in errors
    ]
    return Table(f"Over {runs:,} batches, on average", ERRORS, rows)


def _facts(search: SearchResult, order: Ints, candidates: int) -> dict[str, Any]:
    """Return how many strings are found of those that devices have, the most frequent first."""
    is_found = np.isfinite(search.estimate.value[order])
    return {
        "strings": len(order),
        "candidates": candidates,
        "found": int(is_found.sum()),
        "false": search.false_finds,
        "least_share": search.least_share,
        "most_frequent": {
            str(head): int(is_found[:head].sum()) for head in HEADS if head <= len(order)
        },
    }


def _release_facts(
    threshold: StringThreshold | None, further: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the threshold of a release, and what local reports find; nothing without one."""
    if threshold is None:
        return {}
    exact = {"epsilon": threshold.epsilon, "rho": threshold.rho}
    costs = {name: None if cost is None else decimal(cost) for name, cost in exact.items()}
    return {"release": asdict(threshold) | costs, "local": further[0]}


def _release_lines(
    threshold: StringThreshold, further: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    yield f"central: {threshold.sentence}"
    for search in further:
        least = number_format.share(search["least_share"])
        yield (
            f"local, at the same epsilon (substitution): {search['found']:,} of the"
            f" {search['strings']:,} strings are found; one of {least} half of the time"
        )


def _closing(search: Mapping[str, Any]) -> tuple[str, ...]:
    heads = (
        f"{part} of the {head} most frequent" for head, part in search["most_frequent"].items()
    )
    strings = f"{search['found']:,} of the {search['strings']:,} strings that devices have"
    nobody = f"{search['false']:,}"
    if search["candidates"]:
        nobody += f" of {search['candidates'] - search['strings']:,} candidates"
    return (
        ", ".join([f"found: {strings}", *heads]),
        f"found, but nobody has it: {nobody}",
        f"a string is found half of the time at {number_format.share(search['least_share'])}",
    )
