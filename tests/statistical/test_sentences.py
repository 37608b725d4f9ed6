"""Sentences that promise a frequency hold as often as they say, from what a page prints.

Exactly: the support of a value has a distribution, and every range that it can lead to is read
from its headline. Nothing is drawn but for the largest of several values, seeded. PROMISES lists
every sentence of the product that promises a frequency, with its check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import pytest

from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_analysis.kinds.headline import share_text
from veilcount_analysis.kinds.results import Figure
from veilcount_analysis.text.number_format import frequency
from veilcount_shared.composition import guessing_probability
from veilcount_shared.guessing import times_in_twenty
from veilcount_shared.mechanisms import SubsetSelection, select_mechanism

from .coverage_harness import LEVEL, support

ENDS = re.compile(r"(\d+) (?:to|and) (\d+) of 100 answers are dark")
SETTINGS = [(1, 300, 0.3), (1, 20_000, 0.3), (4, 300, 0.02), (4, 50_000, 0.302), (2, 400_000, 0.5)]
RESPONSES = {
    epsilon: ResponseDistribution.from_mechanism(select_mechanism(3, str(epsilon)).mechanism)
    for epsilon in (1, 2, 4)
}


def printed(low: float, high: float) -> tuple[float, float]:
    """Return the range that a headline shows of an interval."""
    found = ENDS.search(share_text(Figure("share", "dark", (low + high) / 2, low, high)))
    assert found is not None
    return int(found[1]) / 100, int(found[2]) / 100


def rounded(low: float, high: float) -> tuple[float, float]:
    """The planted mistake: each end to the nearest hundredth."""
    return round(low, 2), round(high, 2)


def coverage(
    epsilon: int, n: int, share: float, shown: Callable[[float, float], tuple[float, float]]
) -> float:
    """Return how often the range that is shown holds the share, exactly."""
    response = RESPONSES[epsilon]
    likely, _ = support(response, n, share, IntervalTarget.POPULATION)
    counts = SupportCounts(n, likely.counts, response, 1)
    ends = zip(*counts.interval(1 - LEVEL, IntervalTarget.POPULATION), strict=True)
    holds = [low - 1e-9 <= share <= high + 1e-9 for low, high in (shown(*end) for end in ends)]
    return float(likely.chances @ np.array(holds))


@pytest.mark.parametrize(("epsilon", "n", "share"), SETTINGS)
def test_a_headline_holds_the_true_share_as_often_as_it_says(
    epsilon: int, n: int, share: float
) -> None:
    assert frequency(LEVEL) == "19 times in 20"
    assert coverage(epsilon, n, share, printed) >= 19 / 20 - 0.01  # as every interval's coverage


def test_ends_that_are_rounded_to_the_nearest_hundredth_hold_it_less_often() -> None:
    assert coverage(4, 50_000, 0.302, rounded) < 0.9


def test_of_the_largest_of_several_values_it_would_be_false() -> None:
    """So the sentence is about a value that was chosen beforehand."""
    response, n, values = RESPONSES[2], 2_000, 20
    draws = np.random.default_rng(20261201).binomial(
        n, response.Q + response.gap / values, (2_000, values)
    )
    low, high = SupportCounts(n, draws.max(axis=1), response, 1).interval(
        1 - LEVEL, IntervalTarget.POPULATION
    )

    assert np.mean((low <= 1 / values) & (1 / values <= high)) < 0.8


def test_what_is_too_wide_says_so() -> None:
    text = share_text(Figure("share", True, 0.28, 0.123, 0.437))

    assert text == "Somewhere between 12 and 44 of 100 answers are yes; too few reports to say more"
    assert frequency(0.999999) == "999,999 times in 1,000,000"


# -- whoever guesses -------------------------------------------------------------------------------

EPSILONS = [Fraction(step, 20) for step in range(1, 321)]


def right(epsilon: Fraction) -> Fraction:
    """The best guess between two values: e^epsilon / (1 + e^epsilon), to 60 digits."""
    with localcontext(prec=60):
        exponential = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        return Fraction(exponential / (1 + exponential))


def understated(words: Callable[[Fraction], str]) -> int:
    """How many epsilons are said to reveal less than they do, in twentieths."""
    return sum(
        Fraction(words(guessing_probability(epsilon, 1))) / 20 < right(epsilon)
        for epsilon in EPSILONS
    )


def test_no_sentence_promises_fewer_right_guesses_than_there_are() -> None:
    """For every twentieth of epsilon up to 16, in Fractions; planted: rounded down."""
    assert understated(times_in_twenty) == 0
    assert understated(lambda chance: str(floor(20 * chance))) == len(EPSILONS)
    for epsilon in EPSILONS:
        over = Fraction(times_in_twenty(guessing_probability(epsilon, 1))) / 20 - right(epsilon)
        assert over < min(Fraction(1, 20), 1 - right(epsilon))  # never 20 in 20


def test_a_device_gives_away_no_more_than_the_sentence_says() -> None:
    """The mechanism's own P, a Fraction: a report alone shows which of two values it is of."""
    for epsilon, times in (("0.5", "13"), ("1", "15"), ("2", "18"), ("2.9", "19"), ("3", "19.1")):
        mechanism = select_mechanism(2, epsilon).mechanism
        assert isinstance(mechanism, SubsetSelection)
        assert Fraction(times) / 20 >= mechanism.P
        assert times_in_twenty(guessing_probability(Fraction(epsilon), 1)) == times


