"""Mistakes of an app that its developer is warned of: in values, in dates, in the address."""

from __future__ import annotations

import logging
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from veilcount_client import Client, NotUsable, UnknownValue
from veilcount_client.errors import UnknownCollection
from veilcount_client.testing import ClientHarness
from veilcount_shared.errors import UnknownSegment

from .delivery.app_client import NOBODY
from .device_fixtures import Device, RaisingValue, at, clock_at, file, one_collection

THEME = {"values": ["light", "dark", "system"]}
COLLECTIONS = file(
    theme=THEME,
    editor={"values": ["vim", "emacs"], "other": "another"},
    size={"values": [1, 2, 4]},
    used={},
    minutes={"range": [0, 240], "measure": "mean"},
    crossed={**THEME, "cross": {"plan": ["free", "paid"]}},
)
UNLISTED = [
    ("theme", "drak", '(closest: "dark")'),
    ("theme", "drak", "a value that is not listed (got str): "),
    ("theme", 7, "a value that is not listed (got int; the listed values are str): "),
    ("theme", RaisingValue(), "a value that is not listed (got RaisingValue; "),
    ("size", "1", "a value that is not listed (got str; the listed values are int): "),
    ("size", "1", "(closest: 1)"),
    ("used", "yes", "a value that is not a boolean (got str): record True or False"),
    ("minutes", "12", "a value that is no number (got str): "),
    ("crossed", ("dark", "payed"), '(closest: "paid")'),
    ("crossed", "dark", "a value that is no sequence (got str): record a tuple of 2 parts"),
]
LISTED = [
    ("theme", "dark"),
    ("editor", "ed"),
    ("used", 1),
    ("minutes", 900),
    ("crossed", ("dark", "paid")),
]


def production(place: Path, **options: object) -> Device:
    return Device(place, COLLECTIONS, **options)  # type: ignore[arg-type] # of its options


def developing(place: Path, **options: bool) -> Client:
    return Client(
        NOBODY,
        collections=COLLECTIONS,
        state_dir=place,
        development=True,
        clock=clock_at(at()),
        threaded=False,
        **options,  # type: ignore[arg-type] # of its options
    )


@pytest.mark.parametrize(("name", "value", "words"), UNLISTED)
def test_a_value_that_is_not_listed_raises_in_tests(
    veilcount: ClientHarness, name: str, value: object, words: str
) -> None:
    with pytest.raises(UnknownValue) as raised:
        veilcount.client(COLLECTIONS).record(name, value)

    assert f"{name}: " in str(raised.value)
    assert words in str(raised.value)
    assert veilcount.recorded == []


@pytest.mark.parametrize(("name", "value"), LISTED)
def test_a_listed_value_never_raises(veilcount: ClientHarness, name: str, value: object) -> None:
    """A number beyond its range counts as its end, and what is not listed as `other`."""
    veilcount.client(COLLECTIONS).record(name, value)

    assert veilcount.recorded == [(name, value)]


ARMS = one_collection("it", segments={"arm": ["left", "right"], "major": [7, 8]})
ARM = 'has a value that is not listed (got str): give one of "left", "right" (closest: "left")'
MAJOR = "has a value that is not listed (got str; the listed values are int): give one of 7, 8"
UNDECLARED = "is not declared: leave it out, or add it to `segments` (declared: arm, major)"
WRONG_SEGMENTS = [
    ({"arm": "left"}, "segment 'major' is missing: give one of 7, 8"),
    ({"amr": "left", "major": 7}, f"segment 'amr' {UNDECLARED}"),
    ({"arm": "lefty", "major": 7}, f"segment 'arm' {ARM}"),
    ({"arm": "left", "major": "7"}, f"segment 'major' {MAJOR} (closest: 7)"),
]


@pytest.mark.parametrize(("segments", "problem"), WRONG_SEGMENTS)
def test_a_wrong_segment_is_named_with_its_cause(
    veilcount: ClientHarness, segments: dict[str, object], problem: str
) -> None:
    client = veilcount.client(ARMS)
    with pytest.raises(UnknownSegment) as raised:
        client.record("it", True, **segments)

    assert str(raised.value) == f"it: {problem}"
    assert client.explain("it").losses == {"segment": 1}
    assert veilcount.recorded == []


def test_production_names_the_cause_of_a_wrong_segment_and_not_its_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor the listed one that looks like it: there the value is a person's."""
    device = Device(tmp_path, ARMS)
    device.record(value=True, arm="lefty", major=7)
    (reason,) = device.client.explain("it").reasons

    assert "segment 'arm' has a value that is not listed (got str): give one of" in reason
    assert reason in caplog.text
    assert "lefty" not in caplog.text
    assert "closest" not in caplog.text


