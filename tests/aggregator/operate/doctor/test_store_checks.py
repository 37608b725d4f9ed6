"""Checks of a store: a healthy one passes, and each planted problem is found with its fix."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.operate.doctor import Finding, Severity
from veilcount_aggregator.operate.doctor.server_checks import read_metrics
from veilcount_aggregator.queries.checks.store_checks import STORED
from veilcount_aggregator.queries.checks.verdict_checks import verdict_problems
from veilcount_aggregator.records.api_keys import (
    Role,
    create_key,
    load_api_keys,
    record_key_use,
    revoke_key,
)
from veilcount_aggregator.records.clock_confirmation import confirm_day
from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions
from veilcount_aggregator.records.service_counters import ANSWERED, LOSS, REFUSED
from veilcount_aggregator.releases.budget_ledger import StoredRelease
from veilcount_aggregator.releases.release_journal import ReleaseJournal
from veilcount_aggregator.store import VERDICT, ServiceCounter, Store, open_store
from veilcount_aggregator.store.records import update_records
from veilcount_aggregator.store.restore_lock import lock_releases
from veilcount_aggregator.store.transfer_format import content_digest
from veilcount_aggregator.web.dashboard.operations.page import FOR_ANALYSTS
from veilcount_analysis.series.series import Series
from veilcount_shared.installing import install
from veilcount_shared.verdict import Verdict

from ...web.api.deployment_fixtures import CENTRAL, FILE, NOW, Deployment, deployment
from .doctor_fixtures import examine, examine_deployment

DAY = timedelta(days=1)


def url_of(file: Path) -> str:
    return f"sqlite:///{file}"


def opened(file: Path) -> closing[Store]:
    return closing(open_store(url_of(file), make=True))


def examined(file: Path, now: datetime = NOW, **options: Any) -> dict[str, Finding]:
    return examine(url_of(file), now, **options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A healthy store with definitions and an admin's key."""
    made = tmp_path / "sound.db"
    with opened(made) as store:
        add_definitions(store, DefinitionSource(FILE), NOW, "test")
        create_key(store, Role.ADMIN, "init", NOW)
    return made


def test_a_healthy_open_store_has_only_remarks_and_is_not_changed(file: Path) -> None:
    def content() -> str:
        with opened(file) as store:
            return content_digest(store.export_pieces())

    before = content()
    found = examined(file, deep=True)

    assert {check for check, each in found.items() if each.state is not Severity.OK} == {
        "remarks",
        "floods",
    }
    assert "theme, epsilon" in found["remarks"].what
    assert len(found) >= 12
    assert content() == before


def test_analysts_see_checks_that_exist() -> None:
    assert STORED.keys() >= FOR_ANALYSTS


@pytest.mark.parametrize(
    ("days", "state", "message"),
    [
        (0, Severity.OK, "the confirmed day, 2026-12-03"),
        (2, Severity.OK, "the confirmed day, 2026-12-03"),
        (3, Severity.WARN, "3 days before this machine's"),
        (-1, Severity.WARN, "2026-12-03, is in the future"),
    ],
)
def test_a_day_that_waits_for_confirmation_is_found(
    file: Path, days: int, state: Severity, message: str
) -> None:
    with opened(file) as store:
        confirm_day(store, NOW, "test")
    found = examined(file, NOW + timedelta(days=days))["retention"]

    assert (found.state, message in found.what) == (state, True)
    assert ("store confirm-clock" in found.fix) == (days > 2)


def no_admin(store: Store, file: Path) -> None:
    (key,) = load_api_keys(store).keys.values()
    revoke_key(store, key.id, NOW)


def revoked_device_keys(store: Store, file: Path) -> None:
    key, _ = create_key(store, Role.DEVICE, "app", NOW)
    revoke_key(store, key.id, NOW)


def admin_in_daily_use(store: Store, file: Path) -> None:
    key, _ = create_key(store, Role.ADMIN, "bob", NOW - 20 * DAY)
    record_key_use(store, key, NOW)


def release_missing_in_store(store: Store, file: Path) -> None:
    add_definitions(store, DefinitionSource(CENTRAL), NOW, "test")
    release = StoredRelease("f", "q", {}, {}, "", "")
    ReleaseJournal(file.with_name("sound.db.releases.jsonl")).keep([release.line()])


def damaged_journal(store: Store, file: Path) -> None:
    release_missing_in_store(store, file)
    journal = file.with_name("sound.db.releases.jsonl")
    journal.write_text(journal.read_text().replace('"q"', '"p"'))


WARN, WRONG = Severity.WARN, Severity.WRONG
NEVER_PUSHED = {ServiceCounter(VERDICT, "", -1, Verdict.UNKNOWN_COLLECTION): 100}


