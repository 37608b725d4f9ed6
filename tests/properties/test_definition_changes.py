"""What a new definitions file changes: series, spending, and which time is paid for already."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date
from typing import Any

import pytest

from veilcount_shared import Collection, parse_collections, periods
from veilcount_shared.definition_changes import FileChange, render
from veilcount_shared.definition_changes.changes import PERIODS_A_MONTH, spending
from veilcount_shared.definition_changes.findings import findings
from veilcount_shared.notice import notice
from veilcount_shared.periods import Unit

from ..client.device_fixtures import file
from ..client.diagnostics.app_file import FILE

Collections = dict[str, Collection]
ONLY_THEME = FILE[: FILE.index("[saved]")]


def parsed(text: str) -> Collections:
    return parse_collections(text, lambda _: [])


def decisions(new: Collections, old: Collections) -> list[str]:
    """Return what is to be decided about a new file."""
    return [
        f"{each.subject}: {each.message}" for each in findings(FileChange(new, old)) if not each.ok
    ]


MORE = FILE.replace("epsilon = 0.5", "epsilon = 2")
MORE_SPENT = "spends more, epsilon 0.5 -> 2 per event, 1 -> 4 per day, 2 -> 8 per user"
FEWER = FILE.replace("per_day = 2", "per_day = 1")
LONGER = FILE.replace('"system"]', '"system", "sepia"]')
REWORDED = FILE.replace("Was the file saved?", "Did you save?")
RENAMED = FILE.replace("[saved]", '[stored]\nreplaces = "saved"')
CHANGES = {
    "the same file": (FILE, FILE, []),
    "a fingerprinted key, without what only follows from it": (
        FEWER, FILE, ["saved: per_day changed: a new series"],
    ),
    "a longer list of values": (LONGER, FILE, ["theme: domain changed"]),
    "more epsilon than the ceiling of the old file": (
        MORE, FILE, ["saved: epsilon changed", f"saved: {MORE_SPENT}", "saved: refused at load"],
    ),
    "a question to which no consent was given": (
        REWORDED, FILE, ["saved: question changed: a new series"],
    ),
    "a new collection that does not fit the ceiling of the old file": (
        FILE, ONLY_THEME, ["saved: new: consent does not cover it", "saved: refused at load"],
    ),
    "a renamed collection, which goes on from its old name": (
        RENAMED, FILE, ["stored: name changed"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("new", "old", "expected"), CHANGES.values(), ids=CHANGES)
def test_a_change_that_needs_a_decision_is_named(new: str, old: str, expected: list[str]) -> None:
    found = decisions(parsed(new), parsed(old))

    assert len(found) == len(expected)
    assert all(line.startswith(words) for line, words in zip(found, expected, strict=True)), found


def test_what_a_removed_collection_reserved_stays_reserved() -> None:
    results = findings(FileChange(parsed(ONLY_THEME), parsed(FILE)))
    [removed] = [each for each in results if each.subject == "saved"]

    assert removed.ok
    assert 'replaces = "saved"' in removed.message


def test_without_an_old_file_figures_and_remarks_are_reported() -> None:
    longer = FILE.replace("until = 2027-05-01", "until = 2027-11-01")
    results = list(findings(FileChange(parsed(longer), None)))

    assert all(each.ok for each in results)
    assert "epsilon 1 per event, 1 per day, 12 per user" in results[0].message
    assert "remark on epsilon" in results[1].message


def campaign(start: str, until: str, name: str = "theme", **keys: Any) -> Collections:
    return file(**{name: {"unit": "month", "from": start, "until": until, **keys}})


WINTER = "2026-12-01", "2027-03-01"
FIRST = campaign("2026-12-15", "2027-03-01")


@pytest.mark.parametrize(
    ("new", "old", "is_spent"),
    [
        (campaign("2027-03-01", "2027-05-15"), FIRST, True),
        (campaign("2027-03-01", "2027-05-15", "look", replaces="theme"), FIRST, True),
        (campaign("2027-03-01", "2027-06-01"), campaign(*WINTER, answers=3), True),
        (campaign("2027-03-01", "2027-06-01", unit="user"), campaign(*WINTER, unit="user"), True),
        (FIRST, FIRST, False),
        (campaign("2026-12-15", "2027-06-01"), FIRST, False),
        (campaign("2027-03-01", "2027-07-01"), FIRST, False),
        (campaign("2027-03-01", "2027-06-01", "another"), FIRST, False),
        (campaign("2027-03-01", "2027-06-01"), campaign(*WINTER, answers=2), False),
    ],
)
def test_new_dates_of_the_same_size_have_nothing_left(
    new: Collections, old: Collections, *, is_spent: bool
) -> None:
    """Whoever answered all of the old campaign finds the ledger spent: one line says what to do.

    Not so with the same dates, a longer or a larger campaign, or a name of its own.
    """
    messages = [each for each in decisions(new, old) if "nothing left" in each]

    assert ["a new name, or" in each for each in messages] == [True] * is_spent


# -- a time that is paid for is not paid for twice -------------------------------------------------


def again(new: Collections, old: Collections) -> list[tuple[str, bool]]:
    """Return what is reported of who answers a new form when, and whether it is ok."""
    results = findings(FileChange(new, old))
    return [(each.message, each.ok) for each in results if "under the old form" in each.message]


def under(unit: str, start: str = WINTER[0], until: str = WINTER[1], **keys: Any) -> Collections:
    return campaign(start, until, unit=unit, **keys)


FEBRUARY = "2027-02-01", "2027-12-01"
TWICE, FIVE = (under("event", until="2027-01-01", per_day=n) for n in (2, 5))
WHO = "who answered {} under the old form"
WAITS = f"unit {{}} -> {{}}: {WHO} gives no {{}} before {{}}"
GOES_ON = f"{WHO} answers the new form from {{}} on"
NEVER_OF = f"{WHO} answers nothing of the new form"
NEVER = NEVER_OF.replace("{} ", "")
DECEMBER, WEEK = "in 2026-12", "in the week of 2026-11-30"

#: a new and an old form, and the line about who answers when: how it begins, and if it is ok
AGAIN: dict[str, tuple[Collections, Collections, str, bool]] = {
    "thirty-one days would cost more than their month: event": (
        under("event"), under("month"),
        WAITS.format("month", "event", DECEMBER, "answers", "2027-01-01"), False),
    "week": (
        under("week"), under("month"),
        WAITS.format("month", "week", DECEMBER, "weekly answers", "2027-01-04"), False),
    "month": (
        under("month"), under("week"),
        WAITS.format("week", "month", WEEK, "monthly answers", "2027-01-01"), False),
    "day": (
        under("day"), under("week"),
        WAITS.format("week", "day", WEEK, "daily answers", "2026-12-07"), False),
    "who answered for life waits for the end": (
        under("month", "2026-12-01", "2027-06-01"), under("user"),
        "unit user -> month: who answered under the old form gives no monthly answers before 2027-",
        False),
    "a life ends with its campaign": (under("day"), under("user"), NEVER, False),
    "a life is answered once": (
        under("user", "2027-01-01", "2027-04-01"), under("user"), NEVER, False),
    "of a life, one day is enough": (
        under("user"), under("day"), NEVER_OF.format("on 2026-12-01"), False),
    "of a month, one day before `from` is enough": (
        under("month", "2026-12-20", "2026-12-31"), under("day", until="2026-12-20"),
        NEVER_OF.format("on 2026-12-01"), False),
    "a month has one account, however `from` moved": (
        under("month", "2026-12-15"), under("month"),
        GOES_ON.format(DECEMBER, "2027-01-01"), True),
    "a later month": (
        under("month", *FEBRUARY), under("month"),
        GOES_ON.format("in 2027-02", "2027-03-01"), True),
    "a week": (
        under("week", "2026-12-03"), under("week"), GOES_ON.format(WEEK, "2026-12-07"), True),
    "a day": (
        under("day", "2026-12-03"), under("event"),
        GOES_ON.format("on 2026-12-03", "2026-12-04"), True),
    "of two answers a day three of five are left": (
        FIVE, TWICE, f"{WHO.format('on 2026-12-01')} has at most 3 answers left of the same day",
        True),
    "a larger epsilon leaves none of the month": (
        under("month", epsilon=2), under("month"), GOES_ON.format(DECEMBER, "2027-01-01"), True),
    "a new name has the old one's account": (
        campaign("2026-12-01", "2027-03-01", "look", replaces="theme", unit="day"), under("month"),
        "unit month -> day: who answered", False),
}  # fmt: skip


@pytest.mark.parametrize("case", AGAIN)
def test_no_time_is_paid_for_twice(case: str) -> None:
    new, old, begins, is_ok = AGAIN[case]
    [(message, ok)] = again(new, old)

    assert message.startswith(begins)
    assert ok == is_ok
    assert ok or message.endswith(("answers nothing of the new form", "no time is paid for twice"))


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (under("month"), under("month")),
        (under("month", "2026-09-01", "2026-12-01"), under("day")),
        (campaign("2026-12-01", "2027-03-01", "another", unit="day"), under("month")),
    ],
    ids=["the same series", "another time", "another account"],
)
def test_nothing_is_reported_if_nothing_is_paid_twice(new: Collections, old: Collections) -> None:
    assert again(new, old) == []


def test_another_place_to_hold_a_value_is_another_series() -> None:
    """The key is in the canonical form only where the device holds it: either way it is named."""
    process, device = (under("month", takes="last", held=held) for held in ("process", "device"))

    assert decisions(device, process)[0].startswith("theme: held changed: a new series begins")
    assert decisions(process, device)[0].startswith("theme: held changed: a new series begins")


# -- what one person may spend ---------------------------------------------------------------------


def test_no_calendar_month_touches_more_periods_than_are_counted() -> None:
    """Of 40 years each month is counted, and one has as many: with a smaller number this fails."""
    for unit in set(Unit) - {Unit.USER}:
        numbers = [
            {periods.period_number(unit, date(2020, 1, 1), date(year, month, day))
             for day in range(1, monthrange(year, month)[1] + 1)}
            for year in range(2020, 2060) for month in range(1, 13)
        ]  # fmt: skip

        assert max(map(len, numbers)) == PERIODS_A_MONTH[unit]


def test_a_month_and_a_life_are_the_sum_over_all_questions() -> None:
    """Of the cohorts of a draw one counts, as in the ceilings that a device reserves."""
    free = file(a={"unit": "day"}, b={"unit": "month"})
    drawn = file(
        a={"unit": "day", "cohort": {"draw": "x", "of": 2, "number": 0}},
        b={"unit": "month", "cohort": {"draw": "x", "of": 2, "number": 1}},
    )
    alone = spending(file(a={"unit": "day"}))

    assert alone.day == 1
    assert alone.month == min(31, free["a"].periods)
    assert spending(free).month == alone.month + 1
    assert spending(free).life == free["a"].epsilon_user + free["b"].epsilon_user
    assert spending(drawn) == alone


def test_what_a_removed_question_reserved_counts_for_who_had_it() -> None:
    """The figure is the ceiling that a device with the old file would need."""
    old, new = file(a={"unit": "user"}), file(b={"unit": "user"})
    change = FileChange(new, old)
    refusal = next(each.message for each in findings(change) if "refused" in each.message)

    assert spending(new).life == 1
    assert change.life_of_earlier_devices() == 2
    assert "needs ceiling = 2, it is 1" in refusal


# -- how it is written -----------------------------------------------------------------------------

TRICKY = file(a={"question": "Is | <b> *bold*?"}, b={"unit": "user"})
BEFORE = file(b={"unit": "user", "epsilon": 2}, c={"unit": "user"})


def test_markdown_has_each_question_its_figures_and_whom_to_ask() -> None:
    change = FileChange(TRICKY, BEFORE, "x/collections.toml", "main")
    text = render(change, "markdown").text

    assert "Compared with main: new: a; changed: b; gone: c." in text
    assert "| b | changed: epsilon | 18 → 15 | 18 → 15 | 2 → 1 | 2 → 1 | everybody but" in text
    assert "| c | gone | 15 → - | 15 → - | 1 → - | 1 → - | nobody |" in text
    assert "| for life, who had the file before | 3 |" in text
    assert "or to this question" in next(line for line in text.splitlines() if "| b |" in line)
    assert "or to this" not in next(line for line in text.splitlines() if "| a |" in line)


def test_no_text_of_a_definition_becomes_markup() -> None:
    """A question is shown as it is; the tables have the same number of cells in each line."""
    change = FileChange(file(a={"question": "Is | <b> *bold*?"}), file(a={}), "c.toml", "main")
    text = render(change, "markdown").text
    rows = [line for line in text.splitlines() if line.startswith("| a |")]

    assert r"- now: Is \| \<b\> \*bold\*?" in text
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [8]


def test_its_sentences_are_those_of_the_notice() -> None:
    change = FileChange(TRICKY, BEFORE, "c.toml", "main")
    text = render(change, "markdown").text.replace("\\", "")
    after, before = ({part.text for part in notice(form["b"]).texts()} for form in (TRICKY, BEFORE))
    lines = [line for line in text.splitlines() if line.startswith(("- now: ", "- before: "))]

    assert any("right half of the time" not in line for line in lines)
    for line in lines:
        state, _, sentence = line.removeprefix("- ").partition(": ")
        assert any(sentence in part for part in (after if state == "now" else before))


def test_annotations_stand_on_the_table_of_their_question() -> None:
    change = FileChange(TRICKY, BEFORE, "x/a,b:c.toml", "main", {"a": 3, "b": 9})
    lines = render(change, "github").text.splitlines()
    decisions_of_a = [line for line in lines if line.startswith("::warning") and "title=a:" in line]

    assert decisions_of_a[0].startswith("::warning file=x/a%2Cb%3Ac.toml,line=3,title=a::new: ")
    assert all(line.startswith(("::warning file=", "::notice file=")) for line in lines)
    assert not any("line=" in line for line in lines if "title=c" in line)


def test_an_unchanged_file_has_nothing_to_decide() -> None:
    change = FileChange(TRICKY, TRICKY, "c.toml", "main")
    rendered = render(change, "markdown")

    assert rendered.ok
    assert "no question is new, changed or gone." in rendered.text
    assert "To decide" not in rendered.text
