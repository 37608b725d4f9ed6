"""The result of an attack: refused where the protocol says so, and bounded where it cannot.

Well-formed fake reports cannot be recognized. What is promised is the band that is
printed next to every figure: with so large a share of fakes, the honest answers' own estimate lies
inside. That is no matter of chance, so one figure outside fails the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from veilcount_aggregator.store import Store
from veilcount_analysis import estimate
from veilcount_analysis.estimation import ShareEstimates, poisoning_band
from veilcount_analysis.estimation.estimator import Estimator
from veilcount_analysis.estimation.poisoning import FAKES
from veilcount_analysis.series.packed_rows import Counters
from veilcount_analysis.series.series import Series
from veilcount_shared import Collection
from veilcount_shared.verdict import Verdict

from .population import Intent
from .server_verdicts import ServerVerdicts
from .verify_store import Answers, answers

ROUNDING = 1e-9


def attack_problems(store: Store, verdicts: ServerVerdicts, limit: int) -> list[str]:
    """Return what attackers achieved that they must not, and which attack never came."""
    return [
        *_refused(verdicts),
        *_within_budget(verdicts),
        *(problem for answer in answers(verdicts) for problem in _bounded(store, answer, limit)),
        *(problem for answer in answers(verdicts) for problem in poisoned(answer, _share(answer))),
    ]


def _refused(verdicts: ServerVerdicts) -> Iterator[str]:
    """Whether each attack was tried, and no garbage taken for a batch."""
    intents = {
        verdicts.queued_reports[place].intent for place in (*verdicts.replies, *verdicts.refusals)
    }
    for intent in Intent:
        if intent not in intents:
            yield f"nothing was sent that is {intent}: no attack, no defence"
    taken = sum(
        verdicts.queued_reports[place].intent is Intent.GARBAGE for place in verdicts.replies
    )
    if taken:
        yield f"{taken} bodies of garbage were taken for batches"
    if not verdicts.verdicts[Verdict.FULL]:
        yield "no pseudonym of the flood was refused: it stayed within the limit, or too few came"


def _within_budget(verdicts: ServerVerdicts) -> Iterator[str]:
    """Whether nobody who asks for more than the budget gets more."""
    for place, replies in verdicts.replies.items():
        queued_report = verdicts.queued_reports[place]
        if queued_report.intent is not Intent.GREEDY:
            continue
        most = Series(queued_report.collection).most
        delivered = [any(word.delivered for word in each) for each in zip(*replies, strict=True)]
        if sum(delivered) > most:
            yield f"{sum(delivered)} answers of one pseudonym were counted, and {most} are allowed"


def _bounded(store: Store, answers: Answers, limit: int) -> Iterator[str]:
    """Yield the periods with more rows than the limit."""
    for period, rows in store.new_pseudonyms(Series(answers.collection)).items():
        if rows > limit:
            yield f"{answers.name}: {rows} pseudonyms in period {period}, and a limit of {limit}"


def _share(answers: Answers) -> Fraction:
    """Return the share that a band is printed for, or what came of it if a run was cut short."""
    fakes, honest = len(answers.fakes), len(answers.reports)
    return max(FAKES, Fraction(fakes, max(fakes + honest, 1)))


def poisoned(answers: Answers, share: Fraction) -> Iterator[str]:
    """Say whether the honest answers' own estimate is in the band around the whole one."""
    if not (answers.fakes and answers.reports):
        return
    whole = _evidence(answers.collection, answers.counters)
    honest = _evidence(answers.collection, answers.honest).points
    printed = poisoning_band(whole, share)
    outside = (honest < printed.low - ROUNDING) | (honest > printed.high + ROUNDING)
    if outside.any():
        yield (
            f"{answers.name}: {int(outside.sum())} of {len(honest)} honest estimates are outside "
            f"the band for {100 * float(share):.3g} % of fakes"
        )
    if not np.abs(whole.points - honest).max():
        yield f"{answers.name}: the fakes moved nothing, so nothing is shown"


def _evidence(collection: Collection, counters: Counters) -> Estimator:
    estimated = estimate(collection, counters, target="cohort")
    assert isinstance(estimated, ShareEstimates), "fakes are sent of questions with values only"
    return estimated.evidence
