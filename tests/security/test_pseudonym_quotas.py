"""What one request, one hour and one source can add to the pseudonyms of a period.

The attack: bodies of a thousand invented pseudonyms fill a period's limit in a few requests, and
honest devices are answered `full`. Real engines; the intake's own limits, as they come by default.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import redis

from tests.aggregator.api.deployment_fixtures import (
    CENTRAL,
    FILE,
    Deployment,
    deployment,
    open_worker,
)
from tests.aggregator.store.engines import ENGINES, Empty
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.errors import SettingsError
from veilcount_aggregator.ingest.pseudonym_limit import PseudonymLimit
from veilcount_aggregator.settings import (
    MAX_NEW_PSEUDONYMS,
    MAX_NEW_PSEUDONYMS_PER_HOUR,
    MAX_SOURCE_CLASSES,
    Settings,
)
from veilcount_aggregator.store.sqlite.connection import SqliteUrl
from veilcount_aggregator.store.sqlite.database import SqliteDatabase
from veilcount_aggregator.store.sqlite.schema import STEPS
from veilcount_client.delivery.body_packing import MOST_IN_BODY
from veilcount_shared.report import KEYLESS_BODY_PSEUDONYMS, MAX_REPORTS, Report
from veilcount_shared.verdict import Verdict

HOURLY = 40
CLASSES = ("mobile", "fixed", "hosting")
LIMITS: dict[str, Any] = {"max_new_pseudonyms_per_hour": HOURLY, "source_classes": CLASSES}
DEFAULT: dict[str, Any] = {"max_pseudonyms_per_body": KEYLESS_BODY_PSEUDONYMS}
FROM_MOBILE = {"HTTP_X_VEILCOUNT_SOURCE_CLASS": "mobile"}
FROM_HOSTING = {"HTTP_X_VEILCOUNT_SOURCE_CLASS": "hosting"}


@pytest.fixture(scope="module", params=["sqlite", "redis", "redis-cluster"])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Empty]:
    """An engine, which serves one empty store after the other; a cluster, of three shards each."""
    with ENGINES[request.param](tmp_path_factory.mktemp("engine")) as empty:
        yield lambda: empty().replace("?shards=1", "?shards=3")


@pytest.fixture
def limited(engine: Empty, tmp_path: Path) -> Iterator[Deployment]:
    """A deployment with a small quota, whose bodies may be as large as any."""
    with deployment(tmp_path, FILE, url=engine(), **LIMITS) as made:
        yield made


def invented(made: Deployment, number: int, name: str = "opened") -> list[Report]:
    """Return reports of as many pseudonyms that nobody has seen."""
    one = made.report(name)
    return [replace(one, pseudonym=secrets.token_bytes(16)) for _ in range(number)]


def admitted(verdicts: list[Verdict]) -> int:
    """Return the number of counted reports; all others must be retriable."""
    assert set(verdicts) <= {Verdict.COUNTED, Verdict.FULL}
    return verdicts.count(Verdict.COUNTED)


# -- one request -----------------------------------------------------------------------------------


def test_a_body_brings_an_open_intake_a_few_pseudonyms(tmp_path: Path) -> None:
    """By default: the first sixteen of a thousand, and each of their reports."""
    with deployment(tmp_path, FILE, **DEFAULT) as made:
        reports = invented(made, MAX_REPORTS - 1)
        again = replace(reports[0], slot=1)
        verdicts = made.verdicts(*reports, again)

    assert admitted(verdicts) == KEYLESS_BODY_PSEUDONYMS + 1
    assert set(verdicts[:KEYLESS_BODY_PSEUDONYMS]) == {verdicts[-1]} == {Verdict.COUNTED}


def test_a_period_of_the_default_takes_600_000_requests_to_fill() -> None:
    """One request a thousand pseudonyms made it 10,000."""
    assert -(-MAX_NEW_PSEUDONYMS // Settings("sqlite:///x").max_pseudonyms_per_body) == 625_000


def test_many_reports_of_one_pseudonym_count_once_against_the_quota(tmp_path: Path) -> None:
    """As of a device that was offline for long: whatever its body holds is looked at."""
    with deployment(tmp_path, FILE, **DEFAULT) as made:
        one = made.report("opened")
        verdicts = made.verdicts(*[replace(one, slot=n % 2) for n in range(MOST_IN_BODY)])

    assert verdicts[:2] == [Verdict.COUNTED] * 2
    assert set(verdicts[2:]) == {Verdict.DUPLICATE}


def test_pseudonyms_that_end_in_zeros_are_distinguished(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE, max_pseudonyms_per_body=2) as made:
        one = made.report("opened")
        names = [bytes(16), b"\1" + bytes(15), b"\1\1" + bytes(14)]
        verdicts = made.verdicts(*[replace(one, pseudonym=name) for name in names])

    assert verdicts == [Verdict.COUNTED, Verdict.COUNTED, Verdict.FULL]


def test_a_device_key_may_send_bodies_of_many_persons(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE, **DEFAULT) as made:
        key = made.key(Role.DEVICE)

        assert admitted(made.verdicts(*invented(made, MOST_IN_BODY), key=key)) == MOST_IN_BODY


# -- one hour --------------------------------------------------------------------------------------


def share(made: Deployment) -> range:
    """Return how many a quota may admit: shards have equal shares of it, each rounded up."""
    shards = 3 if "cluster" in made.aggregator.settings.store else 1
    return range(HOURLY, HOURLY + shards)


def test_an_hour_brings_no_more_than_its_quota(limited: Deployment) -> None:
    """And the next hour as many again; a row that stands is counted all the while."""
    honest = limited.report("opened")
    limited.verdicts(honest)
    first = admitted(limited.verdicts(*invented(limited, 500)))

    assert first + 1 in share(limited)
    assert limited.verdicts(replace(honest, slot=1)) == [Verdict.COUNTED]
    assert limited.verdicts(honest) == [Verdict.DUPLICATE]

    limited.clocks.now += timedelta(hours=1)

    assert admitted(limited.verdicts(*invented(limited, 500))) in share(limited)


def test_other_collections_have_quotas_of_their_own(limited: Deployment) -> None:
    limited.verdicts(*invented(limited, 500))

    assert limited.verdicts(limited.report("theme")) == [Verdict.COUNTED]


def test_a_flood_of_one_class_leaves_the_others_alone(limited: Deployment) -> None:
    """A label that nobody has named shares one quota with whoever has none."""
    limited.verdicts(*invented(limited, 500), environ=FROM_HOSTING)
    strange = {"HTTP_X_VEILCOUNT_SOURCE_CLASS": "198.51.100.7"}
    unnamed = limited.verdicts(*invented(limited, 500), environ=strange)

    assert limited.verdicts(*invented(limited, 1), environ=FROM_HOSTING) == [Verdict.FULL]
    assert limited.verdicts(*invented(limited, 1), environ=FROM_MOBILE) == [Verdict.COUNTED]
    assert admitted(unnamed) in share(limited)
    assert limited.verdicts(*invented(limited, 1)) == [Verdict.FULL]


def test_a_label_means_nothing_where_no_classes_are_set(tmp_path: Path) -> None:
    """Otherwise whoever speaks to the intake directly would choose a quota of his own."""
    with deployment(tmp_path, FILE, max_new_pseudonyms_per_hour=1) as made:
        made.verdicts(*invented(made, 1))

        assert made.verdicts(*invented(made, 1), environ=FROM_MOBILE) == [Verdict.FULL]


def test_a_flood_under_one_key_leaves_the_others_alone(limited: Deployment) -> None:
    flooding, honest = limited.key(Role.DEVICE), limited.key(Role.DEVICE)
    limited.verdicts(*invented(limited, 500), key=flooding)

    assert limited.verdicts(*invented(limited, 1), key=flooding) == [Verdict.FULL]
    assert limited.verdicts(*invented(limited, 1), key=honest) == [Verdict.COUNTED]


def test_a_quota_holds_over_all_workers(engine: Empty, tmp_path: Path) -> None:
    """Four workers at once on one store, as of four hosts."""
    url = engine()
    with ExitStack() as stack:
        workers = [stack.enter_context(deployment(tmp_path, FILE, url=url, **LIMITS))]
        workers += [stack.enter_context(open_worker(url, **LIMITS)) for _ in range(3)]
        threads = [Thread(target=_flood, args=(each,)) for each in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert workers[0].counted("opened") in share(workers[0])


def _flood(made: Deployment) -> None:
    for _ in range(20):
        made.verdicts(*invented(made, 10))


def test_a_quota_of_zero_is_none(engine: Empty, tmp_path: Path) -> None:
    limits = LIMITS | {"max_new_pseudonyms_per_hour": 0}
    with deployment(tmp_path, FILE, url=engine(), **limits) as made:
        assert admitted(made.verdicts(*invented(made, 500))) == 500


# -- what is kept, and what is shown ---------------------------------------------------------------


def test_what_is_kept_of_an_hour_names_nobody(tmp_path: Path) -> None:
    """An hour, a series, a source, a number; and it goes when later hours come."""
    with deployment(tmp_path, FILE, source_classes=CLASSES) as made:
        key = made.key(Role.DEVICE)
        made.verdicts(*invented(made, 3), key=key, environ=FROM_MOBILE)
        first = _kept(made)
        made.clocks.now += timedelta(hours=2)
        made.verdicts(*invented(made, 1), key=key)
        second = _kept(made)

    ((hour, series, source, rows),) = first
    assert (hour, rows) == (int(made.clocks.now.timestamp()) // 3600 - 2, 3)
    assert source.endswith("/mobile")
    assert series > 0
    assert [each[0] for each in second] == [hour + 2]


def _kept(made: Deployment) -> list[tuple[int, int, str, int]]:
    with made.aggregator.store.file.reading() as database:  # type: ignore[attr-defined] # SQLite's
        rows: list[tuple[int, int, str, int]] = database.execute("select * from hourly").fetchall()
    return rows


def test_a_store_of_the_first_schema_gets_quotas(tmp_path: Path) -> None:
    """With the tables that it lacks."""
    url = f"sqlite:///{tmp_path}/store.db"
    first = SqliteDatabase(SqliteUrl(tmp_path / "store.db"), STEPS[:1])
    first.open(make=True)
    first.close()
    with deployment(tmp_path, FILE, url=url, max_new_pseudonyms_per_hour=1) as made:
        verdicts = made.verdicts(*invented(made, 2))

        assert verdicts == [Verdict.COUNTED, Verdict.FULL]
        assert made.counted("opened") == 1


def test_redis_forgets_an_hour_by_itself(tmp_path: Path) -> None:
    with ENGINES["redis"](tmp_path) as empty, deployment(tmp_path, FILE, url=empty()) as made:
        made.verdicts(*invented(made, 3))
        with redis.Redis.from_url(made.aggregator.settings.store) as connection:
            (name,) = connection.scan_iter("*:hourly:*")

            assert 0 < connection.ttl(name) <= 7200


def test_who_spends_an_hours_quota_does_not_learn_how_many_were_there(tmp_path: Path) -> None:
    """Where n must not leave, the quota of each hour is drawn from the upper half of the setting.

    Over 20 hours, all limits agree once in 20^19 times.
    """
    limits = LIMITS | {"source_classes": ()}
    with deployment(tmp_path, CENTRAL, **limits) as made:
        found = []
        for _ in range(20):
            made.verdicts(*invented(made, 7, "visits"))
            found.append(HOURLY - admitted(made.verdicts(*invented(made, HOURLY, "visits"))))
            made.clocks.now += timedelta(hours=1)

    assert min(found) >= 7
    assert max(found) <= 7 + HOURLY // 2
    assert len(set(found)) > 5


@contextmanager
def _unvaried(patch: pytest.MonkeyPatch) -> Iterator[None]:
    with patch.context() as within:
        within.setattr(PseudonymLimit, "_drawn", lambda _, most, __: most)
        yield


def test_a_public_quota_would_reveal_the_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault."""
    with _unvaried(monkeypatch), deployment(tmp_path, CENTRAL, **LIMITS) as made:
        made.verdicts(*invented(made, 7, "visits"))

        assert admitted(made.verdicts(*invented(made, HOURLY, "visits"))) == HOURLY - 7


