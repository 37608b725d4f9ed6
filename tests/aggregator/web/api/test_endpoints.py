"""The endpoints of analysts and admins: what they show and change, and their access."""

from __future__ import annotations

import json
from typing import Any

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.definitions import SOURCE
from veilcount_shared.report import Batch, Losses
from veilcount_shared.verdict import Verdict

from ....client.device_fixtures import definitions_text
from .deployment_fixtures import CENTRAL, FILE, ONCE, Deployment

RUNNING = definitions_text(
    "acme-editor", saved={"takes": "any", "held": "device", "unit": "month", "until": "2027-03-01"}
)


@pytest.fixture
def admin(deployed: Deployment) -> str:
    return deployed.key(Role.ADMIN)


@pytest.fixture
def analyst(deployed: Deployment) -> str:
    return deployed.key(Role.ANALYST)


def post(deployed: Deployment, path: str, value: object, key: str) -> Any:
    return deployed.ask("POST", path, json.dumps(value).encode(), key=key)


# -- collections -----------------------------------------------------------------------------------


def test_collections_are_listed_by_their_newest_definition(
    deployed: Deployment, analyst: str
) -> None:
    deployed.verdicts(deployed.report("opened"))
    found = deployed.ask("GET", "/v1/collections", key=analyst).json["collections"]
    opened = next(each for each in found if each["name"] == "opened")

    assert [each["name"] for each in found] == ["theme", "opened", "alone"]
    assert opened["epsilon"] == {
        "event": "0.5",
        "day": "1",
        "user": "30",
        "adjacency": "substitute",
    }
    assert (opened["from"], opened["until"]) == ("2026-12-01", "2026-12-31")
    assert (opened["reports"], opened["series"], opened["closed"]) == (1, 1, False)


def test_a_collection_shows_its_series_side_by_side(deployed: Deployment, analyst: str) -> None:
    """The newest first, each with what came of it, of the last tick; never summed."""
    fingerprint = deployed.series("opened").fingerprint
    first = deployed.report("opened")
    deployed.verdicts(first, deployed.report("opened", segment=1))
    deployed.verdicts(first, deployed.report("opened", slot=2))
    deployed.send(Batch(losses=Losses(fingerprint, evicted=3)))
    deployed.push(FILE.replace('"menu", "key"', '"menu", "mouse"'))
    deployed.verdicts(deployed.report("opened"))
    deployed.aggregator.flush()
    newest, series = deployed.ask("GET", "/v1/collections/opened", key=analyst).json["series"]

    assert newest["fingerprint"] == deployed.series("opened").fingerprint
    assert newest["figures"]["reports"] == 1
    assert series["figures"] == {
        "reports": 2,
        "tallies": [
            {"period": 2, "from": "2026-12-03", "segment": 0, "reports": 1},
            {"period": 2, "from": "2026-12-03", "segment": 1, "reports": 1},
        ],
        "verdicts": dict.fromkeys(Verdict, 0) | {"counted": 2, "duplicate": 1, "over_budget": 1},
        "losses": {"evicted:3": 1},
    }
    assert series["segments"] == [{"name": "arm", "values": ["A", "B"]}]


def test_a_series_says_what_is_promised(deployed: Deployment, analyst: str) -> None:
    """The three epsilons, what is public, what the server can check, and where a value waits."""
    deployed.push(RUNNING)
    shown = {
        name: deployed.ask("GET", f"/v1/collections/{name}", key=analyst).json["series"][0]
        for name in ("theme", "opened", "alone", "saved")
    }
    promises = {name: " ".join(series["promise"]) for name, series in shown.items()}
    epsilons = "epsilon 0.5 for one answer, 1 for one day and 30 for all of them, by substitution"

    assert epsilons in promises["opened"]
    assert "That you answered, when, and how often." in promises["opened"]
    assert "one person's" in promises["theme"]
    assert "nobody else can check it" in promises["alone"]
    assert (shown["saved"]["held"], shown["theme"]["held"]) == ("device", None)
    assert "What was recorded so far waits in the app" in promises["saved"]
    assert "recorded so far" not in promises["theme"]


@pytest.mark.parametrize(
    ("text", "name", "public"), [(CENTRAL, "visits", False), (ONCE, "once", True)]
)
def test_no_exact_count_leaves_that_would_reveal_a_person(
    deployed: Deployment,
    analyst: str,
    text: str,
    name: str,
    public: bool,  # noqa: FBT001 - drawn
) -> None:
    """Under add-remove: not in the list, not in the series, not in the metrics."""
    deployed.push(text)
    deployed.verdicts(deployed.report(name))
    deployed.aggregator.flush()
    listed = deployed.ask("GET", "/v1/collections", key=analyst).json["collections"][-1]
    shown = deployed.ask("GET", f"/v1/collections/{name}", key=analyst).json["series"][0]
    metrics = deployed.ask("GET", "/metrics", key=analyst).body.decode()

    assert listed["name"] == name
    assert (listed["reports"] == 1) == public
    assert (shown["figures"] is not None) == public
    assert (f'collection="{name}"' in metrics) == public
    assert ('endpoint="reports"' in metrics) == public
    assert ("groups_total{" in metrics) == public


# -- push and close --------------------------------------------------------------------------------

LISTED = FILE.replace('values = ["light", "dark", "system"]', 'values_file = "themes.txt"')


