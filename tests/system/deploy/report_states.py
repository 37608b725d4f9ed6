"""States of the intake in which alerts fire: which reports came, and which were rejected.

Each function brings a real deployment into its state and returns what Prometheus would have read on
the way: real expositions, at times that are made up, so that a week takes no week.
"""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.web.api.request_metrics import RequestMetrics
from veilcount_shared.oblivious_http.encapsulation import REQUEST_TYPE, seal_request
from veilcount_shared.oblivious_http.key_config import KEY_PROBLEM, KeyConfig
from veilcount_shared.report import Batch
from veilcount_shared.shuffling import part
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState

from ...aggregator.intake.shuffled_batches.batch_fixtures import AFTER_GRACE, TestShuffler
from ...aggregator.intake.shuffled_batches.batch_fixtures import FILE as BATCHES
from ...aggregator.web.api.deployment_fixtures import Deployment
from .alert_timelines import DAY, HOUR, MINUTE, Timeline, acted, scraped, state


@state("IntakeDrop")
def intake_drop(folder: Path) -> Timeline:
    """Ten reports an hour a week ago, and as many now; an hour later three."""
    before = ((0, 1), (HOUR, 10), (2 * HOUR, 10), (3 * HOUR, 10), (7 * DAY, 1))
    with scraped(folder) as found:
        made = found.deployment
        for at, reports in (*before, (7 * DAY + HOUR, 10)):
            made.verdicts(*(made.report("theme") for _ in range(reports)))
            found.scrape(at)
        found.timeline.quiet = 7 * DAY + HOUR
        made.verdicts(*(made.report("theme") for _ in range(3)))
        found.scrape(7 * DAY + 2 * HOUR)
    return found.timeline


@state("RelayDrop")
def relay_drop(folder: Path) -> Timeline:
    """The same of requests through relays, and of yesterday: a week ago there were none."""
    before = ((0, 0), (HOUR, 0), (6 * DAY, 0), (6 * DAY + HOUR, 10), (6 * DAY + 3 * HOUR, 20))
    with scraped(folder) as found:
        counted = RequestMetrics(found.deployment.aggregator.service_counters)
        for at, requests in (*before, (7 * DAY, 200), (7 * DAY + HOUR, 10)):
            for _ in range(requests):
                counted.relayed()
            found.scrape(at)
        found.timeline.quiet = 7 * DAY + HOUR
        for _ in range(3):
            counted.relayed()
        found.scrape(7 * DAY + 2 * HOUR)
    return found.timeline


@acted("UnknownCollection", twice=True)
def unknown_collection(made: Deployment) -> None:
    """An app sends reports of a definition that was not pushed."""
    made.verdicts(made.report("theme", fingerprint="0" * 64))


@acted("NoKey", twice=True)
def no_key(made: Deployment) -> None:
    """The intake is keyed, and devices come without a key."""
    made.verdicts(made.report("theme"), key=made.key(Role.DEVICE))
    made.send(Batch((made.report("theme"),)))


@acted("GatewayRefuses", twice=True)
def gateway_refuses(made: Deployment) -> None:
    """What comes through a relay does not open."""
    assert made.ask("POST", "/v1/ohttp", bytes(99), kind=REQUEST_TYPE).status == 400


@acted("Full", twice=True, max_new_pseudonyms=1)
def full(made: Deployment) -> None:
    """A period with room for one pseudonym has it, and others come."""
    made.verdicts(made.report("theme"))


@acted("GatewayKey", twice=True)
def gateway_key(made: Deployment) -> None:
    """A device encrypts to a key that was retired."""
    sealed, _ = seal_request(KeyConfig(7, bytes([9]) + bytes(31)), b"sealed")
    assert made.ask("POST", "/v1/ohttp", sealed, kind=REQUEST_TYPE).json["type"] == KEY_PROBLEM


@acted("SecondBatch", twice=True)
def second_batch(made: Deployment) -> None:
    """A shuffler that was restored hands over what it has handed over before."""
    shuffler = _shuffler(made)
    reports = [shuffler.seal(0), shuffler.seal(1)]
    (first,), (second,) = (
        shuffler.batch(reports, batch_id=bytes([number]) * 16) for number in (1, 2)
    )
    assert [shuffler.send(part).status for part in (first, second)] == [200, 409]


@acted("RecordDiffers", twice=True)
def record_differs(made: Deployment) -> None:
    """A shuffler signs another number of reports than its parts have."""
    shuffler = _shuffler(made)
    (part,) = shuffler.batch([shuffler.seal(0), shuffler.seal(1)])
    head = part.head
    numbers = (head.reports + 1, head.covers, head.digest)
    record = BatchRecord(BatchState.HANDED_OVER, head.crowd_id, head.period, *numbers)
    shuffler.send(part)
    assert shuffler.send_record(shuffler.sign(record)).problem == "record-differs"


@state("BatchIncomplete")
def batch_incomplete(folder: Path) -> Timeline:
    """The second of two parts does not come."""
    with scraped(folder) as found, patch.object(part, "PART_REPORTS", 2):
        shuffler = _shuffler(found.deployment)
        parts = shuffler.batch([shuffler.seal(number % 2) for number in range(3)])
        found.scrape(0)
        assert shuffler.send(parts[0]).status == 200
        found.scrape(HOUR)
        found.scrape(2 * DAY)
    return found.timeline


_SIGNER = Ed25519PrivateKey.generate()


def _shuffler(made: Deployment) -> TestShuffler:
    made.push(BATCHES)
    made.clocks.now = AFTER_GRACE
    return TestShuffler(made, _SIGNER)


@acted("OverBudget", twice=True)
def over_budget(made: Deployment) -> None:
    """A slot that the definition does not grant."""
    made.verdicts(made.report("theme", slot=9))


@acted("MalformedStale", twice=True)
def malformed(made: Deployment) -> None:
    """A segment that the definition does not have."""
    made.verdicts(made.report("theme", segment=9))


@state("PoisoningTestFailed")
def poisoning_test_failed(folder: Path) -> Timeline:
    """Three hundred devices that all say the same."""
    with scraped(folder) as found:
        made = found.deployment
        pack = made.series("theme").collection.pack
        honest = [made.report("theme", message=pack(number % 3)) for number in range(60)]
        made.verdicts(*honest, made.report("alone"))
        found.scrape(0)
        made.verdicts(*(made.report("theme", message=pack(0)) for _ in range(300)))
        found.scrape(MINUTE)
    return found.timeline
