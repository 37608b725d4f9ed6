"""The audit of every mechanism: none is found broken, and the audit sees nearly all that is there.

Draws are seeded, so nothing flakes; with other seeds an honest mechanism would be declared broken
with probability at most alpha = 0.001 an audit. N below is drawn from each of two values, half of
it for the search. It was chosen for measured >= 0.9 x claimed: the weaker side of the best event
has probability q, and Clopper-Pearson costs about
3.3 (1 / sqrt(q N / 2) + 1 / sqrt(e^eps q N / 2)).
A quarter of N finds the same mechanisms broken when they are built for 1.3 x the claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from veilcount_analysis.audit import AuditResult, audit, judge
from veilcount_analysis.kinds.registry import kind_of
from veilcount_client.testing import SeededRandomSource
from veilcount_shared import parse_collections
from veilcount_shared.domain import GRID
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    MeanMechanism,
    ProjectiveGeometry,
    SubsetSelection,
    select_mechanism,
)

Audited = SubsetSelection | ProjectiveGeometry | MeanMechanism | DistributionMechanism

ALPHA = 0.001
SEEN = 0.9  # of the claim, at least
PART = 4  # of which one finds a claim broken that is exceeded


@dataclass(frozen=True)
class Case:
    """A mechanism as a function of epsilon, and how it is audited."""

    mechanism: Callable[[Fraction], Audited]
    claimed: int
    pair: tuple[int, int]
    samples: int
    symbol_bits: tuple[int, ...] = (1, 8)

    def audit(self, epsilon: Fraction, part: int) -> AuditResult:
        """Audit the mechanism built for this epsilon, against the claim, by a part of N."""
        mechanism, randomness = self.mechanism(epsilon), SeededRandomSource(1)
        width = -(-mechanism.bits // 8)

        def emit(value: object) -> bytes:
            assert isinstance(value, int)
            return mechanism.randomize(value, randomness).to_bytes(width, "big")

        samples, symbols = self.samples // part, self.symbol_bits
        return audit(emit, self.pair, self.claimed, samples=samples, symbol_bits=symbols)


def subset(k: int, w: int) -> Callable[[Fraction], SubsetSelection]:
    return lambda epsilon: SubsetSelection.for_epsilon(epsilon, k, w)


def plane(q: int, t: int) -> Callable[[Fraction], ProjectiveGeometry]:
    return lambda epsilon: ProjectiveGeometry.for_epsilon(epsilon, 1024, q, t)


#: every pair of inputs of a subset or a plane is as telling as any other; of a window, the two ends
CASES = {
    "k=2, eps 1": Case(subset(2, 1), 1, (0, 1), 40_000),
    "k=2, eps 4": Case(subset(2, 1), 4, (0, 1), 20_000),
    "k=64 w=1, eps 4": Case(subset(64, 1), 4, (3, 40), 40_000),
    "mask k=64 w=17, eps 1": Case(subset(64, 17), 1, (3, 40), 60_000),
    "packed k=1024 w=18, eps 4": Case(subset(1024, 18), 4, (5, 900), 40_000, (1, 8, 10)),
    "plane k=1024 PG(2,53), eps 4": Case(plane(53, 3), 4, (5, 900), 40_000),
    "plane k=1024 PG(5,4), eps 1": Case(plane(4, 6), 1, (5, 900), 150_000),
    "mean, eps 1": Case(MeanMechanism.for_epsilon, 1, (0, GRID), 40_000),
    "mean, eps 4": Case(MeanMechanism.for_epsilon, 4, (0, GRID), 40_000),
    "distribution, eps 1": Case(DistributionMechanism.for_epsilon, 1, (0, GRID), 40_000),
    "distribution, eps 4": Case(DistributionMechanism.for_epsilon, 4, (0, GRID), 40_000),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CASES)
def test_a_mechanism_keeps_its_claim_and_the_audit_sees_nearly_all_of_it(name: str) -> None:
    """No mechanism is found broken, though at least nine tenths of its epsilon are measured."""
    case = CASES[name]
    finding = case.audit(Fraction(case.claimed), 1)

    assert not finding.broken, finding
    assert finding.measured >= SEEN * case.claimed, finding


@pytest.mark.parametrize("name", CASES)
def test_the_same_mechanism_with_a_third_more_epsilon_is_found_broken(name: str) -> None:
    """The audits above are not blind: a PART of each refutes its claim when 1.3 x is spent."""
    case = CASES[name]
    finding = case.audit(Fraction(13, 10) * case.claimed, PART)

    assert finding.broken, finding


DEFINITION = """
app = "acme"
[it]
question = "Which one?"
unit = "month"
from = 2026-12-01
until = 2027-12-01
epsilon = {epsilon}
{keys}
"""
#: what is asked, the claim, and N; of a trend, whole campaigns are told apart
DEFINITIONS = {
    "a long list": ("values_file = 'a'", 3, 40_000),
    "open strings": ("values = 'open'", 2, 40_000),
    "open strings, letter by letter": ("values = 'open'\ndiscover = true", 2, 40_000),
    "moments": ("features = {a = [0, 1], b = [-2, 5]}\nmeasure = 'moments'", 1, 60_000),
    "tables": ("questions = {a = [0, 1], b = [0, 1, 2]}\ntables = true", 1, 60_000),
    "ranges": ("range = [0, 1000]\nmeasure = 'ranges'", 1, 60_000),
    "a trend of one change": ("boolean = true\nmeasure = 'trend'\nchanges = 1", 1, 120_000),
    "a trend of three changes": ("boolean = true\nmeasure = 'trend'\nchanges = 3", 1, 120_000),
}


def audited(name: str, *, part: int = 1, factor: Fraction = Fraction(1)) -> AuditResult:
    """Audit a definition of so many times its epsilon."""
    keys, claimed, samples = DEFINITIONS[name]
    text = DEFINITION.format(keys=keys, epsilon=float(claimed * factor))
    collection = parse_collections(text, lambda _: [f"value {n}" for n in range(100_000)])["it"]
    randomness = SeededRandomSource(1)
    return kind_of(collection).audit(randomness).run(samples=samples // part, alpha=ALPHA)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_keeps_its_claim_and_the_audit_sees_nearly_all_of_it(name: str) -> None:
    """Where there are millions of messages, too, and over all reports of a trend."""
    finding, (_, claimed, _) = audited(name), DEFINITIONS[name]

    assert finding.claimed == claimed
    assert not finding.broken, finding
    assert finding.measured >= SEEN * claimed, finding


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_that_spends_a_third_more_is_found_broken(name: str) -> None:
    finding = audited(name, part=PART, factor=Fraction(13, 10))

    assert finding.measured > DEFINITIONS[name][1], finding


def test_the_audited_mechanisms_are_those_that_the_planner_takes() -> None:
    """What is packed, masked or a plane above is so in a definition too."""
    audited = {(1024, 4): subset(1024, 18), (1024, 1): plane(4, 6), (64, 1): subset(64, 17)}
    audited |= {(64, 4): subset(64, 1), (2, 4): subset(2, 1)}
    for (k, epsilon), mechanism in audited.items():
        assert select_mechanism(k, epsilon).mechanism == mechanism(Fraction(epsilon))


def alarms(audits: int, *, truth: float, devices: int = 2_000, noise: int = 0) -> int:
    """How many audits of Warner's coin and bytes of noise refute a claim of 1, at alpha = 0.2."""
    broken, keep = 0, 1 / (1 + np.exp(-truth))
    for seed in range(audits):
        generator = np.random.default_rng(seed)
        table = generator.integers(256, size=(2, devices, 1 + noise), dtype=np.uint8)
        table[:, :, 0] = generator.random((2, devices)) < [[keep], [1 - keep]]
        first, second = ([message.tobytes() for message in side] for side in table)
        broken += judge(first, second, 1, alpha=0.2, symbol_bits=(8,)).broken
    return broken


def test_an_honest_mechanism_is_declared_broken_at_most_as_often_as_alpha_says() -> None:
    """Of 30 audits 6; of a mechanism that spends 1.1, twice as many, and 1.3 is always seen.

    Far fewer than 6 are usual: the bounds of both frequencies are rarely wrong at once.
    """
    assert alarms(30, truth=1.0) <= 6
    assert alarms(30, truth=1.1) > 12
    assert alarms(30, truth=1.3) == 30


def test_a_search_through_noise_costs_no_confidence() -> None:
    """If events were judged on the messages in which they are found, half would be alarms."""
    assert alarms(20, truth=1.0, devices=400, noise=8) <= 4
