"""The notice: every key of a definition is in it, and an app may replace each of its texts."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date
from fractions import Fraction
from string import Formatter

import pytest

from veilcount_shared import Collection
from veilcount_shared.collection import (
    Adjacency,
    Cohort,
    Held,
    Linkage,
    Measure,
    Noise,
    Presence,
    Takes,
)
from veilcount_shared.definition_record import BatchRules, QuestionGroup
from veilcount_shared.domain import Choice, OpenStrings
from veilcount_shared.notice import MESSAGES, Count, Texts, notice, statements
from veilcount_shared.periods import Unit
from veilcount_shared.translations import Translation

from ..notice_definitions import COLLECTIONS

LOCAL, EVENTS, HELD = (COLLECTIONS[name] for name in ("local", "events", "held"))
TREND, TOKEN, CURATED = (COLLECTIONS[name] for name in ("trend", "token", "removable"))
LISTED = COLLECTIONS["once"]
SHUFFLED = COLLECTIONS["shuffled"]
assert SHUFFLED.batch is not None
BIG = Choice(tuple(range(13)))
ALONE = replace(LOCAL, linkage=Linkage.NONE, late=0)
NO_ANSWERS = replace(LOCAL, answers=None)
STRINGS = replace(CURATED, domain=OpenStrings("salt"), delta=Fraction(1, 10**6))
#: of each key of a definition, two definitions that differ in it alone
DIFFERENT: dict[str, tuple[Collection, Collection]] = {
    "app": (LOCAL, replace(LOCAL, app="other")),
    "name": (LOCAL, replace(LOCAL, name="other")),
    "question": (LOCAL, replace(LOCAL, question="What else?")),
    "domain": (LOCAL, replace(LOCAL, domain=COLLECTIONS["once"].domain)),
    "unit": (NO_ANSWERS, replace(NO_ANSWERS, unit=Unit.WEEK)),
    "start": (LOCAL, replace(LOCAL, start=date(2026, 12, 2))),
    "until": (LOCAL, replace(LOCAL, until=date(2027, 11, 30))),
    "epsilon": (LOCAL, replace(LOCAL, epsilon=Fraction(1, 4))),
    "measure": (EVENTS, replace(EVENTS, measure=Measure.RANGES)),
    "changes": (TREND, replace(TREND, changes=5)),
    "per_day": (EVENTS, replace(EVENTS, per_day=3)),
    "takes": (HELD, replace(HELD, takes=Takes.LAST)),
    "held": (HELD, replace(HELD, held=Held.PROCESS)),
    "answers": (LOCAL, replace(LOCAL, answers=5)),
    "late": (LOCAL, replace(LOCAL, late=7)),
    "linkage": (LOCAL, replace(LOCAL, linkage=Linkage.NONE)),
    "tokens": (TOKEN, replace(TOKEN, tokens="a" * 64)),
    "presence": (LOCAL, replace(LOCAL, presence=Presence.HIDDEN)),
    "segments": (LOCAL, replace(LOCAL, segments=(("arm", ("A", "B")),))),
    "cohort": (LOCAL, replace(LOCAL, cohort=Cohort("spring", 3, 0))),
    "group": (LOCAL, replace(LOCAL, group=QuestionGroup("habits", (LOCAL.name, "b"), "ab" * 32))),
    "model": (LOCAL, CURATED),
    "batch": (ALONE, replace(ALONE, batch=BatchRules(least=9, grace=3))),
    "twin": (LOCAL, replace(LOCAL, twin="other")),
    "budget": (CURATED, replace(CURATED, budget=Fraction(2))),
    "delta": (CURATED, replace(CURATED, delta=Fraction(1, 10**6))),
    "noise": (STRINGS, replace(STRINGS, noise=Noise.LAPLACE)),
    "adjacency": (CURATED, replace(CURATED, adjacency=Adjacency.SUBSTITUTE)),
    "owner": (LOCAL, replace(LOCAL, owner=None)),
    "purpose": (LOCAL, replace(LOCAL, purpose=None)),
    "replaces": (LOCAL, replace(LOCAL, replaces="older")),
    "translations": (LISTED, replace(LISTED, translations=(Translation("de", labels=("a", "b")),))),
}


#: how whoever reads weights and names what was collected: no answer is asked for, kept or shown
READERS_OWN = {"margins", "measured_in"}


def words(collection: Collection) -> str:
    """Return a notice without its fingerprint, which nearly every key changes."""
    shown = notice(collection, language="de")
    text = " ".join(part.text for part in shown.texts())
    return f"{shown.question} {text}".replace(collection.fingerprint[:16], "")


def unnamed() -> set[str]:
    """Return the keys of definitions that the notice says nothing about."""
    different = {key for key, pair in DIFFERENT.items() if words(pair[0]) != words(pair[1])}
    return {field.name for field in fields(Collection)} - different - READERS_OWN


def test_every_key_of_a_definition_is_in_the_notice() -> None:
    """A new key fails here until two definitions that differ in it have different notices."""
    assert unnamed() == set()


@pytest.mark.parametrize(
    ("part", "keys"),
    [
        ("_question", {"domain", "measure", "purpose", "translations"}),
        (
            "_frequency",
            {"start", "until", "changes", "takes", "cohort", "group", "twin", "replaces"},
        ),
        ("_public", {"tokens", "presence", "segments"}),
        ("_kept", {"late"}),
        ("_owner", {"app", "name", "owner"}),
    ],
)
def test_a_key_that_is_named_nowhere_is_detected(
    part: str, keys: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a part is left out."""
    monkeypatch.setattr(statements, part, lambda *_, **__: [])

    assert unnamed() == keys


