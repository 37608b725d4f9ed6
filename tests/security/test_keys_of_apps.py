"""A key restricted to an app: of another app's collections it learns no name and no figure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.records.api_keys import ApiKey, Role, create_key, load_api_keys
from veilcount_aggregator.records.sessions import begin_session
from veilcount_serving.errors import SettingsError

from ..aggregator.web.api.deployment_fixtures import CENTRAL, FILE, Deployment, Response, deployment
from .access_table import AccessRule, Kind, of_kind

APP = "acme-editor"
OTHER_APP = "zeta-undisclosed"
OTHER = "embargoed"  # the name of another app's collection; `nothing` is none of any
SHARED = "theme"  # a name that both apps use
LABEL = "veiledlabel"
OTHER_FILE = (
    FILE.replace(APP, OTHER_APP)
    .replace("[opened]", f"[{OTHER}]")
    .replace('"light"', f'"{LABEL}"')
    .replace("[alone]", "[undivulged]")
)
RULES = [rule for rule in of_kind(Kind.KEY, Kind.PAGE) if rule.role is Role.ANALYST]
EVERY_APP = {"/metrics", "/v1/definitions", "/operations"}
REPORTS = 37
FORM = "application/x-www-form-urlencoded"
BODIES = {Kind.KEY: b'{"query": {"type": "histogram"}, "candidates": ["a"]}', Kind.PAGE: b"a=b"}


@dataclass(frozen=True)
class Apps:
    """A deployment of two apps, with a key and a session of one of them, and of all."""

    deployment: Deployment
    keys: dict[bool, str]  # by whether it is restricted
    sessions: dict[bool, str]
    secrets: tuple[str, ...]  # words of the other app

    def ask(self, rule: AccessRule, name: str, *, restricted: bool) -> Response:
        self.deployment.clocks.passed += 10
        path = rule.path.replace("<name>", name).replace("<form>", "csv")
        if rule.path == "/v1/plan":
            path += "?epsilon=1&devices=1000&values=3&unit=day"
        body = BODIES[rule.kind] if rule.method == "POST" else b""
        if rule.kind is Kind.KEY:
            return self.deployment.ask(rule.method, path, body, key=self.keys[restricted])
        environ = {"HTTP_COOKIE": f"veilcount={self.sessions[restricted]}"}
        return self.deployment.ask(rule.method, path, body, kind=FORM, environ=environ)

    def leaks(self, reply: Response, asked: str = "") -> list[str]:
        """Return the words of the other app in a reply, which may repeat the name that it asked."""
        text = reply.body.decode() + repr(reply.headers)
        if asked and asked not in {SHARED, "opened"}:
            text = text.replace(asked, "")
        return [word for word in self.secrets if word in text]


@pytest.fixture(scope="module")
def apps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apps]:
    with deployment(tmp_path_factory.mktemp("apps"), FILE, CENTRAL, OTHER_FILE) as made:
        store, now = made.aggregator.store, made.clocks.now
        reports = [made.report(OTHER) for _ in range(REPORTS)]
        made.verdicts(*reports)
        made.verdicts(*reports)  # duplicates, which a figure counts
        made.aggregator.flush()
        keys, sessions = {}, {}
        for restricted in (False, True):
            key, keys[restricted] = create_key(
                store, Role.ANALYST, "", now, apps=(APP,) if restricted else ()
            )
            sessions[restricted] = begin_session(store, Role.ANALYST, key.id, now)
        made.aggregator.catalog_cache.refresh()
        others = [
            series
            for series in made.aggregator.known().catalog.series.values()
            if series.collection.app == OTHER_APP
        ]
        prints = [series.fingerprint[:12] for series in others]
        words = (OTHER_APP, OTHER, "undivulged", LABEL, *prints)
        yield Apps(made, keys, sessions, words)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_no_endpoint_shows_another_app(apps: Apps, rule: AccessRule) -> None:
    """By the collection's own name, one close to it, one of its own app, and one of both apps."""
    names = (OTHER, f"{OTHER}s", "opened", SHARED) if "<name>" in rule.path else ("",)
    replies = {name: apps.ask(rule, name, restricted=True) for name in names}
    refused = rule.path in EVERY_APP

    assert not {name: leak for name in replies if (leak := apps.leaks(replies[name], name))}
    assert {reply.status for reply in replies.values()} == {403} or not refused
    assert (replies[OTHER].status if OTHER in replies else 404) in {404, 400}


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.method == "GET"], ids=str)
def test_an_unrestricted_key_sees_it(apps: Apps, rule: AccessRule) -> None:
    """Or the test above could not fail."""
    reply = apps.ask(rule, OTHER, restricted=False)

    assert reply.status in {200, 400, 404} if "plan" in rule.path else reply.status < 500
    if "plan" not in rule.path and reply.status == 200:
        assert apps.leaks(reply)


