"""A definition is admitted if all its counters fit the memory, next to those of the others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from veilcount_aggregator.errors import CounterMemoryExceeded
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.counter_admission import (
    AdmittedMemory,
    memory_at_most,
    needed_bytes,
)
from veilcount_aggregator.records.definitions import (
    DefinitionSource,
    add_definitions,
    close_collection,
    load_catalog,
)
from veilcount_aggregator.store import Record, Store
from veilcount_aggregator.store.tally_size import PAGE, period_bytes, tally_bytes, worst_case
from veilcount_analysis.series.series import Series

from ..store.redis.simulated_rows import million
from ..store.series_fixtures import DAILY, message, report, send, series
from ..web.api.deployment_fixtures import deployment

TOML = "application/toml"
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=40)  # `until`, and `late`, have passed
FILE = """
app = "acme"
[theme]
question = "Which theme?"
values = ["light", "dark"]
epsilon = 1
unit = "day"
from = 2026-12-01
until = 2026-12-11
"""
NEXT = FILE.replace("theme", "sound")
ONE = 10 * tally_bytes(2)  # ten days, one cell, two counters


def push(store: Store, text: str, limit: int | None, now: datetime = NOW) -> Sequence[str]:
    source = DefinitionSource(text)
    new = add_definitions(store, source, now, "cli", counter_limit=limit)
    return [collection.name for collection in new]


def needs_of(store: Store, which: Series, day: date) -> int:
    return needed_bytes(which, day, store.shard_count(), store.report_counts)


def refusal(store: Store, text: str, limit: int, now: datetime = NOW) -> str:
    generation = store.generation()
    with pytest.raises(CounterMemoryExceeded) as caught:
        push(store, text, limit, now)

    assert store.generation() == generation
    return str(caught.value)


def test_a_definition_that_does_not_fit_is_refused_with_three_ways_out(store: Store) -> None:
    assert refusal(store, FILE, ONE - 1) == (
        "theme: its counters can need 3.28 KB (10 periods x 1 cell x 2 counters), and 3.28 KB of"
        " 3.28 KB are left: define fewer values or cells, a shorter time from `from` to `until`, or"
        " raise the limit (--max-counter-memory; by default 60 % of Redis's maxmemory)"
    )
    assert push(store, FILE, ONE) == ["theme"]


def test_all_definitions_share_the_limit(store: Store) -> None:
    """Also those of one file; what is known already needs nothing more."""
    assert "sound" in refusal(store, FILE + NEXT.replace('app = "acme"', ""), 2 * ONE - 1)
    push(store, FILE, 2 * ONE - 1)

    assert refusal(store, NEXT, 2 * ONE - 1).startswith("sound: its counters can need 3.28 KB")
    owned = FILE.replace('"Which theme?"', '"Which theme?"\nowner = "Ada"')
    assert push(store, owned, 1) == []
    assert push(store, NEXT, 2 * ONE) == ["sound"]


def test_without_a_limit_every_definition_is_admitted(store: Store) -> None:
    """SQLite keeps counters on a disk: it has no limit of its own."""
    assert store.counter_limit() is None
    assert push(store, FILE.replace("2026-12-11", "2126-11-11"), None) == ["theme"]


def test_of_two_who_push_at_once_one_alone_is_admitted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fits; the second finds the first when it writes."""
    change_records = store.change_records

    def beaten(generation: int, records: list[Record]) -> bool:
        monkeypatch.undo()
        push(store, NEXT, ONE)
        return change_records(generation, records)

    monkeypatch.setattr(store, "change_records", beaten)
    with pytest.raises(CounterMemoryExceeded, match=r"theme: .* 0 bytes of"):
        push(store, FILE, ONE)

    assert list(load_catalog(store).by_name) == ["sound"]


