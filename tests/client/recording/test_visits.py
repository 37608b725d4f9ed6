"""`takes = "returning"`: whether the person was there in the period before as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from veilcount_client.recording.visits import Visits
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared import Collection
from veilcount_shared.errors import DefinitionError

from ...properties.definition_harness import parse_definition
from ..device_fixtures import DAY, Device, at, one_collection

VISITS = (0, 1, 1, 3, 4, 5, 8)  # on these days
ANSWERS = {0: 0, 1: 1, 3: 0, 4: 1, 5: 1, 8: 0}


@pytest.fixture(autouse=True)
def true_messages() -> Iterator[None]:
    """Have each message be the answer itself."""
    with patch.object(Collection, "randomize", lambda _, value, __: int(value)):
        yield


def returning(**keys: Any) -> dict[str, Collection]:
    return one_collection("it", takes="returning", **keys)


def answers(device: Device) -> dict[int, int]:
    """Return the answers that the state has, by period."""
    return {each.period: each.message[0] for each in device.stored}


@pytest.mark.parametrize("end", ["nothing", "stop", "crash"])
def test_a_period_answers_whether_the_one_before_had_a_visit(memory: Path, end: str) -> None:
    """Whatever is recorded, however often, and however the processes in between end."""
    device = Device(memory / end, returning(), at(0, 8))
    for place, day in enumerate(VISITS):
        device.run_until(at(day, 9 + place / 10))
        device.record(value=place % 2 == 0)
        if end != "nothing":
            getattr(device, end)()
            device.start()

    assert answers(device) == ANSWERS
    assert device.spent("it") == len(ANSWERS) * 1_000_000
    assert device.losses() == {"frozen": 1}


def test_a_visit_counts_in_a_period_without_an_answer_as_well(memory: Path) -> None:
    device = Device(memory / "sampled", returning(answers=15), at(0, 8), person=1)
    for day in range(29):
        if day % 5 != 4:  # no visit on every fifth day
            device.record_at(at(day, 9))

    found = answers(device)
    assert 5 < len(found) < 16
    assert all(answer == (day % 5 != 0) for day, answer in found.items() if day)


def test_a_withdrawal_forgets_the_last_visit(memory: Path) -> None:
    device = Device(memory / "withdrawn", returning(), at(0, 8))
    device.record_at(at(0, 9))
    device.client.consent(False)
    device.client.consent(True)
    device.record_at(at(1, 9))

    assert answers(device)[1] == 0


def hidden_answers(place: Path, days: int = 29) -> list[int]:
    """Return the messages of somebody who visits daily, in a week of which each day is drawn."""
    device = Device(place, returning(presence="hidden"), at(0, 0.1), person=3)
    with patch.object(Collection, "randomize_absent", lambda *_: 2):
        for day in range(days):
            device.record_at(at(day, 12))
        device.run_until(at(days))
    return [message for period, message in sorted(answers(device).items()) if period]


def test_hidden_presence_reports_no_return_as_none(memory: Path) -> None:
    """A visit after the period's absence was drawn counts for the next period all the same.

    It was not kept: of 72 returns 19 were reported, 15 reported as none, and 38 absent.
    """
    messages = hidden_answers(memory / "hidden")

    assert set(messages) == {1, 2}
    assert 8 < messages.count(1) < 20


def test_a_visit_that_is_not_kept_is_seen(memory: Path) -> None:
    """The planted variant, as it was."""
    with patch.object(Visits, "_is_answered", lambda *_: False):
        assert 0 in hidden_answers(memory / "lost")


def test_two_processes_answer_once(memory: Path) -> None:
    """Between the look and the commit of one, the other answers."""
    device = Device(memory / "two", returning(), at(0, 8))
    second = Device(device.place, device.collections, device.clock, device.wire)
    device.record_at(at(0, 9))

    def overtaken(*arguments: Any) -> Any:
        with patch.object(SqliteState, "commit", commit):
            second.record()
        return commit(*arguments)

    commit = SqliteState.commit
    device.run_until(at(1, 9))
    with patch.object(SqliteState, "commit", overtaken):
        device.record()

    assert answers(device) == {0: 0, 1: 1}
    assert device.spent("it") == 2_000_000


def test_nothing_is_kept_after_the_last_answer_can_count(memory: Path) -> None:
    device = Device(memory / "end", returning(late=2), at(0, 8))
    device.record_at(at(29, 9))
    series = device.collections["it"].fingerprint
    assert device.state.held(device.key, series) is not None
    device.run_until(at(34) + DAY)

    assert device.state.held(device.key, series) is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('values = ["a", "b"]', 'takes = "returning": the answer is yes or no'),
        ('boolean = true\nunit = "event"', 'takes = "returning": every event is reported'),
        ('boolean = true\nunit = "user"', "unit = "),
        ('boolean = true\nheld = "process"', 'held = "process": a visit outlives a process'),
        ('boolean = true\nlinkage = "collection"', "would show who comes back"),
        ('boolean = true\nmodel = "central"\nbudget = 1', 'takes = "returning": a curator sees'),
    ],
)
def test_what_does_not_go_with_visits_is_named_with_the_fix(lines: str, message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        parse_definition(f'{lines}\ntakes = "returning"')

    assert message in str(refused.value)
