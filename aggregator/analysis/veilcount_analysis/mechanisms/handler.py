"""The server's side of a mechanism: one handler class per mechanism type, found by that type.

A handler holds everything the server does with a mechanism's reports: validate, count, estimate,
predict the error, simulate, describe, bound the amplification, audit. A new mechanism is its device
side in `veilcount_shared.mechanisms` and one module here, decorated with `@handles(NewMechanism)`;
no other module asks for a mechanism's type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_shared import Collection
from veilcount_shared.composition import Overlap
from veilcount_shared.domain import Number
from veilcount_shared.errors import TrustModelError
from veilcount_shared.mechanisms import Mechanism

from ..estimation.cdf import BucketHistogram
from ..estimation.confidence_intervals import Counts, Floats
from ..estimation.confidence_sequences import LookCount
from ..estimation.cover_reports import NO_COVERS, CoverReports
from ..estimation.covered_supports import CoveredSupports
from ..estimation.difference import persons_variance
from ..estimation.estimator import Estimator, IntervalTarget
from ..estimation.proportions import SupportCounts
from ..estimation.response_distribution import ResponseDistribution, SupportMechanism
from ..estimation.results import IntervalTerms, MeanEstimate, NoReports
from ..series.packed_rows import Counters, Packed, numbers, rows_from_messages, rows_from_numbers
from .sampling import Ints, Mixture, summed

Flags = NDArray[np.bool_]
NumberEstimate = MeanEstimate | BucketHistogram | NoReports


class TwoLevelMechanism(Mechanism, SupportMechanism, Protocol):
    """A mechanism of values: an input's own messages are likelier than all others."""

    @property
    def k(self) -> int:
        """How many inputs it distinguishes."""


M = TypeVar("M", bound=Mechanism)
S = TypeVar("S", bound=TwoLevelMechanism)