def test_strict_names_no_value_of_persons(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    client = Client(
        NOBODY, collections=COLLECTIONS, state_dir=tmp_path, strict=True, threaded=False
    )
    with closing(client), pytest.raises(UnknownValue) as raised:
        client.record("theme", "drak")

    assert "closest" not in str(raised.value)
    assert caplog.text == ""


def test_development_warns_once_each(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With the listed value that was meant, perhaps; the value itself is not shown."""
    with closing(developing(tmp_path)) as client, caplog.at_level(logging.WARNING):
        for value in ("drak", "lihgt", "dark"):
            client.record("theme", value)
        client.record("editor", "emcas")
        client.record("editor", "ed")
    warnings = [each.getMessage() for each in caplog.records if ", value " in each.getMessage()]

    assert len(warnings) == 2
    assert "theme" in warnings[0]
    assert '(closest: "dark")' in warnings[0]
    assert '(got str) counts as `other` (closest: "emacs")' in warnings[1]
    assert "drak" not in caplog.text


def test_production_logs_the_same_whatever_the_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even that there was one: a log is no place for what a person's value decides."""
    for number, value in enumerate(["dark", "drak", RaisingValue()]):
        device = production(tmp_path / str(number))
        device.record("theme", value=value)

        assert device.losses("theme") == {}
        assert device.client.explain("theme").reasons[-1].startswith("on the way: 1 reports")
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("days", "words"), [(-1.0, "the campaign starts 2026-12-01"), (31.0, "ended 2026-12-31")]
)
def test_a_record_outside_its_campaign_is_warned_of_once(
    days: float, words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """For each collection; inside, of none."""
    device = production(tmp_path, clock=at(3))
    device.record("theme", value="dark")
    assert caplog.text == ""
    device.stop()
    device.start_at(at(days))
    for _ in range(3):
        device.record("theme", "editor", value="dark")
    device.client.flush()
    warnings = [each.getMessage() for each in caplog.records]

    assert len(warnings) == 2
    assert all(words in warning for warning in warnings)
    assert [each for each in device.client.explain("theme").reasons if words in each] == [
        f"clock: {warnings[0].partition(': ')[2]}"
    ]


@pytest.mark.parametrize(
    ("url", "fix"),
    [
        ("stats.example.org", "give 'https://stats.example.org'"),
        ("localhost:8000/", "give 'https://localhost:8000'"),
        ("ftp://stats.example.org", "give 'https://stats.example.org'"),
        ("ann:secret@stats.example.org", "give 'https://stats.example.org'"),
        ("https://", "does not begin"),
        ("https://[::1", "host name"),
    ],
)
def test_an_address_without_a_scheme_is_refused_at_once(
    url: str, fix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Client(url, collections=COLLECTIONS, state_dir=tmp_path)) as client:
        (reason,) = client.explain("theme").reasons
    with pytest.raises(NotUsable, match="url = ") as raised:
        Client(url, collections=COLLECTIONS, state_dir=tmp_path, strict=True)

    assert fix in reason
    assert fix in caplog.text
    assert fix in str(raised.value)
    assert "secret" not in caplog.text


# -- without a configuration of logging ------------------------------------------------------------

SCRIPT = f"""
import logging, sys
from datetime import datetime, UTC
from veilcount_client import Client
from veilcount_client.testing import RecordingTransport, SettableClock
from veilcount_shared import load_collections

first, *later = sys.argv[1:]
if first == "configured":
    logging.basicConfig(format="mine: %(message)s")
client = Client(
    {NOBODY!r}, collections="docs/collections.toml", development=True, threaded=False,
    transport=RecordingTransport(), clock=SettableClock(datetime(2026, 12, 3, tzinfo=UTC)),
)
if later:
    logging.basicConfig(format="mine: %(message)s")
client.consent(True)
client.record("theme", "drak")
client.flush()
"""


@pytest.mark.parametrize("configured", ["never", "configured", "never later"])
def test_development_speaks_where_logging_is_not_configured(configured: str) -> None:
    """On stderr, each line once, outcomes too; an app's own configuration stays as it is."""
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *configured.split()],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    is_own = configured != "never"

    assert run.stderr.count('closest: "dark"') == 1
    assert ("mine: " in run.stderr) == is_own
    assert ("1 reports: counted" in run.stderr) == (configured != "configured")


def test_one_collection_of_a_day_has_no_remark(veilcount: ClientHarness) -> None:
    """`explain` names problems of its own collection only."""
    client = veilcount.client(one_collection("it"))
    client._session.problems.add("record other", "the definitions have no [other]")

    assert client.explain("it").reasons == ()


def test_a_question_that_travels_by_shuffler_is_never_sent_alone(veilcount: ClientHarness) -> None:
    """Its fingerprint promises a batch, so another question's report is all that leaves."""
    kept_back = file(theme=THEME, used={"batch": {"least": 50, "grace": 3}})
    client = veilcount.client(kept_back)
    with pytest.raises(UnknownCollection):
        client.record("used", True)
    client.record("theme", "dark")
    veilcount.advance(days=40)

    assert {report.fingerprint for report in veilcount.sent} == {kept_back["theme"].fingerprint}
    assert "load used" in client._session.problems.messages