def test_a_new_key_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a key of which no two definitions are compared."""
    monkeypatch.delitem(DIFFERENT, "late")

    assert unnamed() == {"late"}


# -- the route, and who randomizes -----------------------------------------------------------------


def test_the_route_and_who_randomizes_are_stated() -> None:
    direct, relayed, by_app = (
        " ".join(part.text for part in shown.texts())
        for shown in (notice(LOCAL), notice(LOCAL, relay=""), notice(LOCAL, by_app=True))
    )

    assert "on your device" in direct
    assert "Whoever runs the network sees your address" in direct
    assert "through a relay" in relayed
    assert "The relay is operated by" not in relayed
    assert "The app's own server sees your answer" in by_app
    assert "on your device" not in by_app


def test_a_shuffled_notice_states_both_together_before_the_server_alone() -> None:
    """Two adversaries in this order, each with its own figures; presence as it is."""
    shown = notice(SHUFFLED, shuffler="Example Trust", composed=Fraction("0.87"))
    texts = {part.title: part.text for part in shown.texts()}
    guess, public = texts["What an answer gives away"], texts["What is not hidden"]
    stated = [
        "even if shuffler and server work together",
        "shuffler and server together, epsilon 0.5 a report, 6 in all 12 reports.",
        "The server alone, if the shuffler keeps its word: 0.25 a report, 0.87 in all 12 reports",
        "12 reports (delta 0.000001).",
        "never added. That you take part is not hidden.",
    ]

    assert sorted(stated, key=guess.index) == stated
    assert "run by Example Trust" in public
    assert "How many take part is published exactly." in public
    assert "0.87" not in words(SHUFFLED)
    assert "0.25 a report (delta 0.000001)" in words(SHUFFLED)


def test_whoever_answers_in_public_is_seen_by_the_shuffler() -> None:
    hidden, public = words(SHUFFLED), words(COLLECTIONS["shuffled_number"])

    assert "sees in which periods this device had an answer" in public
    assert "sees in which periods this device had an answer" not in hidden
    assert "published exactly" not in public


def test_a_notice_of_batches_keeps_rows_of_tokens_alone() -> None:
    assert "No random name of yours is kept." in words(SHUFFLED)
    assert "until 49 days after its period's end" in words(COLLECTIONS["batched"])


def test_the_server_alone_before_both_together_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the smaller figure first."""
    right = statements._two_adversaries
    monkeypatch.setattr(
        statements, "_two_adversaries", lambda *values: reversed(list(right(*values)))
    )

    with pytest.raises(AssertionError):
        test_a_shuffled_notice_states_both_together_before_the_server_alone()


