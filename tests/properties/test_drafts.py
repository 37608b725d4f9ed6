"""Drafts for Art. 30 and 35: what the notice tells people is in them, and nothing is made up."""

from __future__ import annotations

from fractions import Fraction
from string import Formatter

import pytest

from veilcount_shared import Collection
from veilcount_shared.notice import Texts, notice
from veilcount_shared.notice import drafts as module
from veilcount_shared.notice.draft_messages import DRAFTS
from veilcount_shared.notice.drafts import Draft, draft_assessment, draft_record

from ..notice_definitions import COLLECTIONS, OWNER, PURPOSE

ONE = Fraction(1)


def assessment(collection: Collection) -> Draft:
    return draft_assessment([notice(collection)], day=ONE, month=2 * ONE, life=3 * ONE)


def words(draft: Draft) -> str:
    return "\n".join(text for section in draft.sections for text in section.paragraphs)


def missing(collection: Collection) -> set[str]:
    """Return the keys of the notice's sentences that the assessment lacks."""
    texts, text = Texts(), words(assessment(collection))
    return {
        statement.key
        for part in notice(collection).parts
        for statement in part.statements
        if texts(statement.key, **statement.values) not in text
    }


#: of no use here: the heading has the question and its fingerprint, and the risk of a curator the
#: sentence that people read under "What is sent"
LEFT_OUT = {"notice_identity", "notice_curator"}


@pytest.mark.parametrize("name", COLLECTIONS)
def test_everything_that_people_read_is_in_the_assessment(name: str) -> None:
    collection = COLLECTIONS[name]
    shuffled = notice(collection, relay="A", shuffler="B")

    assert missing(collection) <= LEFT_OUT
    assert all(party in words(draft_record([shuffled])) for party in _parties(collection))


def _parties(collection: Collection) -> list[str]:
    return ["run by B"] if collection.batch else ["operated by A"]


def test_an_entry_that_is_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: without the entry on rights nobody reads how consent is withdrawn."""
    without = tuple(entry for entry in module.DESCRIPTION if entry.label != "rights")
    monkeypatch.setattr(module, "DESCRIPTION", without)

    assert "notice_withdrawal" in missing(COLLECTIONS["local"])


def test_a_risk_that_a_question_does_not_have_is_not_stated() -> None:
    plain, segmented = (words(assessment(COLLECTIONS[name])) for name in ("local", "segments"))
    curated = words(assessment(COLLECTIONS["removable"]))

    assert DRAFTS["risk_segment"] not in plain
    assert f"{DRAFTS['risk_segment']} Sent in clear: arm (A, B)." in segmented
    assert DRAFTS["risk_curator"] not in plain
    assert f"{DRAFTS['risk_curator']} Your true answer" in curated


@pytest.mark.parametrize("name", COLLECTIONS)
def test_purpose_owner_and_retention_are_in_the_record(name: str) -> None:
    draft = draft_record([notice(COLLECTIONS[name])])
    paragraphs = {section.title: section.paragraphs for section in draft.sections}

    assert PURPOSE in paragraphs[DRAFTS["purpose"]][0]
    assert OWNER in paragraphs[DRAFTS["owner"]][0]
    assert "keeps the count" in paragraphs[DRAFTS["retention"]][0]
    assert any(unit in paragraphs[DRAFTS["safeguards"]][0] for unit in ("epsilon", "Epsilon"))


def test_a_draft_says_that_it_is_one_and_has_a_blank_for_each_judgement() -> None:
    draft = assessment(COLLECTIONS["local"])
    blanks = [text for text in DRAFTS if text.startswith("blank_")]

    assert "no legal advice" in draft.status
    assert draft.title.endswith(": draft")
    assert words(draft).count("**[to be completed: ") >= len(blanks) - 2
    assert "epsilon 1 in a day, 2 in a calendar month and 3 for life" in words(draft)


def test_every_text_is_used() -> None:
    used = words(assessment(COLLECTIONS["removable"])) + words(assessment(COLLECTIONS["segments"]))
    used += words(draft_record([notice(COLLECTIONS["held"])]))
    used += words(assessment(COLLECTIONS["events"]))
    titles = {section.title for section in assessment(COLLECTIONS["local"]).sections}
    titles |= {section.title for section in draft_record([notice(COLLECTIONS["local"])]).sections}
    for key, text in DRAFTS.items():
        longest = max((literal for literal, *_ in Formatter().parse(text)), key=len)

        assert longest in used or text in titles or key.startswith(("title_", "status", "blank"))
