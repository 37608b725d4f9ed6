"""What one request, one hour and one source can add to the pseudonyms of a period.

The attack: bodies of a thousand invented pseudonyms fill a period's limit in a few requests, and
honest devices are answered `full`. Real engines; the intake's own limits, as they come by default.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import redis

from veilcount_aggregator.intake.pseudonym_limit import PseudonymLimit
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.settings import (
    MAX_NEW_PSEUDONYMS,
    MAX_NEW_PSEUDONYMS_PER_HOUR,
    MAX_SOURCE_CLASSES,
    Settings,
)
from veilcount_client.delivery.padded_bodies import MOST_IN_BODY
from veilcount_serving.errors import SettingsError
from veilcount_shared.report import KEYLESS_BODY_PSEUDONYMS, MAX_REPORTS, Report
from veilcount_shared.verdict import Verdict

from ..aggregator.store.engines import ENGINES, Empty
from ..aggregator.web.api.deployment_fixtures import (
    CENTRAL,
    FILE,
    Deployment,
    deployment,
    open_worker,
)

HOURLY = 40
FLOOD = 150
CLASSES = ("mobile", "fixed", "hosting")
LIMITS: dict[str, Any] = {"max_new_pseudonyms_per_hour": HOURLY, "source_classes": CLASSES}


def source_class(name: str) -> dict[str, str]:
    return {"HTTP_X_VEILCOUNT_SOURCE_CLASS": name}


@pytest.fixture(scope="module", params=["sqlite", "redis", "redis-cluster"])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Empty]:
    """An engine, which serves one empty store after the other; a cluster, of three shards each."""
    with ENGINES[request.param](tmp_path_factory.mktemp("engine")) as empty:
        yield lambda: empty().replace("?shards=1", "?shards=3")


def invented(made: Deployment, number: int, name: str = "opened") -> list[Report]:
    one = made.report(name)
    return [replace(one, pseudonym=secrets.token_bytes(16)) for _ in range(number)]


def admitted(verdicts: list[Verdict]) -> int:
    """Return the number of counted reports; all others must be retriable."""
    assert set(verdicts) <= {Verdict.COUNTED, Verdict.FULL}
    return verdicts.count(Verdict.COUNTED)


# -- one request -----------------------------------------------------------------------------------


def test_a_body_brings_an_open_intake_a_few_pseudonyms(tmp_path: Path) -> None:
    """By default: the first sixteen of a thousand, and each of their reports.

    A device that was offline for long sends many of one pseudonym, and one with a key those of
    many persons.
    """
    with deployment(tmp_path, FILE, max_pseudonyms_per_body=KEYLESS_BODY_PSEUDONYMS) as made:
        reports = invented(made, MAX_REPORTS - 1)
        flood = made.verdicts(*reports, replace(reports[0], slot=1))
        one = made.report("opened")
        offline = made.verdicts(*[replace(one, slot=n % 2) for n in range(MOST_IN_BODY)])
        key = made.key(Role.DEVICE)
        keyed = made.verdicts(*invented(made, MOST_IN_BODY), key=key)

    assert admitted(flood) == KEYLESS_BODY_PSEUDONYMS + 1
    assert set(flood[:KEYLESS_BODY_PSEUDONYMS]) == {flood[-1]} == {Verdict.COUNTED}
    assert offline[:2] == [Verdict.COUNTED] * 2
    assert set(offline[2:]) == {Verdict.DUPLICATE}
    assert admitted(keyed) == MOST_IN_BODY


def test_pseudonyms_that_end_in_zeros_are_distinguished(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE, max_pseudonyms_per_body=2) as made:
        one = made.report("opened")
        names = [bytes(16), b"\1" + bytes(15), b"\1\1" + bytes(14)]
        verdicts = made.verdicts(*[replace(one, pseudonym=name) for name in names])

    assert verdicts == [Verdict.COUNTED, Verdict.COUNTED, Verdict.FULL]


# -- one hour --------------------------------------------------------------------------------------


def share(made: Deployment) -> range:
    """Return how many a quota may admit: shards have equal shares of it, each rounded up."""
    shards = 3 if "cluster" in made.aggregator.settings.store else 1
    return range(HOURLY, HOURLY + shards)


def test_a_flood_spends_its_own_quota_and_no_other(engine: Empty, tmp_path: Path) -> None:
    """All others are counted; a label that nobody has named is none."""
    with deployment(tmp_path, FILE, url=engine(), **LIMITS) as made:

        def flood(label: str = "", key: str = "") -> int:
            reports = invented(made, FLOOD)
            return admitted(made.verdicts(*reports, environ=source_class(label), key=key))

        honest = made.report("opened")
        made.verdicts(honest)

        assert flood() + 1 in share(made)
        assert flood("198.51.100.7") == 0
        assert made.verdicts(replace(honest, slot=1), honest) == [
            Verdict.COUNTED,
            Verdict.DUPLICATE,
        ]
        assert made.verdicts(made.report("theme")) == [Verdict.COUNTED]
        assert flood("hosting") in share(made)
        assert flood("hosting") == 0
        assert made.verdicts(*invented(made, 1), environ=source_class("mobile")) == [
            Verdict.COUNTED
        ]

        made.clocks.now += timedelta(hours=1)

        assert flood() in share(made)
        flooding, other = made.key(Role.DEVICE), made.key(Role.DEVICE)
        assert flood(key=flooding) in share(made)
        assert flood(key=flooding) == 0
        assert made.verdicts(*invented(made, 1), key=other) == [Verdict.COUNTED]
        if made.aggregator.settings.store.startswith("redis://"):
            _check_expiry(made)


def _check_expiry(made: Deployment) -> None:
    """Redis forgets an hour by itself."""
    with redis.Redis.from_url(made.aggregator.settings.store) as connection:
        lives = [connection.ttl(name) for name in connection.scan_iter("*:hourly:*")]

    assert lives
    assert all(0 < seconds <= 7200 for seconds in lives)


def test_a_quota_is_of_all_workers_and_zero_is_none(engine: Empty, tmp_path: Path) -> None:
    """Four workers at once on one store, as of four hosts; and one without a quota."""
    url = engine()
    with ExitStack() as stack:
        workers = [stack.enter_context(deployment(tmp_path, FILE, url=url, **LIMITS))]
        workers += [stack.enter_context(open_worker(url, **LIMITS)) for _ in range(3)]
        threads = [Thread(target=_flood, args=(each,)) for each in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        unlimited = stack.enter_context(open_worker(url, max_new_pseudonyms_per_hour=0))

        assert workers[0].counted("opened") in share(workers[0])
        assert admitted(unlimited.verdicts(*invented(unlimited, FLOOD))) == FLOOD


def _flood(made: Deployment) -> None:
    for _ in range(8):
        made.verdicts(*invented(made, 10))


# -- what is kept, and what is shown ---------------------------------------------------------------


def test_what_is_kept_of_an_hour_names_nobody(tmp_path: Path) -> None:
    """An hour, a series, a source, a number; and it goes when later hours come."""
    kept = []
    with deployment(tmp_path, FILE, source_classes=CLASSES) as made:
        key, hour = made.key(Role.DEVICE), int(made.clocks.now.timestamp()) // 3600
        for number in (3, 1):
            made.verdicts(*invented(made, number), key=key, environ=source_class("mobile"))
            with made.aggregator.store.file.reading() as database:  # type: ignore[attr-defined] # SQLite's
                kept += database.execute("select * from hourly").fetchall()
            made.clocks.now += timedelta(hours=2)

    assert [(when, rows) for when, _, _, rows in kept] == [(hour, 3), (hour + 2, 1)]
    assert all(series > 0 and source.endswith("/mobile") for _, series, source, _ in kept)


def test_who_spends_an_hours_quota_does_not_learn_how_many_were_there(tmp_path: Path) -> None:
    """Where n must not leave, the quota of each hour is drawn from the upper half of the setting.

    Over 20 hours, all limits agree once in 20^19 times.
    """
    with deployment(tmp_path, CENTRAL, **LIMITS) as made:
        found = []
        for _ in range(20):
            made.verdicts(*invented(made, 7, "visits"))
            found.append(HOURLY - admitted(made.verdicts(*invented(made, HOURLY, "visits"))))
            made.clocks.now += timedelta(hours=1)

    assert min(found) >= 7
    assert max(found) <= 7 + HOURLY // 2
    assert len(set(found)) > 5


def test_a_public_quota_would_reveal_the_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault."""
    monkeypatch.setattr(PseudonymLimit, "_drawn", lambda _, most, __: most)
    with deployment(tmp_path, CENTRAL, **LIMITS) as made:
        made.verdicts(*invented(made, 7, "visits"))

        assert admitted(made.verdicts(*invented(made, HOURLY, "visits"))) == HOURLY - 7