def test_what_has_ended_or_was_closed_keeps_what_it_holds(store: Store) -> None:
    """Its other periods take nothing any more, and leave their memory to others."""
    push(store, FILE, ONE)
    (theme,) = load_catalog(store).series.values()
    send(store, theme, *(report(number, number % 2) for number in range(4)))
    held = 2 * tally_bytes(2)
    later = NEXT.replace("2026-12", "2027-02")

    assert refusal(store, NEXT, held + ONE)
    assert refusal(store, later, held + ONE - 1, LATER)
    assert needs_of(store, theme, date(2026, 12, 2)) == ONE  # the first is not over yet
    assert push(store, later, held + ONE, LATER) == ["sound"]
    close_collection(store, "theme", NOW, "cli")
    assert push(store, FILE, held + ONE) == []
    assert push(store, FILE.replace("= 1\n", "= 2\n"), held + 2 * ONE) == ["theme"]


@pytest.mark.parametrize("what", ["labels", "plane"])
def test_a_large_tally_that_is_over_is_reckoned_by_its_reports(store: Store, what: str) -> None:
    """A few reports touch a few pages; many, no more than there are."""
    which, chance = series(what), random.Random(what)
    day = which.due(3)
    empty = needs_of(store, which, day)
    send(store, which, report(1, message=message(which, chance)))
    few = needs_of(store, which, day) - empty
    send(store, which, *(report(n, message=message(which, chance)) for n in range(2, 400)))
    many = needs_of(store, which, day) - empty
    over, _ = which.open_periods(day)

    assert which.counters > PAGE
    assert (over > 3, empty) == (True, (63 - over) * period_bytes(which.collection))
    assert 500 < few < many == tally_bytes(which.counters)


def test_a_secret_number_of_reports_shows_in_no_figure(store: Store) -> None:
    secret = series("plain", "per_day = 2", unit="event")
    day = secret.due(3)
    before = needs_of(store, secret, day)
    send(store, secret, report(1), report(2, 1))

    assert needs_of(store, secret, day) == before == worst_case(secret.collection)


def test_what_check_says_is_the_worst_case_of_a_shard() -> None:
    wide = million(32).collection

    assert memory_at_most(DAILY.collection) == (
        "counters take at most 21.2 KB in each shard: 63 periods x 1 cell x 3 counters"
    )
    assert memory_at_most(wide).startswith("counters take at most 14.3 GB in each shard: 63 peri")
    assert worst_case(wide, shards=3) == 3 * worst_case(wide) == 3 * 63 * period_bytes(wide)


# -- where definitions are pushed ------------------------------------------------------------------


def test_the_api_and_the_preview_refuse_what_does_not_fit(tmp_path: Path) -> None:
    with deployment(tmp_path, max_counter_memory=ONE) as made:
        key = made.key(Role.ADMIN)
        first = made.ask("POST", "/v1/collections", FILE.encode(), key=key, kind=TOML)
        second = made.ask("POST", "/v1/collections", NEXT.encode(), key=key, kind=TOML)
        with pytest.raises(CounterMemoryExceeded, match="sound"):
            made.aggregator.require_memory(DefinitionSource(NEXT))
        made.aggregator.require_memory(DefinitionSource(FILE))

        assert (first.status, first.json["new"][0]["counter_bytes"]) == (201, ONE)
        assert (second.status, second.problem) == (409, "counter-memory")
        assert "sound: its counters can need" in second.json["detail"]


def test_a_server_does_not_start_with_definitions_that_do_not_fit(tmp_path: Path) -> None:
    with (
        pytest.raises(CounterMemoryExceeded, match="theme"),
        deployment(tmp_path, FILE, max_counter_memory=ONE - 1),
    ):
        pass


def test_the_sum_is_compared_with_the_limit(store: Store) -> None:
    push(store, FILE, None)
    known = load_catalog(store).series.values()
    admitted = AdmittedMemory.from_store(store, known, NOW.date(), ONE)
    lowered = AdmittedMemory.from_store(store, known, NOW.date(), ONE - 1)

    assert (admitted.needs, admitted.fits, lowered.fits) == (ONE, True, False)