def test_definitions_are_taken_and_counted_at_once(deployed: Deployment, admin: str) -> None:
    """As TOML, or in JSON beside the files it names. Again, they are no news."""
    toml, listed = FILE.replace("[theme]", "[look]"), FILE.replace("[theme]", "[list]")
    listed = listed.replace('values = ["light", "dark", "system"]', 'values_file = "themes.txt"')
    document = json.dumps({"text": listed, "files": {"themes.txt": "a\nb\n"}})
    for name, kind, body in (
        ("look", "application/toml", toml),
        ("list", "application/json", document),
    ):
        first, again = (
            deployed.ask("POST", "/v1/collections", body.encode(), key=admin, kind=kind)
            for _ in range(2)
        )

        assert (first.status, again.status) == (201, 200)
        assert [each["name"] for each in first.json["new"]] == [name]
        assert again.json == {"new": []}
        assert deployed.verdicts(deployed.report(name)) == [Verdict.COUNTED]


TOML = "application/toml"


@pytest.mark.parametrize(
    ("raw", "kind", "result"),
    [
        (b"x = [", TOML, (422, "bad-definition")),
        (FILE.replace("epsilon = 1", "epsilon = 99").encode(), TOML, (422, "bad-definition")),
        (b"a = " + b"[" * 3000, TOML, (422, "bad-definition")),
        (b"\xff", TOML, (400, "bad-request")),
        (b"{}", "application/json", (400, "bad-field")),
        (b'{"text": 1}', "application/json", (400, "bad-field")),
        (b'{"text": "\\ud800"}', "application/json", (400, "bad-request")),
        (b'{"text": "\xff"}', "application/json", (400, "bad-request")),
        (b'{"text": "", "path": "/etc/passwd"}', "application/json", (400, "bad-field")),
        (b"[" * 100_000, "application/json", (400, "bad-field")),
        (b"x", "text/plain", (415, "unsupported")),
    ],
)
def test_definitions_that_cannot_be_used_say_why(
    deployed: Deployment, admin: str, raw: bytes, kind: str, result: tuple[int, str]
) -> None:
    """The key and the fix; nothing is kept."""
    kept = deployed.aggregator.store.records(SOURCE)
    answer = deployed.ask("POST", "/v1/collections", raw, key=admin, kind=kind)

    assert (answer.status, answer.problem) == result
    assert deployed.aggregator.store.records(SOURCE) == kept


def test_a_closed_collection_takes_no_more(deployed: Deployment, admin: str, analyst: str) -> None:
    """Under any of its definitions; what was spent before is still a duplicate."""
    before = deployed.report("theme")
    deployed.verdicts(before)
    fingerprint = deployed.series("theme").fingerprint
    first, again = (
        deployed.ask("POST", "/v1/collections/theme/close", key=admin) for _ in range(2)
    )

    assert (first.json, again.json) == ({"closed": [fingerprint]}, {"closed": []})
    assert deployed.verdicts(deployed.report("theme"), before) == [
        Verdict.CLOSED,
        Verdict.DUPLICATE,
    ]
    assert deployed.ask("GET", "/v1/collections", key=analyst).json["collections"][0]["closed"]
    unknown = deployed.ask("POST", "/v1/collections/nothing/close", key=admin)
    assert unknown.problem == "not-found"


# -- keys and the audit log ------------------------------------------------------------------------


def test_a_key_is_made_shown_once_and_taken_back(deployed: Deployment, admin: str) -> None:
    made = post(deployed, "/v1/keys", {"role": "analyst", "label": "notebook"}, admin)
    secret, identity = made.json["key"], made.json["id"]
    opens = deployed.ask("GET", "/v1/collections", key=secret).status
    listed = deployed.ask("GET", "/v1/keys", key=admin)
    gone = deployed.ask("DELETE", f"/v1/keys/{identity}", key=admin)

    assert (made.status, opens) == (201, 200)
    assert secret not in listed.body.decode()
    assert "digest" not in listed.body.decode()
    assert {each["label"] for each in listed.json["keys"]} == {"", "notebook"}
    assert gone.json["revoked"] == "2026-12-03"
    assert deployed.ask("GET", "/v1/collections", key=secret).status == 401
    assert deployed.ask("DELETE", "/v1/keys/nothing", key=admin).problem == "not-found"


def test_a_key_that_cannot_be_made_is_refused(deployed: Deployment, admin: str) -> None:
    labels = [{"role": "admin", "label": label} for label in ("x" * 61, "\n")]
    for value in ({}, {"role": "king"}, {"role": "admin", "more": 1}, *labels):
        assert post(deployed, "/v1/keys", value, admin).problem == "bad-field"


def test_what_operators_did_is_written_down(deployed: Deployment, admin: str) -> None:
    """With the key's id, which is not the key."""
    identity = deployed.ask("GET", "/v1/keys", key=admin).json["keys"][0]["id"]
    post(deployed, "/v1/keys", {"role": "device"}, admin)
    deployed.ask("POST", "/v1/collections/theme/close", key=admin)
    entries = deployed.ask("GET", "/v1/audit", key=admin).json["entries"]

    assert [(entry["actor"], entry["action"]) for entry in entries] == [
        ("cli", "collections push"),
        ("cli", "keys create admin"),
        (identity, "keys create device"),
        (identity, "collections close"),
    ]
    assert {entry["at"] for entry in entries} == {"2026-12-03T12:00:00Z"}


def test_a_store_that_is_read_only_takes_no_changes(deployed: Deployment, admin: str) -> None:
    deployed.aggregator.store.set_read_only(on=True)

    assert post(deployed, "/v1/keys", {"role": "device"}, admin).problem == "unavailable"
    for path in ("/v1/keys", "/v1/collections/theme/estimate"):
        assert deployed.ask("GET", path, key=admin).status == 200
