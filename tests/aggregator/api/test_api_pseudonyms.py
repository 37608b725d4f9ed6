"""`DELETE /v1/pseudonyms/...`: the holder of a pseudonym closes its row."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.aggregator.api.deployment_fixtures import NOW, Deployment, open_worker
from veilcount_aggregator.auth.api_keys import Role
from veilcount_client.testing.doubles import WsgiTransport
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict


def spelled(pseudonym: bytes) -> str:
    return urlsafe_b64encode(pseudonym).rstrip(b"=").decode()


def path(report: Report) -> str:
    return f"/v1/pseudonyms/{report.fingerprint}/{spelled(report.pseudonym)}"


@pytest.mark.parametrize("name", ["theme", "opened", "alone"])
def test_a_row_is_closed_by_its_holder(deployed: Deployment, name: str) -> None:
    """Whatever its epoch is. What was counted stays; no slot of it is free any more."""
    report = deployed.report(name)
    deployed.verdicts(report)
    answer = deployed.ask("DELETE", path(report))

    assert (answer.status, answer.body) == (204, b"")
    assert deployed.counted(name) == 1
    assert deployed.verdicts(report) == [Verdict.DUPLICATE]
    if name == "opened":
        assert deployed.verdicts(replace(report, slot=1)) == [Verdict.DUPLICATE]


def test_a_row_of_an_older_epoch_is_closed_until_it_is_dropped(deployed: Deployment) -> None:
    """As long as reports of it are taken; then nothing is kept of it."""
    report, other = deployed.report("opened"), deployed.report("opened")
    deployed.verdicts(report, other)
    deployed.clocks.now += timedelta(days=20)

    assert deployed.ask("DELETE", path(report)).status == 204
    assert deployed.verdicts(replace(report, slot=1)) == [Verdict.DUPLICATE]
    deployed.clocks.now = datetime(2027, 3, 1, tzinfo=UTC)
    assert deployed.drop_ended_epochs()
    assert deployed.ask("DELETE", path(other)).problem == "not-found"


def test_nothing_to_close_is_not_found(deployed: Deployment) -> None:
    """No such row, no such series, no such spelling: one answer."""
    report = deployed.report("theme")
    deployed.verdicts(report)
    good = path(report)
    others = [
        path(deployed.report("theme")),
        path(replace(report, fingerprint="0" * 64)),
        good[:-1],
        f"{good}A",
        f"{good}==",
        good[:-1] + ("B" if good[-1] != "B" else "C"),
        good[:-3] + "+/=",
        good[:-1] + "\N{LATIN SMALL LETTER U WITH DIAERESIS}",
        f"/v1/pseudonyms/x/{spelled(report.pseudonym)}",
    ]

    assert {deployed.ask("DELETE", each).status for each in others} == {404}
    assert deployed.verdicts(report) == [Verdict.DUPLICATE]
    assert deployed.ask("DELETE", good).status == 204


def test_the_client_is_done_with_both_answers_and_other_workers_know(deployed: Deployment) -> None:
    """Closed, or never there. A row stands in the store and nowhere else."""
    report = deployed.report("theme")
    deployed.verdicts(report)
    with open_worker(deployed.aggregator.settings.store, NOW) as other:
        transport = WsgiTransport(other.app.wsgi_app)

        assert transport.close_row(report.fingerprint, spelled(report.pseudonym))
        assert transport.close_row(report.fingerprint, spelled(bytes(16)))
    assert deployed.verdicts(report) == [Verdict.DUPLICATE]


def test_the_rule_for_keys_is_that_of_the_intake(deployed: Deployment) -> None:
    """Open until the first device key was made. A read-only store closes no row: ask again."""
    report = deployed.report("theme")
    deployed.verdicts(report)
    keys = ["", deployed.key(Role.ANALYST), deployed.key(Role.DEVICE)]
    deployed.aggregator.store.set_read_only(on=True)
    refused = [deployed.ask("DELETE", path(report), key=key).status for key in keys]
    deployed.aggregator.store.set_read_only(on=False)

    assert refused == [401, 403, 503]
    assert deployed.ask("DELETE", path(report), key=keys[-1]).status == 204
