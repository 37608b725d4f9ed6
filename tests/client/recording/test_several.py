"""A device that answers with several values does all that any other does."""

from __future__ import annotations

import pytest

from veilcount_client.errors import UnknownValue
from veilcount_client.testing import ClientHarness
from veilcount_shared.mechanisms import DrawnBit, SetSelection
from veilcount_shared.notice import notice

from ..device_fixtures import one_collection

TOOLS = {"values": ["pen", "grid", "mask", "ruler", "share"], "choose": "several", "epsilon": 2}


@pytest.mark.parametrize("most", [2, None])
@pytest.mark.parametrize("takes", ["first", "last"])
def test_ticks_leave_as_one_message_of_the_mechanism(
    veilcount: ClientHarness, most: int | None, takes: str
) -> None:
    """Whatever is recorded: a list, a set, nothing ticked, too many, no list."""
    keys = TOOLS | ({"most": most} if most else {}) | {"takes": takes}
    collections = one_collection("tools", **keys)
    tools = collections["tools"]
    client = veilcount.client(collections, strict=False)
    for value in (["pen"], {"grid", "mask"}, [], list(TOOLS["values"]), "pen"):  # type: ignore[call-overload] # of strings
        client.record("tools", value)
        veilcount.advance(days=1)
    veilcount.advance(days=2)
    [entry] = client.receipt().entries

    assert isinstance(tools.mechanism, SetSelection if most else DrawnBit)
    assert len(veilcount.sent) == 5
    assert all(tools.mechanism.valid(tools.unpack(report.message)) for report in veilcount.sent)
    assert (entry.event, entry.day, entry.spent) == ("2", "2", 10)


def test_a_set_that_the_app_goes_on_to_change_counts_as_it_was_recorded(
    veilcount: ClientHarness,
) -> None:
    """It waits in memory for its instant, hours after `record`."""
    client = veilcount.client(one_collection("tools", **TOOLS))
    ticked = {"pen", "grid"}
    client.record("tools", ticked)
    ticked.clear()
    veilcount.flush()

    assert veilcount.recorded == [("tools", {"pen", "grid"})]


def test_more_ticks_than_count_are_named_in_development(veilcount: ClientHarness) -> None:
    client = veilcount.client(one_collection("tools", **TOOLS, most=2), strict=True)
    client.record("tools", ["pen", "grid"])

    with pytest.raises(UnknownValue, match="at most 2"):
        client.record("tools", ["pen", "grid", "mask"])
    with pytest.raises(UnknownValue, match='closest: "pen"'):
        client.record("tools", ["penn"])


def test_the_notice_says_how_many_count() -> None:
    limited, any_number = (
        notice(one_collection("tools", **TOOLS, **most)["tools"]).texts()[0].text
        for most in ({"most": 2}, {})
    )

    assert "up to 2 of pen, grid" in limited
    assert "any of pen, grid" in any_number