# -- every promise ---------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
SOURCES = ("aggregator", "shared/veilcount_shared", "client/veilcount_client")
PROMISE = re.compile(
    r"times in (?=\d|\{)|\bfrequency\(|\| frequency|of the time\b(?! range)|credibl|\bthat often"
    r"|\b\d+ ?%(?= confidence| interval|\))"
)
DOCSTRING = re.compile(r'^\s*"""(?:[^"]|"(?!""))*"""|#.*$', re.MULTILINE)

#: a module or page, and the test that simulates or computes what its sentences promise
PROMISES = {
    "text/number_format.py": "statistical/test_sentences.py::a_headline_holds_the_true_share",
    "text/difference_words.py": "statistical/test_comparison_sentences.py::what_would_have_been",
    "queries/comparison_view.py": "statistical/test_comparison_sentences.py::a_range_holds",
    "dashboard/collection_parts.html": "statistical/test_sentences.py::of_the_largest_of_several",
    "dashboard/overview.html": "statistical/test_coverage.py::an_interval_covers_as_often",
    "dashboard/report.html": "statistical/test_coverage.py::an_interval_covers_as_often",
    "dashboard/releases.html": "aggregator/releases/test_releases.py::the_interval_of_a_count",
    "cli/check.py": "statistical/test_accuracy.py::simulated_shares_err_as_computed",
    "kinds/strings.py": "statistical/test_open_strings.py::a_string_is_found_half_of_the_time",
    "queries/plans.py": "analysis/test_plan_figures.py::an_open_string_of_the_planned_share",
    "queries/plan_view.py": "analysis/test_plan_figures.py::an_open_string_of_the_planned_share",
    "simulation/string_search.py": "aggregator/operate/cli/test_simulate.py::a_distribution_of",
    "releases/string_threshold.py": "analysis/test_curated_strings.py::strings_are_released_as",
    "queries/batch_view.py": "analysis/test_shuffled.py::the_best_guess_of_two_values_is",
    "queries/budget_view.py": "analysis/test_budget.py::nobody_guesses_better_than_the_curve",
    "shuffler_canaries/canary_result.py": "analysis/test_shuffler_conduct.py::30_canaries",
    "notice/messages.py": "claims/test_faces_of_the_notice.py::a_probability_that_is_too_small",
    "recording/receipt_messages.py": "client/recording/test_receipt.py::a_right_guess_is_stated",
}


def promises(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = DOCSTRING.sub("", text)
    return bool(PROMISE.search(text))


def promising() -> Iterator[str]:
    """Yield the modules and pages with a sentence that promises a frequency."""
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*")):
            if path.suffix in {".py", ".html"} and promises(path):
                yield "/".join(path.parts[-2:])


def test_every_sentence_that_promises_a_frequency_has_its_check() -> None:
    assert sorted(promising()) == sorted(PROMISES)
    for check in PROMISES.values():
        module, _, test = check.partition("::")
        assert f"def test_{test}" in (ROOT / "tests" / module).read_text(encoding="utf-8"), check


@pytest.mark.parametrize(
    "sentence", ["seen 4 times in 5", "right 60 % of the time", "a credible range", "95 % interval"]
)
def test_a_promise_without_a_check_is_noticed(sentence: str, tmp_path: Path) -> None:
    """Planted in a module; in a comment or a docstring it promises nobody anything."""
    module = tmp_path / "module.py"
    module.write_text(f'"""{sentence}."""\n# {sentence}\n', encoding="utf-8")
    assert not promises(module)

    module.write_text(f'TEXT = "{sentence}"\n', encoding="utf-8")
    assert promises(module)
