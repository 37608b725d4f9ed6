"""A device that answers about ranges does all that any other does; only its messages are new."""

from __future__ import annotations

from veilcount_client.testing import ClientHarness
from veilcount_shared.mechanisms import RangeTree

from ..device_fixtures import one_collection

MINUTES = {"range": [0, 240], "measure": "ranges", "epsilon": 2}


def test_a_number_leaves_as_a_message_of_the_hierarchy(veilcount: ClientHarness) -> None:
    """One report a day, at its fixed width, that the definition accepts."""
    collections = one_collection("minutes", **MINUTES)
    minutes = collections["minutes"]
    client = veilcount.client(collections)
    for value in (33.3, -5, 10**400, "no number", float("nan")):
        client.record("minutes", value)
        veilcount.advance(days=1)
    veilcount.advance(days=2)

    assert isinstance(minutes.mechanism, RangeTree)
    assert len(veilcount.sent) == 5
    assert {report.fingerprint for report in veilcount.sent} == {minutes.fingerprint}
    assert {len(report.message) for report in veilcount.sent} == {2}
    assert all(minutes.mechanism.valid(minutes.unpack(report.message)) for report in veilcount.sent)


def test_the_receipt_shows_what_left_and_its_cost(veilcount: ClientHarness) -> None:
    """A number and of how many; the figures are those of any collection with this epsilon."""
    client = veilcount.client(one_collection("minutes", **MINUTES))
    client.record("minutes", 20)
    veilcount.advance(days=2)
    (entry,) = client.receipt().entries

    assert (entry.event, entry.day, entry.life) == ("2", "2", "60")
    assert entry.spent == 2
    assert [each["description"].split(" of ")[1] for each in entry.sent] == ["678"]


def test_an_example_says_what_a_message_would_be(veilcount: ClientHarness) -> None:
    """Before anything is recorded: the level is drawn beforehand, the node is randomized."""
    text = str(veilcount.client(one_collection("minutes", **MINUTES)).example("minutes"))

    assert "4 levels drawn beforehand" in text