def test_metrics_name_the_limit_that_refuses(tmp_path: Path) -> None:
    """The body's, the hour's, the period's; nothing of a collection whose n is withheld.

    A label means nothing where no classes are set: otherwise whoever speaks to the intake directly
    would choose a quota of his own.
    """
    limits: dict[str, Any] = {"max_new_pseudonyms_per_hour": 20, "max_pseudonyms_per_body": 15}
    other = CENTRAL.replace("acme-editor", "other")
    with deployment(tmp_path, FILE, other, max_new_pseudonyms=25, **limits) as made:
        made.verdicts(*invented(made, 18))  # 15, and 3 beyond the body's
        made.verdicts(*invented(made, 9), environ=source_class("mobile"))  # 5, 4 beyond the hour's
        made.clocks.now += timedelta(hours=1)
        made.verdicts(*invented(made, 7))  # 5, and 2 beyond the period's
        made.verdicts(*invented(made, 9, "visits"))
        made.aggregator.flush()
        shown = made.ask("GET", "/metrics", key=made.key(Role.ANALYST)).body.decode().splitlines()

    full = 'veilcount_full_total{{collection="opened",limit="{}"}} {}'
    expected = {full.format(*each) for each in (("body", 3), ("hour", 4), ("period", 2))}
    assert {'veilcount_new_pseudonyms_total{collection="opened"} 25', *expected} <= set(shown)
    assert not any('"visits"' in line for line in shown if "_total" in line)


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        ({"max_pseudonyms_per_body": 0}, "give 1 to 1,000"),
        ({"max_pseudonyms_per_body": 1_001}, "give 1 to 1,000"),
        ({"max_new_pseudonyms_per_hour": -1}, "or 0 for no limit"),
        ({"source_classes": ("198.51.100.7",)}, "lower-case letters"),
        ({"source_classes": tuple(f"c{n}" for n in range(MAX_SOURCE_CLASSES + 1))}, "at most 64"),
    ],
)
def test_settings_that_nobody_can_mean_are_refused(wrong: dict[str, object], fix: str) -> None:
    with pytest.raises(SettingsError, match=fix):
        Settings("sqlite:///x", **wrong)  # type: ignore[arg-type] # that is what is tested


def test_settings_reach_the_workers() -> None:
    """By default, it takes 625,000 requests to fill a period."""
    settings = Settings("sqlite:///x", source_classes=CLASSES, max_new_pseudonyms_per_hour=7)
    default = Settings("sqlite:///x")

    assert Settings.from_environment(settings.environment()) == settings
    assert Settings.from_environment({"VEILCOUNT_STORE": "sqlite:///x"}) == default
    assert default.max_new_pseudonyms_per_hour == MAX_NEW_PSEUDONYMS_PER_HOUR
    assert MAX_NEW_PSEUDONYMS_PER_HOUR == MAX_NEW_PSEUDONYMS // 10
    assert MAX_NEW_PSEUDONYMS // default.max_pseudonyms_per_body == 625_000
