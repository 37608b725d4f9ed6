"""The audit: does what a device sends keep the epsilon it claims?

A finding is a statement of statistics about bytes: "except with probability alpha, epsilon is at
least `measured`". It can show that a claim is broken, never that it holds: an audit that finds
nothing has looked at places, symbols, whole messages and pairs of these, in so many samples of two
values. The mechanism is trusted for nothing; where it has millions of messages it is asked which
ones support a value, so that there is an event to look at. Arithmetic is floating point; no device
runs this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..estimation import clopper_pearson
from .events import MessageFeature, MessageTable, grids
from .search import MessagePair, most_revealing

CLAIM_MAX = 4.0  # beyond, the rare side of an event is too rare for samples that one can afford


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What the audit found: except with probability alpha, epsilon is at least `measured`."""

    claimed: float
    measured: float
    event: str  # in plain words, with its frequency from either input
    samples: int  # drawn from each of the two inputs
    alpha: float

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted. For a correct mechanism: with probability alpha at most."""
        return self.measured > self.claimed

    def __str__(self) -> str:
        verdict = "BROKEN" if self.broken else "not broken"
        return (
            f"claimed {self.claimed:g}, measured {self.measured:.3f}: {verdict} "
            f"(N = {self.samples:,} an input, alpha = {self.alpha:g}; {self.event})"
        )


def audit(
    emit: Callable[[object], bytes],
    pair: tuple[object, object],
    claimed: float,
    *,
    samples: int,
    alpha: float = 0.001,
    symbol_bits: Iterable[int] = (1, 8),
    features: Sequence[MessageFeature] = (),
) -> AuditResult:
    """Draw `samples` messages of each of the two values, and judge them.

    `emit` returns the bytes that a device would send for the value, in the order sent.
    Give `symbol_bits` the width of a message's parts where that is not one bit or one byte.
    """
    _check(claimed, samples, alpha)
    first, second = ([emit(value) for _ in range(samples)] for value in pair)
    return judge(first, second, claimed, alpha=alpha, symbol_bits=symbol_bits, features=features)


def judge(
    first: Sequence[bytes],
    second: Sequence[bytes],
    claimed: float,
    *,
    alpha: float = 0.001,
    symbol_bits: Iterable[int] = (1, 8),
    features: Sequence[MessageFeature] = (),
) -> AuditResult:
    """Judge independent messages of two values, as many of the one as of the other.

    The most revealing event is searched in the first half and epsilon bounded on the second, by
    Clopper-Pearson at 1 - alpha: one event, fixed beforehand, so the search costs no confidence.
    """
    samples = len(first)
    if samples != len(second):
        raise ValueError(f"{samples} messages of one value, {len(second)} of the other")
    _check(claimed, samples, alpha)
    size = max(1, *map(len, first), *map(len, second))
    pair = MessagePair(
        MessageTable.from_messages(first, size), MessageTable.from_messages(second, size)
    )
    half = samples // 2
    candidate = most_revealing(pair.part(0, half), list(grids(symbol_bits, size)), alpha, features)
    unseen = pair.part(half, samples)
    more, less = (unseen.swapped() if candidate.swapped else unseen).happened(candidate.event)
    trials = samples - half
    return AuditResult(
        claimed,
        max(0.0, float(clopper_pearson.epsilon(more, less, trials, alpha))),
        f"{candidate.event}: {_shares(more, less, trials, swapped=candidate.swapped)}",
        samples,
        alpha,
    )


def _check(claimed: float, samples: int, alpha: float) -> None:
    """Refuse an audit that could not refute its claim whatever it saw."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha = {alpha:g}: give a probability between 0 and 1")
    if not 0 < claimed <= CLAIM_MAX:
        raise ValueError(f"epsilon = {claimed:g}: the audit is for claims up to {CLAIM_MAX:g}")
    trials = samples - samples // 2
    if samples < 4 or clopper_pearson.reach(trials, alpha) <= claimed:  # noqa: PLR2004 - a part is a quarter
        raise ValueError(f"{samples} samples can never show more than epsilon = {claimed:g}")


def _shares(more: int, less: int, trials: int, *, swapped: bool) -> str:
    likely, unlikely = ("second", "first") if swapped else ("first", "second")
    return f"{more:,} of {trials:,} from the {likely} value, {less:,} from the {unlikely}"
