"""`POST /v1/rows/close`: whoever knows the name of a row closes it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import encode_base64

from .deployment_fixtures import NOW, Deployment, Response, open_worker

PATH = "/v1/rows/close"


def row_name(report: Report) -> dict[str, str]:
    return {"fingerprint": report.fingerprint, "pseudonym": encode_base64(report.pseudonym)}


def close(deployed: Deployment, report: Report, key: str = "", **more: object) -> Response:
    return deployed.ask("POST", PATH, json.dumps(row_name(report) | more).encode(), key=key)


@pytest.mark.parametrize("name", ["theme", "opened", "alone"])
def test_a_row_is_closed_by_whoever_knows_its_name(deployed: Deployment, name: str) -> None:
    """Whatever its epoch is. What was counted stays; no slot of it is free any more."""
    report = deployed.report(name)
    deployed.verdicts(report)
    reply = close(deployed, report)

    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers.keys().isdisjoint({"Content-Type", "Content-Length"})
    assert deployed.counted(name) == 1
    assert deployed.verdicts(report) == [Verdict.DUPLICATE]
    if name == "opened":
        assert deployed.verdicts(replace(report, slot=1)) == [Verdict.DUPLICATE]


def test_a_row_of_an_older_epoch_is_closed_until_it_is_dropped(deployed: Deployment) -> None:
    """As long as reports of it are accepted; then nothing is kept of it."""
    report, other = deployed.report("opened"), deployed.report("opened")
    deployed.verdicts(report, other)
    deployed.clocks.now += timedelta(days=20)

    assert close(deployed, report).status == 204
    assert deployed.verdicts(replace(report, slot=1)) == [Verdict.DUPLICATE]
    deployed.clocks.now = datetime(2027, 3, 1, tzinfo=UTC)
    assert deployed.drop_ended_epochs()
    assert close(deployed, other).status == 204


def test_a_row_that_does_not_exist_is_answered_like_one_that_does(deployed: Deployment) -> None:
    """No such row, no such series: the reply tells nobody whether a report has come."""
    report = deployed.report("theme")
    deployed.verdicts(report)
    others = [deployed.report("theme"), replace(report, fingerprint="0" * 64)]
    replies = [close(deployed, other) for other in (*others, report)]

    assert {(reply.status, reply.body) for reply in replies} == {(204, b"")}
    assert len({str(reply.headers) for reply in replies}) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": "F" * 64}, {"fingerprint": "0" * 63}, {"fingerprint": "0" * 64 + "\n"},
        {"fingerprint": 1}, {"pseudonym": ""}, {"pseudonym": "A" * 21}, {"pseudonym": "A" * 23},
        {"pseudonym": "A" * 22 + "=="}, {"pseudonym": "A" * 22 + "\n"},
        {"pseudonym": "A" * 21 + "B"}, {"pseudonym": "+" + "A" * 21},
        {"pseudonym": "\u00fc" + "A" * 21}, {"pseudonym": None}, {"padding": 1}, {"person": "x"},
    ],
)  # fmt: skip
def test_a_name_is_read_strictly_and_never_repeated(
    deployed: Deployment, change: dict[str, object]
) -> None:
    report = deployed.report("theme")
    deployed.verdicts(report)
    reply = deployed.ask("POST", PATH, json.dumps(row_name(report) | change).encode())

    assert (reply.status, reply.problem) == (400, "bad-field")
    assert next(iter(change)) in reply.json["detail"]
    assert report.fingerprint not in reply.body.decode()
    assert encode_base64(report.pseudonym) not in reply.body.decode()


def test_padding_is_ignored(deployed: Deployment) -> None:
    report = deployed.report("theme")
    deployed.verdicts(report)

    assert close(deployed, report, padding="0" * 900).status == 204
    assert deployed.verdicts(report) == [Verdict.DUPLICATE]


def test_other_workers_know(deployed: Deployment) -> None:
    """A row stands in the store and nowhere else."""
    report = deployed.report("opened")
    deployed.verdicts(report)
    with open_worker(deployed.aggregator.settings.store, NOW) as other:
        body = json.dumps(row_name(report)).encode()
        reply = other.app.test_client().post(PATH, data=body, content_type="application/json")

    assert reply.status_code == 204
    assert deployed.verdicts(replace(report, slot=1)) == [Verdict.DUPLICATE]


def test_the_rule_for_keys_is_that_of_the_intake(deployed: Deployment) -> None:
    """Open until the first device key was made. A read-only store closes no row: ask again."""
    report = deployed.report("theme")
    deployed.verdicts(report)
    keys = ["", deployed.key(Role.ANALYST), deployed.key(Role.DEVICE)]
    deployed.aggregator.store.set_read_only(on=True)
    refused = [close(deployed, report, key).status for key in keys]
    deployed.aggregator.store.set_read_only(on=False)

    assert refused == [401, 403, 503]
    assert close(deployed, report, keys[-1]).status == 204
