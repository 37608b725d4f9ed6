"""`veilcount notice`: what respondents should know, true of the definition."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from veilcount_shared import Collection, load_collections
from veilcount_shared.collection import Held, Linkage, Presence, Takes
from veilcount_shared.notice import notice

from ....notice_definitions import definitions_text
from .conftest import Type

SENT, OFTEN, KEPT = "What is sent", "How often, and until when", "What is kept, and how long"
TITLES = [
    *("Why it is asked", SENT, OFTEN, "What an answer gives away", "What is not hidden", KEPT),
    *("If you change your mind", "Whom to ask"),
]
ON_DEVICE: dict[str, Any] = {"takes": Takes.LAST, "held": Held.DEVICE}
IN_MEMORY = ON_DEVICE | {"held": Held.PROCESS}


def part_text(collection: Collection, title: str) -> str:
    return next(part.text for part in notice(collection).texts() if part.title == title)


def test_every_collection_says_everything(typed: Type, file: str) -> None:
    documents, printed = typed("notice", file, "--json").json, typed("notice", file).out

    assert [document["collection"] for document in documents] == [
        "theme",
        "city",
        "minutes",
        "crash",
    ]
    for document in documents:
        assert [part["title"] for part in document["parts"]] == TITLES
        assert all(part["text"] in printed for part in document["parts"])
        assert f"\u201c{document['question']}\u201d" in printed
    assert "users" not in printed


def test_the_route_of_reports_is_named(typed: Type, file: str) -> None:
    direct, relayed = (
        typed("notice", file, "theme", *words).out for words in ([], ["--relay", "Example e.V."])
    )

    assert "Whoever runs the network sees your address" in direct
    assert "sent through a relay, whose operator sees your address and no report" in relayed
    assert "The relay is operated by Example e.V." in relayed
    assert "Whoever runs the network" not in relayed


def test_the_shuffler_of_a_batch_is_named(typed: Type, tmp_path: Path) -> None:
    file = tmp_path / "shuffled.toml"
    file.write_text(definitions_text())
    unnamed, named = (
        typed("notice", str(file), "shuffled", *words).out
        for words in ([], ["--shuffler", "Example e.V."])
    )

    assert "travel through a shuffler, whose operator sees your address" in unnamed
    assert "The shuffler is run by" not in unnamed
    assert "The shuffler is run by Example e.V." in named
    assert "shuffler and server together, epsilon 0.5 a report, 6 in all 12" in named
    assert re.search(r"its word: 0.25 a report, [0-2]\.\d+ in all 12 reports", named)


@pytest.mark.parametrize(
    ("name", "changes", "title", "text"),
    [
        ("theme", {}, SENT, "changed at random on your device"),
        ("crash", {}, SENT, "Your true answer"),
        ("theme", {}, "What is not hidden", "Sent in clear: arm (A, B)"),
        ("theme", {}, "What is not hidden", "Whether you answered."),
        ("theme", {"presence": Presence.HIDDEN, "segments": ()}, "What is not hidden", "is hidden"),
        ("minutes", {"linkage": Linkage.NONE}, "What is not hidden", "a random name of its own"),
        ("theme", {}, OFTEN, "Once."),
        ("minutes", {}, OFTEN, "At most 4 times a day, on 7 of the 60 days"),
        ("theme", {}, KEPT, "32 days after the last day"),
        ("theme", {"late": 7}, KEPT, "9 days after the last day"),
        ("theme", ON_DEVICE, KEPT, "so far waits in the app until"),
        ("theme", ON_DEVICE, KEPT, "on the app's disk, readable by the app's user only; it is"),
        ("theme", ON_DEVICE, OFTEN, "What counts is the last value of that time. "),
        ("theme", IN_MEMORY, KEPT, "is in the app's memory only, and lost if the app is killed"),
        ("theme", IN_MEMORY, OFTEN, "Only the first run of the app in that time that records"),
        ("crash", {}, KEPT, "until it is delivered. It is in the app's memory only"),
        ("crash", {"held": Held.DEVICE}, KEPT, "It is kept on the app's disk"),
    ],
)
def test_the_notice_is_true_of_the_definition(
    file: str, name: str, changes: dict[str, Any], title: str, text: str
) -> None:
    assert text in part_text(replace(load_collections(Path(file))[name], **changes), title)


def test_an_app_that_acts_for_many_persons_does_not_speak_of_their_device(
    typed: Type, file: str
) -> None:
    """Its own server sees the true answers, and hides the persons' addresses."""
    printed = typed("notice", file, "theme", "--persons").out

    assert "The app's own server sees your answer" in printed
    assert "your address stays with it" in printed
    assert "your device" not in printed


def test_the_notice_claims_nothing_that_is_not_so(file: str) -> None:
    """A true value is never called randomized, and a first value is stored nowhere."""
    family = load_collections(Path(file))

    assert "random on your device" not in part_text(family["crash"], SENT)
    assert "memory" not in part_text(family["theme"], KEPT)
    assert "disk" not in part_text(family["theme"], KEPT)


def test_drafts_are_marked_as_drafts_and_state_the_sums_of_the_file(typed: Type, file: str) -> None:
    """Of one question, too: a device's limit is that of the whole file."""
    assessment, record = (
        typed("notice", file, "minutes", option) for option in ("--dpia", "--records")
    )
    whole = typed("notice", file, "--dpia", "--json").json

    assert (assessment.code, record.code) == (0, 0)
    for printed in (assessment.out, record.out):
        assert "no legal advice" in printed
        assert "**[to be completed: " in printed
        assert "## minutes" in printed
        assert "## theme" not in printed
    assert "At most 4 times a day" in record.out
    assert "reveal at most epsilon" in assessment.out
    assert "reveal at most epsilon" not in record.out
    assert {section["title"] for section in whole["sections"]} > {"theme", "minutes", "crash"}


def test_two_drafts_are_two_documents(typed: Type, file: str) -> None:
    refused = typed("notice", file, "--dpia", "--records")

    assert refused.code == 2
    assert "each is a document of its own" in refused.err
