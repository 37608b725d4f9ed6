"""The definitions page: a preview that changes nothing, then push; and close."""

from __future__ import annotations

import io
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.definitions import SOURCE, DefinitionSource
from veilcount_shared.verdict import Verdict

from ..api.deployment_fixtures import FILE, Deployment, deployment
from .page_fixtures import Page, Visitor, logged_in

CITY = """
app = "acme-editor"

[city]
question = "Which city?"
values = ["Paris", "Rome"]
epsilon = 2
unit = "day"
from = 2026-12-01
until = 2027-03-01
"""
WORDS = CITY.replace('values = ["Paris", "Rome"]', 'values_file = "lists/words.txt"')
RUNNING = CITY.replace('unit = "day"', 'unit = "week"\ntakes = "last"\nheld = "device"')
PREVIEW = "/definitions/preview"
_FIELD = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


@pytest.fixture
def admin(deployed: Deployment) -> Visitor:
    return logged_in(deployed, Role.ADMIN, "/definitions")


def test_a_preview_shows_a_new_collection_and_changes_nothing(
    deployed: Deployment, admin: Visitor
) -> None:
    before = deployed.aggregator.store.generation()
    page = admin.post(PREVIEW, text=CITY, reports="20")

    assert page.status == 200
    assert "Remarks, at 20 reports" in page.text
    assert "A new collection." in page.text
    assert "Epsilon of an event 2 of a UTC day 2 of a user, for life 180" in page.text
    assert "name: city may identify a person" in page.text
    assert deployed.aggregator.store.generation() == before


@pytest.mark.parametrize(
    ("text", "shown", "not_shown"),
    [
        (
            FILE.replace("epsilon = 0.5", "epsilon = 0.25"),
            ("opened · each event", "A new series begins", "epsilon was 0.5, is 0.25"),
            "Privacy and meaning stay",
        ),
        (
            FILE.replace('"How was it opened?"', '"How was it opened?"\nowner = "Ada"'),
            ("Privacy and meaning stay",),
            "A new series begins",
        ),
        (FILE, ("Nothing: every definition is known.",), 'id="push"'),
        (RUNNING, ("the running value is kept on the device",), "A new series begins"),
    ],
    ids=["a new series", "texts only", "nothing", "a running value"],
)
def test_a_preview_shows_the_effect_of_each_change(
    admin: Visitor, text: str, shown: tuple[str, ...], not_shown: str
) -> None:
    page = admin.post(PREVIEW, text=text)

    assert [each for each in shown if each not in page.text] == []
    assert not_shown not in page.html
    known = 3 - (text != FILE) if "[theme]" in text else 0
    assert page.text.count("Identical to the known definition.") == known


def test_a_previewed_definition_is_pushed_and_counted(deployed: Deployment, admin: Visitor) -> None:
    """Line ends of a browser do not change the file."""
    pushed = _push(admin, admin.post(PREVIEW, text=CITY.replace("\n", "\r\n")))
    stored = deployed.aggregator.store.records(SOURCE)

    assert pushed.leads_to == "/definitions?pushed=city"
    assert "Pushed: city." in admin.get(pushed.leads_to).text
    assert deployed.verdicts(deployed.report("city")) == [Verdict.COUNTED]
    assert any(key.endswith(DefinitionSource(CITY).digest) for key in stored)


@pytest.mark.parametrize(
    ("text", "file", "fix"),
    [
        (CITY.replace("epsilon = 2", "epsilon = -2"), b"", "[city]: epsilon = -2"),
        # a running value waits for weeks: the author decides where
        (RUNNING.replace("held", "# held"), b"", "held = (missing): a week with takes"),
        (CITY, b"\xff\xfe", "not UTF-8 text"),
        (WORDS, b"", "send the file along with the definitions"),
    ],
    ids=["an invalid definition", "nothing held", "no text", "a missing list"],
)
def test_an_invalid_file_is_refused_with_the_fix_and_the_text_is_kept(
    admin: Visitor, text: str, file: bytes, fix: str
) -> None:
    files = {"file": _file("collections.toml", file)} if file else {}
    page = admin.post(PREVIEW, text=text, **files)

    assert page.status == 422
    assert fix in page.text
    assert "Which city?" in page.html


def test_a_definition_whose_counters_do_not_fit_is_refused_in_the_preview(tmp_path: Path) -> None:
    with deployment(tmp_path, max_counter_memory=30_000) as made:
        page = logged_in(made, Role.ADMIN, "/definitions").post(PREVIEW, text=CITY)

    assert page.status == 422
    assert "city: its counters can need 29.5 KB (90 periods x 1 cell x 2 counters)" in page.text
    assert "Which city?" in page.html


def test_a_file_wins_over_the_text_and_a_long_list_is_pushed(
    deployed: Deployment, admin: Visitor
) -> None:
    """Longer than the half megabyte that a form's fields may usually have."""
    words = "\n".join(f"a word of the list, number {number:06}" for number in range(20_000))
    page = admin.post(
        PREVIEW,
        text=FILE,
        file=_file("collections.toml", WORDS.encode()),
        lists=_file("words.txt", words.encode()),
    )
    pushed = _push(admin, page)

    assert "Which theme" not in page.text
    assert pushed.leads_to == "/definitions?pushed=city"
    assert deployed.series("city").collection.inputs == 20_000


def test_an_unknown_collection_is_neither_closed_nor_named(admin: Visitor) -> None:
    page = admin.get("/definitions?closed=everything&pushed=your+money")

    assert "everything" not in page.text
    assert "your money" not in page.text
    assert admin.post("/definitions/nothing/close").status == 404


def _push(admin: Visitor, page: Page) -> Page:
    form = page.html[page.html.rindex("<form") :]
    fields = dict(_FIELD.findall(form))
    return admin.post("/definitions", **{name: unescape(value) for name, value in fields.items()})


def _file(name: str, body: bytes) -> tuple[Any, str]:
    return io.BytesIO(body), name