class MechanismHandler(ABC, Generic[M]):
    """What the server does with the reports of one mechanism."""

    #: whether its intervals can hold at every look at growing data
    has_anytime_intervals: ClassVar[bool] = False

    def __init__(self, mechanism: M) -> None:
        self.mechanism = mechanism

    @abstractmethod
    def describe(self) -> str:
        """Return what a device reports, in a few words."""

    # -- reports become counters -------------------------------------------------------------------

    @property
    def counters_per_report(self) -> int:
        """How many counters one report adds to."""
        return 1

    @property
    def symbol_bits(self) -> tuple[int, ...]:
        """The widths of a message's parts that an audit looks at: bits and bytes."""
        return (1, 8)

    @property
    def message_supports(self) -> Callable[[int, int], bool] | None:
        """Whether a message supports an input: where an audit would not see a message twice."""
        return None

    def valid_rows(self, rows: Packed) -> Flags:
        """Return which rows, all of the right width, are messages."""
        return numbers(rows) < self.mechanism.messages

    def tally(self, rows: Packed) -> Counters:
        """Return the counters of valid messages."""
        counters = self.mechanism.counters
        if len(rows) == 1:  # of each of many series
            one = np.zeros(counters, np.int64)
            one[int.from_bytes(rows.tobytes(), "big")] = 1
            return one
        return np.bincount(numbers(rows), minlength=counters).astype(np.int64, copy=False)

    def increments(self, rows: Packed) -> tuple[list[int], list[int]]:
        """Return the places of the counters that messages add to, and what they add to each."""
        if len(rows) == 1:
            return [int.from_bytes(rows.tobytes(), "big")], [1]
        counts = Counter(numbers(rows).tolist())
        return list(counts), list(counts.values())

    def report_count(self, counters: Counts) -> int:
        """Return how many reports the counters count."""
        return int(counters.sum()) // self.counters_per_report

    # -- errors and privacy ------------------------------------------------------------------------

    @abstractmethod
    def noise_variance(self) -> float:
        """Return n times the variance that the noise of n reports adds to a figure."""

    def cover_variance(self) -> float:
        """Return the variance that one cover adds to n times a figure."""
        raise TrustModelError(type(self.mechanism).__name__, "it has no covers")

    @abstractmethod
    def reach(self) -> tuple[float, float]:
        """Return how far above 0 and below 0 one report can count; honest values are 0 to 1."""

    @abstractmethod
    def overlaps(self) -> tuple[Overlap, ...]:
        """Return how the two most different inputs overlap; of several, a report draws one."""

    def persons_variance(self, domain: object, evidence: Estimator) -> Floats:  # noqa: ARG002 - for numbers
        """Return the variance among persons of an estimated figure."""
        return persons_variance(evidence)

    # -- simulated devices -------------------------------------------------------------------------

    def draw_inputs(self, points: Ints, generator: Generator) -> Ints:  # noqa: ARG002 - for numbers
        """Return each device's input from the place of its value, or its point on the grid."""
        return points

    def count_inputs(self, points: Ints, devices: Ints, generator: Generator) -> Ints:
        """Return how many devices have each input, where `devices[i]` are at `points[i]`."""
        return summed(self.draw_inputs(points, generator), devices, self.mechanism.inputs)

    @abstractmethod
    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:
        """Return one message for each device, as numbers."""

    def draw_rows(self, inputs: Ints, generator: Generator) -> Packed:
        """Return one message for each device, as rows of bytes."""
        return rows_from_numbers(
            self.draw_messages(inputs, generator), -(-self.mechanism.bits // 8)
        )

    @abstractmethod
    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        """Return the counters of one report of each device, by how many hold each input."""


class ShareHandler(MechanismHandler[S]):
    """A mechanism of values: its counters give the share of each."""

    has_anytime_intervals = True
    #: whether its values are listed, and not strings that nobody listed
    lists_values: ClassVar[bool] = True

    @property
    def counts_messages(self) -> bool:
        """Whether each counter counts one message, so that single messages can be tested."""
        return self.counters_per_report == 1

    @property
    def response(self) -> ResponseDistribution:
        """The distribution of one report's support of a value."""
        return ResponseDistribution.from_mechanism(self.mechanism)

    @property
    @abstractmethod
    def mixture(self) -> Mixture:
        """The mechanism as a mixture of informative and uniform messages."""

    @property
    def max_message_probability(self) -> float:
        """The largest probability of any one message, whatever the input."""
        return float(self.mixture.P / self.mixture.owned)

    def is_estimable(self, counters: Counts, covers: int) -> bool:
        """Whether there are reports enough for a share of each value: one of a person."""
        return self.report_count(counters) > covers

    @abstractmethod
    def supports(self, counters: Counts, places: Counts | None = None) -> Counts:
        """Return how many reports support each input, or each of those at `places`."""

    def support_counts(self, counters: Counts, places: Counts, covers: int = 0) -> SupportCounts:
        """Return the estimator of some values; of two values, one share determines the other.

        So many of the reports are a shuffler's covers.
        """
        k = self.mechanism.k
        few = None if np.array_equal(places, np.arange(k)) else places
        families = 1 if k == 2 else k  # noqa: PLR2004 - a share and its counterpart
        counts = self.supports(counters, few)
        n = self.report_count(counters) - covers
        if covers:
            support = self.cover_support
            return CoveredSupports(n, counts, self.response, families, covers, support)
        return SupportCounts(n, counts, self.response, families)

    def evidence(self, counters: Counts, places: Counts, covers: int = 0) -> Estimator:
        """Return the estimator of some values, whatever it is made of."""
        return self.support_counts(counters, places, covers)

    @property
    def cover_support(self) -> float:
        """The probability that a cover supports an input."""
        return self.mixture.owned / self.mixture.messages

    def share_covariance(
        self,
        evidence: SupportCounts,  # noqa: ARG002 - of subsets
        shares: Floats,  # noqa: ARG002
        target: IntervalTarget,  # noqa: ARG002
    ) -> Floats | None:
        """Return the covariance of the estimates of all values; None: there are too many."""
        return None

    def unused_supports(self, counters: Counts) -> Counts:  # noqa: ARG002 - most mechanisms have none
        """Return the supports of what could be an input but is none."""
        return np.array([], np.int64)

    def noise_variance(self) -> float:
        """Return n times the noise variance of a share, averaged over all values.

        The average does not depend on the shares, since they add up to 1.
        """
        p, q, one = self.mechanism.P, self.mechanism.Q, Fraction(1, self.mechanism.inputs)
        return float((one * p * (1 - p) + (1 - one) * q * (1 - q)) / (p - q) ** 2)

    def cover_variance(self) -> float:
        """Return that of a share: a uniform message supports each value alike."""
        p, q = self.mechanism.P, self.mechanism.Q
        return self.cover_support * (1 - self.cover_support) / float(p - q) ** 2

    def reach(self) -> tuple[float, float]:
        """Return (1 - Q) / (P - Q) and Q / (P - Q)."""
        p, q = self.mechanism.P, self.mechanism.Q
        return float((1 - q) / (p - q)), float(q / (p - q))


class JointHandler(ShareHandler[S]):
    """Its counters tell how often inputs are supported together."""

    @abstractmethod
    def joint_support(self, counters: Counts, whole: Counts) -> Floats:
        """Return for each input the mean over reports of [supported] times how many of `whole`."""


class GroupHandler(JointHandler[S]):
    """A person has one of its inputs, so shares add up: those of groups, too."""

    @abstractmethod
    def group_sums(self, counters: Counts, groups: Sequence[Counts], covers: int = 0) -> Estimator:
        """Return the estimator of the shares of groups of inputs, each of them a set."""

    @abstractmethod
    def incidence(self) -> Floats:
        """Return which messages each input owns: a row of 0 and 1 per input."""


class NumberHandler(MechanismHandler[M]):
    """A mechanism of numbers: its counters give the mean, and perhaps the distribution."""

    @abstractmethod
    def estimate(
        self, domain: Number, counters: Counts, terms: IntervalTerms, covers: int = 0
    ) -> NumberEstimate:
        """Return the mean, or the distribution; so many reports are a shuffler's covers."""

    @abstractmethod
    def mean(
        self, domain: Number, counters: Counts, looks: LookCount, covers: int = 0
    ) -> Estimator:
        """Return the estimator of the mean, from at least one report of a person."""

    def cover_reports(self, covers: int) -> CoverReports:
        """Return so many covers, with the probability of each message."""
        if not covers:
            return NO_COVERS
        return CoverReports(covers, self.cover_chances)

    @property
    def cover_chances(self) -> Floats:
        """The probability of each message of a cover: of one that draws nothing before, uniform."""
        messages = self.mechanism.messages
        return np.full(messages, 1 / messages)


HANDLERS: dict[type, type[MechanismHandler[Any]]] = {}
T = TypeVar("T")
H = TypeVar("H", bound=type[MechanismHandler[Any]])


def handles(mechanism: type) -> Callable[[H], H]:
    """Declare which type of mechanism a handler class is for."""

    def register(handler: H) -> H:
        HANDLERS[mechanism] = handler
        return handler

    return register


def handler_of(mechanism: object) -> MechanismHandler[Any]:
    """Return the handler of a mechanism."""
    return HANDLERS[type(mechanism)](mechanism)


def typed_handler(collection: Collection, handler_type: type[T], problem: str) -> T:
    """Return the handler of a collection, or refuse one of another type."""
    handler = handler_of(collection.mechanism)
    if not isinstance(handler, handler_type):
        raise TypeError(f"{collection.name}: {problem}")
    return handler


def share_handler_of(mechanism: object) -> ShareHandler[Any]:
    """Return the handler of a mechanism of values, or refuse any other."""
    handler = handler_of(mechanism)
    if not isinstance(handler, ShareHandler):
        raise TypeError(f"{type(mechanism).__name__}: a number has no shares of values")
    return handler


def share_handler(collection: Collection) -> ShareHandler[Any]:
    """Return the handler of a collection of values, or refuse any other."""
    refuse_true_values(collection)
    return share_handler_of(collection.mechanism)


def joint_handler(collection: Collection) -> JointHandler[Any]:
    """Return the handler of a collection whose inputs are supported together, or refuse others."""
    handler = share_handler(collection)
    if not isinstance(handler, JointHandler):
        raise TypeError(f"{collection.name}: its counters keep no pairs of values")
    return handler


def group_handler_of(mechanism: object) -> GroupHandler[Any]:
    """Return the handler of a mechanism of one of listed values, or refuse any other."""
    handler = handler_of(mechanism)
    if not isinstance(handler, GroupHandler):
        raise TypeError(f"{handler.describe()}: shares of its inputs do not add up to groups")
    return handler


def number_handler(collection: Collection) -> tuple[NumberHandler[Any], Number]:
    """Return the handler of a collection of numbers and their range, or refuse any other."""
    refuse_true_values(collection)
    handler, domain = handler_of(collection.mechanism), collection.domain
    if not (isinstance(handler, NumberHandler) and isinstance(domain, Number)):
        raise TypeError(f"{collection.name}: values are no numbers")
    return handler, domain


def refuse_true_values(collection: Collection) -> None:
    """Refuse a collection of a trusted curator."""
    if collection.trust.reveals:
        raise TrustModelError(collection.name, "true values leave through releases alone")


def valid_messages(collection: Collection, rows: Packed) -> Flags:
    """Return for each row whether it is a message of the collection's mechanism."""
    if rows.shape[1] != collection.message_bytes:
        return np.zeros(len(rows), np.bool_)
    return handler_of(collection.mechanism).valid_rows(rows)


def tally(collection: Collection, messages: Iterable[int] | Packed) -> Counters:
    """Return the counters of valid messages, given as integers or as rows of their wire bytes.

    One counter per input for subsets (how many reports support it), one per message otherwise.
    Tallies merge by addition; reports are not kept.
    """
    rows = (
        messages if isinstance(messages, np.ndarray) else rows_from_messages(collection, messages)
    )
    return handler_of(collection.mechanism).tally(rows)


def increments(collection: Collection, rows: Packed) -> tuple[list[int], list[int]]:
    """Return the places of the counters that messages add to, and what they add to each.

    A sparse tally: where a mechanism has millions of counters, a group adds to a few.
    """
    return handler_of(collection.mechanism).increments(rows)
