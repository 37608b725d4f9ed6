"""`veilcount notice`: what the people who are asked should know, true of the definition."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from veilcount_aggregator.analysis.privacy_notice import notice
from veilcount_shared import Collection, load_collections
from veilcount_shared.collection import Held, Linkage, Presence, Takes

from .conftest import Type
from .store_fixtures import written

TITLES = [
    "What is asked",
    "What leaves your device",
    "How often",
    "What an answer gives away",
    "What is not hidden",
    "What is kept, and how long",
    "Whom to ask",
]
KEPT = "What is kept, and how long"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a choice, a number and a central collection."""
    return written(tmp_path)


def said(collection: Collection, title: str) -> str:
    """Return what a collection's notice says under a heading."""
    return next(part.text for part in notice(collection).parts if part.title == title)


def test_every_collection_says_everything(typed: Type, file: Path) -> None:
    told = typed("notice", str(file), "--json").json

    assert [each["collection"] for each in told] == ["theme", "minutes", "crash"]
    assert all([part["title"] for part in each["parts"]] == TITLES for each in told)
    assert all(part["text"] for each in told for part in each["parts"])


def test_one_collection_may_be_named(typed: Type, file: Path) -> None:
    told = typed("notice", str(file), "theme").out

    assert told.startswith("## acme-editor: theme")
    assert "crash" not in told
    assert "did you mean theme?" in typed("notice", str(file), "theem").err


def test_question_purpose_and_owner_are_told(file: Path) -> None:
    theme = load_collections(file)["theme"]

    assert "Which theme is active?" in said(theme, "What is asked")
    assert "light, dark or system" in said(theme, "What is asked")
    assert "To choose the default theme" in said(theme, "What is asked")
    assert "privacy@acme.example" in said(theme, "Whom to ask")


def test_epsilon_is_told_in_words(file: Path) -> None:
    """At epsilon 1, e / (1 + e) = 73.1 % is right at most, rounded up."""
    assert "at most 73.2 % of the time" in said(
        load_collections(file)["theme"], "What an answer gives away"
    )


def test_a_true_value_is_never_called_randomized(file: Path) -> None:
    family = load_collections(file)

    assert "changed at random on your device" in said(family["theme"], TITLES[1])
    assert "Your true answer" in said(family["crash"], TITLES[1])
    assert "random on your device" not in said(family["crash"], TITLES[1])


def test_what_is_public_is_told(file: Path) -> None:
    theme = load_collections(file)["theme"]
    hidden = replace(theme, presence=Presence.HIDDEN, segments=())
    unlinked = replace(load_collections(file)["minutes"], linkage=Linkage.NONE)

    assert "Sent in clear: arm (A, B)" in said(theme, TITLES[4])
    assert "Whether you answered." in said(theme, TITLES[4])
    assert "is hidden" in said(hidden, TITLES[4])
    assert "a random name of its own" in said(unlinked, TITLES[4])


def test_how_often_follows_the_definition(file: Path) -> None:
    family = load_collections(file)

    assert said(family["theme"], TITLES[2]).startswith("Once.")
    assert "At most 4 times a day, on 7 of 60 days" in said(family["minutes"], TITLES[2])


def test_retention_follows_late_and_linkage(file: Path) -> None:
    theme = load_collections(file)["theme"]

    assert "32 days after the last day" in said(theme, TITLES[5])
    assert "9 days after the last day" in said(replace(theme, late=7), TITLES[5])


def test_it_speaks_of_answers_and_not_of_users(typed: Type, file: Path) -> None:
    assert "users" not in typed("notice", str(file)).out


def test_where_a_running_value_waits_is_told(file: Path) -> None:
    """On the disk it outlives the app's runs; in memory the first run alone is heard."""
    theme = load_collections(file)["theme"]
    kept = replace(theme, takes=Takes.LAST, held=Held.DEVICE)
    lost = replace(theme, takes=Takes.LAST, held=Held.PROCESS)

    assert "what was recorded so far is kept on your device's disk, readable by" in said(kept, KEPT)
    assert "wiped then, and when you withdraw your consent or have it forgotten" in said(kept, KEPT)
    assert "is in the app's memory only, and lost if the app is killed" in said(lost, KEPT)
    assert said(kept, TITLES[2]).count("What counts is the last value of that time. ") == 1
    assert "as far as the first run of the app that recorded one tells it" in said(lost, TITLES[2])


def test_where_a_true_value_waits_for_its_delivery_is_told(file: Path) -> None:
    crash = load_collections(file)["crash"]
    on_disk = said(replace(crash, held=Held.DEVICE), KEPT)

    assert "Until it is delivered, your true answer is in the app's memory only" in said(
        crash, KEPT
    )
    assert "Until it is delivered, your true answer is kept on your device's disk" in on_disk


def test_a_first_value_does_not_wait(file: Path) -> None:
    theme = load_collections(file)["theme"]

    assert "memory" not in said(theme, KEPT)
    assert "disk" not in said(theme, KEPT)