def _metrics(made: Deployment) -> list[str]:
    reply = made.ask("GET", "/metrics", key=made.key(Role.ANALYST))
    return reply.body.decode().splitlines()


def test_metrics_name_the_limit_that_refuses(tmp_path: Path) -> None:
    """The body's, the hour's, the period's; nothing of a collection whose n is withheld."""
    limits: dict[str, Any] = {
        "max_new_pseudonyms": 25,
        "max_new_pseudonyms_per_hour": 20,
        "max_pseudonyms_per_body": 15,
    }
    with deployment(tmp_path, FILE, CENTRAL.replace("acme-editor", "other"), **limits) as made:
        made.verdicts(*invented(made, 18))  # 15, and 3 beyond the body's
        made.verdicts(*invented(made, 9))  # 5, and 4 beyond the hour's
        made.clocks.now += timedelta(hours=1)
        made.verdicts(*invented(made, 7))  # 5, and 2 beyond the period's
        made.verdicts(*invented(made, 9, "visits"))
        shown = _metrics(made)

    new = 'veilcount_new_pseudonyms_total{collection="opened"} 25'
    full = 'veilcount_full_total{{collection="opened",limit="{}"}} {}'
    assert new in shown
    assert [full.format(*each) in shown for each in (("body", 3), ("hour", 4), ("period", 2))] == [
        True,
        True,
        True,
    ]
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
    settings = Settings("sqlite:///x", source_classes=CLASSES, max_new_pseudonyms_per_hour=7)

    assert Settings.from_environment(settings.environment()) == settings
    assert Settings.from_environment({"VEILCOUNT_STORE": "sqlite:///x"}) == Settings("sqlite:///x")
    assert (
        Settings("sqlite:///x").max_new_pseudonyms_per_hour
        == MAX_NEW_PSEUDONYMS_PER_HOUR
        == MAX_NEW_PSEUDONYMS // 10
    )
