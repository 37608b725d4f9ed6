"""Real devices beside the load: what they saw is judged, and so is how they behaved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from loadtests.device_log import broken, merge_device_log
from loadtests.devices import End, Story, Try
from loadtests.population import draw
from loadtests.questions import questions
from loadtests.server_verdicts import ServerVerdicts

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
QUESTIONS = questions(NOW.date())
THEMES = draw({"theme": QUESTIONS["theme"]}, NOW, devices=2, seed=1)
BODIES = [queued_report.body for queued_report in THEMES]
VAIN = Try(0, 10.0, 0.5, BODIES[0], (), delay=2.0, why="503")
DONE = Try(0, 12.5, 0.1, BODIES[0], ("counted",))
OTHER = Try(1, 11.0, 0.1, BODIES[1], ("duplicate",))


ENDS = [End(number, {"theme": 7}, 1, True, False, {}) for number in (0, 1)]


def story(tries: Sequence[Try], first: End = ENDS[0]) -> Story:
    """Two devices with an answer each."""
    return Story(list(tries), [first, ENDS[1]])


EARLY = "1 times a real device's row came back before the requested delay"
LOST = {"evicted (theme)": 3}


@pytest.mark.parametrize(
    ("tries", "first", "problems"),
    [
        ([VAIN, DONE, OTHER], ENDS[0], []),
        ([VAIN, replace(DONE, at=12.4), OTHER], ENDS[0], [EARLY]),
        ([VAIN, replace(DONE, at=10.6), OTHER], replace(ENDS[0], hurried=True), []),
        ([DONE], ENDS[0], ["real devices drew 2 answers, and 1 were acknowledged"]),
        ([DONE, OTHER], replace(ENDS[0], left=False), ["1 real devices still hold answers"]),
        (
            [DONE, OTHER],
            replace(ENDS[0], losses=LOST),
            ["real devices gave up 3 answers: evicted (theme)"],
        ),
    ],
)
def test_only_devices_that_break_a_rule_fail_the_run(
    tries: Sequence[Try], first: End, problems: list[str]
) -> None:
    assert list(broken(story(tries, first))) == problems


def test_their_reports_are_judged_with_the_others(tmp_path: Path) -> None:
    """Each report by itself: what was sent in one body may come again in several."""
    story([VAIN, DONE, OTHER]).save(tmp_path)
    verdicts = merge_device_log(THEMES[:0], ServerVerdicts([]), Story.load(tmp_path), QUESTIONS)

    assert [(each.reports, each.held) for each in verdicts.queued_reports] == [
        (THEMES[0].reports, (7,)),
        (THEMES[1].reports, (7,)),
    ]
    assert verdicts.silences == {0: 1}
    assert verdicts.open == []
    assert list(verdicts.failures()) == ["1 reports were acknowledged as duplicates of nothing"]
