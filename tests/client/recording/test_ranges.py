"""A device that answers about ranges does all that any other does; only its messages are new."""

from __future__ import annotations

from veilcount_client.testing import ClientHarness
from veilcount_shared.mechanisms import RangeTree

from ..device_fixtures import one_collection

MINUTES = {"range": [0, 240], "measure": "ranges", "epsilon": 2}


def test_a_number_leaves_as_a_message_of_the_hierarchy(veilcount: ClientHarness) -> None:
    """One report a day, at its fixed width, that the definition accepts.

    The receipt shows its number and of how many; the cost is that of any collection with this
    epsilon. Beforehand an example says how the level is drawn.
    """
    collections = one_collection("minutes", **MINUTES)
    minutes = collections["minutes"]
    client = veilcount.client(collections, strict=False)
    example = str(client.example("minutes"))
    for value in (33.3, -5, 10**400, "no number", float("nan")):
        client.record("minutes", value)
        veilcount.advance(days=1)
    veilcount.advance(days=2)
    [entry] = client.receipt().entries

    assert isinstance(minutes.mechanism, RangeTree)
    assert len(veilcount.sent) == 5
    assert {report.fingerprint for report in veilcount.sent} == {minutes.fingerprint}
    assert {len(report.message) for report in veilcount.sent} == {2}
    assert all(minutes.mechanism.valid(minutes.unpack(report.message)) for report in veilcount.sent)
    assert (entry.event, entry.day, entry.life, entry.spent) == ("2", "2", "60", 10)
    assert {each["description"].split(" of ")[1] for each in entry.sent} == {"678"}
    assert "4 levels drawn beforehand" in example
