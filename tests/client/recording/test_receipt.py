"""The receipt: what was spent, one total for each adjacency, and the device's limit by its side."""

from __future__ import annotations

import pytest

from tests.client.device_fixtures import file
from veilcount_client.recording.receipt import Receipt
from veilcount_client.testing import ClientHarness

YES = True
BUDGET = {"model": "central", "unit": "month"}
THREE = file(
    local={"epsilon": 1, "unit": "month"},
    removable={**BUDGET, "budget": 2, "adjacency": "add-remove"},
    exchanged={**BUDGET, "budget": 4, "adjacency": "substitute"},
)


@pytest.fixture
def answered(veilcount: ClientHarness) -> Receipt:
    """A person who answered one local collection, and one of a curator's of each adjacency."""
    client = veilcount.client(THREE, trust_curator=True)
    for name in THREE:
        client.record(name, YES)
    veilcount.advance(days=1)
    return client.receipt()


def test_each_adjacency_has_its_own_total(answered: Receipt) -> None:
    totals = {(each.model, each.adjacency): each.epsilon for each in answered.spent}

    assert totals == {
        ("local", "substitute"): 1,
        ("central", "add-remove"): 2,
        ("central", "substitute"): 4,
    }


def test_the_plain_sum_is_a_limit_and_no_privacy_figure(answered: Receipt) -> None:
    assert (answered.charged, answered.ceiling) == (7, 7)
    assert (
        "limit on this device: 7 of at most 7, the plain sum of the stated epsilons"
        " (a safety limit, no privacy figure)"
    ) in answered.text()
    assert "epsilon 7" not in answered.text()


def test_each_epsilon_of_the_text_states_its_adjacency(answered: Receipt) -> None:
    lines = [line for line in answered.text().splitlines() if "epsilon " in line]

    assert len(lines) == 6
    assert all("substitution" in line or "add-remove" in line for line in lines)


def test_the_json_states_the_adjacency_of_each_figure(answered: Receipt) -> None:
    document = answered.json()

    assert {"model": "central", "adjacency": "add-remove", "epsilon": 2.0} in document["spent"]
    assert [each["adjacency"] for each in document["collections"]] == [
        "substitute",
        "add-remove",
        "substitute",
    ]
    assert (document["charged"], document["ceiling"]) == (7, 7)


def test_what_belongs_to_no_loaded_definition_has_no_adjacency(veilcount: ClientHarness) -> None:
    """After forget() the ledger holds a sum; under which definition is not kept."""
    client = veilcount.client(THREE, trust_curator=True)
    client.record("removable", YES)
    veilcount.advance(days=1)
    client.forget()
    (total,) = client.receipt().spent

    assert (total.model, total.adjacency, total.epsilon) == (None, None, 2)
    assert "adjacency not recorded: epsilon 2" in client.receipt().text()


def test_nothing_recorded_is_nothing_spent(veilcount: ClientHarness) -> None:
    receipt = veilcount.client(THREE, trust_curator=True).receipt()

    assert (receipt.spent, receipt.charged) == ((), 0)
    assert "Over all collections: epsilon" not in receipt.text()