@pytest.mark.parametrize(
    ("plant", "check", "state", "texts"),
    [
        (lambda store, _: store.set_read_only(on=True),
         "accepts reports", WRONG, ("read-only", "store allow-writes")),
        (lambda store, _: lock_releases(store, "restored from a backup"),
         "releases", WRONG, ("restored", "store unlock")),
        (lambda store, _: create_key(store, Role.ANALYST, "ann", NOW - 40 * DAY),
         "keys", WARN, ("(ann) was made on 2026-10-24", "keys revoke")),
        (no_admin, "keys", WARN, ("no admin key", "init --key")),
        (revoked_device_keys, "keys", WARN, ("device keys are revoked", "--role device")),
        (admin_in_daily_use, "keys", WARN, ("(bob) was used on 2026-12-03", "--role analyst")),
        (release_missing_in_store, "journal", WRONG, ("the store lacks", "store unlock")),
        (damaged_journal, "journal", WRONG, ("line 1: damaged", "run it again")),
        (lambda store, _: store.commit([], NEVER_PUSHED),
         "verdicts", WARN, ("unknown", "collections push")),
    ],
    ids=["read-only", "locked", "unused key", "no admin", "device keys", "admin",
         "lost", "damaged", "never pushed"],
)  # fmt: skip
def test_a_planted_problem_is_found_with_its_fix(
    file: Path,
    plant: Callable[[Store, Path], None],
    check: str,
    state: Severity,
    texts: tuple[str, str],
) -> None:
    before = examined(file)[check]
    with opened(file) as store:
        plant(store, file)
    found = examined(file)[check]

    assert (before.state, found.state) == (Severity.OK, state)
    assert texts[0] in found.what
    assert texts[1] in found.fix


def test_releases_without_a_journal_are_wrong(file: Path) -> None:
    release = StoredRelease("f", "q", {}, {}, "2026-12-03", "ann")
    with opened(file) as store:
        add_definitions(store, DefinitionSource(CENTRAL), NOW, "test")
        update_records(store, lambda: ([release.record(0)], None))
    lost = examined(file)["journal"]
    elsewhere = file.parent / "elsewhere.jsonl"
    ReleaseJournal(elsewhere).keep([release.line()])
    found = examined(file, journal=elsewhere)["journal"]

    assert (lost.state, found.state) == (WRONG, Severity.OK)
    assert "--journal" in lost.fix


def test_a_missing_extra_is_named_where_a_definition_needs_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    before = examined(file)["extras"]
    with opened(file) as store:
        add_definitions(store, DefinitionSource(CENTRAL), NOW, "test")
    needed = examined(file)["extras"]
    monkeypatch.undo()
    installed = examined(file)["extras"]
    for name in ("pyarrow", "arro3.core"):
        monkeypatch.setitem(sys.modules, name, None)
    exports = examined(file)["extras"]

    assert (before.state, needed.state, installed.state) == (Severity.OK, WARN, Severity.OK)
    assert "OpenDP" in needed.what
    assert install("central") in needed.fix
    assert install("arrow") in exports.what
    assert exports.state is Severity.OK


def test_relaxed_durability_is_wrong(file: Path) -> None:
    assert examine(f"{url_of(file)}?durability=relaxed")["durable"].state is WRONG


def test_definitions_are_followed_to_their_end(file: Path, tmp_path: Path) -> None:
    empty = f"sqlite:///{tmp_path}/empty.db"
    open_store(empty, make=True).close()

    assert "opened ends on 2026-12-31" in examined(file, NOW + 20 * DAY)["definitions"].what
    assert "no report is counted" in examined(file, NOW + 600 * DAY)["definitions"].what
    assert "collections push" in examine(empty)["definitions"].fix


def test_the_limit_of_new_pseudonyms_is_checked(tmp_path: Path) -> None:
    with deployment(tmp_path, FILE) as made:
        for _ in range(5):
            made.verdicts(made.report("theme"))
        states = [
            examine_deployment(made, max_new_pseudonyms=limit)["new pseudonyms"].state
            for limit in (5, 6, 100)
        ]

    assert states == [WRONG, WARN, Severity.OK]


@pytest.mark.parametrize(
    ("settings", "state", "message"),
    [
        ({}, WARN, "62,500 bodies without a key, 17 a second, close a collection"),
        ({"max_pseudonyms_per_body": 1}, WARN, "1,000,000 bodies without a key, 278 a second"),
        ({"max_new_pseudonyms_per_hour": 0}, WARN, "625,000 bodies without a key close a period"),
        ({"source_classes": ("hosting",)}, Severity.OK, "each of 2 source classes"),
    ],
)
def test_doctor_states_how_few_bodies_keep_new_devices_out(
    file: Path, settings: dict[str, Any], state: Severity, message: str
) -> None:
    found = examined(file, **settings)["floods"]

    assert (found.state, message in found.what) == (state, True)