def test_it_reads_its_own_app(apps: Apps) -> None:
    listed = apps.deployment.ask("GET", "/v1/collections", key=apps.keys[True]).json
    shared = apps.deployment.ask("GET", f"/v1/collections/{SHARED}", key=apps.keys[True]).json

    assert {each["name"] for each in listed["collections"]} == {SHARED, "opened", "alone", "visits"}
    assert {each["app"] for each in listed["collections"]} == {APP}
    assert len(shared["series"]) == 1


def test_figures_of_the_overview_are_of_its_app(apps: Apps) -> None:
    """The reports of the other app are in no sum."""
    overview = next(rule for rule in RULES if rule.path == "/")

    def text(*, restricted: bool) -> str:
        return apps.ask(overview, "", restricted=restricted).body.decode()

    seen = {
        restricted: re.findall(rf"\b{REPORTS} [a-z]+", text(restricted=restricted))
        for restricted in (True, False)
    }

    assert seen[True] == []
    assert {f"{REPORTS} counted", f"{REPORTS} duplicates"} <= set(seen[False])


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path) as made:
        yield made


# -- the key's record ------------------------------------------------------------------------------


def test_a_key_of_before_reads_all(deployed: Deployment) -> None:
    """Its record is written as it always was; a restricted one's names its apps."""
    store, now = deployed.aggregator.store, deployed.clocks.now
    free, _ = create_key(store, Role.ANALYST, "", now)
    bound, _ = create_key(store, Role.ANALYST, "", now, apps=(APP, OTHER_APP))
    named = {key: b"apps" in value for key, value in store.records("key").items()}
    read = {key.id: key.apps for key in load_api_keys(store).keys.values()}

    assert read == {free.id: (), bound.id: (APP, OTHER_APP)}
    assert named == {free.id: False, bound.id: True}
    assert ApiKey.from_record(bound.record().value or b"") == bound


@pytest.mark.parametrize(
    ("role", "apps", "fix"),
    [
        (Role.ADMIN, (APP,), "restrict keys of the role analyst only"),
        (Role.DEVICE, (APP,), "restrict keys of the role analyst only"),
        (Role.ANALYST, ("",), "give the `app` of a definitions file"),
        (Role.ANALYST, (APP, "a b"), "give the `app` of a definitions file"),
    ],
)
def test_a_restriction_that_would_hold_nowhere_is_refused(
    deployed: Deployment, role: Role, apps: Any, fix: str
) -> None:
    with pytest.raises(SettingsError, match=fix):
        create_key(deployed.aggregator.store, role, "", deployed.clocks.now, apps=apps)

    assert not load_api_keys(deployed.aggregator.store).keys


def test_a_command_makes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/apps.db")
    assert run(["init", "--no-key", *store]) == 0
    created = run(["keys", "create", "--role", "analyst", "--app", "a", "--app", "b", *store])
    refused = run(["keys", "create", "--role", "admin", "--app", "a", *store])
    run(["keys", "list", *store])

    assert (created, refused) == (0, 2)
    assert "a,b" in capsys.readouterr().out
