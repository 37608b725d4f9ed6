"""A hostile load test: attackers come to nothing that is not stated, and where they did the run
fails. Here against an aggregator in this process; `test_load_runs` has a real one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from loadtests.attack_report import attack_problems, poisoned
from loadtests.hostile import draw_attack, mixed, new_pseudonym_limit
from loadtests.ipc import RequestLog
from loadtests.population import Intent, QueuedReport, draw, order
from loadtests.questions import FLOODED_NAME, definitions, questions
from loadtests.server_verdicts import ServerVerdicts
from loadtests.verify_store import answers, store_problems

from veilcount_aggregator.intake.decode import decode_body
from veilcount_aggregator.service import Aggregator
from veilcount_aggregator.settings import Settings
from veilcount_analysis.estimation.poisoning import FAKES
from veilcount_shared.errors import WireError
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, encode_verdicts

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
DEVICES = 100
LIMIT = new_pseudonym_limit(DEVICES)


@cache
def queued_reports() -> list[QueuedReport]:
    """Draw what honest devices and attackers send, mixed."""
    attack = draw_attack(questions(NOW.date(), flooded=True), NOW, DEVICES, seed=1)
    return mixed(draw(questions(NOW.date()), NOW, DEVICES, seed=1), attack)


@dataclass(frozen=True)
class Run:
    aggregator: Aggregator
    verdicts: ServerVerdicts

    @property
    def failures(self) -> list[str]:
        store = self.aggregator.store
        return [
            *store_problems(store, self.verdicts),
            *attack_problems(store, self.verdicts, LIMIT),
        ]

    def place(self, intent: Intent) -> int:
        intents = [each.intent for each in self.verdicts.queued_reports]
        return intents.index(intent)


def sent(aggregator: Aggregator, reports: list[QueuedReport]) -> RequestLog:
    """Send the bodies in a run's order, some twice."""
    places, replies, statuses = order(len(reports), seed=1), [], []
    for place in places:
        try:
            body = decode_body(BINARY_TYPE, "", reports[place].body)
        except WireError:
            replies.append(b"")
            statuses.append(400)
        else:
            replies.append(encode_verdicts(aggregator.take(body)))
            statuses.append(200)
    return RequestLog(places, replies, [0.0] * len(places), 1.0, 1.0, statuses)


@pytest.fixture(scope="module")
def aggregator(memory: Path) -> Iterator[Aggregator]:
    """One that has room for so many and no more."""
    folder = memory / "attacked"
    folder.mkdir()
    file = folder / "collections.toml"
    file.write_text(definitions(NOW.date(), flooded=True), encoding="utf-8")
    settings = Settings(f"sqlite:///{folder}/load.db", (file,), dev=True, max_new_pseudonyms=LIMIT)
    opened = Aggregator.open(settings, lambda: NOW)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def request_log(aggregator: Aggregator) -> RequestLog:
    return sent(aggregator, queued_reports())


@pytest.fixture
def run(aggregator: Aggregator, request_log: RequestLog) -> Run:
    return Run(aggregator, ServerVerdicts.from_request_log(queued_reports(), request_log))


def test_attackers_come_to_nothing(run: Run) -> None:
    """Refused where the protocol says so, bounded where it cannot; the honest are counted."""
    verdicts = run.verdicts.verdicts
    honest = [each for each in queued_reports() if each.intent is Intent.HONEST]
    made = next(each for each in answers(run.verdicts) if each.collection.name == FLOODED_NAME)

    assert run.failures == []
    assert len(made.fakes) == LIMIT
    assert verdicts[Verdict.FULL] >= LIMIT
    assert verdicts[Verdict.COUNTED] > sum(len(each.reports) for each in honest)


def test_fakes_that_move_too_much_or_nothing_are_noticed(run: Run) -> None:
    """The band for one in a hundred does not hold where five are."""
    theme = next(each for each in answers(run.verdicts) if each.name == "theme")
    many = replace(theme, fakes=theme.fakes * 5)
    same = replace(theme, reports=theme.reports[:1], fakes=theme.reports[:1])

    assert list(poisoned(theme, FAKES)) == []
    assert "outside the band for 1 % of fakes" in "".join(poisoned(many, FAKES))
    assert list(poisoned(same, FAKES)) == ["theme: the fakes moved nothing, so nothing is shown"]


@pytest.mark.parametrize(
    ("intent", "verdict", "failure"),
    [
        (Intent.GREEDY, Verdict.COUNTED, "{} answers of one pseudonym were counted, and 20 are"),
        (Intent.OVER_BUDGET, Verdict.STALE, "{} reports (beyond) were refused as stale"),
        (Intent.NONSENSE, Verdict.STALE, "{} reports (nonsense) were refused as stale"),
    ],
)
def test_an_attack_with_another_verdict_fails_the_run(
    intent: Intent, verdict: Verdict, failure: str, run: Run
) -> None:
    place = run.place(intent)
    reports = len(run.verdicts.queued_reports[place].reports)
    run.verdicts.replies[place] = [(verdict,) * reports]

    assert failure.format(reports) in "\n".join(run.failures)


def test_garbage_that_is_taken_for_a_batch_fails_the_run(run: Run) -> None:
    run.verdicts.add_reply(run.place(Intent.GARBAGE), b'{"verdicts":[]}')

    assert "1 bodies of garbage were taken for batches" in run.failures


def test_a_limit_that_was_not_kept_or_not_tried_fails_the_run(run: Run) -> None:
    store = run.aggregator.store
    over = attack_problems(store, run.verdicts, LIMIT - 1)
    unattacked = attack_problems(store, ServerVerdicts([]), LIMIT)

    assert f"{FLOODED_NAME}: {LIMIT} pseudonyms in period 0, and a limit of {LIMIT - 1}" in over
    assert "nothing was sent that is flood: no attack, no defence" in unattacked
    assert any("it stayed within the limit, or too few came" in each for each in unattacked)