def test_where_reports_need_a_key_or_a_token_no_flood_is_cheap(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Series, "has_tokens", True)
    with_tokens = examined(file)["floods"]
    monkeypatch.undo()
    with opened(file) as store:
        create_key(store, Role.DEVICE, "app", NOW)
    with_key = examined(file)["floods"]

    assert (with_tokens.state, with_key.state) == (Severity.OK, Severity.OK)
    assert "without a token" in with_tokens.what
    assert "need a device key" in with_key.what


@pytest.mark.parametrize(
    ("limits", "state", "message"),
    [
        ({}, Severity.OK, "; no limit is set"),
        ({"max_counter_memory": 1 << 20}, Severity.OK, " of 1 MB"),
        ({"max_counter_memory": 400}, WARN, ", and the limit is 400 bytes: when Redis is full"),
    ],
)
def test_what_counters_can_need_is_compared_with_the_limit(
    tmp_path: Path, limits: dict[str, Any], state: Severity, message: str
) -> None:
    with deployment(tmp_path, FILE) as made:
        found = examine_deployment(made, **limits)["memory of counters"]

    assert (found.state, message in found.what) == (state, True)


# -- verdicts --------------------------------------------------------------------------------------


def count_verdicts(made: Deployment, verdict: Verdict, times: int, fingerprint: str = "") -> None:
    made.aggregator.store.commit([], {ServiceCounter(VERDICT, fingerprint, -1, verdict): times})


@pytest.mark.parametrize(
    "verdict", [Verdict.OVER_BUDGET, Verdict.MALFORMED, Verdict.EARLY, Verdict.STALE, Verdict.FULL]
)
def test_verdicts_that_honest_devices_do_not_get_are_reported(
    tmp_path: Path, verdict: Verdict
) -> None:
    with deployment(tmp_path, FILE) as made:
        fingerprint = made.series("theme").fingerprint
        count_verdicts(made, Verdict.DUPLICATE, 90, fingerprint)
        before = examine_deployment(made)["verdicts"]
        count_verdicts(made, verdict, 10, fingerprint)
        after = examine_deployment(made)["verdicts"]

    assert (before.state, after.state) == (Severity.OK, WARN)
    assert f"10.00% of theme's reports were {verdict}" in after.what


def test_requests_without_a_key_are_reported_alike_by_store_and_metrics(tmp_path: Path) -> None:
    counters = {
        ServiceCounter(ANSWERED, "", -1, "reports:2xx:0.001"): 60,
        ServiceCounter(ANSWERED, "", -1, "reports:4xx:0.001"): 40,
        ServiceCounter(ANSWERED, "", -1, "health:2xx:0.001"): 900,
        ServiceCounter(REFUSED, "", -1, "no-key"): 40,
        ServiceCounter(LOSS, "x", -1, "aged:1"): 7,
    }
    with deployment(tmp_path, FILE) as made:
        made.aggregator.store.commit([], counters)
        analyst = made.key(Role.ANALYST)
        found = examine_deployment(made)["verdicts"]
        metrics = made.ask("GET", "/metrics", key=analyst).body.decode()

    assert found.what == "40.00% of requests were without a key"
    assert [
        verdict_problem.what for verdict_problem in verdict_problems(read_metrics(metrics))
    ] == [found.what]


def test_no_share_of_a_count_that_is_not_public_is_shown(tmp_path: Path) -> None:
    with deployment(tmp_path, CENTRAL) as made:
        count_verdicts(made, Verdict.MALFORMED, 1_000, made.series("visits").fingerprint)
        requests = {
            ServiceCounter(REFUSED, "", -1, "no-key"): 1_000,
            ServiceCounter(ANSWERED, "", -1, "reports:4xx:0.1"): 1_000,
        }
        made.aggregator.store.commit([], requests)
        found = examine_deployment(made, max_new_pseudonyms=1)

    assert found["verdicts"].state is Severity.OK
    assert found["new pseudonyms"].state is Severity.OK


# -- the command -----------------------------------------------------------------------------------


def test_the_command_prints_the_fix_and_exits_with_1_on_a_problem(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = run(["doctor", "--store", url_of(file)]), capsys.readouterr()
    with opened(file) as store:
        store.set_read_only(on=True)
    after = run(["doctor", "--store", url_of(file)]), capsys.readouterr()

    assert (before[0], after[0]) == (0, 1)
    assert "no backup directory is given" in before[1].out
    assert "read-only" in after[1].out
    assert "-> " in after[1].out
    assert after[1].err == ""
