"""The page of definitions: a preview that changes nothing, then push; and close."""

from __future__ import annotations

import io
import re
from html import unescape
from typing import Any

import pytest

from tests.aggregator.api.deployment_fixtures import FILE, Deployment
from tests.aggregator.dashboard.page_fixtures import Page, Visitor
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.catalog.definitions import SOURCE, DefinitionSource
from veilcount_shared.verdict import Verdict

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
PREVIEW = "/definitions/preview"
_FIELD = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


@pytest.fixture
def admin(visitor: Visitor) -> Visitor:
    """An admin who looks at the definitions."""
    visitor.enter(Role.ADMIN)
    visitor.get("/definitions")
    return visitor


def test_a_preview_says_what_is_new_and_changes_nothing(
    deployed: Deployment, admin: Visitor
) -> None:
    before = deployed.aggregator.store.generation()
    page = admin.post(PREVIEW, text=CITY)

    assert page.status == 200
    assert "A new collection." in page.text
    assert "Epsilon of an event 2 of a UTC day 2 of a user, for life 180" in page.text
    assert "name: city may identify a person" in page.text
    assert deployed.aggregator.store.generation() == before


def test_a_preview_says_what_held_means_and_is_refused_without(admin: Visitor) -> None:
    """A running value waits for weeks: where it does is for the author to say."""
    running = CITY.replace('unit = "day"', 'unit = "week"\ntakes = "last"')
    refused = admin.post(PREVIEW, text=running)
    page = admin.post(PREVIEW, text=running.replace('"last"', '"last"\nheld = "device"'))

    assert refused.status == 422
    assert "held = (missing): a week with takes" in refused.text
    assert "the running value is kept on the device" in page.text


def test_a_preview_says_what_is_otherwise(admin: Visitor) -> None:
    page = admin.post(PREVIEW, text=FILE.replace("epsilon = 0.5", "epsilon = 0.25"))

    assert "opened · each event" in page.text
    assert "A new series begins" in page.text
    assert "epsilon was 0.5, is 0.25" in page.text
    assert page.text.count("Identical to the known definition.") == 2


def test_a_preview_tells_other_words_from_another_series(admin: Visitor) -> None:
    page = admin.post(PREVIEW, text=FILE.replace("How was it opened?", "How did you open it?"))

    assert "Privacy and meaning stay" in page.text
    assert "A new series begins" not in page.text


def test_what_is_known_cannot_be_pushed_again(admin: Visitor) -> None:
    page = admin.post(PREVIEW, text=FILE)

    assert "Nothing: every definition is known." in page.text
    assert 'id="push"' not in page.html


def test_remarks_are_of_as_many_answers_as_are_expected(admin: Visitor) -> None:
    few = admin.post(PREVIEW, text=FILE, reports="20")

    assert "Remarks, at 20 reports" in few.text


def test_what_was_previewed_is_pushed_and_counted(deployed: Deployment, admin: Visitor) -> None:
    pushed = _push(admin, admin.post(PREVIEW, text=CITY))

    assert pushed.leads_to == "/definitions?pushed=city"
    assert "Pushed: city." in admin.get(pushed.leads_to).text
    assert deployed.verdicts(deployed.report("city")) == [Verdict.COUNTED]


def test_a_browsers_line_ends_make_no_other_file(deployed: Deployment, admin: Visitor) -> None:
    _push(admin, admin.post(PREVIEW, text=CITY.replace("\n", "\r\n")))
    kept = deployed.aggregator.store.records(SOURCE)

    assert any(key.endswith(DefinitionSource(CITY).digest) for key in kept)


def test_a_wrong_definition_is_told_and_the_text_kept(admin: Visitor) -> None:
    page = admin.post(PREVIEW, text=CITY.replace("epsilon = 2", "epsilon = -2"))

    assert page.status == 422
    assert "[city]: epsilon = -2" in page.text
    assert "Which city?" in page.html


def test_what_is_no_text_is_told(admin: Visitor) -> None:
    page = admin.post(PREVIEW, file=_file("collections.toml", b"\xff\xfe"))

    assert page.status == 422
    assert "not UTF-8 text" in page.text


def test_a_list_that_is_missing_is_asked_for(admin: Visitor) -> None:
    page = admin.post(PREVIEW, text=WORDS)

    assert page.status == 422
    assert "send the file along with the definitions" in page.text


def test_a_long_list_comes_through(deployed: Deployment, admin: Visitor) -> None:
    """Over a megabyte: longer than a form's fields may usually be."""
    words = "\n".join(f"a word of the list, number {number:06}" for number in range(40_000))
    page = admin.post(
        PREVIEW,
        file=_file("collections.toml", WORDS.encode()),
        lists=_file("words.txt", words.encode()),
    )
    pushed = _push(admin, page)

    assert pushed.leads_to == "/definitions?pushed=city"
    assert deployed.series("city").collection.inputs == 40_000


def test_a_file_wins_over_the_text(admin: Visitor) -> None:
    page = admin.post(PREVIEW, text=FILE, file=_file("collections.toml", CITY.encode()))

    assert "Which city?" in page.text
    assert "Which theme" not in page.text


def test_a_collection_that_is_closed_takes_no_more(deployed: Deployment, admin: Visitor) -> None:
    report = deployed.report("theme")
    closed = admin.post("/definitions/theme/close")

    assert closed.leads_to == "/definitions?closed=theme"
    assert "theme is closed" in admin.get(closed.leads_to).text
    assert "Close theme permanently" not in admin.get("/definitions").text
    assert deployed.verdicts(report) == [Verdict.CLOSED]


def test_a_collection_that_is_none_cannot_be_closed(admin: Visitor) -> None:
    assert admin.post("/definitions/nothing/close").status == 404


def test_words_in_the_address_are_not_told_as_ours(admin: Visitor) -> None:
    page = admin.get("/definitions?closed=everything&pushed=your+money")

    assert "everything" not in page.text
    assert "your money" not in page.text


def _push(admin: Visitor, page: Page) -> Page:
    """Send what the preview's form holds."""
    form = page.html[page.html.rindex("<form") :]
    fields = dict(_FIELD.findall(form))
    return admin.post("/definitions", **{name: unescape(value) for name, value in fields.items()})


def _file(name: str, body: bytes) -> tuple[Any, str]:
    return io.BytesIO(body), name
