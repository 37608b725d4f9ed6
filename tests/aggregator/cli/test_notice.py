"""`veilcount notice`: what respondents should know, true of the definition."""

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
    return written(tmp_path)


def part_text(collection: Collection, title: str) -> str:
    return next(part.text for part in notice(collection).parts if part.title == title)


def test_every_collection_says_everything(typed: Type, file: Path) -> None:
    printed = typed("notice", str(file), "--json").json

    assert [each["collection"] for each in printed] == ["theme", "minutes", "crash"]
    assert all([part["title"] for part in each["parts"]] == TITLES for each in printed)
    assert all(part["text"] for each in printed for part in each["parts"])


def test_one_collection_may_be_named(typed: Type, file: Path) -> None:
    printed = typed("notice", str(file), "theme").out

    assert printed.startswith("## acme-editor: theme")
    assert "crash" not in printed
    assert "did you mean theme?" in typed("notice", str(file), "theem").err


def test_the_notice_has_question_purpose_and_owner(file: Path) -> None:
    theme = load_collections(file)["theme"]

    assert "Which theme is active?" in part_text(theme, "What is asked")
    assert "light, dark or system" in part_text(theme, "What is asked")
    assert "To choose the default theme" in part_text(theme, "What is asked")
    assert "privacy@acme.example" in part_text(theme, "Whom to ask")


def test_epsilon_is_explained_in_words(file: Path) -> None:
    """At epsilon 1, e / (1 + e) = 73.1 % is right at most, rounded up."""
    assert "at most 73.2 % of the time" in part_text(
        load_collections(file)["theme"], "What an answer gives away"
    )


def test_a_true_value_is_never_called_randomized(file: Path) -> None:
    family = load_collections(file)

    assert "changed at random on your device" in part_text(family["theme"], TITLES[1])
    assert "Your true answer" in part_text(family["crash"], TITLES[1])
    assert "random on your device" not in part_text(family["crash"], TITLES[1])


def test_the_notice_states_what_is_public(file: Path) -> None:
    theme = load_collections(file)["theme"]
    hidden = replace(theme, presence=Presence.HIDDEN, segments=())
    unlinked = replace(load_collections(file)["minutes"], linkage=Linkage.NONE)

    assert "Sent in clear: arm (A, B)" in part_text(theme, TITLES[4])
    assert "Whether you answered." in part_text(theme, TITLES[4])
    assert "is hidden" in part_text(hidden, TITLES[4])
    assert "a random name of its own" in part_text(unlinked, TITLES[4])


def test_how_often_follows_the_definition(file: Path) -> None:
    family = load_collections(file)

    assert part_text(family["theme"], TITLES[2]).startswith("Once.")
    assert "At most 4 times a day, on 7 of 60 days" in part_text(family["minutes"], TITLES[2])


def test_retention_follows_late_and_linkage(file: Path) -> None:
    theme = load_collections(file)["theme"]

    assert "32 days after the last day" in part_text(theme, TITLES[5])
    assert "9 days after the last day" in part_text(replace(theme, late=7), TITLES[5])


def test_it_speaks_of_answers_and_not_of_users(typed: Type, file: Path) -> None:
    assert "users" not in typed("notice", str(file)).out


def test_the_notice_states_where_a_running_value_is_kept(file: Path) -> None:
    theme = load_collections(file)["theme"]
    kept = replace(theme, takes=Takes.LAST, held=Held.DEVICE)
    lost = replace(theme, takes=Takes.LAST, held=Held.PROCESS)

    often = "as far as the first run of the app that recorded one tells it"

    assert "what was recorded so far is kept on your device's disk, readable by" in part_text(
        kept, KEPT
    )
    assert "wiped then, and when you withdraw your consent or have it forgotten" in part_text(
        kept, KEPT
    )
    assert "is in the app's memory only, and lost if the app is killed" in part_text(lost, KEPT)
    assert part_text(kept, TITLES[2]).count("What counts is the last value of that time. ") == 1
    assert often in part_text(lost, TITLES[2])


def test_the_notice_states_where_a_true_value_is_kept(file: Path) -> None:
    crash = load_collections(file)["crash"]
    on_disk = part_text(replace(crash, held=Held.DEVICE), KEPT)

    assert "Until it is delivered, your true answer is in the app's memory only" in part_text(
        crash, KEPT
    )
    assert "Until it is delivered, your true answer is kept on your device's disk" in on_disk


def test_a_first_value_does_not_wait(file: Path) -> None:
    theme = load_collections(file)["theme"]

    assert "memory" not in part_text(theme, KEPT)
    assert "disk" not in part_text(theme, KEPT)
