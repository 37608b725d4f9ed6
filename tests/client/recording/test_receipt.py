"""The receipt: what was spent, one total for each adjacency, and the device's limit by its side."""

from __future__ import annotations

from tests.client.device_fixtures import file
from veilcount_client.testing import ClientHarness

YES = True
BUDGET = {"model": "central", "unit": "month"}
THREE = file(
    local={"epsilon": 1, "unit": "month"},
    removable={**BUDGET, "budget": 2, "adjacency": "add-remove"},
    exchanged={**BUDGET, "budget": 4, "adjacency": "substitute"},
)


def test_each_adjacency_has_a_total_and_the_plain_sum_is_no_privacy_figure(
    veilcount: ClientHarness,
) -> None:
    """Of a person who answered one local collection, and one of a curator's of each adjacency."""
    client = veilcount.client(THREE, trust_curator=True)
    before = client.receipt()
    for name in THREE:
        client.record(name, YES)
    veilcount.advance(days=1)
    receipt = client.receipt()
    text, document = receipt.text(), receipt.json()
    with_epsilon = [line for line in text.splitlines() if "epsilon " in line]
    adjacencies = [each["adjacency"] for each in document["collections"]]

    assert (before.spent, before.charged) == ((), 0)
    assert "Over all collections: epsilon" not in before.text()
    assert document["spent"] == [
        {"model": "local", "adjacency": "substitute", "epsilon": 1.0},
        {"model": "central", "adjacency": "substitute", "epsilon": 4.0},
        {"model": "central", "adjacency": "add-remove", "epsilon": 2.0},
    ]
    assert (document["charged"], document["ceiling"]) == (7, 7)
    assert adjacencies == ["substitute", "add-remove", "substitute"]
    assert len(with_epsilon) == 6
    assert all("substitution" in line or "add-remove" in line for line in with_epsilon)
    assert (
        "limit on this device: 7 of at most 7, the plain sum of the stated epsilons"
        " (a safety limit, no privacy figure)"
    ) in text
    assert "epsilon 7" not in text


def test_what_belongs_to_no_loaded_definition_has_no_adjacency(veilcount: ClientHarness) -> None:
    """After forget() the ledger holds a sum; under which definition is not kept."""
    client = veilcount.client(THREE, trust_curator=True)
    client.record("removable", YES)
    veilcount.advance(days=1)
    client.forget()
    (total,) = client.receipt().spent

    assert (total.model, total.adjacency, total.epsilon) == (None, None, 2)
    assert "adjacency not recorded: epsilon 2" in client.receipt().text()