def test_a_notice_of_tokens_names_the_issuers_record_and_who_erases_it() -> None:
    texts = {part.title: part.text for part in notice(TOKEN).texts()}

    assert "The issuer of the tokens keeps one record" in texts["What is kept, and how long"]
    assert "is erased by its operator on request" in texts["If you change your mind"]
    assert "issuer" not in words(LOCAL)


def test_strings_that_the_server_finds_by_itself_are_not_called_unread() -> None:
    named, found = words(COLLECTIONS["strings"]), words(COLLECTIONS["found"])

    assert "only by naming it" in named
    assert "only by naming it" not in found
    assert "letter by letter" in found


# -- texts -----------------------------------------------------------------------------------------


def test_every_message_is_a_statement_of_some_definition() -> None:
    """None is left over, and none is missing."""
    changed = [collection for pair in DIFFERENT.values() for collection in pair]
    every = [
        *(collection for collection in (*COLLECTIONS.values(), *changed)),
        *(replace(NO_ANSWERS, unit=unit, answers=n) for unit in Unit for n in (None, 1)),
        *(
            replace(HELD, takes=takes, domain=EVENTS.domain, measure=Measure.DISTRIBUTION)
            for takes in (Takes.MAX, Takes.SUM)
        ),
        *(replace(LOCAL, answers=n, epsilon=Fraction(e)) for n, e in ((1, 1), (1, 2), (1, 4))),
        replace(LOCAL, answers=12, epsilon=Fraction(1)),
        replace(LOCAL, domain=BIG),
        replace(EVENTS, answers=None),
    ]
    notices = [
        shown
        for collection in every
        for shown in (
            notice(collection),
            notice(collection, relay="Ada"),
            notice(collection, by_app=True),
            notice(collection, shuffler="Ada", composed=Fraction(2)),
        )
    ]
    keys = {part.title for shown in notices for part in shown.parts}
    keys |= {
        statement.key for shown in notices for part in shown.parts for statement in part.statements
    }

    assert keys == MESSAGES.keys()


def test_a_translation_has_the_figures_of_the_definition() -> None:
    german = Texts(
        {
            "notice_often_month_drawn": "{answering:Einmal|# Mal} in {periods} Monaten.",
            "notice_late": "{late:ein Tag|# Tage}",
        }
    )
    text = " ".join(part.text for part in notice(LOCAL).texts(german))

    assert "6 Mal in 12 Monaten." in text
    assert "30 Tage" in text


@pytest.mark.parametrize(
    "braces", ["{unknown}", "{", "{0}", "{late.days}", "{late[0]}", "{late:q}", "{late!z}"]
)
def test_a_translation_with_other_braces_is_replaced_by_the_english_text(braces: str) -> None:
    text = " ".join(part.text for part in notice(LOCAL).texts(Texts({"notice_late": braces})))

    assert "until 30 days after its period" in text


def test_a_text_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match="messages = 'notice_lat'"):
        Texts({"notice_lat": "x"})


@pytest.mark.parametrize(("number", "text"), [(1, "one day"), (2, "2 days"), (1500, "1,500 days")])
def test_a_count_chooses_its_form(number: int, text: str) -> None:
    assert f"{Count(number):one day|# days}" == text
    assert f"{Count(number)}" == f"{number:,}"


def test_a_message_has_only_the_words_of_its_statement() -> None:
    """Every word in braces is filled in, for every definition."""
    for collection in COLLECTIONS.values():
        for part in notice(collection, relay="Ada").parts:
            for statement in part.statements:
                names = {
                    name for _, name, _, _ in Formatter().parse(MESSAGES[statement.key]) if name
                }
                assert names <= statement.values.keys()
