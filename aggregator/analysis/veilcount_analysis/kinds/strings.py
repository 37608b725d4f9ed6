"""Open strings: candidates are tested, or strings are found letter by letter.

A test is counted durably before it is made (`Source.searches`): what is shown was paid for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.domain import MAX_LABEL, OpenStrings

from ..errors import QueryError
from ..estimation import NoReports
from ..estimation.find_budget import chance_of_first
from ..mechanisms import estimate_shares
from ..mechanisms.candidate_search import MAX_CANDIDATES, Candidates, open_domain, open_handler
from ..mechanisms.estimates import TermOptions
from ..privacy.trust_models import Quantity
from ..query_params import Parameters
from ..simulation.simulated_figures import SimulatedFigures
from ..simulation.string_search import StringsSimulation, simulate_strings
from ..text import number_format
from .comparison import OPEN_STRINGS, CommonValues, Comparison
from .estimate_query import EstimateQuery
from .headline import Headline, largest_first, share_text
from .kind import NAMED, SummedKind
from .results import Figure, RangeFigures
from .scope import Scope
from .source import CandidateSearch, SelectedValues, Source, Tally
from .time_ranges import TimeRange
from .values import (
    PROBABILITIES,
    SHARES,
    leading,
    poisoning_finding,
    share_figures,
    side_shares,
    unanswered,
)

NOT_LISTED = "open strings are not listed: give candidates or values"


class Strings(SummedKind[OpenStrings]):
    """Shares of strings: those named, of candidates those found, or those found before."""

    name = "strings"
    panels = (SHARES,)
    facts: ClassVar[Mapping[str, str]] = {
        **PROBABILITIES,
        "discovers": "strings are found without candidates, by discover=true",
        "candidates": "number that this query names",
        "found": "number of these found, or by discover; else in any query before",
        "missing": "not found, of the first 100 candidates",
        "tested": "candidates ever tested, each on a range of days and a segment; about",
        "least_share": "share of a string that a test finds half of the time; null: no reports",
    }
    figure = "strings"
    simulation = StringsSimulation
    simulates_releases = True
    accepted_parameters: ClassVar[frozenset[str]] = frozenset(
        {"view=smooth", "candidates", "discover", "values"}
    )
    refused_parameters: ClassVar[Mapping[str, str]] = {
        "top": NOT_LISTED,
        "group": NOT_LISTED,
        "view=consistent": "the shares of open strings that were found do not sum to 100 %:"
        " view=raw",
        "page": "open strings have one page",
        "looks=every": "open strings have intervals for one planned look: looks=one",
    }

    def check(self, query: EstimateQuery) -> None:
        super().check(query)
        if query.candidates and self.domain.prefixes and not query.discover:
            fix = "strings are found without them: give discover=true, which takes them as a"
            raise QueryError("candidates", list(query.candidates[:NAMED]), f"{fix} dictionary")
        if query.discover and not self.domain.prefixes:
            fix = "only where the definition has discover = true: give candidates"
            raise QueryError("discover", True, fix)

    def load(
        self, source: Source, query: EstimateQuery, scope: Scope, whole: Tally
    ) -> SelectedValues:
        search = self._search(source, query, scope, whole)
        texts, places = search.texts, search.places
        if query.values:
            candidates = candidates_of(self.domain, query.values, "values")
            texts, places = tuple(candidates.texts), candidates.places
        return SelectedValues(texts, places, None, self._facts(search, whole))

    def _search(
        self, source: Source, query: EstimateQuery, scope: Scope, whole: Tally
    ) -> CandidateSearch:
        """Return those found: among the candidates, letter by letter, or in any test before."""
        about = (scope.whole.periods, list(scope.cells))
        if not (query.discover or query.candidates):
            return source.searches.known()
        candidates = candidates_of(self.domain, query.candidates)
        if query.discover:
            return source.searches.discover(whole, query.candidates, about)
        return source.searches.test(whole, candidates, about)

    def figures(
        self, data: Tally, query: EstimateQuery, selection: SelectedValues, time_range: TimeRange
    ) -> RangeFigures:
        contributions = time_range.contributions(self.collection)
        terms = TermOptions(looks=query.looks, contributions=contributions, covers=data.covers)
        places = selection.places.tolist()
        shares = estimate_shares(
            self.collection,
            data.counters,
            query.level,
            among=query.among.value,
            values=places,
            **terms,
        )
        if isinstance(shares, NoReports):
            return RangeFigures(0, shares.estimand, unanswered(selection.labels))
        figures = share_figures(shares, query, selection.labels, np.arange(len(places)))
        # of those found none leads: a string that nobody looked for may be larger
        leader = leading(figures) if query.values else None
        return RangeFigures(shares.n, shares.estimand, figures, leader)

    def poisoning(self, whole: Tally) -> tuple[bool, str]:
        return poisoning_finding(self.collection, whole)

    def headline(
        self, figures: Sequence[Figure], facts: Mapping[str, Any], *, leads: bool
    ) -> Headline:
        """Return the largest two; one that nobody looked for may be larger."""
        largest = largest_first(figures)[:2]
        return Headline("; ".join(map(share_text, largest)) or "No string is found yet")

    def notes(self, facts: Mapping[str, Any]) -> list[str]:
        tested = f"{facts['tested']:,} tests so far"
        if facts["least_share"] is not None:
            least = number_format.share(facts["least_share"])
            tested = f"a string is found from a share of about {least} on; {tested}"
        if not facts["candidates"]:
            return [tested]
        missing = ", ".join(facts["missing"])
        matches = f"{facts['found']:,} of {facts['candidates']:,} candidates found"
        return [f"{matches}; not found: {missing}" if missing else matches, tested]

    def unknown_values(self, words: Sequence[str]) -> tuple[str, ...]:
        return Candidates.from_texts(self.domain, tuple(words)).unreadable

    @property
    def comparison(self) -> Comparison:
        estimate = partial(side_shares, self.collection)
        return Comparison(OPEN_STRINGS, self._common_values, estimate)

    def _common_values(self, other: Collection, words: Sequence[str]) -> CommonValues:
        named = candidates_of(self.domain, words, "values")
        there = Candidates.from_texts(open_domain(other), named.texts)
        return CommonValues(named.places, there.places, named.texts.__getitem__)

    def simulate(self, options: Parameters, generator: Generator) -> SimulatedFigures:
        return simulate_strings(self.collection, StringsSimulation.parse(options), generator)

    @property
    def quantity(self) -> Quantity:
        return Quantity.of_strings(self.domain.bucket_bits, self.domain.parts)

    @property
    def line(self) -> float:
        return open_handler(self.collection).least_share(1, chance_of_first(MAX_CANDIDATES))

    def _facts(self, search: CandidateSearch, whole: Tally) -> dict[str, Any]:
        handler, texts = open_handler(self.collection), set(search.texts)
        response, n = handler.response, handler.report_count(whole.counters) - whole.covers
        found_from = handler.least_share(n, search.alpha, whole.covers) if n > 0 else None
        return {
            "P": response.P,
            "Q": response.Q,
            "discovers": search.discovers,
            "candidates": search.candidates,
            "found": len(search.texts),
            "missing": [text for text in search.named if text not in texts],
            "tested": search.tested,
            "least_share": found_from,
        }


def candidates_of(
    domain: OpenStrings, words: Sequence[str], name: str = "candidates"
) -> Candidates:
    """Return the candidates of a query, or refuse them."""
    if len(words) > MAX_CANDIDATES:
        fix = f"at most {MAX_CANDIDATES:,} at a time"
        raise QueryError(name, f"{len(words):,} strings", fix)
    candidates = Candidates.from_texts(domain, words)
    if candidates.unreadable:
        fix = f"give strings of 1 to {MAX_LABEL} visible characters"
        raise QueryError(name, list(candidates.unreadable[:NAMED]), fix)
    return candidates
