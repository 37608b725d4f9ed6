"""What a development server shows of each report: its verdict, never a true value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from veilcount_aggregator.intake.decode import RequestBody, UnsupportedBody
from veilcount_aggregator.intake.group_intake import IntakeRequest
from veilcount_aggregator.intake.live_reports import MOST, LiveEntry, LiveReports
from veilcount_aggregator.intake.pipeline import Outcome
from veilcount_aggregator.store import VERDICTS
from veilcount_shared.errors import BadField
from veilcount_shared.report import Batch, Report
from veilcount_shared.wire import (
    BINARY_TYPE,
    JSON_TYPE,
    encode_base64,
    encode_binary,
    encode_json,
)

from ..web.api.deployment_fixtures import CENTRAL, FILE, Deployment, deployment


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path, FILE, CENTRAL) as opened:
        yield opened


def observing(made: Deployment, live: LiveReports, *bodies: RequestBody) -> Sequence[Outcome]:
    """Have the intake's own step take bodies, observed."""
    process = live.observing(
        made.aggregator.take_group, lambda: made.aggregator.known().catalog.series
    )
    return process([IntakeRequest(body, "", "", Future()) for body in bodies])


def observed(
    made: Deployment, live: LiveReports, *reports: Report, body: RequestBody | None = None
) -> None:
    body = body or RequestBody(BINARY_TYPE, "", encode_binary(Batch(reports)))
    observing(made, live, body)


def shown(made: Deployment, *reports: Report, body: RequestBody | None = None) -> list[LiveEntry]:
    entries: list[LiveEntry] = []
    live = LiveReports(entries.append, lambda: made.clocks.now)
    observed(made, live, *reports, body=body)

    assert live.entries() == entries[::-1]
    return entries


def test_a_report_is_shown_with_its_verdict_its_message_and_the_beginning_of_its_pseudonym(
    made: Deployment,
) -> None:
    report = made.report("theme")
    start = f"{encode_base64(report.pseudonym)[:6]}..."

    assert shown(made, report) == [
        LiveEntry("12:00:00", "counted", "randomized: light", "theme", start)
    ]
    assert [each.verdict for each in shown(made, report)] == ["duplicate"]


def test_why_a_report_is_not_counted_is_shown(made: Deployment) -> None:
    report = made.report("theme")
    unknown = replace(report, fingerprint="ab" * 32)
    malformed = replace(report, message=b"\xff")

    assert [(each.collection, each.verdict, each.message) for each in shown(made, unknown)] == [
        (
            "unknown",
            "unknown_collection",
            "no definition with the fingerprint abababababab is loaded here",
        )
    ]
    assert [(each.verdict, each.message) for each in shown(made, malformed)] == [
        ("malformed", "no message of this definition")
    ]
    assert [each.verdict for each in shown(made, body=RequestBody(BINARY_TYPE, "", b"VC?"))] == [
        "refused"
    ]


def test_json_is_translated_counted_and_shown_as_what_a_device_would_send(
    made: Deployment,
) -> None:
    reports = made.report("theme"), made.report("opened", segment=1)
    body = RequestBody(f"{JSON_TYPE}; charset=utf-8", "", encode_json(Batch(reports)))

    assert [each.verdict for each in shown(made, body=body)] == ["counted", "counted"]
    assert [each.verdict for each in shown(made, *reports)] == ["duplicate", "duplicate"]


def test_json_that_is_no_batch_is_refused_alone_with_its_place(made: Deployment) -> None:
    """The other requests of its group get their own outcomes."""
    sound = RequestBody(BINARY_TYPE, "", encode_binary(Batch((made.report("theme"),))))
    wrong = RequestBody(JSON_TYPE, "", b'{"version": 1, "reports": [{}]}')
    first, error, last = observing(made, LiveReports(lambda _: None), sound, wrong, sound)

    assert not isinstance(first, Exception)
    assert not isinstance(last, Exception)
    assert (VERDICTS[first[0]], VERDICTS[last[0]]) == ("counted", "duplicate")
    assert isinstance(error, BadField)
    assert error.place == "reports[0]"


def test_a_step_that_observes_nothing_takes_no_json(made: Deployment) -> None:
    """The step of production."""
    body = RequestBody(JSON_TYPE, "", encode_json(Batch((made.report("theme"),))))
    (outcome,) = made.aggregator.take_group([IntakeRequest(body, "", "", Future())])

    assert isinstance(outcome, UnsupportedBody)


def test_no_true_value_is_shown(made: Deployment) -> None:
    visits = made.report("visits")

    assert {
        each.message
        for message in (b"\x00", b"\x01")
        for each in shown(made, replace(visits, message=message))
    } == {"a true value, not shown"}


def test_the_oldest_entries_are_forgotten_and_a_terminal_that_is_gone_stops_nothing(
    made: Deployment,
) -> None:
    def gone(_: LiveEntry) -> None:
        raise BrokenPipeError

    live = LiveReports(gone)
    for number in range(MOST + 1):
        live.add("definitions", str(number))
    observed(made, live, made.report("theme"))

    assert len(live.entries()) == MOST
    assert live.entries()[0].verdict == "counted"
    assert live.entries()[-1].message == "2"
    assert made.counted("theme") == 1
