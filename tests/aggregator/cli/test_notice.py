"""`veilcount notice`: what respondents should know, true of the definition."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.analysis.privacy_notice import notice
from veilcount_shared import Collection, load_collections
from veilcount_shared.collection import Held, Linkage, Presence, Takes

from .conftest import Type

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
ON_DEVICE: dict[str, Any] = {"takes": Takes.LAST, "held": Held.DEVICE}
IN_MEMORY = ON_DEVICE | {"held": Held.PROCESS}


def part_text(collection: Collection, title: str) -> str:
    return next(part.text for part in notice(collection).parts if part.title == title)


def test_every_collection_says_everything(typed: Type, file: str) -> None:
    documents, printed = typed("notice", file, "--json").json, typed("notice", file).out

    assert [each["collection"] for each in documents] == ["theme", "city", "minutes", "crash"]
    for each in documents:
        assert [part["title"] for part in each["parts"]] == TITLES
        assert all(part["text"] in printed for part in each["parts"])
    assert "users" not in printed


def test_one_collection_may_be_named(typed: Type, file: str) -> None:
    printed = typed("notice", file, "theme").out

    assert printed.startswith("## acme-editor: theme")
    assert "crash" not in printed


def test_the_route_of_reports_is_named(typed: Type, file: str) -> None:
    direct, relayed = (
        typed("notice", file, "theme", *words).out for words in ([], ["--relay", "Example e.V."])
    )

    assert "Whoever runs the network sees your address" in direct
    assert "sent through Example e.V., who sees your address and no report" in relayed
    assert "Whoever runs the network" not in relayed


@pytest.mark.parametrize(
    ("name", "changes", "title", "text"),
    [
        ("theme", {}, "What is asked", "Which theme is active?"),
        ("theme", {}, "What is asked", "light, dark or system"),
        ("theme", {}, "What is asked", "To choose the default theme"),
        ("theme", {}, "Whom to ask", "privacy@acme.example"),
        ("theme", {}, "What an answer gives away", "at most 73.2 % of the time"),  # e / (1 + e)
        ("theme", {}, "What leaves your device", "changed at random on your device"),
        ("crash", {}, "What leaves your device", "Your true answer"),
        ("theme", {}, "What is not hidden", "Sent in clear: arm (A, B)"),
        ("theme", {}, "What is not hidden", "Whether you answered."),
        ("theme", {"presence": Presence.HIDDEN, "segments": ()}, "What is not hidden", "is hidden"),
        ("minutes", {"linkage": Linkage.NONE}, "What is not hidden", "a random name of its own"),
        ("theme", {}, "How often", "Once."),
        ("minutes", {}, "How often", "At most 4 times a day, on 7 of 60 days"),
        ("theme", {}, KEPT, "32 days after the last day"),
        ("theme", {"late": 7}, KEPT, "9 days after the last day"),
        ("theme", ON_DEVICE, KEPT, "so far is kept on your device's disk, readable by"),
        ("theme", ON_DEVICE, KEPT, "wiped then, and when you withdraw your consent or"),
        ("theme", ON_DEVICE, "How often", "What counts is the last value of that time. "),
        ("theme", IN_MEMORY, KEPT, "is in the app's memory only, and lost if the app is killed"),
        ("theme", IN_MEMORY, "How often", "as far as the first run of the app that recorded one"),
        ("crash", {}, KEPT, "Until it is delivered, your true answer is in the app's memory only"),
        ("crash", {"held": Held.DEVICE}, KEPT, "your true answer is kept on your device's disk"),
    ],
)
def test_the_notice_is_true_of_the_definition(
    file: str, name: str, changes: dict[str, Any], title: str, text: str
) -> None:
    assert text in part_text(replace(load_collections(Path(file))[name], **changes), title)


def test_the_notice_claims_nothing_that_is_not_so(file: str) -> None:
    """A true value is never called randomized, and a first value is stored nowhere."""
    family = load_collections(Path(file))

    assert "random on your device" not in part_text(family["crash"], "What leaves your device")
    assert "memory" not in part_text(family["theme"], KEPT)
    assert "disk" not in part_text(family["theme"], KEPT)
